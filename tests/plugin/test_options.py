"""Options on the command line, in ini files and in markers: precedence, validation, and loading or not at all."""

from __future__ import annotations

import re

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

MODE = """
    import pytest

    def test_plain(veil_run):
        print("plain", veil_run.mode)

    @pytest.mark.veil(mode="live")
    def test_marked(veil_run):
        print("marked", veil_run.mode)
"""


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--veil-mode=reply", "--veil-mode: expected one of live, replay, *got 'reply' (did you mean 'replay'[?])"),
        ("--veil-runs=0", "--veil-runs: expected a whole number from 1 to 1000, got '0'"),
        ("--veil-runs=many", "--veil-runs: expected a whole number*got 'many'"),
        ("--veil-env=mine", "--veil-env: expected one of deterministic, inherit, got 'mine'*"),
        ("--veil-unused=fail", "--veil-unused: expected one of report, error, got 'fail'*"),
        ("--veil-on-drift=never", "--veil-on-drift: expected one of error, apply, ignore, got 'never'*"),
        ("--veil-normalise=uuid", "*normalise*(did you mean 'uuids'[?])*got 'uuid'"),
        ("--veil-normalise=none,uuids", "*normalise*none*"),
        ("--veil-cassettes=test_it.py", "--veil-cassettes: *test_it.py is not a folder"),
        ("--veil-report=.", "--veil-report: *is a folder, expected a file"),
    ],
)
def test_a_wrong_value_is_told_before_anything_runs(suite: Suite, option: str, told: str) -> None:
    suite.write("test_it.py", MODE)
    result = suite.run("--veil", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {told}"])
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    "option",
    ["runs=2", "normalise=none", "cassettes=tapes", "report=out.json", "unused=error", "on-drift=apply", "facts"],
)
def test_what_means_nothing_without_the_eval_mode_is_not_taken(suite: Suite, option: str) -> None:
    suite.write("test_it.py", MODE)
    flag = option.partition("=")[0]
    result = suite.run(f"--veil-{option}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --veil-{flag}: expected with --veil or --veil-mode=MODE*"])
    suite.write("pytest.ini", f"[pytest]\nveil_{flag.replace('-', '_')} = {option.partition('=')[2] or 'true'}\n")
    suite.run().assert_outcomes(passed=2)  # there it waits for a run that has it on


def test_what_means_something_without_the_eval_mode_is_taken(suite: Suite) -> None:
    suite.write("test_it.py", MODE)
    suite.run("--veil-keep-failed", "--veil-env=deterministic").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("veil_mode = reply", "veil_mode: expected one of*got 'reply'*"),
        ("veil_runs = 0", "veil_runs: expected a whole number*"),
        ("veil_keep_failed = perhaps", "veil_keep_failed: *perhaps*"),
        ("veil_failure_lines = 2", "veil_failure_lines: expected a whole number from 5 to*got *2*"),
        ("veil_secrets = abc", "veil_secrets*at least 8 bytes*"),
    ],
)
def test_a_wrong_value_in_the_ini_file(suite: Suite, line: str, told: str) -> None:
    suite.write("test_it.py", MODE)
    suite.write("pytest.ini", f"[pytest]\nveil = true\n{line}\n")
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {told}"])
    assert "abc" not in result.stderr.str()  # a secret is not to be shown by the one that refuses it


EVERY = {
    "veil": "true",
    "veil_mode": "record",
    "veil_runs": "3",
    "veil_normalise": "uuids hashes",
    "veil_env": "inherit",
    "veil_cassettes": "tapes",
    "veil_report": "out.json",
    "veil_keep_failed": "true",
    "veil_unused": "error",
    "veil_on_drift": "apply",
    "veil_facts": "true",
    "veil_secrets": "a-very-secret-value",
    "veil_pass_env": "EXTRA",
    "veil_failure_lines": "20",
}
RECORDED = """
    def test_it(veil_run):
        assert veil_run("echo a-very-secret-value $EXTRA").stdout == "[redacted] given\\n"
"""


def _everything_was_heeded(suite: Suite) -> None:
    (tape,) = suite.cassettes("tapes").values()
    assert b'"profile": "inherit"' in tape
    assert b"a-very-secret-value" not in tape
    assert list((suite.path / "tapes").glob("*.veil.facts.json"))
    assert '"mode": "record"' in (suite.path / "out.json").read_text()


