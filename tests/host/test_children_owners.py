"""Nobody of a run is alive after its owner ended: lost exit codes, killed owners, an interrupt at any moment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from marked import Marker

ROOT = Path(__file__).parents[2]
#: Far more than anything here takes: it is there to tell a hang from a slow machine.
LONG = 60.0
linux = pytest.mark.linux


@linux
def test_an_exit_code_that_another_thread_took_is_said_to_be_lost(marker: Marker) -> None:
    program = f"""
import os, threading, time
from veil.host import pump
from veil.host.orders import Controls
from veil.model.errors import VeilError
from veil.model.plan import Launch
def steal():
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(0.001)
threading.Thread(target=steal, daemon=True).start()
env = {{**os.environ, "VEIL_RUN": "tag{marker}"}}
def go(text, contain):
    return pump.run(Launch(("bash", "-c", text), "/", env, contain=contain, tag="tag{marker}"), Controls())
for attempt in range(50):  # which of the two threads comes first is anybody's guess
    try:
        assert go("setsid sleep {marker} >/dev/null 2>&1 & sleep 0.02; exit 3", False).exit == 3
    except VeilError as error:
        print(error.code)
        break
print(go("sleep 0.2; exit 3", True).exit)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=LONG)
    assert (done.stdout, done.stderr) == ("child_stolen\n3\n", "")
    assert marker.alive() == {}


def test_exit_codes_while_the_host_ignores_sigchld(marker: Marker) -> None:
    program = """
import os, signal
from veil.host import pump
from veil.host.orders import Controls
from veil.model.plan import Launch
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for text in ("exit 3", "sh -c 'exit 4'; exit $?", "kill -9 $$"):
    print(pump.run(Launch(("bash", "-c", text), "/", dict(os.environ)), Controls()).exit)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=LONG)
    assert (done.stdout, done.stderr) == ("3\n4\n137\n", "")


OWNER = """
import os, sys, time
from veil.host import pump
from veil.host.orders import Controls
from veil.model.plan import Launch
marker = sys.argv[1]
running = pump.Pump(Launch(("bash", "-c", f"setsid sleep {marker} & sleep {marker}"), "/", dict(os.environ),
                    contain=True), Controls())
running.begin()
if "fork" in sys.argv and os.fork() == 0:
    os.execv("/bin/sh", ["sh", "-c", "echo up; read nothing"]) if "exec" in sys.argv else None
    print("up", flush=True)
    sys.stdin.read()
    os._exit(0)
print("up", flush=True)
running.finish()
"""


@linux
@pytest.mark.parametrize("fork", [(), ("fork",)], ids=["alone", "with a fork that holds its descriptors"])
def test_an_owner_that_is_killed_leaves_nobody(fork: tuple[str, ...], marker: Marker) -> None:
    argv = [sys.executable, "-c", OWNER, marker.text, *fork]
    owner = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        marker.until(3)
        owner.kill()
        owner.wait()
        deadline = time.monotonic() + LONG
        # a fork of the owner carries the number in its own command line, and is none of the run
        while any("sleep" in line.split()[0] for line in marker.alive().values()):
            assert time.monotonic() < deadline, marker.alive()
            time.sleep(0.02)
    finally:
        assert owner.stdin is not None
        assert owner.stdout is not None
        owner.stdin.close()
        owner.stdout.close()
    marker.until(0)


INTERRUPTED = """
import os, random, signal, sys, threading, time, veil
marker, contain = sys.argv[1], sys.argv[2] == "contain"
random.seed(int(marker))
veil.run("true")
for turn in range(25):
    delay = random.random() * 0.012
    def interrupt():
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)
    other = threading.Thread(target=interrupt)
    try:
        other.start()
        veil.run(f"setsid sleep {marker} & sleep {marker}", contain=contain)
        print("not interrupted")
    except KeyboardInterrupt:
        pass
    while other.is_alive():
        other.join()
print("done", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("kind", ["plain", pytest.param("contain", marks=linux)])
def test_ctrl_c_at_any_moment_leaves_nobody(kind: str, marker: Marker, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", INTERRUPTED, marker.text, kind]
    owner = subprocess.Popen(
        argv, cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "done\n", owner.communicate()
        left = {pid: line for pid, line in marker.alive().items() if pid != owner.pid}
        assert left == {}
    finally:
        owner.communicate()
    assert owner.returncode == 0


AT_EACH_LINE = """
import os, sys, veil
marker, contain = sys.argv[1], sys.argv[2] == "contain"
veil.run("true", contain=contain)
watched = tuple(f"{os.sep}host{os.sep}{name}.py" for name in ("children", "exits", "pump", "restricted", "starting"))
starting = ("__init__", "start", "begin", "_spawn", "<lambda>")
for turn in range(10_000):
    left = turn
    def trace(frame, event, argument):
        if frame.f_code.co_name not in starting or not frame.f_code.co_filename.endswith(watched):
            return None
        def line(frame, event, argument):
            global left
            if event == "line":
                left -= 1
                if left == -1:
                    raise KeyboardInterrupt
            return line
        return line
    sys.settrace(trace)
    try:
        veil.run(f"sleep {marker} & echo started", contain=contain)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    if left >= 0:
        break
print("done", turn, flush=True)
sys.stdin.read()
"""


def test_an_interrupt_at_any_line_of_a_start_leaves_nobody(marker: Marker, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", AT_EACH_LINE, marker.text, "plain"]
    owner = subprocess.Popen(
        argv, cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout is not None
        word, _, turns = owner.stdout.readline().partition(" ")
        assert word == "done", owner.communicate()
        assert int(turns) > 30
        left = {pid: line for pid, line in marker.alive().items() if pid != owner.pid}
        assert left == {}
    finally:
        owner.communicate()
    assert owner.returncode == 0
