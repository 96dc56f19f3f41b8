"""Which recorded step answers what is asked now. Equality answers; likeness only helps to explain a miss."""

from __future__ import annotations

import difflib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from veil.cassettes.errors import CassetteMiss
from veil.cassettes.steps import Cassette, Header, Step, digest, state_id
from veil.model.command import Sandbox

#: Gives the ``entry_id`` of each of these paths as it is now.
State = Callable[[Iterable[str]], Mapping[str, str]]
Reason = Literal["never_recorded", "already_used", "no_cassette_file", "other_version"]

_SAYS: dict[Reason, str] = {
    "never_recorded": "never recorded",
    "already_used": "already used: it was recorded {times}x and asked for once more",
    "no_cassette_file": "no cassette file",
    "other_version": "recorded under another version: profile {then}, now {now}",
}
#: Characters of two commands that are compared to find the nearest one.
_COMPARED = 2000


@dataclass(frozen=True)
class Key:
    """What makes two runs the same question, all with tokens for folders. The state of the files is looked at apart.

    Attributes:
        command: the shell text, or the argv when there is none. shell: the argv in front of the text, the
            program by its name alone.
        stdin: ``null`` or the digest of the bytes. env: the chosen additions, sorted.
        mode: ``merged`` and ``background`` where they hold; ``session NAME`` and the mark of the state it was in.
        confined: how it is kept from the machine: ``preview`` and ``sandbox``, with the options that were chosen.
    """

    command: str | tuple[str, ...]
    cwd: str
    stdin: str = "null"
    env: tuple[tuple[str, str | None], ...] = ()
    shell: tuple[str, ...] = ()
    mode: tuple[str, ...] = ()
    confined: tuple[str, ...] = ()


def key_of(step: Step) -> Key:
    """The key of a recorded step."""
    return key_from(
        step.argv,
        step.text,
        step.cwd,
        step.stdin,
        step.env,
        merged=step.merged,
        background=step.background,
        session=session_of(step),
        confined=confinement(step.wishes),
    )


def session_of(step: Step) -> tuple[str, ...]:
    """Name and mark of the shell session that the step was run in; empty outside of one."""
    for name, wish in step.wishes:
        if name == "Carry":
            return (wish["session"], wish["state"])
    return ()


#: Options of a sandbox that say nothing when they are left as they are; of a later version's, none is left out.
_OPEN: Mapping[str, Any] = {
    name: list(value) if isinstance(value, tuple) else value for name, value in vars(Sandbox()).items()
}


