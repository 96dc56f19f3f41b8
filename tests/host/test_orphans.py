"""A process that adopts orphans and has several runs at once: nobody's run is taken for what another one left."""

from __future__ import annotations

import subprocess
import sys

import pytest
from marked import Marker

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash")]

_PROGRAM = """
import os, subprocess, sys, threading, time
import veil
from veil import wiring
wiring.own_process()
mark = sys.argv[1]
server = veil.start(f"sleep {mark} & wait")
helper = subprocess.Popen(["sleep", mark])
ended = subprocess.Popen(["true"])
os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
told = [veil.run("true"), veil.run("sleep 60", timeout=0.1), veil.run(f"setsid -f sleep {mark}; true", effects=False)]
told.append(veil.run("exit 7"))
print([(r.exit, r.left_running) for r in told])
print(server.status, helper.poll(), ended.wait())
seen = []
threads = [threading.Thread(target=lambda n=n: seen.append(veil.run(f"sleep 0.0{n % 7}; exit {n}", effects=False).exit
    == n)) for n in range(1, 30)]
threads += [threading.Thread(target=lambda: seen.append(veil.run("sleep 60", timeout=0.1, effects=False).timed_out))
    for _ in range(10)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(all(seen), len(seen), server.status)
helper.kill()
print(helper.wait())
# an orphan that nobody waits for goes as soon as the next run ends
veil.run(["bash", "-c", "(exec -a gone env -i setsid sleep 0.1 &) ; true"], effects=False, left_running="keep")
time.sleep(0.5)
veil.run("true", effects=False)
server.kill()
veil.run("true", effects=False)
try:
    print(os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT))
except ChildProcessError:
    print("nobody")
"""


def test_runs_beside_each_other_in_a_process_that_adopts(marker: Marker, own_state: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, marker.text],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[(0, 0), (124, 0), (0, 1), (7, 0)]",
        "running None 0",
        "True 39 running",
        "-9",
        "nobody",
    ], done.stderr
    marker.until(0)


_TOGETHER = """
import os, sys, threading
import veil
from veil import wiring
wiring.own_process()
wrong, over = [], threading.Event()
def ends():
    while not over.is_set():
        if not veil.run("sleep 60", timeout=0.01, effects=False).timed_out:
            wrong.append("not timed out")
ending = threading.Thread(target=ends)
ending.start()
try:
    for turn in range(60):
        handle = veil.start("read line; exit 9")
        if handle.wait(60).exit != 9:
            wrong.append(handle.wait())
        if veil.run("exit 8", effects=False).exit != 8:
            wrong.append("exit 8")
finally:
    over.set()
    ending.join()
print(wrong)
"""


def test_a_run_that_is_ended_takes_none_that_is_just_beginning(own_state: object) -> None:
    """One is looked at while another one is being started, and is not yet in the book."""
    done = subprocess.run(
        [sys.executable, "-c", _TOGETHER], capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
