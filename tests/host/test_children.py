"""Nobody of a run is alive after it: ways to hide, ways to end, kinds of child."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from marked import Marker

from veil.host import processes, pump
from veil.host.orders import Controls, Orders
from veil.model.command import LeftRunning, Limits
from veil.model.outcome import Outcome
from veil.model.plan import Launch

ROOT = Path(__file__).parents[2]
#: Far more than anything here takes: it is there to tell a hang from a slow machine.
LONG = 60.0
QUIET = ">/dev/null 2>&1"
RABBIT = "import os, time\\nwhile True:\\n if os.fork(): os._exit(0)\\n os.setsid(); time.sleep({hop})"
#: Ways for a process to get out of sight. @Q becomes nothing where the pipe is to be held.
WAYS = {
    "nohup": "nohup sleep @M @Q &",
    "session": "setsid sleep @M @Q &",
    "twice forked": "( ( setsid sleep @M @Q & ) & )",
    "shell of the session ends": "setsid bash -c 'sleep @M @Q &' @Q",
    "deaf to TERM": "bash -c \"trap '' TERM INT HUP; sleep @M\" @Q &",
    "stopped": "sleep @M @Q & kill -STOP $!",
    "stopped in a session": "setsid bash -c 'kill -STOP $$; sleep @M' @Q &",
}
CLEARED = "( env -i setsid bash -c 'sleep @M @Q' @Q & )"
linux = pytest.mark.linux
KINDS = [False, pytest.param(True, marks=linux)]


def text_of(ways: list[str], marker: Marker, *, held: bool) -> str:
    return "\n".join(ways).replace("@M", marker.text).replace("@Q", "" if held else QUIET)


def launch(
    text: str, marker: Marker, *, contain: bool, timeout: float | None = None, left: LeftRunning = "kill"
) -> Launch:
    tag = secrets.token_hex(8)
    env = {**os.environ, "MARK": marker.text, processes.TAG_VARIABLE: tag}
    limits = Limits(timeout, 100_000)
    return Launch(("bash", "-c", text), "/", env, limits=limits, contain=contain, left_running=left, tag=tag)


def ended(marker: Marker, outcome: Outcome) -> None:
    assert marker.alive() == {}
    assert outcome.survivors == ("none" if processes.LINUX else "unknown")


@pytest.mark.parametrize(
    ("way", "contain"),
    [
        *((way, False) for way in WAYS),
        *(pytest.param(way, True, marks=linux) for way in WAYS),
        # no group, no parent, no tag: a plain run cannot know it, the promise is made with contain=True
        pytest.param("cleared", True, marks=linux),
    ],
)
@pytest.mark.parametrize("held", [False, True], ids=["normal end", "held pipe"])
def test_left_behind(way: str, held: bool, contain: bool, marker: Marker) -> None:
    text = text_of([WAYS.get(way, CLEARED)], marker, held=held) + "\necho done; exit 3"
    outcome = pump.run(launch(text, marker, contain=contain), Controls())
    assert (outcome.ended, outcome.exit, outcome.stdout.text) == ("exited", 3, "done\n")
    assert outcome.left_running >= 1
    ended(marker, outcome)


def order(signum: int) -> Callable[[Orders], None]:
    return lambda orders: orders.send(signum)


ENDINGS: dict[str, Callable[[Orders], None] | None] = {
    "timeout": None,
    "cancel": Orders.cancel,
    "TERM": order(signal.SIGTERM),
    "INT": order(signal.SIGINT),
    "KILL": order(signal.SIGKILL),
}


@pytest.mark.parametrize("contain", KINDS)
@pytest.mark.parametrize("how", ENDINGS)
@pytest.mark.parametrize("held", [False, True], ids=["silent", "held pipe"])
def test_all_ways_at_once(how: str, held: bool, contain: bool, marker: Marker) -> None:
    ways = [*WAYS.values(), *([CLEARED] if contain else [])]
    text = text_of(ways, marker, held=held) + f"\nsleep {marker}"
    give, orders = ENDINGS[how], Orders()
    running = pump.Pump(launch(text, marker, contain=contain, timeout=LONG if give else 3), Controls(orders=orders))
    running.begin()

    def end() -> None:
        assert give is not None
        try:
            marker.until(len(ways) + 1)
        except AssertionError:
            orders.cancel()
            raise
        give(orders)

    other = threading.Thread(target=end)
    if give is not None:
        other.start()
    outcome = running.finish()
    if give is not None:
        other.join()
    orders.close()
    ended(marker, outcome)
    assert outcome.timed_out == (how == "timeout")
    assert outcome.cancelled == (how == "cancel")
    if how != "timeout":
        assert outcome.ended == "signaled"


@linux
@pytest.mark.parametrize(("contain", "hop"), [(False, 0.05), (True, 0.0005)])
@pytest.mark.parametrize("timeout", [None, 1.5], ids=["normal end", "timeout"])
def test_a_process_that_keeps_forking_and_leaving_its_session(
    contain: bool, hop: float, timeout: float | None, marker: Marker
) -> None:
    program = f"{sys.executable} -c $'{RABBIT.format(hop=hop)}' {marker} {QUIET} &"
    text = program + (f"\nsleep {marker}" if timeout else "\nsleep 0.5")
    outcome = pump.run(launch(text, marker, contain=contain, timeout=timeout), Controls())
    assert outcome.survivors == "none"
    deadline = time.monotonic() + 0.5  # a look alone may miss it between two hops
    while time.monotonic() < deadline:
        assert marker.alive() == {}


@pytest.mark.parametrize("contain", KINDS)
def test_what_is_to_be_kept_lives_on(contain: bool, marker: Marker) -> None:
    text = text_of([WAYS["nohup"]], marker, held=False)
    outcome = pump.run(launch(text, marker, contain=contain, left="keep"), Controls())
    assert (outcome.exit, outcome.survivors) == (0, "kept")
    assert outcome.left_running >= 1
    alive = marker.until(1)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    marker.until(0)


@pytest.mark.parametrize("contain", KINDS)
def test_a_program_that_ends_well_on_term_is_not_killed(contain: bool, marker: Marker) -> None:
    text = f"trap 'echo bye; exit 7' TERM; echo up; sleep {marker} & wait"
    orders = Orders()
    controls = Controls(lambda name, data: orders.send(signal.SIGTERM) if b"up" in data else None, orders=orders)
    outcome = pump.run(launch(text, marker, contain=contain), controls)
    orders.close()
    assert (outcome.ended, outcome.exit, outcome.stdout.text) == ("exited", 7, "up\nbye\n")
    ended(marker, outcome)


@pytest.mark.parametrize("contain", KINDS)
def test_other_signals_arrive_and_end_nothing(contain: bool, marker: Marker) -> None:
    text = f"trap 'echo one' USR1; trap 'exit 5' USR2; echo up; while :; do sleep 0.05; done; : {marker}"
    orders, heard = Orders(), bytearray()

    def listen(name: str, data: bytes) -> None:
        heard.extend(data)
        if b"up" in data:
            orders.send(signal.SIGUSR1)
        if b"one" in data:
            orders.send(signal.SIGUSR2)

    # sleep itself does not know these signals and ends by them: bash goes on
    outcome = pump.run(launch(text, marker, contain=contain), Controls(listen, orders=orders))
    orders.close()
    assert (outcome.ended, outcome.exit) == ("exited", 5)
    ended(marker, outcome)


@linux
def test_a_command_that_kills_its_own_supervisor(marker: Marker) -> None:
    text = text_of([WAYS["session"]], marker, held=False) + f"\necho before\nkill -9 $PPID; sleep {marker}"
    outcome = pump.run(launch(text, marker, contain=True), Controls())
    assert (outcome.ended, outcome.exit, outcome.signal) == ("signaled", 137, "SIGKILL")
    assert outcome.stdout.data == b"before\n"
    assert marker.alive() == {}


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
