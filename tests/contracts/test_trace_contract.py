"""What holds for every traced run: it is the run that it would have been, told more of. In every way of running."""

# over 300 lines because: it is one contract, asked of every way of running

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from marked import Marker

import veil
from veil.host import strace
from veil.host.confine.backends import backend

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash", "strace")]

#: Options of each way of running a command.
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "contain": {"contain": True},
    "bubblewrap": {"sandbox": {"backend": "bubblewrap"}},
    "namespaces": {"sandbox": {"backend": "namespaces"}},
}
#: What must look the same with and without a trace.
SAME = ("exit", "ended", "signal", "stdout", "stderr", "timed_out", "spawn_error", "left_running", "survivors")


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> dict[str, Any]:
    options: dict[str, Any] = WAYS[request.param]
    if "sandbox" in options and (reason := backend(request.param).unavailable()) is not None:
        pytest.skip(f"needs {request.param}: {reason}")
    return options


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder outside of what a sandbox puts its own temporary folder over."""
    with tempfile.TemporaryDirectory(prefix="veil-test-", dir="/var/tmp") as made:
        yield Path(made).resolve()


def look(result: veil.Result) -> dict[str, Any]:
    shown = result.to_dict(full=True)
    return {name: shown.get(name) for name in SAME}


def is_whole(result: veil.Result) -> bool:
    shown = result.to_dict()
    return "trace_summary" in shown and "trace_truncated" not in shown and "trace_unavailable" not in shown


@pytest.mark.parametrize(
    "command",
    [
        "echo out; echo err >&2; exit 5",
        "kill -TERM $$",
        "kill -SEGV $$",
        "kill -KILL $$",
        "exit 139",
        "exit 1",
        "strace -V >/dev/null && echo there",
        "cat; cat nothing-here",
        "ps -o pgid= -p $$ | tr -d ' ' | grep -qx $$ && echo leads its group",
        "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd; umask",
        "(exit 7); echo $?; true | false | true; echo ${PIPESTATUS[@]}",
        "env | grep -c -E '^(VEIL_TRACER|LD_)='; echo $VEIL_RUN | grep -c .",
        ["no-such-program-anywhere", "x"],
        ["/"],
    ],
    ids=str,
)
def test_exit_signal_and_streams_are_the_commands_own(command: Any, way: dict[str, Any], work: Path) -> None:
    """trc-03, timeout-09: nothing of strace's in what the command gives back, nothing of it in what it is given."""
    plain = veil.run(command, cwd=work, stdin=b"in\0put", **way)
    traced = veil.run(command, cwd=work, stdin=b"in\0put", trace=True, **way)
    assert look(traced) == look(plain)
    if plain.ended == "spawn_failed":
        assert traced.trace_unavailable == "the command could not start"
    else:
        assert is_whole(traced), traced.to_dict()


def test_a_program_that_the_kernel_refuses_is_refused_as_ever(way: dict[str, Any], work: Path) -> None:
    (work / "garbage").write_bytes(b"\x7fELF garbage")
    (work / "script").write_text("#!/no/such/interpreter\n")
    for name in ("garbage", "script"):
        (work / name).chmod(0o755)
        plain, traced = (veil.run([f"./{name}"], cwd=work, trace=trace, **way) for trace in (False, True))
        assert look(traced) == look(plain)
        if "sandbox" not in way:
            assert plain.ended == "spawn_failed"
        # bubblewrap gives to a shell what the kernel will not have; that is not the command
        assert traced.trace_unavailable in ("the command could not start", "the command was not seen to begin")


def test_large_streams_come_whole(way: dict[str, Any], work: Path) -> None:
    data = b"0123456789abcdef" * (1 << 17)
    result = veil.run("cat; head -c 100000 /dev/zero >&2", cwd=work, stdin=data, trace=True, **way)
    assert result.stdout_bytes == data
    assert result.stderr_bytes == bytes(100_000)
    assert veil.run("true", cwd=work, stdin=data, trace=True, **way).ok, "one that does not read it"


def test_merged_streams_keep_their_order(way: dict[str, Any], work: Path) -> None:
    text = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done"
    result = veil.run(text, cwd=work, merge_stderr=True, trace=True, **way)
    assert result.stdout == "".join(f"o{n}\ne{n}\n" for n in range(1, 6))


