"""Recordings that stand alone: collected under ``--veil``, played from the file, run for real, recorded again."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from veil.taping import (
    DETERMINISTIC,
    Cassette,
    Header,
    Recorder,
    Slot,
    Step,
    Workspace,
    decode,
    encode,
    new_header,
    play,
    record_again,
    run_cassette,
    stage_for,
    take_slot,
)

ROOT = Path(__file__).parents[2]
BASH = Path("/bin/bash")
NAME = "fix.veil.txtar"
#: The plugin of this checkout, where it is not installed.
PLUGIN = () if any(entry.name == "veil" for entry in entry_points(group="pytest11")) else ("-p", "pytest_veil.plugin")


def pytest_run(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A session of its own, in a process of its own."""
    argv = [
        sys.executable,
        "-m",
        "pytest",
        *PLUGIN,
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
        *words,
    ]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **(env or {})},
        capture_output=True,
        text=True,
        timeout=200,
    )


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Counts of the last line, without subtests."""
    found = re.findall(r"(\d+) (passed|failed|error|skipped|deselected)", done.stdout.splitlines()[-1])
    return {word: int(number) for number, word in found}


#: Whether each step is a subtest; one that fails counts as a failure besides that of the test.
SUBTESTS = pytest.version_tuple >= (9, 0)
ONE_STEP_FAILED = {"failed": 1 + SUBTESTS}


def told(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str, str]]:
    """How each subtest ended, its number and its word."""
    return re.findall(r"SUB(PASSED|FAILED)\[step (\d+), ([a-z-]+): ", done.stdout)


def asked(text: str, **more: Any) -> Step:
    """What is to be recorded."""
    return Step(argv=(str(BASH), "-c", text), text=text, stream_bytes=100_000, timeout=60.0, **more)


@pytest.fixture
def slot() -> Any:
    with take_slot(DETERMINISTIC.place, "slot") as taken:
        yield taken


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


FILES = {"a.txt": (b"one\ntwo <root>\n", 0o644), "bin/go": (b"#!/bin/sh\necho go\n", 0o755)}
EFFECTS = (("Effects", {"ignored": False}),)
STEPS = (
    asked("cat a.txt; bin/go; pwd", expect=(("exit", 0), ("stdout_contains", "two"))),
    asked("echo x > n; rm a.txt", wishes=EFFECTS, expect=(("changed", ["n"]),)),
    asked("cat n >&2; exit 3"),
    asked("echo $WHO; cat", env=(("WHO", "me"),), stdin=b"given\n", cwd="<root>/bin"),
)


def recorded(
    path: Path, slot: Slot, *steps: Step, workspace: Workspace | None = None, header: Header | None = None
) -> Cassette:
    """Really run, and written to ``path``."""
    header = header or Header("deterministic", DETERMINISTIC.version, workspace or Workspace("inline", files=FILES))
    stage = stage_for(header, path, slot.path, os.environ)
    new, played = record_again(Cassette(header, steps or STEPS), Recorder(stage))
    assert [one.error for one in played] == [None] * len(played)
    path.write_bytes(encode(new))
    return new


def lines(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.veil.txtar"))


# -- what is collected


def test_only_under_veil_and_outside_cassettes(suite: Path, slot: Slot) -> None:
    for place in (".", "evals/deep", "cassettes", "evals/cassettes/deep"):
        (suite / place).mkdir(parents=True, exist_ok=True)
        recorded(suite / place / NAME, slot, asked("true"))
    (suite / "test_it.py").write_text("def test_it(): pass\n")
    plain = pytest_run(suite, "--collect-only", "-qq")
    assert plain.stdout.split() == ["test_it.py:", "1"]
    found = pytest_run(suite, "--veil", "--collect-only", "-q")
    ids = [line for line in found.stdout.splitlines() if "::" in line and not line.startswith(" ")]
    assert ids == ["evals/deep/fix.veil.txtar::fix", "fix.veil.txtar::fix", "test_it.py::test_it"]


def test_a_project_inside_a_folder_called_cassettes(tmp_path: Path, slot: Slot) -> None:
    folder = tmp_path / "cassettes/project"
    folder.mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    recorded(folder / NAME, slot, asked("true"))
    assert outcomes(pytest_run(folder, "--veil")) == {"passed": 1}


def test_a_chosen_root_of_recordings_is_not_collected(suite: Path, slot: Slot) -> None:
    for place in ("recordings/sub", "evals"):
        (suite / place).mkdir(parents=True)
        recorded(suite / place / NAME, slot, asked("true"))
    done = pytest_run(suite, "--veil", "--veil-cassettes=recordings", "-v")
    assert outcomes(done) == {"passed": 1}
    assert "evals/fix.veil.txtar::fix PASSED" in done.stdout


def test_without_veil_a_file_named_outright_is_no_test(suite: Path, slot: Slot) -> None:
    recorded(suite / NAME, slot, asked("true"))
    done = pytest_run(suite, NAME)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no match" in done.stderr
    assert pytest_run(suite, "--veil", NAME).returncode == 0


def test_by_node_id_and_by_expression(suite: Path, slot: Slot) -> None:
    for name in ("alpha", "beta"):
        recorded(suite / f"{name}.veil.txtar", slot, asked("true"))
    assert outcomes(pytest_run(suite, "--veil", "beta.veil.txtar::beta")) == {"passed": 1}
    assert outcomes(pytest_run(suite, "--veil", "-k", "alpha")) == {"passed": 1, "deselected": 1}


def test_nothing_is_read_while_collecting(suite: Path) -> None:
    (suite / NAME).write_bytes(b"no cassette at all")
    done = pytest_run(suite, "--veil", "--collect-only", "-q")
    assert (done.returncode, "fix.veil.txtar::fix" in done.stdout) == (0, True)


# -- replay


def test_a_recording_is_a_test_and_each_step_a_subtest(suite: Path, slot: Slot) -> None:
    recorded(suite / NAME, slot)
    done = pytest_run(suite, "--veil", "-v", "--veil-report=report.json")
    assert outcomes(done) == {"passed": 1}, done.stdout
    if SUBTESTS:
        assert done.stdout.count("SUBPASSED") == len(STEPS)
        assert "SUBPASSED[step 3: cat n >&2; exit 3]" in done.stdout
    item = json.loads((suite / "report.json").read_text())["items"][0]
    assert (item["nodeid"], item["verdict"], item["outcome"]) == ("fix.veil.txtar::fix", "replayed", "passed")
    assert [step["word"] for step in item["steps"]] == ["replayed"] * len(STEPS)


def test_a_replay_starts_no_process(suite: Path, slot: Slot, tmp_path: Path) -> None:
    witness = tmp_path / "it-ran"
    text = f"echo ran >> {shlex.quote(str(witness))}; echo said"
    recorded(suite / NAME, slot, asked(text), asked(text))
    assert witness.read_text() == "ran\n" * 2
    # the audit hook sees every way in which Python can start a process
    (suite / "conftest.py").write_text(
        "import sys\n"
        "def hook(event, args):\n"
        "    if event in ('subprocess.Popen', 'os.fork', 'os.forkpty', 'os.posix_spawn', 'os.exec', 'os.system'):\n"
        "        raise RuntimeError(event)\n"
        "def pytest_runtest_call(item):\n"
        "    sys.addaudithook(hook)\n"
    )
    assert outcomes(pytest_run(suite, "--veil")) == {"passed": 1}
    assert witness.read_text() == "ran\n" * 2
    assert outcomes(pytest_run(suite, "--veil-mode=live")) == {"failed": 1}


def test_an_expectation_that_does_not_hold_names_the_step(suite: Path, slot: Slot) -> None:
    tape = recorded(suite / NAME, slot)
    bad = replace(tape.steps[0], expect=(("stdout_contains", "three"), ("exit", 1)))
    (suite / NAME).write_bytes(encode(replace(tape, steps=(bad, *tape.steps[1:]))))
    for words in (("--veil",), ("--veil", "-p", "no:subtests")):
        done = pytest_run(suite, *words)
        assert done.returncode == pytest.ExitCode.TESTS_FAILED
        assert "step 1 of 4: stdout_contains: stdout does not contain 'three'" in done.stdout
        assert "and exit: exit is 0, expected 1" in done.stdout
        assert "    | two /" in done.stdout  # the token of an inline file is a folder now
        assert "Traceback" not in done.stdout
        assert "trajectories.py" not in done.stdout


def test_other_steps_are_judged_after_one_that_fails(suite: Path, slot: Slot) -> None:
    tape = recorded(suite / NAME, slot)
    steps = [replace(step, expect=(("exit", 9),)) if n in (0, 2) else step for n, step in enumerate(tape.steps)]
    (suite / NAME).write_bytes(encode(replace(tape, steps=tuple(steps))))
    done = pytest_run(suite, "--veil")
    assert "step 1 of 4: exit" in done.stdout
    assert "step 3 of 4: exit" in done.stdout


@pytest.mark.parametrize("workspace", ["changed", "missing step"])
def test_a_step_that_was_recorded_upon_other_files_does_not_hold(suite: Path, slot: Slot, workspace: str) -> None:
    tape = recorded(suite / NAME, slot, asked("echo 1 > n"), asked("echo 2 > n"), asked("true"))
    if workspace == "changed":
        files = {"n": (b"zero\n", 0o644)}
        tape = replace(tape, header=replace(tape.header, workspace=Workspace("inline", files=files)))
        number, found = 1, "file:644:"
    else:
        tape = replace(tape, steps=tape.steps[1:])
        number, found = 1, "absent here"
    (suite / NAME).write_bytes(encode(tape))
    done = pytest_run(suite, "--veil")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"step {number} was recorded where n was" in done.stdout
    assert found in done.stdout
    assert f"steps {number + 1} to {len(tape.steps)} were not played" in done.stdout
    assert outcomes(pytest_run(suite, "--veil", "--veil-on-drift=ignore")) == {"passed": 1}


def _torn(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _edited(data: bytes) -> bytes:
    return data.replace(b"go\n/", b"gone\n/").replace(b"\ngo\n", b"\ngone\n")


DAMAGE = {
    "empty": (lambda data: b"", "the file is empty"),
    "torn": (_torn, "torn"),
    "foreign": (lambda data: b"hello\n", "not a cassette"),
    "edited": (_edited, "edited by hand"),
    "of the future": (lambda data: data.replace(b"veil cassette 1\n", b"veil cassette 7\n"), "recorded in format 7"),
    "of windows": (lambda data: data.replace(b"\n", b"\r\n"), "CRLF"),
}


def test_each_damaged_file_is_a_failed_test(suite: Path, slot: Slot) -> None:
    recorded(suite / NAME, slot)
    whole = (suite / NAME).read_bytes()
    for number, (change, _) in enumerate(DAMAGE.values()):
        (suite / f"damage{number}.veil.txtar").write_bytes(change(whole))
    done = pytest_run(suite, "--veil", "--veil-report=report.json")
    assert (done.returncode, outcomes(done)) == (1, {"failed": len(DAMAGE), "passed": 1})
    items = {item["nodeid"]: item for item in json.loads((suite / "report.json").read_text())["items"]}
    for number, (_, said) in enumerate(DAMAGE.values()):
        assert re.search(rf"^damage{number}\.veil\.txtar:\d+: .*{said}", done.stdout, re.MULTILINE), (said, done.stdout)
        item = items[f"damage{number}.veil.txtar::damage{number}"]
        assert (item["verdict"], item["outcome"]) == ("error", "failed")
    assert "INTERNALERROR" not in done.stdout


@pytest.mark.parametrize("mode", ["record", "refresh", "verify", "live"])
def test_a_torn_file_is_a_failed_test_and_stays_in_every_mode(suite: Path, slot: Slot, mode: str) -> None:
    recorded(suite / NAME, slot)
    broken = _torn((suite / NAME).read_bytes())
    (suite / NAME).write_bytes(broken)
    done = pytest_run(suite, f"--veil-mode={mode}")
    assert (done.returncode, outcomes(done)) == (1, {"failed": 1})
    assert "the file is torn" in done.stdout
    assert (suite / NAME).read_bytes() == broken


def test_a_recording_of_a_python_test_that_was_moved_here(suite: Path, slot: Slot) -> None:
    tape = recorded(suite / NAME, slot)
    (suite / NAME).write_bytes(encode(replace(tape, header=Header("deterministic", 1))))
    done = pytest_run(suite, "--veil")
    assert outcomes(done) == {"failed": 1}
    assert "its header names no workspace" in done.stdout


def test_an_unknown_profile(suite: Path, slot: Slot) -> None:
    tape = recorded(suite / NAME, slot)
    (suite / NAME).write_bytes(encode(replace(tape, header=replace(tape.header, profile="moon"))))
    done = pytest_run(suite, "--veil")
    assert outcomes(done) == {"failed": 1}
    assert "recorded under the profile 'moon'; known are deterministic, inherit" in done.stdout


def test_stops_at_the_first_failure_when_asked(suite: Path, slot: Slot) -> None:
    tape = recorded(suite / "a.veil.txtar", slot)
    steps = tuple(replace(step, expect=(("exit", 9),)) for step in tape.steps)
    (suite / "a.veil.txtar").write_bytes(encode(replace(tape, steps=steps)))
    recorded(suite / "b.veil.txtar", slot)
    done = pytest_run(suite, "--veil", "-x")
    assert "step 1 of 4" in done.stdout
    assert "step 2 of 4" not in done.stdout
    assert "passed" not in outcomes(done)


def test_hooks_change_its_steps_when_it_is_recorded_and_when_it_is_verified(suite: Path, slot: Slot) -> None:
    recorded(suite / NAME, slot)
    (suite / "conftest.py").write_text("""
