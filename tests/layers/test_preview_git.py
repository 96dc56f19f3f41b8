"""What a preview tells of a ``.git``: the same as a confined run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from previewing import tree

import veil
from veil.host.telling import starts_programs

__all__ = ["tree"]


@pytest.mark.linux
@pytest.mark.needs("git", "user namespaces")
def test_hooks_that_a_confined_command_would_leave_are_told_before_they_are_applied(tree: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=tree, check=True)
    text = (
        "git config core.pager x; echo x > .git/hooks/pre-commit; echo y > .git/hooks/z.sample; echo > .git/description"
    )
    result = veil.run(text, cwd=tree, preview=True, sandbox=True, check=True)
    assert result.to_dict()["preview_git"] == [".git/config", ".git/hooks/pre-commit"]
    assert "git runs programs" in str(result.advice)
    assert ".git/config, .git/hooks/pre-commit" in str(result.advice)
    calm = veil.run(
        "echo y > .git/description; mkdir -p hooks; echo > hooks/config", cwd=tree, preview=True, sandbox=True
    )
    assert "preview_git" not in calm.to_dict()
    # as after a run that is none, nobody is warned of what was not confined
    assert "preview_git" not in veil.run(text, cwd=tree, preview=True).to_dict()


@pytest.mark.parametrize(
    ("path", "runs"),
    [
        (".git/config", True),
        (".git/config.worktree", True),
        (".git/hooks/pre-push", True),
        (".git/hooks/below/x", True),
        ("vendor/it/.git/hooks/x", True),
        (".git/modules/a/b/config", True),
        (".git/modules/a/hooks/x", True),
        (".git/worktrees/w/config.worktree", True),
        ("sub/.git", True),
        (".git/hooks/x.sample", False),
        # a folder is not asked about: it is a link
        (".git/hooks", True),
        (".git/modules", True),
        (".git/modules/x", True),
        (".git/modules/x/hooks", True),
        (".git/modules/a/b/hooks", True),
        (".git/modules/a/modules/b/hooks/x", True),
        (".git/worktrees/w/modules/b/hooks/x", True),
        (".git/modules/hooks/hooks/x", True),
        (".git/commondir", True),
        (".git/modules/x/commondir", True),
        (".git/modules/hooks/objects/aa", False),
        (".git/modules/x/HEAD", False),
        (".git/refs/heads/hooks/x", False),
        (".git/refs/heads/modules", False),
        (".git/worktrees/hooks/logs", False),
        (".git/refs/heads/config", False),
        (".git/index", False),
        ("hooks/pre-push", False),
        ("config", False),
    ],
)
def test_what_git_runs(path: str, runs: bool) -> None:
    assert starts_programs(path) is runs


GIT_ROADS = {
    "a link for the hooks": (
        "rm -rf .git/hooks; mkdir h; ln -s ../h .git/hooks; echo x > h/pre-commit; echo y > h/y.sample",
        [".git/hooks", ".git/hooks/pre-commit"],
    ),
    "through a link that was there": ("echo x > there/pre-push; echo y > there/y.sample", [".git/hooks/pre-push"]),
    "no link any more": (
        "rm .git/hooks; mkdir .git/hooks; echo x > .git/hooks/pre-push",
        [".git/hooks", ".git/hooks/pre-push"],
    ),
    "hooks of a submodule": ("ln -s ../../../h .git/modules/x/hooks", [".git/modules/x/hooks"]),
    "a common folder": ("echo ../h > .git/commondir", [".git/commondir"]),
    "that of a submodule": ("echo ../../../h > .git/modules/x/commondir", [".git/modules/x/commondir"]),
    "a link for a submodule": ("ln -s ../../there .git/modules/y", [".git/modules/y"]),
    "a link for all submodules": ("rm -rf .git/modules; ln -s ../there .git/modules", [".git/modules"]),
    "a submodule with that name": (
        "mkdir -p .git/modules/hooks/objects; cd .git/modules/hooks; echo > HEAD; echo > objects/a",
        [],
    ),
}


@pytest.mark.linux
@pytest.mark.needs("git", "user namespaces")
@pytest.mark.parametrize("road", GIT_ROADS)
def test_a_preview_tells_of_git_what_the_run_itself_would_tell(tree: Path, road: str) -> None:
    text, told = GIT_ROADS[road]
    subprocess.run(["git", "init", "-q", "."], cwd=tree, check=True)
    (tree / ".git/modules/x").mkdir(parents=True)
    (tree / ".git/modules/x/HEAD").write_text("ref: refs/heads/main\n")
    (tree / "there").mkdir()
    if "was there" in road or "any more" in road:
        shutil.rmtree(tree / ".git/hooks")
        (tree / ".git/hooks").symlink_to("../there")
    preview = veil.run(text, cwd=tree, preview=True, sandbox=True, check=True)
    assert preview.to_dict().get("preview_git", []) == told
    done = veil.run(text, cwd=tree, sandbox=True, check=True)
    assert done.sandbox is not None
    assert done.sandbox.get("git_changed", []) == told