def test_what_it_did_is_told(way: dict[str, Any], work: Path) -> None:
    (work / "old").write_text("x")
    (work / "keep").write_text("x")
    text = "mkdir d && echo 1 >d/new && mv old renamed && chmod 600 keep && echo 2 >t && rm t && cat keep"
    result = veil.run(text, cwd=work, trace=True, **way)
    assert result.ok, result.stderr
    assert is_whole(result)
    events = result.record.observation.findings.notes["trace"]["events"]
    assert events["renamed"] == [["old", "renamed"]]
    assert {"d/new", "t"} <= set(events["written"])
    assert "d" in events["created"]
    assert events["deleted"] == ["t"]
    assert events["metadata"] == ["keep"]
    assert "keep" in events["read"]
    assert [row[1] for row in events["executed"]][1:] == ["mkdir", "mv", "chmod", "rm", "cat"]
    assert events["executed"][0][-1] == text, "nothing of what was put around it"
    assert {(change.path, change.change) for change in result.files_changed} == {
        ("d/new", "created"),
        ("renamed", "renamed"),
        ("keep", "mode"),
    }
    assert result.effects_source == "trace"


def test_what_is_left_behind_is_ended_and_counted(way: dict[str, Any], work: Path, marker: Marker) -> None:
    plain, traced = (veil.run(f"sleep {marker} & exit 3", cwd=work, trace=trace, **way) for trace in (False, True))
    assert look(traced) == look(plain)
    assert not marker.alive()


@pytest.mark.parametrize("deaf", [False, True], ids=["heeds TERM", "ignores TERM"])
def test_a_timeout_ends_everybody_and_the_tracer(deaf: bool, way: dict[str, Any], work: Path, marker: Marker) -> None:
    trap = "trap '' TERM; " if deaf else ""
    result = veil.run(
        f"{trap}(setsid sleep {marker} &); sleep {marker}; sleep {marker}", cwd=work, trace=True, timeout=1, **way
    )
    assert result.timed_out
    assert result.exit == 124
    assert result.survivors == "none"
    assert not marker.alive(), "the tracer carries it in its command line, too"
    assert "sleep" in str(result.trace_summary["executed"]), "what was seen until then is told"
    assert is_whole(result), result.to_dict()


def test_a_cancelled_run_leaves_nobody(way: dict[str, Any], work: Path, marker: Marker) -> None:
    async def cancelled() -> None:
        task = asyncio.ensure_future(veil.arun(f"sleep {marker}", cwd=work, trace=True, **way))
        while not marker.alive():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    marker.until(0)


def test_nothing_is_left_in_temporary_folders(way: dict[str, Any], work: Path) -> None:
    place = strace.place(str(work)) or tempfile.gettempdir()
    before = set(Path(place).glob("veil-trace-*"))
    assert veil.run("echo x > f", cwd=work, trace=True, **way).ok
    assert veil.run(["nothing-of-this-name"], cwd=work, trace=True, **way).ended == "spawn_failed"
    assert set(Path(place).glob("veil-trace-*")) <= before


def test_repeatable(way: dict[str, Any], work: Path) -> None:
    """The same command, seen twenty times, is seen to do the same."""
    text = "(echo a >a; cat a >b) & (cd /; true); wait; rm a b"
    first: Any = None
    for _ in range(20):
        result = veil.run(text, cwd=work, trace=True, **way)
        assert is_whole(result)
        events = {
            kind: sorted(map(str, rows))
            for kind, rows in result.record.observation.findings.notes["trace"]["events"].items()
        }
        assert first in (None, events)
        first = events


