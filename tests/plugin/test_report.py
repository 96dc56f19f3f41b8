"""The JSON report: every test is in it, whatever became of it, and its shape is the documented one."""

# over 300 lines because: it is one subject: the shape of the report, and whatever may become of a test in it

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from eval_projects import ROOT, Project

#: Shape of the report: a type, a list of one shape, a mapping of shapes, or a tuple of alternatives.
NUMBER_OF = {str: int}
STEP = {
    "number": int,
    "word": str,
    "command": str,
    "where": (str, None),
    "detail": str,
    "expected": str,
    "got": str,
    "needed": [str],
    "masked": [str],
    "runs": ({"as_recorded": int, "of": int}, None),
    "proposal": [str],
    "suggestion": str,
}
ITEM = {
    "nodeid": str,
    "mode": str,
    "outcome": str,
    "verdict": str,
    "cassette": (str, None),
    "steps": [STEP],
    "first_divergence": (int, None),
    "unused": [int],
    "fired": [str],
    "idle": [str],
    "why": str,
    "scope": str,
    "extra": dict,
}
REPORT = {
    "format": int,
    "veil": str,
    "pytest": str,
    "mode": str,
    "runs": int,
    "profile": {"name": str, "version": int},
    "cassettes": (str, None),
    "normalisers": [{"name": str, "version": int, "erases": bool, "fired": bool}],
    "exit_status": int,
    "outcomes": NUMBER_OF,
    "verdicts": NUMBER_OF,
    "steps": NUMBER_OF,
    "items": [ITEM],
    "shared": [ITEM],
    "pruning": ({"judged": bool, "why": str, "stale": [str], "removed": bool}, None),
    "troubles": [str],
}


def wrong(value: Any, shape: Any, at: str = "report") -> list[str]:
    """What of ``value`` has another shape."""
    if isinstance(shape, tuple):
        tries = [wrong(value, one, at) for one in shape]
        return [] if [] in tries else tries[0]
    if shape is None:
        return [] if value is None else [f"{at}: {value!r} is not null"]
    if shape == NUMBER_OF:
        good = isinstance(value, dict) and all(type(number) is int for number in value.values())
        return [] if good else [f"{at}: {value!r}"]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{at}: {value!r} is no list"]
        return [line for n, one in enumerate(value) for line in wrong(one, shape[0], f"{at}[{n}]")]
    if isinstance(shape, dict):
        if not isinstance(value, dict) or set(value) != set(shape):
            return [f"{at}: has {sorted(value) if isinstance(value, dict) else value!r}, expected {sorted(shape)}"]
        return [line for name in shape for line in wrong(value[name], shape[name], f"{at}.{name}")]
    return [] if type(value) is shape else [f"{at}: {value!r} is no {shape.__name__}"]


