"""What a terminal shows of the eval mode: one line on top, a summary at the end, and nothing when it is off."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from eval_projects import Project

SUITE = """
import pytest

@pytest.mark.parametrize("number", range(25))
def test_many(veil_run, number):
    veil_run("echo took $(cat $WORLD/seconds) seconds")

def test_unused(veil_run):
    veil_run("echo a")
    import os
    if "LESS" not in os.environ:
        veil_run("echo b")
        veil_run("echo c")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("terminal"))
    made.tests(SUITE)
    made.given("seconds", "1.5")
    made.recorded()
    made.given("seconds", "2.75")
    return made


def summary(text: str) -> list[str]:
    """The lines of veil's section."""
    found = re.search(r"=+ veil: [a-z-]+ =+\n(.*?)\n=+ ", text, re.DOTALL)
    return found[1].splitlines() if found else []


def test_verify_says_what_was_masked_and_shortens_long_lists(project: Project) -> None:
    done = project.pytest("verify")
    assert done.status == 0, done.text
    assert "\nveil: verify, profile deterministic 1, cassettes beside the tests\n" in done.text
    lines = summary(done.text)
    assert lines[:3] == ["26 recordings: 25 weak, 1 exact", "28 steps: 25 weak, 3 exact", "masked:"]
    assert lines[3] == "  test_it.py::test_many[0] step 1: durations"
    assert "  (5 more; -v shows them)" in lines
    assert lines[-1].startswith("report: ")
    full = summary(project.pytest("verify", "-v").text)
    assert sum("step 1: durations" in line for line in full) == 25


def test_unused_steps_of_a_replay(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESS", "1")
    done = project.pytest("replay", "-k", "unused")
    assert done.status == 0, done.text
    assert summary(done.text)[:4] == [
        "1 recording: 1 replayed",
        "1 step: 1 replayed",
        "unused steps:",
        "  test_it.py::test_unused: 2, 3",
    ]


def test_chosen_cassettes_and_runs_stand_in_the_header(project: Project, tmp_path: Path) -> None:
    done = project.pytest("record", f"--veil-cassettes={tmp_path}/c", "-k", "unused")
    assert f"\nveil: record, profile deterministic 1, cassettes {tmp_path}/c\n" in done.text
    done = project.pytest(
        "verify", f"--veil-cassettes={tmp_path}/c", "-k", "unused", "--veil-runs=2", "--veil-env=inherit"
    )
    assert f"\nveil: verify x2, profile inherit 1, cassettes {tmp_path}/c\n" in done.text


def test_quiet_has_no_header_and_off_has_nothing(project: Project) -> None:
    assert "cassettes beside" not in project.pytest("replay", "-q", "-k", "unused").text
    off = project.pytest(None, "-k", "unused")
    assert off.status == 0
    assert "veil:" not in off.text


def test_a_run_without_commands_has_no_summary(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("def test_plain():\n    pass\n")
    done = project.pytest("replay")
    assert done.status == 0
    assert [line for line in summary(done.text) if not line.startswith(("report: ", "stale recordings: "))] == []


def test_control_characters_of_commands_do_not_reach_the_terminal(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("def test_it(veil_run):\n    veil_run('cat $WORLD/text')\n")
    project.given("text", "one")
    project.recorded()
    project.given("text", "\x1b[31mtwo\x07\x9b1m")
    done = project.pytest("verify", "--veil-normalise=none")
    assert done.status == 1
    assert done.words("test_it") == ["output-drift"]
    assert not {"\x1b", "\x07", "\x9b"} & set(done.text)
