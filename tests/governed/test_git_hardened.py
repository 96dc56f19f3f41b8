"""The six git reads in repositories that try to run something."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from bounds import bounded, script

from veil.governed import Boundary, Denied, Policy, Rule
from veil.policy.git_reads import READS

pytestmark = pytest.mark.needs("git")


def git(folder: Path, *words: str) -> None:
    own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repo(ws: Path) -> Path:
    git(ws, "init", "-q")
    (ws / "f").write_text("one\n")
    git(ws, "add", "f")
    git(ws, "commit", "-qm", "one")
    (ws / "f").write_text("two\n")
    return ws


def test_the_reads_tell_what_git_tells(repo: Path) -> None:
    at = bounded(repo)
    assert at.run(["git", "status", "--short"]).stdout == " M f\n?? in\n"
    assert "modified:   f" in at.run(["git", "status"]).stdout
    assert at.run(["git", "branch", "--show-current"]).stdout == "main\n"
    assert at.run(["git", "rev-parse", "--show-toplevel"]).stdout == f"{repo}\n"
    assert "-one\n+two\n" in at.run(["git", "diff"]).stdout
    stat = at.run(["git", "diff", "--stat"])
    assert "1 file changed" in stat.stdout
    assert stat.argv == ("git", "diff", "--stat")
    assert stat.effect == "none"


def test_a_rule_or_level_of_the_host_still_holds(repo: Path) -> None:
    for policy in (
        Policy("always_deny"),
        Policy("blocklist", (Rule("no", "deny", prefix=("git",)),)),
        Policy("allowlist", (Rule("no", "deny", exact=("git", "status")),)),
    ):
        with pytest.raises(Denied) as error:
            bounded(repo, policy).run(["git", "status"])
        assert error.value.code == "policy_denied"


def trap(repo: Path, mark: Path) -> Path:
    """Everything by which a repository can start a program that the six reads might touch."""
    evil = script(repo / ".git" / "evil", f'echo "$0 $*" >> {mark}\ncat\n')
    hooks = repo / ".git" / "hooks"
    for hook in ("post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"):
        script(hooks / hook, f'echo "hook {hook}" >> {mark}\n')
    config = {
        "core.fsmonitor": str(evil),
        "core.pager": str(evil),
        "core.editor": str(evil),
        "core.sshCommand": str(evil),
        "core.alternateRefsCommand": str(evil),
        "pager.status": str(evil),
        "pager.diff": str(evil),
        "pager.branch": str(evil),
        "diff.external": str(evil),
        "diff.evil.command": str(evil),
        "diff.evil.textconv": str(evil),
        "filter.evil.clean": str(evil),
        "filter.evil.smudge": str(evil),
        "filter.evil.process": str(evil),
        "filter.evil.required": "true",
        "filter.a b.clean": str(evil),
        "alias.status": f"!{evil}",
        "alias.diff": f"!{evil}",
        "credential.helper": str(evil),
        "gc.auto": "1",
        "status.submoduleSummary": "true",
        "diff.submodule": "log",
        "interactive.diffFilter": str(evil),
        "color.ui": "always",
        "core.hooksPath": str(hooks),
    }
    for key, value in config.items():
        git(repo, "config", key, value)
    (repo / ".gitattributes").write_text('f filter=evil diff=evil\nin filter="a b" diff=evil\n*.bin diff=evil\n')
    return evil


@pytest.mark.parametrize("read", READS, ids=" ".join)
def test_nothing_of_the_repository_runs(repo: Path, read: tuple[str, ...]) -> None:
    mark = repo.parent / "mark"
    trap(repo, mark)
    os.utime(repo / "f")
    result = bounded(repo).run(read)
    assert result.returncode == 0, result.stderr
    assert not mark.exists(), mark.read_text()


def test_the_trap_has_teeth(repo: Path) -> None:
    mark = repo.parent / "mark"
    trap(repo, mark)
    os.utime(repo / "f")
    subprocess.run(["git", "diff"], cwd=repo, check=False, capture_output=True)
    subprocess.run(["git", "status"], cwd=repo, check=False, capture_output=True)
    assert mark.exists()


def test_a_submodule_runs_nothing_either(repo: Path) -> None:
    mark = repo.parent / "mark"
    inner = repo.parent / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x").write_text("1\n")
    git(inner, "add", "x")
    git(inner, "commit", "-qm", "x")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "module")
    evil = script(repo / "evil", f"echo x >> {mark}\ncat\n")
    git(repo / "module", "config", "filter.evil.clean", str(evil))
    git(repo / "module", "config", "core.fsmonitor", str(evil))
    (repo / "module" / ".gitattributes").write_text("* filter=evil\n")
    (repo / "module" / "x").write_text("2\n")
    for read in READS:
        assert bounded(repo).run(read).returncode == 0
    assert not mark.exists()


@pytest.mark.parametrize("where", ["above", "worktree file", "none"])
def test_a_repository_outside_the_workspace_is_not_read(ws: Path, where: str) -> None:
    outside = ws.parent if where == "above" else ws.parent / "outside"
    if where != "none":
        git(outside, "init", "-q")
    if where == "worktree file":
        (ws / ".git").write_text(f"gitdir: {outside}/.git\n")
    with pytest.raises(Denied) as error:
        bounded(ws).run(["git", "status"])
    assert error.value.code == "git_refused"
    assert ("allowed_paths" in str(error.value)) == (where == "worktree file")
    assert ("make the boundary around" in str(error.value)) == (where != "worktree file")


def linked(repo: Path, main: Path, at: Path) -> None:
    """A linked work tree of a new repository ``main``."""
    main.mkdir(parents=True)
    git(main, "init", "-q")
    (main / "f").write_text("one\n")
    git(main, "add", "f")
    git(main, "commit", "-qm", "one")
    git(main, "worktree", "add", "-q", "-b", "side", str(at))
    (at / "f").write_text("two\n")


def test_a_linked_work_tree_is_read_where_its_repository_may_be(tmp_path: Path) -> None:
    at = tmp_path / "side"
    linked(tmp_path, tmp_path / "main", at)
    with pytest.raises(Denied, match="this is a linked work tree"):
        bounded(at).run(["git", "status"])
    mark = tmp_path / "mark"
    evil = script(tmp_path / "evil", f"echo x >> {mark}\ncat\n")
    git(tmp_path / "main", "config", "core.fsmonitor", str(evil))
    git(tmp_path / "main", "config", "filter.evil.clean", str(evil))
    (at / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git(tmp_path / "main", "config", "diff.evil.textconv", str(evil))
    listed = bounded(at, Policy("allowlist", allowed_paths=(str(tmp_path / "main" / ".git"),)))
    assert listed.run(["git", "branch", "--show-current"]).stdout == "side\n"
    assert " M f\n" in listed.run(["git", "status", "--short"]).stdout
    assert "-one\n+two\n" in listed.run(["git", "diff"]).stdout
    assert listed.run(["git", "rev-parse", "--show-toplevel"]).stdout == f"{at}\n"
    assert not mark.exists()


def test_a_repository_by_another_name_inside_is_read(tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    ws.mkdir()
    git(ws, "init", "-q", f"--separate-git-dir={ws / 'store'}")
    (ws / "f").write_text("x\n")
    assert (ws / ".git").is_file()
    assert "?? f\n" in bounded(ws).run(["git", "status", "--short"]).stdout


@pytest.mark.parametrize("how", ["alternates", "alternates of alternates", "objects", "commondir"])
def test_no_part_of_a_repository_is_borrowed_from_outside(repo: Path, how: str) -> None:
    other = repo.parent / "other"
    linked(repo, other, repo.parent / "side")
    objects = repo / ".git" / "objects"
    if how == "alternates":
        (objects / "info" / "alternates").write_text(f"{other}/.git/objects\n")
    elif how == "alternates of alternates":
        (repo / "lent" / "info").mkdir(parents=True)
        (objects / "info" / "alternates").write_text("../../lent\n")
        (repo / "lent" / "info" / "alternates").write_text(f"{other}/.git/objects\n")
    elif how == "objects":
        objects.rename(repo / "old")
        objects.symlink_to(other / ".git" / "objects")
    else:
        (repo / ".git" / "commondir").write_text(f"{other}/.git\n")
    with pytest.raises(Denied, match="outside the workspace") as error:
        bounded(repo).run(["git", "diff"])
    assert error.value.code == "git_refused"


def test_core_worktree_leads_nowhere(repo: Path) -> None:
    git(repo, "config", "core.worktree", str(repo.parent / "outside"))
    result = bounded(repo).run(["git", "status", "--short"])
    assert "secret" not in result.stdout


def test_only_at_the_top_of_the_workspace(repo: Path) -> None:
    at = bounded(repo)
    at.chdir("sub")
    with pytest.raises(Denied, match="only run at the top of the workspace"):
        at.run(["git", "status"])


WAYS = (
    ["./g", "push"],
    ["env", "./g", "push"],
    ["nice", "-n", "1", "./g", "push"],
    ["sh", "-c", "./g push"],
    ["sh", "-c", "cd . && ./g push"],
    ["sh", "-c", "cd sub; ../g push"],
    ["sh", "-c", "cd sub && ./deep push"],
    ["sh", "-c", "cd sub; cd .; ./deep push"],
    ["sh", "-c", "cd $PWD/sub; ./deep push"],
    ["sh", "-c", "make; ./notyet push"],
    ["sh", "-c", "PATH=$PWD:$PATH; g push"],
    ["sh", "-c", "env PATH=. g push"],
    ["sh", "-c", ". ./x; ./g push"],
    ["env", "PATH=.", "g", "push"],
    ["env", "-C", "sub", "../g", "push"],
    ["find", ".", "-name", "g", "-exec", "{}", "push", ";"],
    ["find", ".", "-maxdepth", "0", "-exec", "./g", "push", ";"],
    ["find", ".", "-maxdepth", "0", "-execdir", "./ws/g", "push", ";"],
    ["xargs", "./g", "push"],
    ["setsid", "-w", "./g", "push"],
    ["bash", "-c", "exec -a ls ./g push"],
    ["./indirect"],
)


@pytest.mark.parametrize("kind", ["link", "hard link", "copy"])
def test_git_by_another_name_in_the_workspace_never_starts(repo: Path, kind: str) -> None:
    """A program called git that leaves a mark takes the place of git, and gets other names in the workspace."""
    tools, mark = repo.parent / "tools", repo.parent / "mark"
    real = script(tools / "git", f'echo "$0 $*" >> {mark}\n')
    named = repo / "g"
    if kind == "link":
        named.symlink_to(real)
    elif kind == "hard link":
        os.link(real, named)
    else:
        script(named, f'echo "$0 $*" >> {mark}\n')
    (repo / "sub" / "deep").symlink_to("../g")
    (repo / "x").write_text(":\n")
    (repo / "indirect").write_text("#!./g push\n")
    (repo / "indirect").chmod(0o755)
    everything = Policy("always_allow", (Rule("all", "allow", prefix=("./g",)), Rule("env", "allow", prefix=("env",))))
    at = bounded(repo, everything, path=[str(tools), "/usr/bin", "/bin"], approver=lambda question: True)
    for argv in WAYS:
        with pytest.raises(Denied) as error:
            at.run(argv)
        assert error.value.code in ("git_refused", "executable_refused", "outside_workspace"), argv
    assert not mark.exists()
    subprocess.run(["sh", "-c", "./g push"], cwd=repo, check=True)
    assert mark.exists()


def test_no_approval_and_no_path_gets_around_the_guard(repo: Path) -> None:
    (repo / "g").symlink_to("/usr/bin/git")
    at: Boundary = bounded(repo, Policy("always_allow"), approver=lambda question: True)
    for argv in (["/usr/bin/git", "status"], ["./g", "status"], ["env", "git", "status"], ["git", "status", "-s"]):
        with pytest.raises(Denied) as error:
            at.run(argv)
        assert error.value.code == "git_refused"
