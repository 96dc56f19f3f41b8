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
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from veil.host.confine import allowances, seccomp
from veil.host.confine.base import Bounds, Wrapped
from veil.host.confine.bounds import within
from veil.host.confine.status import Channel, Inside, broken
from veil.host.processes import LINUX
from veil.model.outcome import Outcome, Stream

#: What the command calls its temporary folder, whatever that is on the host.
_TMP = "/tmp"
#: Of what is hidden with /run, these links are where a whole system's programs are found (NixOS).
_LINKS = ("/run/current-system", "/run/booted-system", "/run/opengl-driver")
#: Read by the C library to find names; often links to below /run.
_RESOLVER = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/localtime")
#: In the pid namespace beside the command: its first process.
_AROUND = 1
#: Ends with 7 when a write inside goes through, one outside does not, and what is masked cannot be listed.
_TRIAL = "echo x >here && ! (echo x >../outside/there) 2>/dev/null && ! ls ../masked 2>/dev/null && exit 7"
_TRIAL_SECONDS = 30.0
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
        self._reasons: dict[bool, str | None] = {}

    def unavailable(self) -> str | None:
        """Why it does not work here: found by a trial command that has to be denied a write. Asked once."""
        return self._reason(True)

    def _reason(self, network: bool) -> str | None:
        if network not in self._reasons:
            self._reasons[network] = _found_out(network)
        return self._reasons[network]

    def lacks(self, bounds: Bounds) -> str | None:
        """What of these bounds it cannot do."""
        for path in (*bounds.masked_folders, *bounds.masked_files, *bounds.readonly):
            if within(path, "/proc"):
                return f"{path} is in /proc, of which the command gets one of its own"
        if not bounds.network and (reason := self._reason(False)) is not None:
            return f"no network namespace: {reason}"
        return allowances.unavailable(bounds.allowance)

    def gaps(self, bounds: Bounds) -> tuple[str, ...]:
        """What stays open with these bounds."""
        found = list(allowances.gaps(bounds.allowance))
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
                temp=held.temp,
                started=held.begin,
                settle=held.channel.settle,
                limit=held.watch.limit,
            )


class _Enclosing:
    """One run: the pipes, the orders, and the watch over what it uses."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        tmp = os.path.realpath(_TMP)
        self._tmp = tmp if os.path.isdir(tmp) else None
        #: By which name the command finds its temporary folder; ``None``: its own.
        self.temp = None if self._tmp is None else _TMP

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
            orders = {**_arranged(bounds, self._tmp), "status": status, "release": release, "own": self._orders}
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

    def why(self) -> str | None:
        """What broke, or ``None``."""
        facts = self._facts()
        if "broken" in facts:
            return _text(facts["broken"])
        return f"{_text(facts['program'])}: {os.strerror(facts['errno'])}" if "errno" in facts else None

    def _facts(self) -> dict[str, Any]:
        """All that has been told by now."""
        self._fact("", 0)  # which nothing is called: so everything that has come is taken in
        facts: dict[str, Any] = {}
        for line in self._told.split(b"\n")[:-1]:
            facts.update(json.loads(line))
        return facts


def _text(hexadecimal: str) -> str:
    return os.fsdecode(bytes.fromhex(hexadecimal))


def _arranged(bounds: Bounds, tmp: str | None) -> dict[str, Any]:
    """The orders, paths as bytes, each before what lies below it."""
    emptied = [folder for folder in dict.fromkeys(map(os.path.realpath, ("/run", "/var/run"))) if os.path.isdir(folder)]
    replaced = (*emptied, "/dev", *(() if tmp is None else (tmp,)))
    writable = {bounds.cwd, *bounds.writable, *(() if tmp is not None else (bounds.temp,))}
    resolver = [path for path in map(os.path.realpath, _RESOLVER) if os.path.isfile(path)]
    seen = {*resolver, *bounds.shown, *bounds.readable, *bounds.sockets}
    hidden = {path for path in seen - writable if any(within(path, folder) for folder in replaced)}
    views = sorted([(path, False) for path in hidden] + [(path, True) for path in writable])
    program = seccomp.filter_program(network=bounds.network, sockets=bool(bounds.sockets), loopback=not bounds.network)
    return {
        "network": bounds.network,
        "filter": program,
        "cwd": os.fsencode(bounds.cwd),
        "temp": os.fsencode(bounds.temp),
        "temp_at": [] if tmp is None else [os.fsencode(tmp)],
        "emptied": [os.fsencode(path) for path in emptied],
        "links": [(os.fsencode(os.readlink(path)), os.fsencode(path)) for path in _LINKS if os.path.islink(path)],
        "views": [(os.fsencode(path), may) for path, may in views],
        "pinned": [os.fsencode(path) for path in bounds.pinned],
        "readonly": [os.fsencode(path) for path in bounds.readonly],
        "masked_folders": [os.fsencode(path) for path in (*bounds.masked_folders, *bounds.own)],
        "masked_files": [os.fsencode(path) for path in bounds.masked_files],
    }


@functools.cache
def _program() -> CodeType:
    """The compiled program, out of the cache that imports use as well."""
    name = "veil.host.confine.enclosing"
    code = SourceFileLoader(name, os.path.join(os.path.dirname(__file__), "enclosing.py")).get_code(name)
    assert isinstance(code, CodeType)
    return code


def _found_out(network: bool) -> str | None:
    if not LINUX:
        return "namespaces are of Linux only"
    if (reason := seccomp.unavailable()) is not None:
        return reason
    if not sys.executable:
        return "this program does not know its own Python, which would have to make them"
    with tempfile.TemporaryDirectory(prefix="veil-trial-") as made:
        base = os.path.realpath(made)
        inside, outside, temp, masked = (os.path.join(base, n) for n in ("inside", "outside", "temp", "masked"))
        for folder in (inside, outside, temp, masked):
            os.mkdir(folder)
        reason = _tried(Bounds(inside, temp, network=network, masked_folders=(masked,), shown=(outside, masked)))
        if os.path.exists(f"{outside}/there"):
            return "a write that had to be denied went through"
        return reason or (None if os.path.exists(f"{inside}/here") else "a write that had to be allowed did nothing")


def _tried(bounds: Bounds) -> str | None:
    """What goes wrong when the trial command runs in these bounds."""
    with _Enclosing(bounds) as held:
        try:
            process = subprocess.Popen(
                held.argv(("/bin/sh", "-c", _TRIAL)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=held.pass_fds,
                cwd="/",
            )
        except OSError as error:
            return error.strerror or str(error)
        try:
            held.begin()
            _, words = process.communicate(timeout=_TRIAL_SECONDS)
        except subprocess.TimeoutExpired:
            return f"a trial command did not end within {_TRIAL_SECONDS:g} s"
        finally:
            process.kill()
            process.wait()
        why = held.channel.why()
    if why is not None:
        return why
    said = words.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
    return None if process.returncode == 7 else said or f"a trial command ended with {process.returncode}"
