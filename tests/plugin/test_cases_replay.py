"""Faults that people met in tools that record and replay, each by its id, through the plugin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

pytestmark = pytest.mark.needs("bash")

RR_01 = """
COUNT = "cat n; echo $(( $(cat n) + 1 )) > n"

def test_it(veil_run):
    (veil_run.root / "n").write_text("5\\n")
    assert [veil_run(COUNT).stdout for _ in range(2)] == ["5\\n", "6\\n"]
    assert (veil_run.root / "n").read_text() == "7\\n"

def test_a_command_that_changes_nothing(veil_run):
    told = [veil_run("cat \\"$TMPDIR\\"/m 2>/dev/null; echo x >> \\"$TMPDIR\\"/m").stdout for _ in range(TIMES)]
    assert told == ["", "x\\n", "x\\nx\\n"][:TIMES]
"""


def test_rr_01_equal_commands_are_answered_in_order_and_once(suite: Suite) -> None:
    suite.write("test_it.py", "TIMES = 2\n" + RR_01)
    suite.run("--veil-mode=record").assert_outcomes(passed=2)
    suite.run("--veil").assert_outcomes(passed=2)
    suite.write("test_it.py", "TIMES = 3\n" + RR_01)
    again = suite.run("--veil")
    again.assert_outcomes(passed=1, failed=1)
    again.stdout.fnmatch_lines(["*already used: it was recorded 2x and asked for once more*"])


def test_rr_03_an_unmatched_command_is_not_run_and_the_difference_is_told(suite: Suite, tmp_path: Path) -> None:
    real = tmp_path / "REAL"
    body = """
def test_it(veil_run):
    veil_run("touch 'FILE'", env={{"A": "{0}"}}, stdin="{1}")
""".replace("FILE", str(real))
    suite.write("test_it.py", body.format("1", "in"))
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    assert real.exists()
    real.unlink()
    for asked, told in ((("2", "in"), "*env*'2'*'1'*"), (("1", "other"), "*stdin*")):
        suite.write("test_it.py", body.format(*asked))
        result = suite.run("--veil")
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([f"*never recorded: touch *{real}*", "*nearest is step 1; it differs in*", told])
    suite.write("test_it.py", body.format("1", "in").replace("touch", "touch -c"))
    result = suite.run("--veil")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*nearest is step 1; it differs in*", "*command: asked *touch -c*recorded *touch *"])
    assert not real.exists()
    suite.write("test_it.py", body.format("1", "in"))
    suite.run("--veil").assert_outcomes(passed=1)
    assert not real.exists()


RR_04 = """
import json
import os
import re
from pathlib import Path

import veil

OF_THE_RUN = ("ms", "id", "stored")  # a replay keeps its records in memory

def test_it(veil_run):
    seen = {}

    def tell(name, result):
        facts = {"streams": [result.stdout_bytes.hex(), result.stderr_bytes.hex()], "ended": result.ended}
        seen[name] = {**facts, **{k: v for k, v in result.to_dict().items() if k not in OF_THE_RUN}}
        assert type(result) is veil.Result and result.ms >= 0, name

    tell("failed", veil_run("echo o; echo e >&2; exit 3"))
    tell("merged", veil_run("echo o; echo e >&2; echo o", merge_stderr=True))
    tell("text", veil_run("cat", stdin="t\\xe9xt\\n"))
    tell("bytes", veil_run("cat", stdin=b"\\xff\\x00"))
    timed = veil_run("echo before; sleep 60", timeout=0.4)
    tell("timed", timed)
    assert timed.timed_out
    tell("killed", veil_run("kill -SEGV $$"))
    tell("absent", veil_run(["no-such-program-at-all"]))
    for name, command, options in (
        ("check", "exit 4", {"check": True}), ("input", "true", {"timeout": -1}), ("cwd", "true", {"cwd": "absent"}),
    ):
        try:
            veil_run(command, **options)
        except Exception as error:
            told = re.sub(r"\\[\\w+\\]$", "[ID]", str(error)).replace(str(veil_run.root), "ROOT")
            seen[name] = [type(error).__name__, told]
    server = veil_run.start("echo up; sleep 60")
    server.wait_for(pattern="up", timeout=60)
    try:
        server.wait(timeout=0.1)
    except TimeoutError as error:
        seen["wait"] = type(error).__name__
    server.kill()
    tell("background", server.wait(timeout=60))
    ended = veil_run.start("echo a; echo b >&2; exit 7")
    result = ended.wait(timeout=60)
    assert not ended.running()  # it does come to its end
    tell("ended", result)
    logs = ended.logs()
    seen["logs"] = [logs.status, logs.stdout, logs.stderr, logs.stdout_cursor]
    where = Path(os.environ["SEEN"]) / f"{veil_run.mode}.json"
    where.write_text(json.dumps(seen, sort_keys=True))
