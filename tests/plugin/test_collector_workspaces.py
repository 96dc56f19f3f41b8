"""Where a recording that stands alone is played: its workspace, its stage, and playing without pytest."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import two_commits
from standing_alone import EFFECTS, NAME, asked, outcomes, pytest_run, recorded, slot, suite

from veil.taping import DETERMINISTIC, Recorder, Slot, Workspace, encode, new_header, play, run_cassette, stage_for

__all__ = ["slot", "suite"]


# -- workspaces


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return two_commits.repository(tmp_path / "repo")


def test_a_workspace_from_a_git_revision(suite: Path, slot: Slot, repository: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD~1"], cwd=repository, capture_output=True, text=True, check=True)
    workspace = Workspace("git", "../repo", head.stdout.strip())
    tape = recorded(
        suite / NAME,
        slot,
        asked("cat f; git log --format=%s; git status --short --branch; git diff-files"),
        asked("echo 9 > f; git commit -qam nine; git log --format=%s", wishes=EFFECTS),
        workspace=workspace,
    )
    assert tape.steps[0].ending.stdout.head == b"1\none\n## main\n"
    assert tape.steps[1].ending.stdout.head == b"nine\none\n"
    assert outcomes(pytest_run(suite, "--veil")) == {"passed": 1}
    assert outcomes(pytest_run(suite, "--veil-mode=verify")) == {"passed": 1}
    # the repository itself is only read
    state = subprocess.run("git status --short; git log --format=%s", shell=True, cwd=repository, capture_output=True)
    assert state.stdout == b"two\none\n"


def test_a_revision_that_the_repository_does_not_have(suite: Path, slot: Slot, repository: Path) -> None:
    tape = recorded(suite / NAME, slot, asked("true"))
    for where, said in (("../repo", "does not find it"), ("../nowhere", "cannot be made")):
        workspace = Workspace("git", where, "0" * 39 + "1")
        (suite / NAME).write_bytes(encode(replace(tape, header=replace(tape.header, workspace=workspace))))
        done = pytest_run(suite, "--veil")
        assert (outcomes(done), said in done.stdout) == ({"failed": 1}, True), done.stdout


def test_a_shallow_repository_is_enough(suite: Path, slot: Slot, repository: Path, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", repository.as_uri(), str(shallow)], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=shallow, capture_output=True, text=True, check=True)
    workspace = Workspace("git", "../shallow", head.stdout.strip())
    tape = recorded(suite / NAME, slot, asked("cat f; git log --format=%s"), workspace=workspace)
    assert tape.steps[0].ending.stdout.head == b"2\ntwo\n"


def test_a_workspace_from_a_folder_whatever_the_umask_was(suite: Path, slot: Slot) -> None:
    start = suite / "start"
    (start / "sub").mkdir(parents=True)
    (start / "sub/f").write_text("1\n")
    (start / "link").symlink_to("sub/f")
    (start / ".git").mkdir()
    (start / ".git/config").write_text("[core]\n")
    recorded(
        suite / NAME, slot, asked("cat link; ls -A; echo 2 > sub/f; rm link"), workspace=Workspace("folder", "start")
    )
    assert outcomes(pytest_run(suite, "--veil")) == {"passed": 1}
    # another checkout has other permissions, and the same content
    (start / "sub/f").chmod(0o664)
    (start / "sub").chmod(0o2775)
    assert outcomes(pytest_run(suite, "--veil")) == {"passed": 1}
    assert (start / "sub/f").read_text() == "1\n"
    (start / "sub/f").write_text("other\n")
    done = pytest_run(suite, "--veil")
    assert outcomes(done) == {"failed": 1} or "failed" in outcomes(done)
    assert "step 1 was recorded where sub/f was file:644:" in done.stdout


def test_a_workspace_cannot_be_written_outside(suite: Path, slot: Slot) -> None:
    tape = recorded(suite / NAME, slot, asked("true"))
    for path in ("../out", "/tmp/veil-out", "a/../../out"):
        workspace = Workspace("inline", files={path: (b"x\n", 0o644)})
        (suite / NAME).write_bytes(encode(replace(tape, header=replace(tape.header, workspace=workspace))))
        done = pytest_run(suite, "--veil")
        assert (outcomes(done), "is no path below the workspace" in done.stdout) == ({"failed": 1}, True)
    assert not Path("/tmp/veil-out").exists()


# -- playing, without pytest


def test_results_of_a_cassette(tmp_path: Path, slot: Slot) -> None:
    tape = recorded(tmp_path / NAME, slot)
    stage = stage_for(tape.header, tmp_path / NAME, slot.path, os.environ)
    played = run_cassette(tape, Recorder(stage))
    assert [one.result.exit for one in played if one.result] == [0, 0, 3, 0]
    assert played[3].result is not None
    assert played[3].result.stdout == "me\ngiven\n"
    assert [one.failures for one in played] == [()] * 4


def test_a_new_header_holds_no_secret_and_the_stage_is_the_same(tmp_path: Path, slot: Slot) -> None:
    from veil.taping import Stage

    secret = "Zq81-hunter2-hunter2"
    stage = Stage.make(slot.path, DETERMINISTIC, os.environ, secrets=(secret,))
    start = Workspace("inline", files={"f": (f"<root> {stage.root} {secret}\n".encode(), 0o644)})
    header = new_header(start, stage, tmp_path / NAME)
    written = header.workspace.files["f"][0]
    assert secret.encode() not in written
    assert written.startswith(b"<=root> <root> ")
    assert (stage.root / "f").read_bytes().startswith(f"<root> {stage.root} ".encode())
    assert secret.encode() not in (stage.root / "f").read_bytes()


def test_a_wish_that_cannot_be_asked_for_again(tmp_path: Path, slot: Slot) -> None:
    tape = recorded(tmp_path / NAME, slot, asked("true"))
    odd = replace(tape, steps=(replace(tape.steps[0], wishes=(("Moon", {}),)),))
    stage = stage_for(tape.header, tmp_path / NAME, slot.path, os.environ)
    played = list(play(odd, Recorder(stage)))
    assert [one.error.code for one in played if one.error] == ["cannot_ask"]