SUITE = """
import pytest

def test_runs(veil_run):
    veil_run("echo a", expect={"exit": 0})
    veil_run("printf '\\\\377'; exit 3")

@pytest.mark.parametrize("what", ["a/b", "ä"])
def test_many(veil_run, what):
    veil_run(["echo", what])

def test_fails(veil_run):
    veil_run("echo before")
    assert False

def test_skipped(veil_run):
    pytest.skip("not here")

def test_without():
    pass

@pytest.fixture
def broken():
    raise RuntimeError("broken")

def test_broken(broken, veil_run):
    veil_run("echo never")
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.tests(SUITE)
    return made


@pytest.mark.parametrize("mode", ["record", "replay", "verify", "refresh", "live", "record-missing"])
def test_every_mode_reports_every_test_in_one_shape(project: Project, mode: str) -> None:
    if mode != "record":
        project.pytest("record", "--veil-keep-failed")
    done = project.pytest(mode)
    assert done.status == 1
    assert wrong(done.report, REPORT) == []
    assert (done.report["format"], done.report["mode"], done.report["exit_status"]) == (1, mode, 1)
    outcomes = {item["nodeid"].partition("::")[2]: item["outcome"] for item in done.report["items"]}
    assert list(outcomes.values()) == ["passed", "passed", "passed", "failed", "skipped", "passed", "error"]
    assert done.report["outcomes"] == {"passed": 4, "failed": 1, "skipped": 1, "error": 1}
    assert sum(done.report["verdicts"].values()) == 7
    assert done.item("test_without")["verdict"] == "none"
    expected = {"record": "recorded", "replay": "replayed", "verify": "exact", "live": "live"}
    expected |= {"refresh": "refreshed", "record-missing": "replayed"}
    assert done.item("test_runs")["verdict"] == expected[mode]
    assert len(done.item("test_runs")["steps"]) == 2
    assert [path.name for path in project.root.parent.glob(".report*")] == []  # no half file is left


def test_the_validator_bites() -> None:
    assert wrong({"a": 1}, {"a": str})
    assert wrong({"a": 1}, {"b": int})
    assert wrong([True], [int])
    assert wrong(1, (str, None))
    assert wrong({"x": "1"}, NUMBER_OF)


def test_workers_report_the_same(project: Project) -> None:
    project.pytest("record", "--veil-keep-failed")
    alone, many = project.pytest("replay"), project.pytest("replay", "-n2")
    assert many.report == alone.report


@pytest.mark.parametrize("how", ["-n2", "-n0"])
def test_a_test_that_ends_its_process_has_an_error_in_the_report(tmp_path: Path, how: str) -> None:
    project = Project(tmp_path)
    project.tests("""
import os
def test_before(veil_run):
    veil_run("echo before")
def test_dies(veil_run):
    veil_run("echo a")
    if os.environ.get("PYTEST_XDIST_WORKER"):
        os._exit(3)
    os.environ["DIED"] = "1"
    raise KeyboardInterrupt
def test_after(veil_run):
    veil_run("echo after")
""")
    done = project.pytest("record", how)
    assert done.status != 0
    assert wrong(done.report, REPORT) == []
    assert done.item("test_before")["verdict"] == "recorded"
    lost = done.item("test_dies")
    assert lost["outcome"] == "error"
    assert lost["verdict"] == ("error" if how == "-n2" else "not-run")
    assert "crashed while running" in lost["why"] or how == "-n0"
    assert done.item("test_after")["verdict"] == ("recorded" if how == "-n2" else "not-run")
    assert "no verdict:" in done.text


def test_a_test_that_nobody_ran_makes_the_exit_status_wrong(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.root.joinpath("conftest.py").write_text("""
def pytest_runtest_protocol(item, nextitem):
    return True if item.name == "test_three" else None   # nobody ever runs it
""")
    project.tests("def test_one(veil_run):\n    veil_run('echo a')\ndef test_three(veil_run):\n    pass\n")
    done = project.pytest("record")
    assert done.status == 1
    assert done.item("test_three")["verdict"] == "not-run"
    assert done.report["exit_status"] == 1


def test_no_terminal_no_capture_and_a_new_folder(project: Project) -> None:
    report = project.root.parent / "new" / "folder" / "r.json"
    done = project.pytest("record", "-p", "no:terminal", "-s", f"--veil-report={report}")
    assert done.status == 1
    assert done.text == ""
    assert wrong(json.loads(report.read_text()), REPORT) == []


def test_a_report_that_cannot_be_written_is_no_success(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("def test_one(veil_run):\n    veil_run('echo a')\n")
    (tmp_path / "file").write_text("")
    done = project.pytest("record", f"--veil-report={tmp_path}/file/r.json")
    assert done.status == 1
    assert "troubles:" in done.text
    assert "file/r.json: " in done.text


def test_nothing_is_reported_where_nothing_runs(project: Project) -> None:
    done = project.pytest("replay", "--collect-only", "-q")
    assert done.status == 0
    assert done.report == {}
    assert project.pytest("replay", "--setup-plan").status == 0


def test_what_crosses_from_workers_may_hold_any_bytes(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("""
import os
def test_one(veil_run):
    veil_run(["echo", os.fsdecode(b"\\xff\\xfe")])
    veil_run("cat $WORLD/text")
    veil_run(["cat", os.fsdecode(b"\\xff")])