def test_many_at_once(way: dict[str, Any], work: Path) -> None:
    """Tracers of runs side by side are told apart, and none is taken for something left behind."""

    def several(number: int) -> list[veil.Result]:
        folder = work / str(number)
        folder.mkdir()
        text = "(echo a >a; cat a >b) & wait; mv b c; rm a c; exit 5"
        return [veil.run(text, cwd=folder, trace=True, no_store=True, **way) for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        results = [result for found in pool.map(several, range(4)) for result in found]
    assert {(result.exit, result.left_running, result.survivors) for result in results} == {(5, 0, "none")}
    assert all(is_whole(result) for result in results)
    assert {result.trace_summary["executed"]["count"] for result in results} == {4}


def test_a_process_that_adopts_orphans_counts_no_tracer(work: Path) -> None:
    """The command line and the servers are subreapers: the tracer becomes their child, and is collected."""
    program = (
        "import os, veil; from veil import wiring; wiring.own_process()\n"
        "for _ in range(5):\n"
        "    shown = veil.run('echo x > f; rm f; exit 2', trace=True, no_store=True).to_dict()\n"
        "    assert shown['exit'] == 2 and 'trace_summary' in shown and 'left_running' not in shown, shown\n"
        "    assert 'trace_truncated' not in shown, shown\n"
        "left = veil.run('sleep 1000 & exit 2', trace=True, no_store=True)\n"
        "assert left.left_running == 1, left.to_dict()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=work, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_confinement_that_lets_no_tracer_in_is_kept_and_said(work: Path) -> None:
    reason = backend("landlock").unavailable()
    if reason is not None:
        pytest.skip(f"needs landlock: {reason}")
    result = veil.run("echo x > f", cwd=work, trace=True, sandbox={"backend": "landlock"})
    assert result.ok
    assert "tracer" in (result.trace_unavailable or "")
    assert result.created == ["f"]
    assert result.effects_source == "scan"


def test_a_machine_without_strace_goes_on_without(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """trc-03: an explicit fallback in the result."""
    only = work / "bin"
    only.mkdir()
    for name in ("bash", "sh", "cat"):
        (only / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(only))
    result = veil.run("echo x > f", cwd=work, trace=True)
    assert result.ok
    assert result.to_dict()["trace_unavailable"] == "strace is not installed"
    assert "trace_summary" not in result.to_dict()
    assert result.created == ["f"]
    assert result.effects_source == "scan"


def test_within_a_traced_run_nothing_more_can_be_traced(work: Path) -> None:
    """trc-03: nested strace. The inner run goes on, and says why."""
    inner = "import veil; r = veil.run('echo y > g; exit 4', trace=True); print(r.exit, r.trace_unavailable, r.created)"
    result = veil.run([sys.executable, "-c", inner], cwd=work, trace=True)
    assert result.ok, result.stderr
    assert result.stdout.startswith("4 strace does not work here: ")
    assert "['g']" in result.stdout
    assert result.created == ["g"], "the outer one sees it all"


def test_a_tracer_that_does_not_work_is_a_reason(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = work / "bin"
    fake.mkdir()
    (fake / "strace").write_text("#!/bin/sh\necho 'strace: no such option' >&2\nexit 1\n")
    (fake / "strace").chmod(0o755)
    monkeypatch.setenv("PATH", str(fake), prepend=os.pathsep)
    result = veil.run("exit 3", cwd=work, trace=True)
    assert result.exit == 3
    assert result.trace_unavailable == "strace does not work here: strace: no such option"


@pytest.mark.needs("root")
def test_as_a_plain_user(work: Path) -> None:
    """No privilege is needed: a child of one's own may be traced."""
    os.chown(work, 1001, 1001)
    program = (
        # what is imported late may lie where only root may read
        "import os, veil; veil.run('echo', trace=True, no_store=True)\n"
        "os.setgroups([]); os.setgid(1001); os.setuid(1001)\n"
        "r = veil.run('echo x > f; kill -INT $$', trace=True, no_store=True)\n"
        "print(r.signal, r.effects_source, r.trace_unavailable, r.created)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=work,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(work), "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.stdout.strip() == "SIGINT trace None ['f']", done.stderr


def test_it_survives_an_interrupt_of_the_program(work: Path, marker: Marker) -> None:
    """Ctrl-C in the calling program: everybody is ended, and the tracer with them."""
    program = f"import veil; veil.run('sleep {marker}; sleep 1', trace=True, cwd={str(work)!r})"
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    found = marker.until(2)
    assert found
    while not any("strace" not in line and line.startswith("sleep") for line in marker.alive().values()):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in words
    marker.until(0)
