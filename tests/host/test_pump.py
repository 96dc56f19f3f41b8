"""One command from start to end: reading, feeding, limits. How it ends all its kin is in ``test_children``."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import sys
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from marked import Marker

from veil.host import pump, starting
from veil.host.orders import Controls, Orders
from veil.model.command import Limits
from veil.model.outcome import Outcome
from veil.model.plan import Launch

KINDS = [False, pytest.param(True, marks=pytest.mark.linux)]
LONG = 60.0


def run(text: str, controls: Controls | None = None, *, limit: int = 1 << 20, **more: object) -> Outcome:
    limits = Limits(more.pop("timeout", LONG), limit)  # type: ignore[arg-type]
    launch = Launch(("bash", "-c", text), "/", dict(os.environ), limits=limits, **more)  # type: ignore[arg-type]
    return pump.run(launch, controls or Controls())


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("contain", KINDS)
def test_both_streams_at_full_speed(contain: bool) -> None:
    text = "head -c 30000000 /dev/zero | tr '\\0' a & head -c 20000000 /dev/zero | tr '\\0' b >&2 & wait"
    outcome = run(text, contain=contain)
    assert (outcome.stdout.total_bytes, outcome.stderr.total_bytes) == (30_000_000, 20_000_000)
    assert set(outcome.stdout.data) == {ord("a")}
    assert set(outcome.stderr.data) == {ord("b")}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=300_000), st.integers(0, 2**32))
def test_what_goes_in_comes_out_whatever_the_pieces(data: bytes, seed: int) -> None:
    heard = bytearray()
    pieces = random.Random(seed)

    def listen(name: str, got: bytes) -> None:
        heard.extend(got)
        if pieces.random() < 0.2:
            time.sleep(0.001)

    outcome = run("cat", Controls(listen), stdin=data)
    assert outcome.stdout.data == data == bytes(heard)
    assert outcome.stdout.total_lines == data.count(b"\n") + (data != b"" and data[-1:] != b"\n")


def test_binary_of_many_megabytes_is_exact() -> None:
    data = random.Random(1).randbytes(9_000_000)
    outcome = run("tee /dev/stderr", stdin=data, limit=10_000_000)
    for stream in (outcome.stdout, outcome.stderr):
        assert hashlib.sha256(stream.data).digest() == hashlib.sha256(data).digest()


def test_a_slow_listener_loses_nothing() -> None:
    def listen(name: str, data: bytes) -> None:
        time.sleep(0.15)  # longer than a pipe may stay open after the end

    outcome = run("for i in 1 2 3; do head -c 200000 /dev/zero; done", Controls(listen))
    assert outcome.stdout.total_bytes == 600_000


def test_no_descriptor_stays_open_however_it_goes(marker: Marker) -> None:
    def fail(name: str, data: bytes) -> None:
        raise ZeroDivisionError

    run("true")
    before = descriptors()
    for contain in (False, sys.platform == "linux"):
        run("echo; cat", stdin=b"x" * 100_000, contain=contain)
        run(f"sleep {marker}", timeout=0.1, contain=contain)
        run("exec 1>&- 2>&-; true", contain=contain)
        assert run(f"sleep {marker} & true", contain=contain).left_running == 1
        with pytest.raises(ZeroDivisionError):
            run("echo; sleep 60", Controls(fail), contain=contain)
        nothing = Launch(("/is/not/there",), "/", {}, contain=contain)
        assert pump.run(nothing, Controls()).exit == 127
    assert descriptors() <= before  # fewer: rubbish of earlier tests went meanwhile
    assert marker.alive() == {}


def test_a_cwd_that_is_gone_is_named() -> None:
    launch = Launch(("true",), "/is/not/there", dict(os.environ))
    outcome = pump.run(launch, Controls())
    assert (outcome.ended, outcome.exit) == ("spawn_failed", 127)
    assert "/is/not/there" in (outcome.spawn_error or "")


def test_output_of_a_command_that_closed_its_streams_and_goes_on() -> None:
    outcome = run("echo before; exec 1>&- 2>&-; sleep 0.3; exit 4")
    assert (outcome.exit, outcome.stdout.text) == (4, "before\n")
    assert outcome.seconds >= 0.3


@pytest.mark.parametrize("contain", KINDS)
def test_cancelled_before_the_first_look(contain: bool, marker: Marker) -> None:
    orders = Orders()
    orders.cancel()
    outcome = run(f"sleep {marker}", Controls(orders=orders), contain=contain)
    orders.close()
    assert outcome.cancelled
    assert marker.alive() == {}


def test_orders_after_the_end_and_from_many_threads() -> None:
    orders = Orders()
    threads = [threading.Thread(target=lambda: [orders.send(0) for _ in range(2000)]) for _ in range(4)]
    wake = orders.open()
    for thread in threads:
        thread.start()
    taken = 0
    while any(thread.is_alive() for thread in threads):
        taken += len(orders.take())
    taken += len(orders.take())
    assert taken == 8000
    assert not os.get_blocking(wake)
    orders.close()
    orders.close()
    orders.send(15)
    orders.cancel()
    assert (orders.take(), orders.cancelled) == ([15], True)


def test_use_of_the_processor_and_memory_is_told() -> None:
    # below the peak of this process nothing can be told of a child's
    wanted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + 200_000_000
    program = f"x = bytearray({wanted + 50_000_000}); sum(range(3_000_000))"
    launch = Launch((sys.executable, "-c", program), "/", dict(os.environ))
    usage = pump.run(launch, Controls()).usage
    assert usage is not None
    assert usage.user_seconds > 0
    assert usage.max_rss_bytes > wanted


def test_a_child_that_was_dropped_is_ended(marker: Marker) -> None:
    read, write = os.pipe()
    launch = Launch(("sleep", marker.text), "/", dict(os.environ))
    child = starting.start(launch, read, write, write)
    marker.until(1)
    del child
    assert marker.alive() == {}
    os.close(read)
    os.close(write)
