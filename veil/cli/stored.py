"""``veil detail``, ``veil runs``, ``veil ps`` and ``veil gc``: what is kept of runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import veil
from veil.cli import human, screen
from veil.cli.screen import Line
from veil.present.text import safe_text


def detail(
    id: str | None,
    *,
    selector: str | None,
    match: str | None,
    lines: str | None,
    offset: int | None,
    limit: int | None,
    project: str | None,
    as_json: bool,
) -> int:
    """See ``veil detail --help``."""
    part: Any = selector or "full"
    found = veil.detail(id, part, match, project=project)
    page: dict[str, Any] = {}
    if lines is not None:
        if offset is not None:
            raise veil.BadInput("offset", offset, "nothing beside --lines")
        page["lines"] = _span(lines)
    if offset is not None:
        page["offset"] = offset
    if limit is not None:
        page["limit"] = limit
    if as_json:
        screen.document(found.to_dict(**page))
    elif match is not None and not page:
        _matches(found)
    elif part in ("stdout", "stderr"):
        _stream(found, page)
    elif part == "trace" and not page:
        screen.show(("text", line) for line in found.text.split("\n"))
    elif part in ("meta", "trace"):
        screen.show(("text", line) for line in _reply(found.to_dict(**page)))
    elif page:
        raise veil.BadInput("selector", part, "stdout or stderr when --lines, --offset or --limit is given")
    else:
        screen.show(human.report(found.result, full=True))
    return 0


def _span(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    try:
        low = int(first) if first else 1
        high = (int(last) if last else 1 << 62) if colon else low
    except ValueError:
        raise veil.BadInput("lines", text, "A:B, the numbers of the first and the last line") from None
    return low, high


def _matches(found: veil.Detail) -> None:
    many = found.selector == "full"
    names = ("stdout", "stderr") if many else (found.selector,)
    rows: list[Line] = []
    for name in names:
        one = veil.Detail(found.record, name, found.match)  # type: ignore[arg-type]  # one of the two streams
        rows += [("text", f"{name + ':' if many else ''}{hit.number}:{hit.text}") for hit in one.matches]
    screen.show(rows)


def _stream(found: veil.Detail, page: dict[str, Any]) -> None:
    """The bytes themselves when piped; on a terminal, and for a page, text that cannot drive it."""
    if not page:
        screen.write_bytes(screen.harmless(found.bytes) if screen.is_terminal(sys.stdout) else found.bytes)
        return
    data = found.to_dict(**page)[found.selector]
    screen.show(("text", line) for line in _reply(data, "text"))


def _reply(data: dict[str, Any], body: str | None = None) -> Iterator[str]:
    """A reply for people: the text, then what else it says; without a text the data itself."""
    if body is None or body not in data:
        yield from json.dumps(data, indent=2).split("\n")
        return
    yield from safe_text(data[body]).removesuffix("\n").split("\n")
    yield "--- " + ", ".join(f"{key} {value}" for key, value in data.items() if key != body)


def listed(found: Sequence[veil.Result], *, as_json: bool) -> int:
    """Runs, one a line, or as one JSON list."""
    if as_json:
        screen.document([_brief(result) for result in found])
    elif found:
        screen.show(human.row(result) for result in found)
    else:
        screen.show([("head", "none")])
    return 0


def _brief(result: veil.Result) -> dict[str, Any]:
    """What tells one run from another; the rest is ``veil detail``."""
    record = result.record
    data: dict[str, Any] = {
        "id": record.id,
        "status": record.status,
        "command": record.command,
        "cwd": record.cwd,
        "started": record.started,
    }
    if record.status != "running":
        data.update(exit=result.exit, ok=result.ok, ms=result.ms)
    if record.background:
        data["background"] = True
    if result.verdict.judgements:
        data["assert_ok"] = result.assert_ok
    return data


def alive(project: str | None) -> list[veil.Result]:
    """Live background runs of the project, newest first."""
    from veil import elsewhere, wiring

    return [veil.Result(record) for record in elsewhere.alive(wiring.session(dict(os.environ), project))]


def gc(project: str | None, *, as_json: bool) -> int:
    """See ``veil gc --help``."""
    from veil import promoting, rewinding, wiring

    store = wiring.session(dict(os.environ), project).kit.store
    collect = getattr(store, "gc", None)
    done: dict[str, int] = {} if collect is None else collect()
    done.update((f"checkpoints_{name}", count) for name, count in rewinding.collect(project).items())
    done.update((f"previews_{name}", count) for name, count in promoting.collect(project).items())
    if as_json:
        screen.document(done)
    else:
        screen.show(("text", f"{key.replace('_', ' ')}: {value}") for key, value in done.items())
    return 0
