"""Nobody of a run is alive after it: ways to hide, ways to end, kinds of child."""

from __future__ import annotations

import os
import secrets
import signal
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
    text = text_of([WAYS["session"]], marker, held=False) + f"\necho before\nsleep 0.3; kill -9 $PPID; sleep {marker}"
    outcome = pump.run(launch(text, marker, contain=True), Controls())
    assert (outcome.ended, outcome.exit, outcome.signal) == ("signaled", 137, "SIGKILL")
    assert outcome.stdout.data == b"before\n"
    assert marker.alive() == {}
