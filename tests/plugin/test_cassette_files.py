"""Which test has which file; what a damaged one does; how files are written, and when stale ones go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

ONE = 'def test_it(veil_run):\n    assert veil_run("echo 1").stdout == "1\\n"\n'


def test_names_never_collide(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        import pytest

        NAMES = ["a/b", "a b", "a-b", "A B", "a.b", "a::b", "a" * 300, "a" * 301, "..", "\\u00e9"]

        @pytest.mark.parametrize("x", NAMES)
        def test_p(veil_run, x):
            assert veil_run(["echo", x]).stdout == x + "\\n"

        class TestUpper:
            def test_x(self, veil_run):
                veil_run("echo upper")

        class Testupper:
            def test_x(self, veil_run):
                veil_run("echo lower")

        def test_plain(veil_run):
            veil_run("echo plain")
        """,
    )
    suite.write("sub/test_it.py", ONE.replace("test_it", "test_plain"))
    suite.write("sub/__init__.py", "")
    suite.run("--veil-mode=record").assert_outcomes(passed=14)
    names = [*suite.cassettes(), *suite.cassettes("sub/cassettes")]
    assert len(suite.cassettes()) == 13
    assert len({name.lower() for name in suite.cassettes()}) == 13
    assert all(len(name) < 200 and name == name.lower() and name.isascii() for name in names)
    assert names.count("test_it.test_plain.veil.txtar") == 2
    suite.run("--veil").assert_outcomes(passed=14)


def test_another_root_keeps_the_sub_folders(suite: Suite) -> None:
    suite.write("test_it.py", ONE)
    suite.write("a/b/test_other.py", ONE)
    suite.run("--veil-mode=record", "--veil-cassettes=tapes").assert_outcomes(passed=2)
    assert list(suite.cassettes("tapes")) == ["test_it.test_it.veil.txtar"]
    assert list(suite.cassettes("tapes/a/b")) == ["test_other.test_it.veil.txtar"]
    assert not (suite.path / "cassettes").exists()
    suite.run("--veil", "--veil-cassettes=tapes").assert_outcomes(passed=2)


