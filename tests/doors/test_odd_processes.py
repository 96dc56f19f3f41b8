"""Runs of a process that is in an unusual state itself: forked, with a strange umask, without descriptors."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def program(text: str, folder: Path, *, before: str = "", **env: str) -> str:
    """What a program prints on descriptor 3 when ``text`` runs in ``folder``; ``before`` is for its shell."""
    told = folder.parent / "told"
    argv = ["sh", "-c", f'exec 3> "$0"; {before} exec "$1" -c "$2"', str(told), sys.executable, text]
    done = subprocess.run(
        argv, env={**os.environ, "PYTHONPATH": str(ROOT), **env}, cwd=folder, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return told.read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


FORKS = """
import os, signal, threading, veil
done = threading.Event()
def busy(times=1 << 30):
    while times and not done.is_set():
        veil.run("true")
        times -= 1
# all that is imported late is there afterwards: a fork in the middle of another thread's import is Python's own trap
first = [threading.Thread(target=busy, args=(15,)) for _ in range(3)]
for thread in first:
    thread.start()
for thread in first:
    thread.join()
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
ends = set()
for _ in range(25):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        os._exit(0 if veil.run("echo mine").stdout == "mine\\n" else 1)
    ends.add(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
done.set()
for thread in threads:
    thread.join()
os.write(3, repr(ends).encode())
"""


def test_a_fork_in_the_middle_of_other_threads_runs_can_run(folder: Path) -> None:
    assert program(FORKS, folder) == "{0}"


SESSION_IN_A_FORK = """
import os, signal, threading, veil, veil.stateful
held, over = threading.Event(), threading.Event()
def begin():
    # what a thread holds that is just beginning a session, for as long as it takes to fork in the middle of it
    with veil.stateful._beginning, veil.stateful._named_lock:
        held.set()
        over.wait()
thread = threading.Thread(target=begin)
thread.start()
held.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(20)
    with veil.shell("a") as shell:
        os._exit(0 if veil.stateful.shell_named("a") is shell else 1)
over.set()
thread.join()
os.write(3, str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
"""


def test_a_fork_in_the_middle_of_a_session_that_begins_can_begin_one(folder: Path) -> None:
    assert program(SESSION_IN_A_FORK, folder) == "0"


@pytest.mark.parametrize("umask", ["000", "077", "0777"])
def test_folders_of_state_are_the_owners_whatever_the_umask(umask: str, folder: Path, tmp_path: Path) -> None:
    state = tmp_path / "not" / "there"
    text = "import os, veil; r = veil.run('touch x'); os.write(3, f'{r.stored} {r.shared}'.encode())"
    assert program(text, folder, before=f"umask {umask};", VEIL_STATE_DIR=str(state)) == "disk False"
    for path in (tmp_path / "not", state, *state.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert not mode & 0o077, f"{path} {mode:o}"
        assert not path.is_dir() or mode == 0o700, f"{path} {mode:o}"


@pytest.mark.parametrize("contain", ["False", pytest.param("True", marks=pytest.mark.linux)])
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_process_without_its_descriptors_runs_as_any_other(closed: str, contain: str, folder: Path) -> None:
    text = f"""
import os, veil
r = veil.run("cat; echo out; echo err >&2; echo > made", contain={contain})
s = veil.run("cat", stdin="in", contain={contain})
os.write(3, f"{{r.stdout!r}} {{r.stderr!r}} {{[c.path for c in r.files_changed]}} {{s.stdout}}".encode())
"""
    assert program(text, folder, before=f"exec {closed};") == "'out\\n' 'err\\n' ['made'] in"


@pytest.mark.needs("root")
def test_what_root_keeps_in_another_users_folder_is_that_users(folder: Path, tmp_path: Path) -> None:
    user = 12345
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, user, user)
    text = """
import os, threading, time, veil
one = threading.Thread(target=lambda: veil.run("echo > a; sleep 1"))
one.start()
while not os.path.exists("a"):
    time.sleep(0.01)
shared = [veil.run("echo > b").shared]
one.join()
with veil.start("sleep 60"):
    shared.append(veil.run("touch c").shared)
    found = {os.path.join(at, name) for at, folders, names in os.walk(os.environ["VEIL_STATE_DIR"])
             for name in (*folders, *names)}
    names = {os.path.basename(path) for path in found}
    owners = {os.lstat(path).st_uid for path in found}
os.write(3, f"{shared} {owners} {'store.db-wal' in names} {'window' in names} {'came' in names}".encode())
"""
    state = home / "new" / "state"
    told = program(text, folder, VEIL_STATE_DIR=str(state), VEIL_EFFECTS_WAIT_MS="0")
    assert told == f"[True, True] {{{user}}} True True True"
    assert (state.stat().st_uid, state.parent.stat().st_uid) == (user, user)


GONE = """
import os, veil
above = os.getcwd()
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
calls = {
    "cwd": lambda **more: veil.run("true", project=above, **more),
    "dir": lambda **more: veil.checkpoint("label", project=above, **more),
    "project": lambda **more: veil.run("true", **more),
}
with os.fdopen(3, "w") as told:
    for name, call in calls.items():
        for path in (".", "below/it"):
            try:
                call(**{name: path})
            except veil.BadInput as error:
                told.write(f"{error.facts['argument']} absolute={'absolute path' in str(error)}\\n")
"""


def test_relative_folders_of_a_process_whose_own_is_gone_are_bad_input(folder: Path) -> None:
    told = program(GONE, folder)
    assert told.splitlines() == [f"{name} absolute=True" for name in ("cwd", "dir", "project") for _ in range(2)]
