"""The sandbox of macOS: ``sandbox-exec`` with a profile that allows all, takes writing away and gives some of it back.

A profile that begins with denying everything breaks most programs in ways that nobody foresees; one that begins with
allowing is open where nobody thought of it, which ``gaps`` tells. The last rule that fits decides: denials stand last.

The kernel compares with real paths (``/private/tmp``, never ``/tmp``); bounds are real, and the shorter spelling is
named as well. No path is ever part of the profile's text: rules name parameters, whose values are words of their own.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from veil.host.confine import trial
from veil.host.confine.base import Allowance, Bounds, Wrapped
from veil.host.confine.bounds import within
from veil.host.confine.status import broken
from veil.host.processes import LINUX
from veil.model.outcome import Outcome, Stream

PROGRAM = "/usr/bin/sandbox-exec"
#: Folders that are links to the same name below /private.
_PRIVATE = ("/private/tmp", "/private/var", "/private/etc")
_DEVICES = ("null", "zero", "tty", "stdout", "stderr", "dtracehelper", "ptmx")
#: How sandbox-exec ends when it could not do its work (EX_USAGE, EX_DATAERR, EX_OSERR).
_OWN_EXITS = (64, 65, 71)
_NOT_STARTED = re.compile(r"sandbox-exec: execvp\(\) of '(?P<program>.*)' failed: (?P<reason>.*)", re.DOTALL)
_NOT_THERE = ("No such file or directory", "Not a directory")
_ALWAYS_OPEN = (
    "processes outside can be seen",
    "services of the system may act in the command's stead: launchd, the keychain, name lookups",
    "a process that gets away from its parents is not ended together with the command",
    "/tmp is the machine's: readable, not writable",
    "core files are as large as the machine allows",
)


class Seatbelt:
    """The backend ``seatbelt``."""

    name = "seatbelt"

    def __init__(self, program: str = PROGRAM) -> None:
        """``program``: what is started with a profile and the command."""
        self._program = program
        self._asked = False
        self._reason: str | None = None

    def unavailable(self) -> str | None:
        """Why it does not work here: found by a trial command that has to be denied a write. Asked once."""
        if not self._asked:
            self._reason = self._found_out()
            self._asked = True
        return self._reason

    def _found_out(self) -> str | None:
        if not os.access(self._program, os.X_OK):
            return "sandbox-exec is of macOS only" if LINUX else f"{self._program} is not there"
        return trial.tried(self.confine, network=False)

    def lacks(self, bounds: Bounds) -> str | None:
        """What of these bounds it cannot do."""
        return None if bounds.allowance == Allowance() else "sandbox-exec sets no limits on what a command uses"

    def gaps(self, bounds: Bounds) -> tuple[str, ...]:
        """What stays open with these bounds."""
        return _ALWAYS_OPEN

    @contextlib.contextmanager
    def confine(self, argv: tuple[str, ...], bounds: Bounds) -> Iterator[Wrapped]:
        """The command behind sandbox-exec.

        Raises:
            VeilError: ``sandbox_broken``, from ``settle``.
        """
        yield Wrapped((self._program, *words(argv, bounds)), settle=self._settle)

    def _settle(self, outcome: Outcome) -> Outcome:
        """See ``Launch.settle``."""
        if outcome.ended == "spawn_failed":
            if outcome.spawn_error is not None and outcome.spawn_error.endswith(f": {self._program}"):
                raise broken(f"sandbox-exec could not be started: {outcome.spawn_error}")
            return outcome
        said = (outcome.stderr.data or outcome.stdout.data).decode("utf-8", "surrogateescape").strip()
        if outcome.ended != "exited" or outcome.exit not in _OWN_EXITS or not said.startswith("sandbox-exec: "):
            return outcome
        failed = _NOT_STARTED.fullmatch(said)
        if failed is None:
            raise broken(said)
        return replace(
            outcome,
            ended="spawn_failed",
            exit=127 if failed["reason"] in _NOT_THERE else 126,
            spawn_error=f"{failed['reason']}: {failed['program']}",
            stdout=Stream(),
            stderr=Stream(),
        )


def words(argv: Sequence[str], bounds: Bounds) -> tuple[str, ...]:
    """The command line but for the program."""
    text, values = profile(bounds)
    given = [word for name, value in values.items() for word in ("-D", f"{name}={value}")]
    return ("-p", text, *given, "--", *argv)


def profile(bounds: Bounds) -> tuple[str, dict[str, str]]:
    """The profile and the values of its parameters. Its text depends on how many paths there are, on nothing else."""
    values: dict[str, str] = {}

    def each(kind: str, letter: str, paths: Sequence[str]) -> str:
        """One filter for each spelling of each path."""
        filters = []
        for spelling in dict.fromkeys(spelling for path in paths for spelling in _spellings(path)):
            name = f"{letter}{len(values)}"
            values[name] = spelling
            filters.append(f'({kind} (param "{name}"))')
        return " ".join(filters)

    roots = (bounds.cwd, bounds.temp, *bounds.writable)
    masked = (*bounds.masked_folders, *bounds.masked_files, *bounds.own)
    kept = (*masked, *bounds.readonly, *bounds.pinned)
    rules = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        f"(allow file-write* {each('subpath', 'W', roots)})",
        *_fixed(),
    ]
    if bounds.readonly:
        rules.append(f"(deny file-write* {each('subpath', 'R', bounds.readonly)})")
    if masked:
        hidden = each("subpath", "M", masked)
        rules.append(f"(deny file-read* file-write* {hidden})")
        rules.append(f"(if (defined? 'file-link) (deny file-link {hidden}))")
        # that they are there may be seen: a listing of their folder would fail otherwise
        rules.append(f"(allow file-read-metadata {each('literal', 'S', masked)})")
    if bounds.readable:
        rules.append(f"(allow file-read* {each('literal', 'F', bounds.readable)})")
    if kept:
        # whoever moves a folder above moves what is protected to a path that no rule knows
        rules.append(f"(deny file-write-unlink {each('literal', 'A', _above(kept))})")
    if not bounds.network:
        rules.append("(deny network*)")
        if bounds.sockets:
            rules.append(f"(allow network-outbound {each('literal', 'U', bounds.sockets)})")
    return "\n".join(rules) + "\n", values


def _fixed() -> list[str]:
    """Rules that are the same for all bounds."""
    devices = " ".join(f'(literal "/dev/{name}")' for name in _DEVICES)
    return [
        f'(allow file-write* {devices} (subpath "/dev/fd"))',
        # a terminal that a process of the command made itself carries this mark; the user's others do not
        '(allow file-write* (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))',
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        # ways of having something started by somebody who is not confined; older systems know not all of them
        *(f"(if (defined? '{name}) (deny {name}))" for name in ("lsopen", "job-creation", "appleevent-send")),
    ]


def _spellings(path: str) -> Iterator[str]:
    yield path
    if any(within(path, folder) for folder in _PRIVATE):
        yield path.removeprefix("/private")


def _above(paths: Sequence[str]) -> list[str]:
    """The paths and every folder above them but the root of all, each once."""
    found: dict[str, None] = {}
    for path in paths:
        while path not in ("/", ""):
            found[path] = None
            path = os.path.dirname(path)
    return list(found)
