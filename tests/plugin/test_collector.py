"""Recordings that stand alone: which are collected under ``--veil``, and how they are played from the file."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from standing_alone import NAME, STEPS, SUBTESTS, asked, outcomes, pytest_run, recorded, slot, suite

from veil.taping import Header, Recorder, Slot, Workspace, encode, stage_for

__all__ = ["slot", "suite"]


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
