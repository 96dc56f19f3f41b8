"""What the Python API gives back of one run."""

# over 300 lines because: it is one flat list of what a result can say, each with its sentence

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from veil import caution
from veil.model.outcome import Change, Ended, Stream
from veil.model.record import Record
from veil.model.verdict import Verdict
from veil.present import trace
from veil.present.reply import advice_for, reply, view_of
from veil.present.text import safe_text


def _quoted(text: str, most: int, *, end: bool) -> str:
    """``repr`` of a text in at most ``most`` characters; of a longer one its end or its beginning."""
    if len(text) <= most and len(repr(text)) <= most:
        return repr(text)
    left, kept = most - len("'...'"), 0
    for sign in reversed(text) if end else text:
        left -= 2 if sign == "'" else len(repr(sign)) - 2  # a quote may have to be escaped
        if left < 0:
            break
        kept += 1
    return repr("..." + text[len(text) - kept :] if end else text[:kept] + "...")


def _last_words(stream: Stream) -> str:
    """The last three lines with anything on them."""
    lines = safe_text(stream.data[-4_000:]).split("\n")
    return "\n".join([line.strip() for line in lines if line.strip()][-3:])


@dataclass(frozen=True)
class Result:
    """One run as data. Frozen; ``to_dict()`` is the JSON view.

    Attributes:
        record: everything that was kept, in full.
    """

    record: Record

    def __repr__(self) -> str:
        how = {"timed_out": "timed out", "spawn_failed": "could not start"}.get(self.ended, f"exit {self.exit}")
        if self.record.status == "running":
            how = "still runs"
        text = f"<veil.Result {self.id} {self.signal or how}: {_quoted(self.command, 70, end=False)}"
        if not self.ok:
            # of ``assert result.ok`` introspection shows this and nothing else, cut at 240 characters by pytest
            outcome = self.record.observation.outcome
            name = "stderr" if outcome.stderr.total_bytes else "stdout"
            words = outcome.spawn_error or _last_words(getattr(outcome, name))
            if words:
                label = "" if outcome.spawn_error else f"{name} ends "
                text += f"; {label}{_quoted(words, 236 - len(text) - len(label), end=True)}"
        return text + ">"

    @property
    def id(self) -> str:
        """``cmdN`` in the store, ``memN`` when nothing went to disk."""
        return self.record.id

    @property
    def command(self) -> str:
        """Copy-pasteable text of the command."""
        return self.record.command

    @property
    def argv(self) -> tuple[str, ...]:
        return self.record.argv

    @property
    def cwd(self) -> str:
        return self.record.cwd

    @property
    def session(self) -> str | None:
        """The shell session that it was run in (see ``veil.shell``)."""
        name: str | None = self.record.observation.findings.notes.get("session")
        return name

    @property
    def cwd_after(self) -> str:
        """Where its session was afterwards; ``cwd`` when it stayed there, and of a run without a session."""
        return str(self.record.observation.findings.notes.get("cwd", self.record.cwd))

    @property
    def exit(self) -> int:
        """The command's code; 128+n after signal n; 124 at a timeout; 126 or 127 when it could not start."""
        return self.record.observation.outcome.exit

    @property
    def ended(self) -> Ended:
        """``exited``, ``signaled``, ``timed_out`` or ``spawn_failed``."""
        return self.record.observation.outcome.ended

    @property
    def signal(self) -> str | None:
        """Name of the signal it died by, when that is known."""
        return self.record.observation.outcome.signal

    @property
    def ok(self) -> bool:
        """Exited with 0. Says nothing of ``expect``: see ``assert_ok``. A run that goes on (``veil.detail`` of a
        background run) has not."""
        return self.record.observation.outcome.ok and self.record.status != "running"

    @property
    def timed_out(self) -> bool:
        return self.record.observation.outcome.timed_out

    @property
    def ms(self) -> int:
        """Wall time of the last attempt in milliseconds."""
        return round(self.record.observation.outcome.seconds * 1000)

    @property
    def seconds(self) -> float:
        """Wall time of the last attempt in seconds."""
        return self.record.observation.outcome.seconds

    @property
    def attempts(self) -> int:
        return self.record.observation.attempts

    @property
    def stdout(self) -> str:
        """All that was kept, as UTF-8 text; undecodable bytes became U+FFFD."""
        return self.record.observation.outcome.stdout.text

    @property
    def stderr(self) -> str:
        """All that was kept, as UTF-8 text; undecodable bytes became U+FFFD."""
        return self.record.observation.outcome.stderr.text

    @property
    def stdout_bytes(self) -> bytes:
        """All bytes that were kept."""
        return self.record.observation.outcome.stdout.data

    @property
    def stderr_bytes(self) -> bytes:
        """All bytes that were kept."""
        return self.record.observation.outcome.stderr.data

    @property
    def stdout_lines(self) -> int:
        """Lines really written, whatever was kept."""
        return self.record.observation.outcome.stdout.total_lines

    @property
    def stderr_lines(self) -> int:
        """Lines really written, whatever was kept."""
        return self.record.observation.outcome.stderr.total_lines

    @property
    def stdout_truncated(self) -> bool:
        """True only when bytes were dropped."""
        return self.record.observation.outcome.stdout.truncated

    @property
    def stderr_truncated(self) -> bool:
        """True only when bytes were dropped."""
        return self.record.observation.outcome.stderr.truncated

    @property
    def stdout_total_bytes(self) -> int:
        """Bytes really written, whatever was kept."""
        return self.record.observation.outcome.stdout.total_bytes

    @property
    def stderr_total_bytes(self) -> int:
        """Bytes really written, whatever was kept."""
        return self.record.observation.outcome.stderr.total_bytes

    @property
    def stdout_binary(self) -> bool:
        return self.record.observation.outcome.stdout.binary

    @property
    def stderr_binary(self) -> bool:
        return self.record.observation.outcome.stderr.binary

    @cached_property
    def view(self) -> str:
        """The condensed text of both streams, stdout first, fit for a context window."""
        texts = [view_of(self.record, name).text for name in ("stdout", "stderr")]
        return "\n".join(text.rstrip("\n") for text in texts if text)

    @property
    def files_changed(self) -> list[Change]:
        """Every file that changed.

        Empty when nothing did, when nobody looked (``effects_source`` is ``None``), or when it could not be known
        (``effects_unavailable`` says why).
        """
        return list(self.record.observation.findings.changes or ())

    def _paths(self, *words: str) -> list[str]:
        return sorted(change.path for change in self.files_changed if change.change in words)

    @property
    def created(self) -> list[str]:
        return self._paths("created")

    @property
    def modified(self) -> list[str]:
        """Paths whose content changed."""
        return self._paths("modified")

    @property
    def deleted(self) -> list[str]:
        return self._paths("deleted")

    @property
    def effects_source(self) -> str | None:
        """How the changes are known (``git``, ``scan``, ``trace``, ``overlay``); ``None`` when they are not."""
        return self.record.observation.findings.source

    @property
    def effects_unavailable(self) -> str | None:
        """Why it is not known which files changed."""
        return self.record.observation.findings.why_unknown

    @property
    def trace_summary(self) -> dict[str, dict[str, Any]]:
        """What was executed, written, created, deleted, renamed, read and connected to, as counts and first few.

        Empty without ``trace=True``, and when it could not be traced (``trace_unavailable`` says why). All of it:
        ``veil.detail(id, selector="trace")``.
        """
        return trace.summary(self.record.observation.findings.notes)

    @property
    def trace_unavailable(self) -> str | None:
        """Why there is no trace although one was asked for."""
        return trace.unavailable(self.record.observation.findings.notes)

    @property
    def shared(self) -> bool | str:
        """Others may have worked in the same tree meanwhile, so a change may be theirs."""
        shared: bool | str = self.record.observation.findings.notes.get("shared", False)
        return shared

    @property
    def previewed(self) -> bool:
        """It ran in a view of its folder: what ``files_changed`` tells would have changed, and did not."""
        return "previewed" in self.record.observation.findings.notes

    @property
    def preview_method(self) -> str | None:
        """``overlay``, ``clone`` or ``copy``; ``None`` when it was no preview."""
        method: str | None = self.record.observation.findings.notes.get("preview_method")
        return method

    @property
    def sandboxed(self) -> bool:
        """The command was confined; ``sandbox`` says by what and what that leaves open."""
        return bool(self.record.observation.findings.notes.get("sandboxed", False))

    @property
    def sandbox(self) -> dict[str, Any] | None:
        """``backend``, ``network``, ``gaps`` (what is not covered on this machine), as in the JSON view."""
        found: dict[str, Any] | None = self.record.observation.findings.notes.get("sandbox")
        return found

    @property
    def secrets_protected(self) -> int:
        """Places with credentials that the command could not read."""
        return int(self.record.observation.findings.notes.get("secrets_protected", 0))

    @property
    def limit(self) -> str | None:
        """The limit of the sandbox (``max_cpu`` ...) that ended the command."""
        found: str | None = self.record.observation.findings.notes.get("limit")
        return found

    @property
    def left_running(self) -> int:
        """Processes that were still there when the command itself had ended."""
        return self.record.observation.outcome.left_running

    @property
    def survivors(self) -> str:
        """``none``, ``kept`` (on purpose) or ``unknown``."""
        return self.record.observation.outcome.survivors

    @property
    def verdict(self) -> Verdict:
        """Each post-condition judged."""
        return self.record.verdict

    @property
    def assert_ok(self) -> bool | None:
        """True: every post-condition holds. False: one does not. None: none was asked, or one is inconclusive."""
        return self.record.verdict.ok

    @property
    def assertions_failed(self) -> list[dict[str, Any]]:
        return [judgement.to_dict() for judgement in self.record.verdict.failed]

    @property
    def assertions_inconclusive(self) -> list[dict[str, Any]]:
        return [judgement.to_dict() for judgement in self.record.verdict.inconclusive]

    def judge(self, expect: Mapping[str, Any]) -> Verdict:
        """Judge further post-conditions on what was seen, as ``expect`` of ``veil.run`` would have.

        Looks at nothing new: a path that was not looked at when the run ended is inconclusive.
        Raises ``BadInput`` for an unknown name or a value that cannot mean anything.
        """
        from veil.asking import parse_expect
        from veil.wiring import checks

        known, seen = checks(), self.record.observation
        return Verdict(tuple(known[name].judge(value, seen) for name, value in parse_expect(expect, known)))

    @property
    def stored(self) -> str:
        """``disk`` or ``memory-only``."""
        return self.record.stored

    @property
    def advice(self) -> str | None:
        """At most one thing worth doing next."""
        return advice_for(self.record) or caution.advice(self.record)

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """The JSON view. A field is present only when it says something; ``full`` shows the streams uncondensed."""
        data = reply(self.record, full=full)
        if "advice" not in data and (told := caution.advice(self.record)) is not None:
            data["advice"] = told
        return data
