"""What bubblewrap tells while it confines, and what is done with the process that it makes before it goes on.

It writes a line of JSON when the namespaces are made (``child-pid``), waits for a byte before it starts the command,
and writes another line (``exit-code``) when the command has ended; that one comes only when the command had begun. So a
command that ends with 1, a program that is not there, and a sandbox that fell apart are three different things.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
from collections.abc import Mapping
from dataclasses import replace

from veil.host import processes
from veil.host.descent import children_of
from veil.model.errors import VeilError
from veil.model.outcome import Outcome, Stream

#: How long the namespaces may take on a machine that does nothing else for it (seconds).
_PATIENCE = 60.0
#: What bubblewrap says of a command that it could not start, and what a shell would answer.
_COULD_NOT_START = b"bwrap: execvp "
_NOT_THERE = ("No such file or directory", "Not a directory")


class Inside:
    """The pid namespace of one run (an ``Enclosure``): with its first process everything in it is gone."""

    def __init__(self, first: int) -> None:
        """``first``: the process that everything inside descends from, as it is numbered outside."""
        self.first = first
        seen = processes.look(first)
        self.pids = frozenset((first,) if seen is None else (first, seen.parent))
        self._pidfd = -1
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # gone already, or a kernel without it
                self._pidfd = os.pidfd_open(first)

    def empty(self, seconds: float) -> bool:
        children = children_of(self.first)
        if children is not None:
            # its own end takes longer than all that may be left: the mounts and the network go with it
            return all((seen := processes.look(pid)) is None or seen.zombie for pid in children)
        return self.gone(seconds)

    def gone(self, seconds: float = 0.0) -> bool:
        """Whether the namespace has ended, waiting at most so long for it."""
        if self._pidfd < 0:
            seen = processes.look(self.first)
            return seen is None or seen.zombie
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def end(self) -> None:
        """End everything inside at once."""
        process = processes.look(self.first)
        if process is not None:
            processes.send(process, 9)

    def close(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


class Channel:
    """The two pipes between veil and one bubblewrap."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._block, self._release = os.pipe()
        self._told = b""
        self.inside: Inside | None = None

    @property
    def pass_fds(self) -> tuple[int, int]:
        return self._write, self._block

    @property
    def words(self) -> tuple[str, ...]:
        """Its options for bubblewrap."""
        return "--json-status-fd", str(self._write), "--block-fd", str(self._block)

    def _let_go(self, name: str) -> None:
        fd = getattr(self, name)
        if fd >= 0:
            os.close(fd)
            setattr(self, name, -1)

    def begin(self, limits: Mapping[int, int]) -> Inside | None:
        """Wait for the namespaces, limit what is to become the command, and let it go on.

        Args:
            limits: number of the resource (``resource.RLIMIT_...``) and the most of it.

        Returns ``None`` when bubblewrap has ended already (then ``settle`` says why).
        Raises ``VeilError`` (``sandbox_broken``) when it does neither.
        """
        self._let_go("_write")
        self._let_go("_block")
        first = self._fact("child-pid", _PATIENCE)
        if first is None:
            return None
        self.inside = Inside(first)
        try:
            for number, most in limits.items():
                soft, hard = resource.prlimit(first, number)
                if hard == resource.RLIM_INFINITY or most < hard:
                    hard = most
                    resource.prlimit(first, number, (hard if soft == resource.RLIM_INFINITY else min(soft, hard), hard))
        except ProcessLookupError:
            return self.inside
        except OSError as error:
            raise broken(f"its limits could not be set: {error.strerror}") from error
        with contextlib.suppress(BrokenPipeError):
            os.write(self._release, b"x")
        self._let_go("_release")
        return self.inside

    def _fact(self, name: str, seconds: float) -> int | None:
        """A number that bubblewrap tells; ``None`` when it will not any more."""
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        while (found := _told(self._told, name)) is None:
            if not poll.poll(seconds * 1000):
                if seconds == 0:
                    return None
                raise broken(f"bubblewrap made no namespaces within {seconds:g} s")
            data = os.read(self._read, 4096)
            if not data:
                return None
            self._told += data
        return found

    def settle(self, outcome: Outcome) -> Outcome:
        """See ``Launch.settle``. Raises ``VeilError`` (``sandbox_broken``)."""
        if outcome.ended in ("timed_out", "signaled") or outcome.cancelled:
            return outcome
        if outcome.ended == "spawn_failed":
            if outcome.spawn_error is not None and "bwrap" in outcome.spawn_error:
                raise broken(f"bubblewrap could not be started: {outcome.spawn_error}")
            return outcome
        if self._fact("exit-code", 0) is not None or (self.inside is not None and outcome.exit == 137):
            return outcome  # 137: somebody ended the namespace, the command with it
        return _not_begun(outcome)

    def close(self) -> None:
        for name in ("_read", "_write", "_block", "_release"):
            self._let_go(name)
        if self.inside is not None:
            self.inside.close()


def _told(lines: bytes, name: str) -> int | None:
    """A number in one of the objects; a line that has not wholly come says nothing yet."""
    found = re.search(rb'"%s"\s*:\s*(\d+)[^\n]*\n' % name.encode(), lines)
    return None if found is None else int(found[1])


def broken(reason: str, **facts: object) -> VeilError:
    """The sandbox fell apart: nobody may take that for the end of the command."""
    return VeilError(
        f"the sandbox broke before the command began: {reason}; look at 'veil doctor', or name another backend",
        code="sandbox_broken",
        reason=reason,
        **facts,
    )


def _not_begun(outcome: Outcome) -> Outcome:
    """The command has never run, so whatever was written is bubblewrap's own."""
    words = (outcome.stderr.data or outcome.stdout.data).strip()
    line = words.rsplit(b"\n", 1)[-1]
    if not line.startswith(_COULD_NOT_START):
        raise broken(words.decode("utf-8", "replace") or f"bubblewrap ended with {outcome.exit} and said nothing")
    program, _, reason = line[len(_COULD_NOT_START) :].decode("utf-8", "replace").rpartition(": ")
    return replace(
        outcome,
        ended="spawn_failed",
        exit=127 if reason in _NOT_THERE else 126,
        spawn_error=f"{reason}: {program}",
        stdout=Stream(),
        stderr=Stream(),
    )