def confinement(wishes: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[str, ...]:
    """``Key.confined`` from wishes as they are recorded.

    By which backend is a matter of the machine: what was recorded on one answers where there is only another.
    """
    found = []
    for name, wish in wishes:
        if name == "Preview":
            found.append("preview")
        elif name == "Sandbox":
            said = {key: value for key, value in wish.items() if key != "backend" and value != _OPEN.get(key)}
            plain = {key: sorted(value) if isinstance(value, list) else value for key, value in said.items()}
            found.append(" ".join(("sandbox", *(f"{key}={json.dumps(plain[key])}" for key in sorted(plain)))))
    return tuple(sorted(found))


def key_from(
    argv: tuple[str, ...],
    text: str | None,
    cwd: str,
    stdin: bytes | None,
    env: tuple[tuple[str, str | None], ...],
    *,
    merged: bool,
    background: bool,
    session: tuple[str, ...] = (),
    confined: tuple[str, ...] = (),
) -> Key:
    """The key of what has these parts, named as in ``Step``: recorded, or asked now."""
    before_text = argv[:-1] if text is not None and len(argv) > 1 and argv[-1] == text else ()
    return Key(
        command=argv if text is None else text,
        cwd=cwd,
        stdin="null" if stdin is None else digest(stdin),
        env=env,
        shell=_shell(before_text or (argv if text is not None else ())),
        mode=("merged",) * merged + ("background",) * background + (("session", *session) if session else ()),
        confined=confined,
    )


def _shell(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Where a shell is installed differs between machines and is not part of the question; which shell it is, is."""
    return (argv[0].rpartition("/")[2], *argv[1:]) if argv else ()


class Tape:
    """The steps of one cassette, each handed out at most once. Safe to use from several threads.

    Args:
        cassette: None when there is no file. file: its name, for error texts.
        header: what a recording made now would carry; tells a cassette of another profile version from a miss.
        rekey: changes every key, recorded and asked.
    """

    def __init__(
        self,
        cassette: Cassette | None,
        file: str,
        header: Header | None = None,
        rekey: Callable[[Key], Key] | None = None,
    ) -> None:
        self.file = file
        self._rekey = rekey or (lambda key: key)
        self._cassette = cassette
        self._header = header
        self._steps: tuple[Step, ...] = () if cassette is None else cassette.steps
        self._by_key: dict[Key, list[int]] = {}
        for number, step in enumerate(self._steps, 1):
            self._by_key.setdefault(self._rekey(key_of(step)), []).append(number)
        # of each key the steps not used yet: a step that is asked for a thousand times is not searched a thousand times
        self._free = {key: list(numbers) for key, numbers in self._by_key.items()}
        self._used: set[int] = set()
        self._lock = threading.Lock()

    @property
    def unused(self) -> tuple[int, ...]:
        """Numbers (from 1) of the steps that nobody asked for, in order."""
        with self._lock:
            return tuple(n for n in range(1, len(self._steps) + 1) if n not in self._used)

    def words(self) -> Iterator[str]:
        """Every command word and folder of the steps, as recorded."""
        for step in self._steps:
            yield from step.argv
            yield step.cwd
            if step.text is not None:
                yield step.text

    def step(self, number: int) -> Step:
        """The step of this number (from 1)."""
        return self._steps[number - 1]

    def take(self, asked: Key, state: State | None = None) -> tuple[int, Step]:
        """The next unused step of the same identity, and its number.

        Args:
            asked: what is asked now.
            state: gives the ``entry_id`` of paths (relative to the step's cwd) as they are now. None: not compared.
                It is called only for steps that touched something.

        Raises:
            CassetteMiss: nothing answers. The message shows the nearest step field by field.
        """
        asked = self._rekey(asked)
        with self._lock:
            known = self._by_key.get(asked, [])
            free = self._free.get(asked, [])
            drifted: tuple[int, Mapping[str, str]] | None = None
            for at, number in enumerate(free):
                step = self._steps[number - 1]
                before = step.before if state is not None else {}
                now = state(before) if state is not None and before else before
                if now == before:
                    del free[at]
                    self._used.add(number)
                    return number, step
                drifted = drifted or (number, now)
        raise self._miss(asked, known, drifted)

    def _miss(self, asked: Key, known: list[int], drifted: tuple[int, Mapping[str, str]] | None) -> CassetteMiss:
        reason = self._reason(known, drifted)
        nearest, rows = self._nearest(asked, drifted)
        if reason == "already_used":
            nearest, rows = known[-1], []
        then, now = _profile(None if self._cassette is None else self._cassette.header), _profile(self._header)
        shown = asked.command if isinstance(asked.command, str) else " ".join(asked.command)
        lines = [f"{self.file}: {_SAYS[reason].format(times=len(known), then=then, now=now)}: {shown}"]
        if rows:
            lines.append(f"nearest is step {nearest}; it differs in")
            lines += [f"  {row['field']}: asked {row['asked']!r}, recorded {row['recorded']!r}" for row in rows]
        elif nearest is not None:
            lines.append(f"it was step {', '.join(map(str, known))}")
        unused = self.unused
        lines.append(
            "nothing was run; " + (f"unused steps: {', '.join(map(str, unused))}" if unused else "no step is unused")
        )
        return CassetteMiss(
            "\n".join(lines),
            reason=reason,
            file=self.file,
            asked=shown,
            nearest=nearest,
            differs=rows,
            unused=list(unused),
        )

    def _reason(self, known: list[int], drifted: tuple[int, Mapping[str, str]] | None) -> Reason:
        if self._cassette is None:
            return "no_cassette_file"
        if known and drifted is None:
            return "already_used"
        if self._header is not None and _profile(self._header) != _profile(self._cassette.header):
            return "other_version"
        return "never_recorded"

    def _nearest(
        self, asked: Key, drifted: tuple[int, Mapping[str, str]] | None
    ) -> tuple[int | None, list[dict[str, Any]]]:
        """The most similar step, unused ones first among equals, and the fields in which it differs."""
        if drifted is not None:
            number, now = drifted
            step = self._steps[number - 1]
            paths = ", ".join(step.touched[:5]) + (", ..." if len(step.touched) > 5 else "")
            return number, [{"field": f"state of {paths}", "asked": state_id(now), "recorded": state_id(step.before)}]
        best: tuple[float, int] | None = None
        for number, step in enumerate(self._steps, 1):
            score = _likeness(asked, self._rekey(key_of(step))) - 0.001 * (number in self._used)
            if best is None or score > best[0]:
                best = (score, number)
        if best is None:
            return None, []
        return best[1], _differences(asked, self._rekey(key_of(self._steps[best[1] - 1])))


def _profile(header: Header | None) -> str:
    return "none" if header is None else f"{header.profile} {header.profile_version}"


def _likeness(asked: Key, recorded: Key) -> float:
    one, two = (
        k.command[:_COMPARED] if isinstance(k.command, str) else " ".join(k.command)[:_COMPARED]
        for k in (asked, recorded)
    )
    alike = 1.0 if one == two else difflib.SequenceMatcher(None, one, two, autojunk=False).quick_ratio()
    others = ("cwd", "stdin", "env", "shell", "mode", "confined")
    same = sum(1 for name in others if getattr(asked, name) == getattr(recorded, name))
    return 4.0 * alike + same / 6.0


def _differences(asked: Key, recorded: Key) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in ("command", "shell", "cwd", "stdin", "mode", "confined"):
        one, two = getattr(asked, name), getattr(recorded, name)
        if one != two:
            rows.append({"field": name, "asked": _plain(one), "recorded": _plain(two)})
    mine, theirs = dict(asked.env), dict(recorded.env)
    for name in sorted(mine.keys() | theirs.keys()):
        if mine.get(name, "(not set)") != theirs.get(name, "(not set)"):
            row = {"asked": mine.get(name, "(not set)"), "recorded": theirs.get(name, "(not set)")}
            rows.append({"field": f"env {name}", **row})
    return rows


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
