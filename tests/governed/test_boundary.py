"""The tool's contract: inputs, results, where it works, and what each failure says."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from bounds import FREE, allow, bounded, free, kinds, py, script

from veil.governed import Bounds, Denied, EffectUnknown, Policy, run_shell_command, schema
from veil.model.errors import BadInput

__all__ = ["py"]


# -- inputs


@pytest.mark.parametrize(
    "argv",
    [
        [],
        (),
        "ls -l",
        b"ls",
        None,
        3,
        [""],
        ["  "],
        ["\t"],
        ["ls", 3],
        ["ls", None],
        ["a", "\0"],
        ["\0"],
        [b"ls"],
        ["\ud800"],
    ],
)
def test_what_is_no_argv(ws: Path, argv: object) -> None:
    at = bounded(ws, FREE)
    with pytest.raises(BadInput, match="argv"):
        at.run(argv)  # type: ignore[arg-type]
    (line,) = at.audit.lines()
    assert (line["kind"], line["decision"], line["code"], line["effect"]) == ("request", "deny", "bad_input", "none")


@pytest.mark.parametrize("timeout", [0, -1, math.inf, math.nan, True, "5", 601, 10**400])
def test_seconds_that_cannot_be(ws: Path, timeout: object) -> None:
    with pytest.raises(BadInput, match="timeout_s"):
        bounded(ws, FREE).run(["ls"], timeout_s=timeout)  # type: ignore[arg-type]


@pytest.mark.parametrize("chars", [-1, 1.5, True, "5", 10**8])
def test_characters_that_cannot_be(ws: Path, chars: object) -> None:
    at = bounded(ws, FREE)
    for name in ("max_stdout_chars", "max_stderr_chars"):
        with pytest.raises(BadInput, match=name):
            at.run(["ls"], **{name: chars})


def test_there_is_no_folder_environment_or_input_of_a_call(ws: Path) -> None:
    at = bounded(ws, FREE)
    for name in ("cwd", "env", "stdin", "shell", "timeout", "pty"):
        with pytest.raises(TypeError):
            at.run(["ls"], **{name: None})  # type: ignore[arg-type]
        said = run_shell_command(at, {"argv": ["ls"], name: None})
        assert (said["ok"], said["error"]) == (False, "bad_input")
    with pytest.raises(BadInput, match="an option of a boundary"):
        bounded(ws, FREE, stdin="x")


def test_words_reach_the_program_as_they_are(ws: Path, py: list[str]) -> None:
    words = ["a b", "", "$x", "`id`", "$(id)", ";", "|", "*", "\n", "\\", "'", '"', "é", "\udcff", "-", "--", "a;b&&c"]
    result = free(ws).run([*py, "import sys; print(sys.argv[1:])", *words])
    assert result.stdout == repr(words) + "\n"
    assert result.argv == (*py, "import sys; print(sys.argv[1:])", *words)


def test_nobody_is_at_the_other_end_of_the_input(ws: Path, py: list[str]) -> None:
    program = "import sys, os; print(repr(sys.stdin.read()), os.isatty(0), os.isatty(1), os.isatty(2))"
    assert free(ws).run([*py, program]).stdout == "'' False False False\n"


# -- results


_ON_A_TERMINAL = """
import fcntl, os, sys, termios
from veil.governed import Audit, Boundary, Policy
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.close(os.open("/dev/tty", os.O_RDWR))
options = {"effects": False, "no_store": True, "contain": sys.argv[2] == "1"}
at = Boundary(sys.argv[1], Policy("always_allow"), audit=Audit(), **options)
print(ascii(at.run(["sh", "./ask"]).stdout))
"""
_ASK = """
for n in 0 1 2; do test -t $n && echo terminal $n; done
(: > /dev/tty) 2>&- && echo /dev/tty
cat
echo done
"""


@pytest.mark.parametrize("contain", ["0", "1"])
def test_a_command_has_no_terminal_where_the_host_has_one(ws: Path, contain: str) -> None:
    (ws / "ask").write_text(_ASK)
    main, other = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _ON_A_TERMINAL, str(ws), contain],
        stdin=other,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(other)
    try:
        shown = process.communicate(timeout=60)[0]
    finally:
        process.kill()
        os.close(main)
    assert shown == b"'done\\n'\n"


def test_a_command_that_fails_is_a_completed_dispatch(ws: Path, py: list[str]) -> None:
    at = free(ws)
    result = at.run([*py, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"])
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert (result.stdout_truncated, result.stderr_truncated) == (False, False)
    assert result.effect == "unknown"
    killed = at.run([*py, "import os; os.kill(os.getpid(), 9)"])
    assert killed.returncode == 137


def test_bytes_that_are_no_text_are_replaced_and_that_is_evidence(ws: Path, py: list[str]) -> None:
    at = free(ws)
    result = at.run([*py, "import sys; sys.stdout.buffer.write(b'a\\xffb')"])
    assert result.stdout == "a\ufffdb"
    assert "bytes that are no UTF-8 were replaced" in at.completion(result.id)["open"]


def test_two_caps_that_only_narrow_and_two_flags(ws: Path, py: list[str]) -> None:
    at = free(ws, bounds=Bounds(max_chars=100))
    argv = [*py, "import sys; print('é' * 99); print('x' * 300, file=sys.stderr)"]
    result = at.run(argv)
    assert (len(result.stdout), result.stdout_truncated) == (100, False)
    assert (result.stderr, result.stderr_truncated) == ("x" * 100, True)
    assert dict(result.cut) == {"stderr": "boundary"}
    less = at.run(argv, max_stdout_chars=3, max_stderr_chars=0)
    assert (less.stdout, less.stdout_truncated, less.stderr, less.stderr_truncated) == ("ééé", True, "", True)
    assert dict(less.cut) == {"stdout": "call", "stderr": "call"}
    more = at.run(argv, max_stderr_chars=1000)
    assert (len(more.stderr), dict(more.cut)) == (100, {"stderr": "boundary"}), "a cap of a call gives nothing back"


def test_more_bytes_than_the_process_layer_takes_end_the_command(ws: Path, py: list[str]) -> None:
    at = free(ws, bounds=Bounds(max_bytes=10_000))
    program = "import sys, time\nwhile True: sys.stdout.write('x' * 1000); sys.stdout.flush()"
    with pytest.raises(EffectUnknown) as error:
        at.run([*py, program], timeout_s=60)
    assert error.value.code == "output_limit"
    assert error.value.facts["effect"] == "unknown"
    assert "before any retry" in str(error.value)
    assert "x" * 100 not in str(error.value.to_dict())
    assert at.completion(error.value.facts["id"])["effect"] == "unknown"
    quick = [*py, "print('x' * 20000)"]
    with pytest.raises(EffectUnknown, match="10000 bytes"):
        at.run(quick)


def test_a_result_too_large_to_persist_is_left_out_with_evidence(ws: Path, py: list[str]) -> None:
    at = free(ws, bounds=Bounds(max_persisted=2_000))
    with pytest.raises(EffectUnknown) as error:
        at.run([*py, "open('made', 'w').close(); print('x' * 5000)"])
    assert error.value.code == "result_omitted"
    assert (ws / "made").exists()
    evidence = at.completion(error.value.facts["id"])
    assert (evidence["ended"], evidence["effect"], evidence["returncode"]) == ("result_omitted", "unknown", 0)
    assert at.run([*py, "print('x' * 500)"]).returncode == 0


def test_the_four_bounds_are_told_apart(ws: Path, py: list[str]) -> None:
    at = free(ws, bounds=Bounds(max_bytes=3_000, max_persisted=2_500, max_chars=2_400))
    said = {}
    for size, cap in ((3_500, None), (2_450, None), (2_900, 100), (1_000, 100)):
        try:
            result = at.run([*py, f"print('x' * {size - 1})"], max_stdout_chars=cap)
            said[size] = dict(result.cut).get("stdout", "whole")
        except EffectUnknown as error:
            said[size] = error.code
    assert said == {3_500: "output_limit", 2_450: "result_omitted", 2_900: "call", 1_000: "call"}


def test_at_the_time_limit_the_effect_is_unknown(ws: Path, py: list[str]) -> None:
    at = free(ws)
    with pytest.raises(EffectUnknown) as error:
        at.run([*py, "import time; open('begun', 'w').close(); time.sleep(600)"], timeout_s=8)
    assert error.value.code == "timed_out"
    assert (ws / "begun").exists()
    evidence = at.completion(error.value.facts["id"])
    assert (evidence["effect"], evidence["ended"]) == ("unknown", "timed_out")
    assert evidence["used"]["wall"] >= 8
    at.verified(error.value.facts["id"], "begun is there, and empty", by="test")
    assert at.completion(error.value.facts["id"])["effect"] == "verified"


def test_a_cancelled_command_has_an_unknown_effect(ws: Path, py: list[str]) -> None:
    at = free(ws)
    errors: list[EffectUnknown] = []

    def work() -> None:
        try:
            at.run([*py, "import time; open('begun', 'w').close(); time.sleep(600)"])
        except EffectUnknown as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 60
    while not (ws / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert at.cancel() == 1
    thread.join(60)
    assert [error.code for error in errors] == ["cancelled"]
    assert list(at.audit.lines())[-1]["effect"] == "unknown"


def test_a_program_that_cannot_start_says_so(ws: Path) -> None:
    (ws / "broken").write_bytes(b"\x7fELF no program")
    (ws / "broken").chmod(0o755)
    with pytest.raises(EffectUnknown) as error:
        bounded(ws, FREE).run(["./broken"])
    assert error.value.code == "not_started"


@pytest.mark.parametrize("word", ["nosuch", "./in", "sub", "./sub", "./nothing", "/etc/hostname", "/opt/x", "sub/"])
def test_what_is_no_program_is_refused_before_anything(ws: Path, word: str) -> None:
    at = bounded(ws, FREE)
    with pytest.raises(Denied) as error:
        at.run([word])
    assert error.value.code == "executable_refused"
    assert kinds(at) == ["request"]


def test_a_program_outside_path_and_workspace_is_refused(ws: Path) -> None:
    tool = script(ws.parent / "elsewhere" / "tool", "echo x\n")
    (ws / "link").symlink_to(tool)
    at = bounded(ws, Policy("blocklist"))
    with pytest.raises(Denied, match="neither in the safe PATH nor in the workspace"):
        at.run([str(tool)])


# -- the working directory


def test_the_folder_is_chosen_inside_the_workspace(ws: Path) -> None:
    (ws / "out").symlink_to("..")
    at = bounded(ws, allow("pwd"))
    assert at.cwd == str(ws)
    assert at.chdir("sub") == str(ws / "sub")
    assert at.run(["pwd"]).stdout == f"{ws}/sub\n"
    for folder in ("../..", "../out", "/", "/etc"):
        with pytest.raises(Denied) as error:
            at.chdir(folder)
        assert error.value.code == "outside_workspace"
    for folder in ("nothing", "../in", "", "a\0b"):
        with pytest.raises(BadInput):
            at.chdir(folder)
    assert at.cwd == str(ws / "sub")
    assert at.chdir("..") == str(ws)


# -- the tool


def test_the_tool_gives_back_the_fields_of_the_reference(ws: Path) -> None:
    at = bounded(ws, allow("cat"))
    said = run_shell_command(at, {"argv": ["cat", "in", "nothing"], "timeout_s": 9, "max_stdout_chars": 3})
    assert said["ok"] is True
    assert said["argv"] == ["cat", "in", "nothing"]
    assert (said["returncode"], said["stdout"], said["stdout_truncated"]) == (1, "ins", True)
    assert "nothing" in said["stderr"]
    assert said["stderr_truncated"] is False
    denied = run_shell_command(at, {"argv": ["cat", "/etc/passwd"]})
    assert (denied["ok"], denied["error"]) == (False, "outside_workspace")
    assert "Stop here" in denied["message"]
    assert run_shell_command(at, {})["error"] == "bad_input"
    assert set(schema(at)["properties"]) == {"argv", "timeout_s", "max_stdout_chars", "max_stderr_chars"}
    assert schema(at)["additionalProperties"] is False
