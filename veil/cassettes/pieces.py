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
