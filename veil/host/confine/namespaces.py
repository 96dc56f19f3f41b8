"""Namespaces without any program but Python itself: what bubblewrap does, for machines that lack it or have an old one.

``enclosing`` is the program that makes them; this is veil's side of it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import marshal
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from veil.host.confine import allowances, seccomp, sight, trial
from veil.host.confine.base import Bounds, Wrapped
from veil.host.confine.bounds import system, within
from veil.host.confine.status import Channel, Inside, broken
from veil.host.processes import LINUX
from veil.model.outcome import Outcome, Stream

#: In the pid namespace beside the command: its first process.
_AROUND = 1
#: Takes code and orders from the descriptor that the first argument names.
_STARTER = (
    "import marshal,posix,sys;fd=int(sys.argv[1]);"
    "code,orders=marshal.loads(posix.pread(fd,posix.fstat(fd).st_size,0));exec(code);main(orders,sys.argv[2:])"
)


class OwnNamespaces:
    """The backend ``namespaces``: user, mount, pid, IPC, host name and control group namespaces, and a network one of
    its own without network. Needs Linux 5.12, and that user namespaces may be made."""

    name = "namespaces"

    def __init__(self) -> None:
        self._trials = trial.Trials(self._found_out)

    def unavailable(self) -> str | None:
        """Why it does not work here: found by a trial command that has to be denied a write."""
        return self._trials.any()

    def _found_out(self, network: bool) -> str | None:
        if not LINUX:
            return "namespaces are of Linux only"
        if (reason := seccomp.unavailable()) is not None:
            return reason
        if not sys.executable:
            return "this program does not know its own Python, which would have to make them"
        return trial.tried(self.confine, network=network)

    def lacks(self, bounds: Bounds) -> str | None:
        """What of these bounds it cannot do."""
        if not bounds.network and (reason := self._trials.reason(False)) is not None:
            return f"no network namespace: {reason}"
        return allowances.unavailable(bounds.allowance)

    def gaps(self, bounds: Bounds) -> tuple[str, ...]:
        """What stays open with these bounds."""
        found = [sight.PIPES, *allowances.gaps(bounds.allowance)]
        if bounds.sockets and not bounds.network:
            found.append("unix_sockets: a socket made outside /run and /tmp after the start can be reached as well")
        return tuple(found)

    @contextlib.contextmanager
    def confine(self, argv: tuple[str, ...], bounds: Bounds) -> Iterator[Wrapped]:
        """The command behind the program that encloses it.

        Raises:
            VeilError: ``sandbox_broken``, from ``started`` or ``settle``.
        """
        with _Enclosing(bounds) as held:
            yield Wrapped(
                held.argv(argv),
                pass_fds=held.pass_fds,
                temp=sight.TMP,
                started=held.begin,
                settle=held.channel.settle,
                limit=held.watch.limit,
            )


class _Enclosing:
    """One run: the pipes, the orders, and the watch over what it uses."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def __enter__(self) -> _Enclosing:
        bounds = self._bounds
        with contextlib.ExitStack() as stack:
            self.channel = _Channel()
            stack.callback(self.channel.close)
            self.watch = allowances.Watch(bounds.allowance, (bounds.cwd, bounds.temp, *bounds.writable), _AROUND)
            stack.callback(self.watch.close)
            self._orders = os.memfd_create("veil-orders", os.MFD_CLOEXEC)
            stack.callback(os.close, self._orders)
            status, release = self.channel.pass_fds
            orders = {**_arranged(bounds), "status": status, "release": release, "own": self._orders}
            data = marshal.dumps((_program(), orders))
            with open(self._orders, "wb", closefd=False) as file:
                file.write(data)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def pass_fds(self) -> tuple[int, ...]:
        return (*self.channel.pass_fds, self._orders)

    def begin(self) -> Inside | None:
        """Wait for the namespaces, set the limits, let the command begin."""
        inside = self.channel.begin(allowances.kernel_limits(self._bounds.allowance, _AROUND))
        if inside is not None:
            self.watch.begin(inside)
        return inside

    def argv(self, command: tuple[str, ...]) -> tuple[str, ...]:
        return (sys.executable, "-I", "-S", "-B", "-c", _STARTER, str(self._orders), *command)