""")
    project.given("text", "one")
    project.recorded("-n1")
    (project.world / "text").write_bytes(b"\xff\x00\xfe")
    done = project.pytest("verify", "-n1")
    assert done.words("test_one") == ["exact", "output-drift", "exact"]
    assert done.item("test_one")["steps"][0]["command"] == "echo '\udcff\udcfe'"


def test_other_plugins_add_normalisers_and_hear_verdicts(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / "conftest.py").write_text("""
import os, pathlib

def pytest_veil_normalisers(config):
    from veil.taping import numbered
    return [numbered("tickets", 7, "ticket numbers", "ticket", rb"TICKET-(?P<value>[0-9]+)")]

def pytest_veil_verdict(config, outcome):
    with (pathlib.Path(os.environ["WORLD"]) / "heard").open("a") as heard:
        heard.write(f"{outcome.nodeid} {outcome.verdict} {outcome.outcome}\\n")
""")
    project.tests("""
def test_ticket(veil_run):
    veil_run("cat $WORLD/text")
def test_other(veil_run):
    veil_run("echo TICKETS")
""")
    project.given("text", "TICKET-1 TICKET-2 TICKET-1")
    project.recorded("-n2")
    project.given("text", "TICKET-8 TICKET-9 TICKET-8")
    project.given("heard", "")
    done = project.pytest("verify", "-n2")
    assert done.status == 0, done.text
    assert done.words("test_ticket") == ["normalised"]
    assert done.item("test_ticket")["fired"] == ["tickets"]
    mine = [entry for entry in done.report["normalisers"] if entry["name"] == "tickets"]
    assert mine == [{"name": "tickets", "version": 7, "erases": False, "fired": True}]
    heard = (project.world / "heard").read_text().splitlines()
    assert sorted(heard) == ["test_it.py::test_other exact passed", "test_it.py::test_ticket normalised passed"]
    chosen = project.pytest("verify", "--veil-normalise=tickets,uuids")
    assert "normalisers that never fired: uuids" in chosen.text


def test_a_plugin_that_fails_over_a_verdict_costs_the_exit_status_not_the_report(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / "conftest.py").write_text("def pytest_veil_verdict(config, outcome):\n    raise KeyError('mine')\n")
    project.tests("def test_one(veil_run):\n    veil_run('echo a')\n")
    done = project.pytest("record")
    assert done.status == 1
    assert done.report["troubles"] == ["pytest_veil_verdict for test_it.py::test_one: KeyError: 'mine'"]
    assert "troubles:" in done.text


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--veil-normalise=uuid", "did you mean 'uuids'"),
        ("--veil-normalise=none,uuids", "expected standard, none, names or -names, got none, uuids"),
        ("--veil-normalise=uuids,-pids", "expected standard, none, names or -names, got uuids, -pids"),
        ("--veil-normalise=-nonsense", "nonsense"),
    ],
)
def test_nonsense_about_normalisers_is_a_usage_error(project: Project, option: str, said: str) -> None:
    done = project.pytest("replay", option)
    assert done.status == 4
    assert said in done.text


def test_a_normaliser_that_is_none_is_a_usage_error(project: Project) -> None:
    (project.root / "conftest.py").write_text("def pytest_veil_normalisers(config):\n    return ['uuid']\n")
    done = project.pytest("replay")
    assert done.status == 4
    assert "'uuid' is no veil.taping.Normaliser" in done.text


def test_the_documented_fields_are_those_of_the_report() -> None:
    page = (ROOT / "docs" / "report.md").read_text()
    for name in (*REPORT, *ITEM, *STEP, "as_recorded"):
        assert f"`{name}`" in page, name
    for word in ("not-run", "error", "unrecorded", "missing-cassette", "not-written"):
        assert f"`{word}`" in page, word
