"""``veil shell``: standard input as a session."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import VEIL, environment, veil

pytestmark = pytest.mark.needs("bash")


def test_lines_of_one_session(tmp_path: Path) -> None:
    lines = b"mkdir sub; cd sub; export A=1\npwd; echo $A\n\nf() { echo f \\\n$1; }\nf x\necho to stderr >&2\nexit 3\n"
    done = veil("shell", "--no-contain", cwd=tmp_path, stdin=lines)
    assert done.stdout.decode() == f"{tmp_path}/sub\n1\nf x\n"
    assert done.stderr.startswith(b"to stderr\nveil: exit 3 in ")
    assert done.returncode == 3
    again = veil("shell", cwd=tmp_path, stdin=b"exit 3\ntrue")
    assert (again.returncode, again.stdout) == (0, b"")


LINES = """for x in 1 2
do echo $x
done
cat <<E
a 'b
E
f() {
  echo "in
f"
}
f
echo 'it''s'; true &&
echo and
x=$(echo 1
echo 2); echo $x
echo )
echo "never ended
"""


def test_a_command_goes_on_until_it_is_whole(tmp_path: Path) -> None:
    done = veil("shell", "--no-contain", cwd=tmp_path, stdin=LINES.encode())
    assert done.stdout == b"1\n2\na 'b\nin\nf\nits\nand\n1 2\n"
    assert b"syntax error near unexpected token `)'" in done.stderr
    assert b"unexpected EOF" in done.stderr
    assert done.returncode == 2


def test_one_document_for_each_command(tmp_path: Path) -> None:
    lines = b"cd /; echo a\nno-such-command\n\nsleep 60\nx=$((1+1)); echo $x\n"
    done = veil("shell", "--json", "--name", "job", "--timeout", "1.5", "--effects", "off", cwd=tmp_path, stdin=lines)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["exit"] for row in told] == [0, 127, 124, 0]
    assert [row["session"] for row in told] == ["job"] * 4
    assert (told[0]["cwd"], told[0]["stdout"]) == ("/", "a")
    assert told[2]["session_state"] == "as before: the command was ended at its time limit"
    assert told[3]["stdout"] == "2"
    assert done.returncode == 0


def test_what_cannot_run_is_told_and_the_session_goes_on(tmp_path: Path) -> None:
    done = veil("shell", "--json", "--expect", "stdout_matches=(", cwd=tmp_path, stdin=b"true\n")
    assert json.loads(done.stdout)["error"] == "bad_input"
    (tmp_path / "gone").mkdir()
    lines = f"cd gone; rmdir {tmp_path}/gone\npwd\n".encode()
    done = veil("shell", "--json", cwd=tmp_path, stdin=lines)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["stdout"] == str(tmp_path)
    assert last["session_cwd_gone"] == f"{tmp_path}/gone"
    done = veil("shell", "--stdin", "-", cwd=tmp_path)
    assert done.returncode == 125
    assert b"standard input has the commands" in done.stderr


def test_output_comes_as_it_is_written(tmp_path: Path) -> None:
    with subprocess.Popen(
        (*VEIL, "shell"), cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(b"echo first; while [ ! -e go ]; do sleep 0.05; done; printf '\\377\\n'\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"first\n"
            (tmp_path / "go").touch()
            assert process.stdout.readline() == b"\xff\n"
            process.stdin.close()
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_a_signal_ends_the_command_and_veil(tmp_path: Path) -> None:
    with subprocess.Popen(
        (*VEIL, "shell"), cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(b"echo up; sleep 100\necho never\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"up\n"
            process.send_signal(signal.SIGTERM)
            assert process.stdout.read() == b""
            assert process.wait(60) == 128 + signal.SIGTERM
        finally:
            process.kill()


def _until(master: int, text: bytes) -> bytes:
    seen, deadline = b"", time.monotonic() + 60
    while text not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([master], [], [], 1)[0]:
            seen += os.read(master, 4096)
    return seen


def test_at_a_terminal_it_prompts_and_an_interrupt_ends_the_command_alone(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    env = environment(TERM="xterm", HOME="/nowhere")
    with subprocess.Popen(
        (*VEIL, "shell", "--no-contain"),
        cwd=tmp_path,
        env=env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    ) as process:
        os.close(slave)
        try:
            _until(master, f"{tmp_path} $ ".encode())
            os.write(master, b"cd /; echo there\n")
            assert b"there\r\n" in _until(master, b"/ $ ")
            os.write(master, b"printf '\\033[2J'; sleep 100\n")
            shown = _until(master, b"[2J")
            assert b"\x1b[2J" not in shown
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            assert b"/ $ " in _until(master, b"/ $ ")
            os.write(master, b"exit 4\n")
            _until(master, b"exit 4 in")
            os.write(master, b"\x04")
            assert process.wait(60) == 4
        finally:
            process.kill()
            os.close(master)


def test_without_a_standard_input_it_ends(tmp_path: Path) -> None:
    words = ["sh", "-c", 'exec "$0" -m veil shell <&-', sys.executable]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_more_runs_than_can_be_counted_are_all(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "veil", "runs", "--limit", str(2**64)]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
