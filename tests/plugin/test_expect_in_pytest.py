"""A failed expectation in a real pytest session: the whole message, once, and no frame of ours."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CONFTEST = """
import pytest
from pytest_veil import expecting

def pytest_assertrepr_compare(config, op, left, right):
    return expecting.explain(op, left, right)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.excinfo is not None:
        expecting.say_once(getattr(report.longrepr, "reprcrash", None))
        for result in expecting.runs_behind(call.excinfo.value):
            report.sections.append((f"veil {result.id}", expecting.told(result)))
    return report
"""

SUITE = """
import veil
from pytest_veil import expect

def run(tmp_path):
    return veil.run("echo to out; echo to err >&2; exit 3", cwd=tmp_path, no_store=True)

def test_hard(tmp_path):
    expect(run(tmp_path)).exit(0)

def test_stream(tmp_path):
    expect(run(tmp_path)).stdout.equals("to out\\n" * 40)

def test_file(tmp_path):
    expect(run(tmp_path)).file("nope").contains("x")

def test_soft(tmp_path):
    with expect.all():
        expect(run(tmp_path)).exit(0).stderr.is_empty()

def test_plain(tmp_path):
    result = run(tmp_path)
    assert result.ok

def test_two(tmp_path):
    assert run(tmp_path) == 0

def test_nonsense(tmp_path):
    expect(run(tmp_path)).exit(999)
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_suite=SUITE)
    return pytester


def told(session: pytest.Pytester, *options: str) -> str:
    # without the plugin, which does of itself what the conftest of the session does by hand
    quiet = ["-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:veil"]
    command = [sys.executable, "-m", "pytest", *quiet, *options]
    done = session.run(*command, timeout=120)
    assert set(done.parseoutcomes()) - {"deselected"} == {"failed"}
    return done.stdout.str()


@pytest.mark.parametrize("style", ["long", "short", "auto"])
@pytest.mark.parametrize("name", ["hard", "stream", "file", "soft"])
def test_the_message_stands_there_once_and_whole(
    session: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, name: str, style: str
) -> None:
    monkeypatch.setenv("CI", "1")  # where pytest's summary would repeat all of it
    text = told(session, f"--tb={style}", "-k", name)
    for line in ("ended: exit 3", "| to out", "| to err", "files changed: none", "record: mem1", "$ cd "):
        assert len(re.findall(rf"(?m)^E +{re.escape(line)}", text)) == 1, text
    assert text.count("  ended: exit 3") == 1
    assert "pytest_veil/expecting" not in text
    assert "Use -v" not in text
    assert "pytest_veil.ExpectationError: " in text


def test_the_summary_tells_what_went_wrong(session: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("CI", raising=False)
    text = told(session, "-k", "hard or soft")
    assert "test_suite.py::test_hard - pytest_veil.ExpectationError: exit is 3, expected 0 (echo to out" in text
    assert "test_suite.py::test_soft - pytest_veil.ExpectationError: 2 checks failed: exit is 3, expected 0 (" in text


def test_a_plain_assert_shows_what_the_run_said(session: pytest.Pytester) -> None:
    text = told(session, "-k", "plain")
    assert (
        "where False = <veil.Result mem1 exit 3: 'echo to out; echo to err >&2; exit 3'; stderr ends 'to err'>.ok"
        in text
    )
    assert "veil mem1" in text
    assert text.count("  ended: exit 3") == 1


def test_a_comparison_is_explained(session: pytest.Pytester) -> None:
    text = told(session, "-k", "two")
    assert "a run is compared with 0" in text
    assert "result.exit is 3" in text


def test_bad_input_points_at_the_line_of_the_test(session: pytest.Pytester) -> None:
    text = told(session, "-k", "nonsense")
    assert "expect.exit: expected an exit code from 0 to 255" in text
    assert "pytest_veil/expecting" not in text
    assert "veil/checks" not in text