import dataclasses

def pytest_veil_record(config, nodeid, step):
    stdout = dataclasses.replace(step.ending.stdout, head=b"a hook\\n", total_bytes=7, total_lines=1, whole=None)
    return dataclasses.replace(step, ending=dataclasses.replace(step.ending, stdout=stdout))
""")
    assert outcomes(pytest_run(suite, "--veil-mode=record")) == {"passed": 1}
    assert b"a hook" in (suite / NAME).read_bytes()
    assert outcomes(pytest_run(suite, "--veil-mode=verify")) == {"passed": 1}
    (suite / "conftest.py").unlink()
    assert "failed" in outcomes(pytest_run(suite, "--veil-mode=verify"))


def test_background_steps_replay_and_are_run_again(suite: Path, slot: Slot) -> None:
    header = Header("deterministic", 1, Workspace("inline"))
    stage = stage_for(header, suite / NAME, slot.path, os.environ)
    recorder = Recorder(stage)
    handle = recorder.start("echo up; sleep 300", {})
    handle.wait_for(pattern="up")
    recorder.run("echo beside", {})
    (suite / NAME).write_bytes(encode(recorder.cassette(header)))
    assert outcomes(pytest_run(suite, "--veil")) == {"passed": 1}
    assert outcomes(pytest_run(suite, "--veil-mode=live")) == {"passed": 1}


# -- workspaces


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    script = "git init -q . && echo 1 > f && git add f && git commit -qm one && echo 2 > f && git commit -qam two"
    names = {f"GIT_{who}_{what}": "t@e.st" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(script, shell=True, cwd=root, check=True, env={**os.environ, **names})
    return root


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


# -- verify, record, refresh


def test_verify_runs_it_for_real(suite: Path, slot: Slot) -> None:
    recorded(suite / NAME, slot)
    done = pytest_run(suite, "--veil-mode=verify", "--veil-report=report.json", "--veil-runs=2", "-v")
    assert outcomes(done) == {"passed": 1}, done.stdout
    if SUBTESTS:  # one a step, however often it was run
        assert told(done) == [("PASSED", str(number), "exact") for number in range(1, len(STEPS) + 1)]
    item = json.loads((suite / "report.json").read_text())["items"][0]
    assert (item["verdict"], [step["word"] for step in item["steps"]]) == ("exact", ["exact"] * len(STEPS))
    assert item["steps"][0]["runs"] == {"as_recorded": 2, "of": 2}


def test_verify_names_the_first_step_that_differs(suite: Path, slot: Slot, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("then\n")
    text = f"cat {shlex.quote(str(outside))}"
    recorded(suite / NAME, slot, asked("echo same"), asked(text), asked("cp a.txt b"))
    outside.write_text("now\n")
    done = pytest_run(suite, "--veil-mode=verify", "--veil-report=report.json", "-v")
    assert outcomes(done) == ONE_STEP_FAILED
    if SUBTESTS:
        wanted = [("PASSED", "1", "exact"), ("FAILED", "2", "output-drift"), ("PASSED", "3", "exact")]
        assert told(done)[:3] == wanted
    assert "output-drift at step 2 of 3" in done.stdout
    item = json.loads((suite / "report.json").read_text())["items"][0]
    assert (item["verdict"], item["first_divergence"]) == ("output-drift", 2)
    assert [step["word"] for step in item["steps"]] == ["exact", "output-drift", "exact"]


def test_verify_tells_unstable_from_wrong(suite: Path, slot: Slot) -> None:
    recorded(suite / NAME, slot, asked("od -An -N24 -tu1 /dev/urandom"))
    done = pytest_run(suite, "--veil-mode=verify")
    assert outcomes(done) == ONE_STEP_FAILED
    assert "unstable at step 1 of 1" in done.stdout


def test_verify_without_subtests_is_one_failure(suite: Path, slot: Slot) -> None:
    recorded(suite / NAME, slot, asked("od -An -N24 -tu1 /dev/urandom"))
    done = pytest_run(suite, "--veil-mode=verify", "-p", "no:subtests")
    assert outcomes(done) == {"failed": 1}
    assert "unstable at step 1 of 1" in done.stdout


@pytest.mark.parametrize("mode", ["verify", "record"])
def test_the_first_step_that_fails_is_the_last_failure_when_asked(suite: Path, slot: Slot, mode: str) -> None:
    text = "od -An -N24 -tu1 /dev/urandom"
    tape = recorded(suite / "a.veil.txtar", slot, asked(text), asked(text))
    steps = tuple(replace(step, expect=(("exit", 9),)) for step in tape.steps)
    (suite / "a.veil.txtar").write_bytes(encode(replace(tape, steps=steps)))
    before = (suite / "a.veil.txtar").read_bytes()
    recorded(suite / "b.veil.txtar", slot)
    done = pytest_run(suite, f"--veil-mode={mode}", "-x", "-v")
    assert "step 1 of 2" in done.stdout
    assert "b.veil.txtar::b: it was not run" in done.stdout
    assert outcomes(done) == ONE_STEP_FAILED
    assert (suite / "a.veil.txtar").read_bytes() == before


def test_what_workers_say_of_steps_is_what_one_process_says(suite: Path, slot: Slot) -> None:
    pytest.importorskip("xdist")
    recorded(suite / NAME, slot, asked("echo same"), asked("od -An -N24 -tu1 /dev/urandom"))
    alone, many = (pytest_run(suite, "--veil-mode=verify", "-v", *words) for words in ((), ("-n", "2")))
    assert outcomes(alone) == outcomes(many) == ONE_STEP_FAILED
    assert sorted(told(alone)) == sorted(told(many))


def test_recording_again_writes_the_same_bytes_and_only_this_file(suite: Path, slot: Slot) -> None:
    recorded(suite / NAME, slot)
    recorded(suite / "other.veil.txtar", slot, asked("true"))
    before = {path: (suite / path).read_bytes() for path in lines(suite)}
    (suite / NAME).chmod(0o640)
    assert outcomes(pytest_run(suite, "--veil-mode=record", NAME)) == {"passed": 1}
    assert {path: (suite / path).read_bytes() for path in lines(suite)} == before
    assert sorted(path.name for path in suite.iterdir() if path.name.startswith(".veil")) == []


def test_recording_again_takes_what_is_true_now(suite: Path, slot: Slot, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("then\n")
    text = f"cat {shlex.quote(str(outside))}"
    old = recorded(suite / NAME, slot, asked("echo $RANDOM$RANDOM"), asked(text), asked("true"))
    outside.write_text("now\n")
    (suite / NAME).chmod(0o640)
    assert outcomes(pytest_run(suite, "--veil")) == {"passed": 1}
    assert outcomes(pytest_run(suite, "--veil-mode=record-missing")) == {"passed": 1}
    assert decode((suite / NAME).read_bytes(), NAME) == old
    done = pytest_run(suite, "--veil-mode=record", "-v")
    assert outcomes(done) == {"passed": 1}
    if SUBTESTS:
        assert told(done) == [("PASSED", str(number), "recorded") for number in (1, 2, 3)]
    new = decode((suite / NAME).read_bytes(), NAME)
    assert (new.header, new.steps[2]) == (old.header, old.steps[2])
    assert new.steps[1].ending.stdout.head == b"now\n"
    assert (suite / NAME).stat().st_mode & 0o777 == 0o640


def test_refresh_keeps_the_bytes_of_steps_that_are_the_same(suite: Path, slot: Slot, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("then\n")
    steps = (asked("date +%s%N"), asked(f"cat {shlex.quote(str(outside))}"))
    old = recorded(suite / NAME, slot, *steps)
    outside.write_text("now\n")
    done = pytest_run(suite, "--veil-mode=refresh", "--veil-report=report.json", "-v")
    assert outcomes(done) == {"passed": 1}, done.stdout
    if SUBTESTS:
        assert told(done) == [("PASSED", "1", "kept"), ("PASSED", "2", "recorded")]
    new = decode((suite / NAME).read_bytes(), NAME)
    assert new.steps[0] == old.steps[0]
    assert new.steps[1].ending.stdout.head == b"now\n"
    item = json.loads((suite / "report.json").read_text())["items"][0]
    assert (item["verdict"], [step["word"] for step in item["steps"]]) == ("refreshed", ["kept", "recorded"])


@pytest.mark.parametrize("mode", ["record", "refresh"])
def test_a_recording_whose_expectations_do_not_hold_is_left_as_it_was(
    suite: Path, slot: Slot, tmp_path: Path, mode: str
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("then\n")
    expect = (("stdout_contains", "then"),)
    recorded(suite / NAME, slot, asked(f"cat {shlex.quote(str(outside))}", expect=expect))
    before = (suite / NAME).read_bytes()
    outside.write_text("now\n")
    done = pytest_run(suite, f"--veil-mode={mode}", "--veil-report=report.json")
    assert outcomes(done) == ONE_STEP_FAILED
    assert "step 1 of 1: stdout_contains" in done.stdout
    assert "was left as it was" in done.stdout
    assert (suite / NAME).read_bytes() == before
    assert json.loads((suite / "report.json").read_text())["items"][0]["verdict"] == "not-written"
    kept = pytest_run(suite, f"--veil-mode={mode}", "--veil-keep-failed")
    assert outcomes(kept) == ONE_STEP_FAILED
    assert decode((suite / NAME).read_bytes(), NAME).steps[0].ending.stdout.head == b"now\n"


def test_a_secret_of_the_ini_file_stands_nowhere(suite: Path, slot: Slot) -> None:
    secret = "Zq81-hunter2-hunter2"
    recorded(
        suite / NAME,
        slot,
        asked("cat conf; cp conf copy", expect=(("exit", 0),)),
        workspace=Workspace("inline", files={"conf": (secret.encode() + b"\n", 0o644)}),
    )
    (suite / "pytest.ini").write_text(f"[pytest]\nveil_secrets =\n    {secret}\n")
    assert outcomes(pytest_run(suite, "--veil-mode=record")) == {"passed": 1}
    tape = decode((suite / NAME).read_bytes(), NAME)
    assert secret.encode() not in encode(replace(tape, header=Header()))  # the inline files are the user's own
    bad = replace(tape.steps[0], expect=(("stdout_contains", "nope"),))
    (suite / NAME).write_bytes(encode(replace(tape, steps=(bad,))))
    for words in (("--veil-mode=live",), ("--veil-mode=verify", "--veil-report=report.json")):
        done = pytest_run(suite, *words)
        assert outcomes(done)["failed"] >= 1
        assert "step 1 of 1: stdout_contains" in done.stdout
        assert secret not in done.stdout
    assert secret not in (suite / "report.json").read_text()


# -- other sessions


OFF = ("cacheprovider", "capture", "tmpdir", "assertion", "junitxml", "logging", "subtests")


@pytest.mark.parametrize("mode", ["replay", "verify", "record"])
def test_other_plugins_turned_off(suite: Path, slot: Slot, mode: str) -> None:
    recorded(suite / NAME, slot)
    words = [word for name in OFF for word in ("-p", f"no:{name}")]
    done = pytest_run(suite, f"--veil-mode={mode}", "-W", "error", *words)
    assert outcomes(done) == {"passed": 1}, done.stdout + done.stderr
    assert pytest_run(suite, f"--veil-mode={mode}", "-p", "no:terminal").returncode == 0


def test_workers_of_xdist(suite: Path, slot: Slot) -> None:
    pytest.importorskip("xdist")
    for number in range(6):
        recorded(suite / f"case{number}.veil.txtar", slot, asked(f"echo {number} > f"), asked("cat f"))
    before = {path: (suite / path).read_bytes() for path in lines(suite)}
    tape = decode(before["case3.veil.txtar"], NAME)
    bad = encode(replace(tape, steps=(tape.steps[0], replace(tape.steps[1], expect=(("exit", 9),)))))
    for mode in ("replay", "record", "verify"):
        done = pytest_run(suite, "-n2", f"--veil-mode={mode}", "--veil-report=report.json")
        assert outcomes(done) == {"passed": 6}, done.stdout
        assert len(json.loads((suite / "report.json").read_text())["items"]) == 6
        assert {path: (suite / path).read_bytes() for path in lines(suite)} == before
    (suite / "case3.veil.txtar").write_bytes(bad)
    done = pytest_run(suite, "-n2", "--veil")
    assert done.returncode == 1
    assert "step 2 of 2: exit: exit is 0, expected 9" in done.stdout


def test_beside_python_tests_of_the_same_session(suite: Path, slot: Slot) -> None:
    recorded(suite / NAME, slot)
    (suite / "test_it.py").write_text(
        "def test_it(veil_run):\n    assert veil_run('echo hi > f; cat f').stdout == 'hi\\n'\n"
    )
    assert outcomes(pytest_run(suite, "--veil-mode=record")) == {"passed": 2}
    assert lines(suite) == ["cassettes/test_it.test_it.veil.txtar", NAME]
    assert outcomes(pytest_run(suite, "--veil")) == {"passed": 2}
    assert outcomes(pytest_run(suite, "--veil-mode=verify")) == {"passed": 2}


def test_recordings_that_stand_alone_are_never_stale(suite: Path, slot: Slot) -> None:
    recorded(suite / "alone.veil.txtar", slot)
    recorded(suite / "ignored.veil.txtar", slot)
    (suite / "conftest.py").write_text("collect_ignore = ['ignored.veil.txtar', 'mine.veil.txtar']\n")
    # a name of a recording is one below the folder of recordings, never beside what stands alone
    (suite / "test_it.py").write_text(
        "import pytest\n\n@pytest.mark.veil(cassette='mine.veil.txtar')\ndef test_it(veil_run):\n    veil_run('true')\n"
    )
    done = pytest_run(suite, "--veil-mode=record", "--veil-report=report.json")
    assert json.loads((suite / "report.json").read_text())["pruning"]["judged"] is True, done.stdout
    assert lines(suite) == ["alone.veil.txtar", "cassettes/mine.veil.txtar", "ignored.veil.txtar"]


def test_marks_from_a_conftest_choose_the_mode(suite: Path, slot: Slot) -> None:
    recorded(suite / NAME, slot)
    (suite / "conftest.py").write_text(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        item.add_marker(pytest.mark.veil(mode='verify'))\n"
    )
    done = pytest_run(suite, "--veil", "--veil-report=report.json")
    assert outcomes(done) == {"passed": 1}
    assert json.loads((suite / "report.json").read_text())["items"][0]["verdict"] == "exact"


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
