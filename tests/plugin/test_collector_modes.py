"""Recordings that stand alone, run for real and recorded again, in sessions of every kind."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from standing_alone import (
    NAME,
    ONE_STEP_FAILED,
    STEPS,
    SUBTESTS,
    asked,
    lines,
    outcomes,
    pytest_run,
    recorded,
    slot,
    suite,
    told,
)

from veil.taping import Header, Slot, Workspace, decode, encode

__all__ = ["slot", "suite"]


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