def test_a_marker_names_the_file(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.veil(cassette="shared")
        def test_one(veil_run):
            veil_run("echo 1")

        @pytest.mark.veil(cassette="elsewhere/x.veil.txtar")
        def test_two(veil_run):
            veil_run("echo 2")

        @pytest.mark.veil(cassette="shared")
        def test_three(veil_run):
            veil_run("echo 1")
        """,
    )
    both = suite.run("--veil-mode=record")
    both.assert_outcomes(passed=1, errors=2)
    both.stdout.fnmatch_lines(["*shared.veil.txtar: *test_one and *test_three would all be recorded there"])
    suite.run("--veil-mode=record", "-k", "not three").assert_outcomes(passed=2, deselected=1)
    assert list(suite.cassettes()) == ["shared.veil.txtar"]
    assert list(suite.cassettes("cassettes/elsewhere")) == ["x.veil.txtar"]
    suite.run("--veil").assert_outcomes(passed=3)  # any number may be answered from one


@pytest.mark.parametrize(
    "content", ["", "{}", "null", "interactions: null\n", "half", "veil cassette 99\n", "\x00\xff", "--- yaml\n- a\n"]
)
def test_a_damaged_file_is_never_no_recording(suite: Suite, content: str) -> None:
    """Case rr-06."""
    ran = suite.path / "ran"
    suite.write("test_it.py", f'def test_it(veil_run):\n    veil_run("echo really >> {ran}; echo 1")\n')
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    path = suite.path / "cassettes" / "test_it.test_it.veil.txtar"
    if content == "half":
        path.write_bytes(path.read_bytes()[:-40])
    else:
        path.write_text(content)
    damaged = path.read_bytes()
    for mode in ("replay", "record-missing", "verify", "refresh"):
        result = suite.run(f"--veil-mode={mode}")
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(["*cassettes/test_it.test_it.veil.txtar:[0-9]*: *"])
        assert path.read_bytes() == damaged
    assert ran.read_text() == "really\n"
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    suite.run("--veil").assert_outcomes(passed=1)


def test_a_killed_recording_leaves_the_old_file_whole(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(
        "test_it.py",
        'import os\ndef test_it(veil_run):\n    veil_run("seq 1 300000; echo " + os.environ["WORD"])\n',
    )
    monkeypatch.setenv("WORD", "first")
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    (before,) = suite.cassettes().values()
    monkeypatch.setenv("WORD", "second")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--veil-mode=record"]
    for delay in (0.0, 0.002, 0.01):
        process = subprocess.Popen(command, cwd=suite.path, stdout=subprocess.DEVNULL)
        known = os.listdir(suite.path / "cassettes")
        while os.listdir(suite.path / "cassettes") == known and process.poll() is None:
            time.sleep(0.001)  # until it writes beside
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        (data,) = suite.cassettes().values()
        assert data == before or (b"second" in data and data.endswith(b"-- end --\n"))
        if data != before:
            break
    assert suite.run("--veil").parseoutcomes() == ({"failed": 1} if data == before else {"passed": 1})


STALE = """
    import pytest

    def test_kept(veil_run):
        veil_run("echo 1")

    def test_gone(veil_run):
        veil_run("echo 2")
"""
WITHOUT = STALE.replace("test_gone", "test_new")


def _names(suite: Suite) -> set[str]:
    return {name.split(".")[1] for name in suite.cassettes()}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("-k", "test"), "-k chose a part"),
        (("-m", "not slow"), "-m chose a part"),
        (("-x",), "-x or --maxfail chose a part"),
        (("--deselect=test_it.py::test_none",), "--deselect chose a part"),
        (("--ignore=other.py",), "--ignore chose a part"),
        (("test_it.py",), "test_it.py is a part"),
        (("test_it.py::test_kept",), "test_it.py::test_kept is a part"),
        (("-p", "shard"), "a plugin took tests away"),
    ],
)
def test_a_part_of_the_tests_removes_nothing(suite: Suite, options: tuple[str, ...], why: str) -> None:
    suite.write("test_it.py", STALE)
    suite.run("--veil-mode=record").assert_outcomes(passed=2)
    suite.write("test_it.py", WITHOUT)
    suite.write("shard.py", "def pytest_collection_modifyitems(items):\n    del items[1:]\n")
    suite.pytester.syspathinsert()
    before = _names(suite)
    result = suite.run("--veil-mode=record", *options)
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"stale recordings: not judged ({why}*)"])
    assert before <= _names(suite)


def test_a_run_of_everything_removes_what_has_no_test(suite: Suite) -> None:
    suite.write("test_it.py", STALE)
    suite.write("test_there.py", ONE)
    suite.run("--veil-mode=record", "--veil-facts").assert_outcomes(passed=3)
    suite.write("test_it.py", WITHOUT)
    told = suite.run("--veil-mode=record-missing")
    told.stdout.fnmatch_lines(["stale recordings:", "  cassettes/test_it.test_gone.veil.txtar"])
    assert "test_gone" in _names(suite)
    failing = suite.write("test_fails.py", "def test_fails():\n    assert 0\n")
    suite.run("--veil-mode=record").stdout.fnmatch_lines(["stale recordings: not judged (not every test passed)"])
    failing.unlink()
    skipped = suite.write(
        "test_there.py", "import pytest\n" + ONE.replace("    assert", "    pytest.skip('x')\n    assert")
    )
    removed = suite.run("--veil-mode=record", ".")
    removed.assert_outcomes(passed=2, skipped=1)
    removed.stdout.fnmatch_lines(["stale recordings, removed:", "  cassettes/test_it.test_gone.veil.txtar"])
    assert _names(suite) == {"test_kept", "test_new", "test_it"}
    assert not list((suite.path / "cassettes").glob("*gone*"))
    skipped.rename(suite.path / "not_collected.py")
    suite.run("--veil-mode=refresh").assert_outcomes(passed=2)
    assert _names(suite) == {"test_kept", "test_new"}


def test_recording_one_test_leaves_the_others_alone(suite: Suite) -> None:
    suite.write("test_it.py", STALE)
    suite.run("--veil-mode=record").assert_outcomes(passed=2)
    stamps = {path.name: path.stat().st_mtime_ns for path in (suite.path / "cassettes").iterdir()}
    suite.write("test_it.py", STALE.replace("echo 1", "echo changed"))
    suite.run("--veil-mode=record", "-k", "kept").assert_outcomes(passed=1, deselected=1)
    now = {path.name: path.stat().st_mtime_ns for path in (suite.path / "cassettes").iterdir()}
    assert [name for name in stamps if now[name] != stamps[name]] == ["test_it.test_kept.veil.txtar"]


def test_the_sidecar_is_written_only_on_request(suite: Suite) -> None:
    suite.write("test_it.py", ONE)
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    assert not list((suite.path / "cassettes").glob("*.json"))
    suite.run("--veil-mode=record", "--veil-facts").assert_outcomes(passed=1)
    (facts,) = (suite.path / "cassettes").glob("*.veil.facts.json")
    assert '"kernel"' in facts.read_text()
    suite.run("--veil").assert_outcomes(passed=1)