class _Channel(Channel):
    """The pipes to the enclosing program, which tells what went wrong in lines of the same shape."""

    def settle(self, outcome: Outcome) -> Outcome:
        """See ``Launch.settle``. Raises ``VeilError`` (``sandbox_broken``)."""
        if outcome.ended == "timed_out" or outcome.cancelled:
            return outcome
        if outcome.ended == "spawn_failed":
            if outcome.spawn_error is not None and outcome.spawn_error.endswith(f": {sys.executable}"):
                raise broken(f"Python could not be started: {outcome.spawn_error}")
            return outcome
        facts = self._facts()
        if "broken" in facts:
            raise broken(_text(facts["broken"]))
        if "errno" in facts:
            number = facts["errno"]
            return replace(
                outcome,
                ended="spawn_failed",
                exit=127 if number in (errno.ENOENT, errno.ENOTDIR) else 126,
                spawn_error=f"{os.strerror(number)}: {_text(facts['program'])}",
                stdout=Stream(),
                stderr=Stream(),
            )
        if "child-pid" not in facts:
            words = (outcome.stderr.data or outcome.stdout.data).strip().rsplit(b"\n", 1)[-1]
            raise broken(words.decode("utf-8", "replace") or f"the program that encloses it ended with {outcome.exit}")
        return outcome

    def _facts(self) -> dict[str, Any]:
        """All that has been told by now."""
        self._fact("", 0)  # which nothing is called: so everything that has come is taken in
        facts: dict[str, Any] = {}
        for line in self._told.split(b"\n")[:-1]:
            facts.update(json.loads(line))
        return facts


def _text(hexadecimal: str) -> str:
    return os.fsdecode(bytes.fromhex(hexadecimal))


def _arranged(bounds: Bounds) -> dict[str, Any]:
    """The orders, paths as bytes, each before what lies below it."""
    tmp, emptied = system(sight.TMP), sight.emptied()
    replaced = (*emptied, tmp, "/dev")
    writable = {bounds.cwd, *bounds.writable}
    seen = {*sight.resolver(emptied), *bounds.shown, *bounds.readable, *bounds.sockets}
    hidden = {path for path in seen - writable if any(within(path, folder) for folder in replaced)}
    views = sorted([(path, False) for path in hidden] + [(path, True) for path in writable])
    program = seccomp.filter_program(network=bounds.network, sockets=bool(bounds.sockets), loopback=not bounds.network)
    masked = {"masked_folders": (*bounds.masked_folders, *bounds.own)}
    masked["masked_files"] = (*bounds.masked_files, *sight.other_sockets(bounds))
    return {
        "network": bounds.network,
        "filter": program,
        "cwd": os.fsencode(bounds.cwd),
        "temp": os.fsencode(bounds.temp),
        "tmp": os.fsencode(tmp),
        "emptied": [os.fsencode(path) for path in emptied],
        "links": [(os.fsencode(os.readlink(path)), os.fsencode(path)) for path in sight.LINKS if os.path.islink(path)],
        "views": [(os.fsencode(path), may) for path, may in views],
        "pinned": [os.fsencode(path) for path in bounds.pinned],
        "readonly": [os.fsencode(path) for path in bounds.readonly],
        # what is there of a process is there of one outside
        **{
            kind: [os.fsencode(p) for p in paths if not p[6:7].isdigit() or p[:6] != "/proc/"]
            for kind, paths in masked.items()
        },
    }


@functools.cache
def _program() -> CodeType:
    """The compiled program, out of the cache that imports use as well."""
    name = "veil.host.confine.enclosing"
    code = SourceFileLoader(name, os.path.join(os.path.dirname(__file__), "enclosing.py")).get_code(name)
    assert isinstance(code, CodeType)
    return code