"""


def test_rr_04_a_replay_has_the_exits_streams_and_errors_of_what_was_recorded(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEEN", str(tmp_path))
    suite.write("test_it.py", RR_04)
    seen: dict[str, dict[str, Any]] = {}
    for mode in ("record", "replay"):
        suite.run(f"--veil-mode={mode}").assert_outcomes(passed=1)
        seen[mode] = json.loads((tmp_path / f"{mode}.json").read_text())
    recorded = seen["record"]
    assert recorded["failed"]["exit"] == 3
    assert recorded["failed"]["streams"] == [b"o\n".hex(), b"e\n".hex()]
    assert recorded["merged"]["streams"] == [b"o\ne\no\n".hex(), ""]
    assert recorded["bytes"]["streams"][0] == "ff00"
    assert (recorded["timed"]["ended"], recorded["timed"]["stdout"]) == ("timed_out", "before")
    assert recorded["killed"]["ended"] == "signaled"
    assert recorded["absent"]["ended"] == "spawn_failed"
    assert [recorded[name][0] for name in ("check", "input", "cwd")] == ["CommandFailed", "BadInput", "BadInput"]
    assert (recorded["wait"], recorded["background"]["signal"]) == ("TimeoutError", "SIGTERM")
    assert recorded["logs"] == ["exited", "a\n", "b\n", 2]
    assert seen["replay"] == recorded


def test_rr_06_what_is_no_recording_is_an_error_and_nothing_is_run(suite: Suite, tmp_path: Path) -> None:
    suite.write(
        "test_it.py",
        f"""
        import pytest

        @pytest.mark.parametrize("name", ["empty", "braces", "null", "half", "edited", "whole"])
        def test_it(veil_run, name):
            veil_run(f"touch '{tmp_path}'/ran-{{name}}; echo {{name}}")
        """,
    )
    suite.run("--veil-mode=record").assert_outcomes(passed=6)
    for ran in tmp_path.glob("ran-*"):
        ran.unlink()
    whole = {path.name.partition("[")[2] or path.name: path for path in (suite.path / "cassettes").iterdir()}
    damage = {
        "empty": lambda data: b"",
        "braces": lambda data: b"{}",
        "null": lambda data: b"null",
        "half": lambda data: data[: len(data) // 2],
        "edited": lambda data: data.replace(b'"exit": 0', b'"exit": "0"'),
    }
    for name, harm in damage.items():
        (path,) = [path for path in whole.values() if name in path.name]
        harmed = harm(path.read_bytes())
        assert harmed != path.read_bytes()
        path.write_bytes(harmed)
    before = suite.cassettes()
    for mode in ("replay", "record-missing"):
        result = suite.run(f"--veil-mode={mode}", "-rE")
        result.assert_outcomes(passed=1, errors=5)
        for name in damage:
            result.stdout.fnmatch_lines([f"*cassettes/test_it*{name}*.veil.txtar:[0-9]*: *"])
        assert list(tmp_path.glob("ran-*")) == []
        assert suite.cassettes() == before


def test_rr_06_a_recording_that_failed_leaves_the_good_one(suite: Suite) -> None:
    body = """
import os

def test_it(veil_run):
    veil_run("echo first")
    veil_run("echo second")
    END
"""
    suite.write("test_it.py", body.replace("END", ""))
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    good = suite.cassettes()
    for mode in ("record", "refresh"):
        suite.write("test_it.py", body.replace("second", "other").replace("END", "assert False"))
        suite.run(f"--veil-mode={mode}").assert_outcomes(failed=1)
        # interrupted, and killed outright, in the middle
        for end in ("raise KeyboardInterrupt", "os._exit(1)"):
            suite.write("test_it.py", body.replace("second", "other").replace("END", end))
            assert suite.run(f"--veil-mode={mode}").ret != 0
        assert suite.cassettes() == good
    assert [path.name for path in (suite.path / "cassettes").iterdir()] == list(good)


def test_a_secret_in_a_parameter_is_refused_before_it_names_a_file(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "the-quick-brown-secret"
    monkeypatch.setenv("SERVICE_API_TOKEN", secret)
    suite.write(
        "test_it.py",
        """
        import os, pytest

        @pytest.mark.parametrize("token", [os.environ["SERVICE_API_TOKEN"]])
        def test_named(veil_run, token):
            veil_run("true")

        @pytest.mark.parametrize("token", [pytest.param(os.environ["SERVICE_API_TOKEN"], id="token")])
        def test_with_an_id(veil_run, token):
            veil_run(["true", token])
        """,
    )
    result = suite.run("--veil-mode=record")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the name of this test holds a secret*"])
    assert [secret.encode() in content for content in suite.cassettes().values()] == [False]
    assert not [name for name in suite.cassettes() if secret in name]


def test_a_test_that_is_refused_all_it_asks_for_passes_in_every_mode(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        import pytest, veil

        def test_refused(veil_run):
            with pytest.raises(veil.BadInput):
                veil_run("true", timeout=0)
        """,
    )
    for mode in ("live", "record", "replay", "verify"):
        suite.run(f"--veil-mode={mode}").assert_outcomes(passed=1)