def test_every_option_has_a_twin_in_ini_files(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTRA", "given")
    suite.write("test_it.py", RECORDED)
    suite.write("pytest.ini", "[pytest]\n" + "".join(f"{name} = {value}\n" for name, value in EVERY.items()))
    suite.run("--strict-config", "--strict-markers").assert_outcomes(passed=1)
    _everything_was_heeded(suite)


NATIVE = {
    **{name: f'"{value}"' for name, value in EVERY.items()},
    "veil": "true",
    "veil_runs": "3",
    "veil_normalise": '["uuids", "hashes"]',
    "veil_keep_failed": "true",
    "veil_facts": "true",
    "veil_secrets": '["a-very-secret-value"]',
    "veil_pass_env": '["EXTRA"]',
    "veil_failure_lines": "20",
}


@pytest.mark.parametrize("table", ["tool.pytest.ini_options", *["tool.pytest"] * (pytest.version_tuple >= (9, 0))])
def test_every_option_has_a_twin_in_toml_files(suite: Suite, monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    monkeypatch.setenv("EXTRA", "given")
    (suite.path / "tox.ini").unlink()
    suite.write("test_it.py", RECORDED)
    strict = "strict = true\n" if table == "tool.pytest" else ""
    old = pytest.version_tuple < (8, 4) and table != "tool.pytest"  # there a number is no type
    values = {
        name: f'"{EVERY[name]}"' if old and name in ("veil_runs", "veil_failure_lines") else value
        for name, value in NATIVE.items()
    }
    suite.write("pyproject.toml", f"[{table}]\n{strict}" + "".join(f"{n} = {v}\n" for n, v in values.items()))
    suite.run().assert_outcomes(passed=1)
    _everything_was_heeded(suite)


@pytest.mark.parametrize(
    ("line", "ini", "plain", "marked"),
    [
        ((), "", "off", "off"),
        ((), "veil_mode = record", "off", "off"),  # a mode in a file does not turn anything on
        (("--veil",), "", "replay", "live"),
        (("--veil",), "veil_mode = record", "record", "live"),
        (("--veil-mode=refresh",), "veil_mode = record", "refresh", "refresh"),
        ((), "veil = true", "replay", "live"),
        (("-o", "veil_mode=record", "--veil"), "", "record", "live"),
    ],
)
def test_line_before_marker_before_file_before_default(
    suite: Suite, line: tuple[str, ...], ini: str, plain: str, marked: str
) -> None:
    suite.write("test_it.py", MODE)
    suite.write("pytest.ini", f"[pytest]\n{ini}\n")
    result = suite.run("-s", *line)
    result.assert_outcomes(passed=2)
    assert f"plain {plain}\n" in result.stdout.str()
    assert f"marked {marked}\n" in result.stdout.str()


def test_the_nearest_marker_counts_and_secrets_add_up(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        import pytest
        pytestmark = pytest.mark.veil(mode="live", secrets=["of-the-module-1"])

        @pytest.mark.veil(mode="record", secrets="of-the-test-22")
        def test_it(veil_run):
            veil_run("echo of-the-file-333 of-the-module-1 of-the-test-22")
        """,
    )
    suite.write("pytest.ini", "[pytest]\nveil_secrets = of-the-file-333\n")
    suite.run("--veil").assert_outcomes(passed=1)
    (tape,) = suite.cassettes().values()
    assert b"of-the-test-22" not in tape
    assert b"of-the-file-333" not in tape
    assert b"echo [redacted] of-the-module-1 [redacted]" in tape  # the nearest marker replaces the one around it


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ("mode='reply'", "*veil(mode=...): expected one of*got 'reply'*"),
        ("'record'", "*the marker veil takes only keywords*"),
        ("modus='record'", "*the marker veil knows no 'modus' (did you mean 'mode'[?])*"),
        ("runs=True", "*veil(runs=...): expected a whole number*"),
        ("report='x.json'", "*the marker veil knows no 'report'*"),
    ],
)
def test_a_wrong_marker(suite: Suite, marker: str, told: str) -> None:
    suite.write("test_it.py", f"import pytest\n@pytest.mark.veil({marker})\ndef test_it(veil_run): pass\n")
    result = suite.run("--veil")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: test_it.py::test_it{told}"])
    off = suite.run()
    off.assert_outcomes(errors=1)
    off.stdout.fnmatch_lines([f"*test_it.py::test_it{told}"])


def test_it_loads_by_name_and_goes_away_by_name(suite: Suite) -> None:
    suite.write("test_it.py", "def test_it(): pass\n")
    suite.run("-p", "veil").assert_outcomes(passed=1)
    suite.run("-p", "no:veil").assert_outcomes(passed=1)
    gone = suite.run("-p", "no:veil", "--veil")
    assert gone.ret == pytest.ExitCode.USAGE_ERROR
    assert "unrecognized arguments: --veil" in gone.stderr.str()
    for what in ("--fixtures", "--markers", "--help"):
        shown = suite.run("-p", "no:veil", what).stdout.str()
        assert not re.search(r"\bveil_\w+|--veil|mark\.veil|pytest_veil", shown)


def test_help_fixtures_and_markers_tell_of_it(suite: Suite) -> None:
    suite.write("test_it.py", "def test_it(): pass\n")
    shown = suite.run("--help").stdout.str()
    for name in EVERY:
        assert name in shown
    assert shown.count("veil: commands recorded, replayed and verified:") == 1
    assert "veil_run_factory [session scope]" in suite.run("--fixtures").stdout.str()
    assert "@pytest.mark.veil(mode=..." in suite.run("--markers").stdout.str()
