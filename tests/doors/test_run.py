"""One foreground run through the Python door."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from marked import Marker

import veil

ROOT = Path(__file__).parents[2]
LONG = 60.0
KINDS = pytest.mark.parametrize("contain", [False, pytest.param(True, marks=pytest.mark.linux)])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_text_is_read_by_bash_and_an_argv_by_nobody() -> None:
    assert veil.run("[[ a == a ]] && echo {1..3}").stdout == "1 2 3\n"
    assert veil.run("echo {1..3}", shell="sh" if shutil.which("dash") else "bash").ok
    assert veil.run(["echo", "{1..3}", "$HOME", "*"]).stdout == "{1..3} $HOME *\n"


@KINDS
def test_how_it_ended(contain: bool) -> None:
    for command, told in {
        "true": ("exited", 0, None, True),
        "exit 7": ("exited", 7, None, False),
        "kill -SEGV $$": ("signaled", 139, "SIGSEGV", False),
        "kill -15 $$": ("signaled", 143, "SIGTERM", False),
    }.items():
        result = veil.run(command, contain=contain)
        assert (result.ended, result.exit, result.signal, result.ok) == told
    assert veil.run("sleep 60", timeout=0.2, contain=contain).to_dict()["timed_out"] is True


@KINDS
def test_a_program_that_cannot_start_is_data(contain: bool, here: Path) -> None:
    (here / "plain").write_text("no program")
    (here / "lost").write_text("#!/is/not/there\n")
    (here / "lost").chmod(0o755)
    for argv, code in (["./nothing"], 127), (["./plain"], 126), (["./lost"], 127), (["/"], 126), (["no/such"], 127):
        result = veil.run(argv, contain=contain)
        assert (result.ended, result.exit, result.ok, result.stdout) == ("spawn_failed", code, False, "")
        assert argv[0] in result.to_dict()["spawn_error"]
    too_long = veil.run(["true", "x" * 3_000_000], contain=contain)
    assert (too_long.ended, too_long.exit) == ("spawn_failed", 126)


@KINDS
def test_the_environment_is_the_callers_with_what_is_said(contain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "é\udcff")
    monkeypatch.setenv("TAKEN", "x")
    monkeypatch.setenv("BASH_ENV", "/dev/stdin")
    told = veil.run("env", env={"SAID": "a\nb=c", "TAKEN": None}, contain=contain).stdout_bytes
    assert b"KEPT=\xc3\xa9\xff\n" in told
    assert b"SAID=a\nb=c\n" in told
    assert b"TAKEN" not in told
    assert b"BASH_ENV" not in told


@KINDS
def test_folder_and_umask_are_inherited(contain: bool, here: Path) -> None:
    before = os.umask(0o027)
    try:
        assert veil.run("umask", contain=contain).stdout == "0027\n"
    finally:
        os.umask(before)
    assert veil.run("pwd -P", contain=contain).stdout == f"{here.resolve()}\n"
    assert veil.run("pwd -P", cwd="/", contain=contain).stdout == "/\n"


@KINDS
@pytest.mark.parametrize("given", [b"", b"x", bytes(range(256)) * 20_000], ids=len)
def test_input_arrives_whole(given: bytes, contain: bool) -> None:
    result = veil.run("cat", stdin=given, contain=contain, max_output=10_000_000)
    assert (result.stdout_bytes, result.ok) == (given, True)
    assert veil.run("cat", stdin="é\udcff", contain=contain).stdout_bytes == b"\xc3\xa9\xff"


@KINDS
def test_without_input_a_reader_sees_the_end_at_once(contain: bool) -> None:
    assert veil.run("cat; echo done", contain=contain, timeout=LONG).stdout == "done\n"


@KINDS
def test_input_that_is_never_read_or_closed_early(contain: bool, marker: Marker) -> None:
    big = b"z" * 3_000_000
    assert veil.run("exec <&-; sleep 0.2; echo ok", stdin=big, contain=contain).stdout == "ok\n"
    limited = veil.run(f"echo up; sleep {marker}", stdin=big, timeout=1, contain=contain)
    assert (limited.timed_out, limited.stdout) == (True, "up\n")
    assert veil.run("head -c 3", stdin=big, contain=contain).stdout == "zzz"


def test_one_stream_in_true_order() -> None:
    result = veil.run("for i in 1 2 3; do echo o$i; echo e$i >&2; done", merge_stderr=True)
    assert (result.stdout, result.stderr) == ("o1\ne1\no2\ne2\no3\ne3\n", "")


@KINDS
def test_output_is_heard_as_it_comes(contain: bool, here: Path) -> None:
    heard: list[tuple[str, bytes]] = []

    def listen(name: str, data: bytes) -> None:
        heard.append((name, data))
        if data == b"one\n":
            (here / "go").touch()

    result = veil.run(
        "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two >&2",
        on_output=listen,
        contain=contain,
        timeout=LONG,
    )
    assert heard == [("stdout", b"one\n"), ("stderr", b"two\n")]
    assert (result.stdout, result.stderr) == ("one\n", "two\n")


@KINDS
def test_an_error_of_the_listener_ends_the_tree_and_is_raised(contain: bool, marker: Marker) -> None:
    def listen(name: str, data: bytes) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        veil.run(f"setsid sleep {marker} & echo up; sleep {marker}", on_output=listen, contain=contain)
    assert marker.alive() == {}


def test_scripts_of_any_length_and_no_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for size in (131_000, 131_071, 131_072, 131_073, 200_000, 1_000_000):
        start = "exit $(( ${#X} % 251 )) # "
        text = "X=" + "y" * (size - len(start) - 3) + "\n" + start
        assert len(text) in (size, size - 1)
        assert veil.run(text).exit == (size - len(start) - 3) % 251
    assert veil.run("# " + "é" * 70_000 + "\necho $0").stdout.endswith("\n")
    assert list(tmp_path.glob("veil-script-*")) == []


def test_long_and_odd_names(here: Path) -> None:
    for name in ("n" * 130, "é" * 100, "a\nb", " ", "-rf", "q'\"$(x)"):
        folder = here / name
        folder.mkdir()
        result = veil.run(["touch", "--", name], cwd=folder)
        assert (result.ok, result.created) == (True, [name])


def test_the_extremes_of_the_limits(marker: Marker) -> None:
    nothing = veil.run("echo hello", max_output=0)
    assert (nothing.stdout, nothing.stdout_truncated, nothing.stdout_total_bytes) == ("", True, 6)
    assert veil.run("printf ab", max_output=1).stdout == "b"
    assert veil.run("true", timeout=1e9).ok
    assert veil.run("true", timeout=float("inf")).ok
    assert veil.run("true", timeout=10**400).ok
    assert veil.run(f"sleep {marker}", timeout=1e-9).timed_out
    assert marker.alive() == {}


def test_retries_wait_longer_each_time_and_stop_at_success(here: Path) -> None:
    began = time.monotonic()
    result = veil.run("echo x >> tries; [ $(wc -l < tries) -ge 3 ]", retries=5, backoff=0.2)
    assert (result.ok, result.attempts) == (True, 3)
    assert time.monotonic() - began >= 0.6, "0.2 and 0.4"
    assert [change.path for change in result.files_changed] == ["tries"]
    assert veil.run("exit 4", retries=2, retry_on_exit=[3, 5]).attempts == 1
    assert veil.run("exit 5", retries=2, retry_on_exit=[3, 5]).attempts == 3
    assert veil.run("kill -9 $$", retries=1).attempts == 2


def test_check_raises_with_the_result() -> None:
    with pytest.raises(veil.CommandFailed) as caught:
        veil.run("echo said; exit 3", check=True)
    assert (caught.value.result.exit, caught.value.result.stdout) == (3, "said\n")
    assert veil.run("exit 3", check=True, expect={"exit": 3}).exit == 3
    with pytest.raises(veil.CommandFailed):
        veil.run("true", check=True, expect={"stdout_contains": "x"})
    with pytest.raises(veil.BadInput):
        veil.run("touch ran", check="yes")  # type: ignore[arg-type]
    assert not Path("ran").exists()


def test_many_threads_at_once(marker: Marker) -> None:
    said: list[str] = []

    def work(n: int) -> None:
        for _ in range(5):
            said.append(veil.run(f"echo {n}", effects=False).stdout)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == sorted(f"{n}\n" for n in range(8) for _ in range(5))


def test_importing_it_is_cheap_and_running_needs_no_pytest() -> None:
    program = """
import sys, veil
late = {"pytest", "click", "rich", "regex", "psutil", "filelock", "pluggy", "sqlite3", "asyncio", "subprocess"}
assert not late & set(sys.modules), late & set(sys.modules)
veil.run("true")
assert not {"pytest", "click", "rich", "asyncio"} & set(sys.modules)
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_inside_a_run(marker: Marker) -> None:
    program = f"import veil; r = veil.run('setsid sleep {marker} & echo $VEIL_RUN'); print(r.stdout, end='')"
    env = {"PYTHONPATH": str(ROOT)}
    result = veil.run([sys.executable, "-c", program], env=env)
    assert result.ok, result.stderr
    outer, inner = result.stdout.strip().split(":")
    assert outer != inner
    assert marker.alive() == {}
