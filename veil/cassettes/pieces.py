"""A step as the pieces that are compared: effects first, then what was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from veil.cassettes.normalise import Context, Registry
from veil.cassettes.steps import Ending, Step

#: What is compared as text, in order: label (``tree``, ``file N``, ``stdout``, ``stderr``) and bytes.
Pieces = tuple[tuple[str, bytes], ...]


def ids(step: Step) -> tuple[tuple[str, str], ...]:
    """Ids of what is not compared as text: no content was kept, or there is none."""
    return tuple(
        (c.path, c.after) for c in step.delta if c.kind == "file" and c.content is None and c.change != "deleted"
    )


def pieces_of(step: Step) -> Pieces:
    """The tree delta as lines, the content of changed files, then the streams of every attempt."""
    rows = []
    files: list[tuple[str, bytes]] = []
    told = set(step.changes or ())
    for number, change in enumerate(sorted(step.delta, key=lambda c: c.path)):
        renamed = f" from {change.old}" if change.old is not None else ""
        target = f" -> {change.target}" if change.target is not None else ""
        untold = "" if change in told else "untold "
        rows.append(f"{untold}{change.change} {change.kind} {change.mode:03o} {change.path}{renamed}{target}\n")
        if change.content is not None:
            files.append((f"file {number}", change.content))
    pieces = [("tree", "".join(rows).encode("utf-8", "surrogateescape")), *files]
    for prefix, ending in [*((f"attempt{n} ", e) for n, e in enumerate(step.earlier, 1)), ("", step.ending)]:
        pieces += [(prefix + "stdout", _stream(ending, "stdout")), (prefix + "stderr", _stream(ending, "stderr"))]
    return tuple(pieces)


def _stream(ending: Ending, name: Literal["stdout", "stderr"]) -> bytes:
    """What was kept; a gap shows its size, so that two streams cut at different lengths differ."""
    kept = ending.stdout if name == "stdout" else ending.stderr
    stream = kept.stream()
    if not stream.truncated:
        return stream.data
    return kept.head + b"\n[%d bytes not kept]\n" % stream.dropped + kept.tail


def endings_of(step: Step) -> tuple[object, ...]:
    """How each attempt ended; with the digests of truncated streams, of which pieces do not have all."""
    return tuple(
        (e.ended, e.exit, e.left_running, *(kept.whole for kept in (e.stdout, e.stderr) if kept.stream().truncated))
        for e in (*step.earlier, step.ending)
    )


def paths_of(step: Step) -> tuple[str, ...]:
    """What changed, in the order of the numbers that files have in ``pieces_of``."""
    return tuple(sorted(change.path for change in step.delta))


def unkept(one: Step, two: Step) -> tuple[str, str, str | None, str | None] | None:
    """The first stream of which something was dropped that is not known to be the same: its name, how much in words,
    and the digests of all of it, as far as they are known. Streams that are known to differ come first."""
    found = []
    for then, now in zip((*one.earlier, one.ending), (*two.earlier, two.ending), strict=True):
        for name, mine, theirs in (("stdout", then.stdout, now.stdout), ("stderr", then.stderr, now.stderr)):
            same = mine.whole is not None and mine.whole == theirs.whole
            if mine.stream().truncated and not same:
                said = f"{name}: {mine.stream().dropped} bytes between its ends were not kept"
                found.append((name, said, mine.whole, theirs.whole))
    return min(found, key=lambda row: row[2] is None or row[3] is None, default=None)


def normalised(
    pieces: Pieces, names: Sequence[str], known: Mapping[str, tuple[str, ...]], registry: Registry
) -> Pieces:
    """The pieces, sharing one context. Binary content stays: its bytes mean nothing to a normaliser of text."""
    context = Context(known=known)
    return tuple(
        (label, data if b"\0" in data else registry.normalise(data, names, context).data) for label, data in pieces
    )


def differing(one: Pieces, two: Pieces) -> tuple[str, ...]:
    """Labels of the pieces that are not the same, in order."""
    mine, theirs = dict(one), dict(two)
    labels = dict.fromkeys((*mine, *theirs))
    return tuple(label for label in labels if mine.get(label) != theirs.get(label))
