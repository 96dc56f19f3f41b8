"""``veil cassette record``: commands run in a fresh workspace, and a file that plays them again."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from veil import BadInput
from veil.cli.expecting import expectations, number
from veil.taping import DETERMINISTIC, SUFFIX, Cassette, Recorder, Stage, encode, new_header, save, take_slot, taken_in

#: A command and what is expected of it.
Line = tuple[str, dict[str, Any]]


def record(
    file: str,
    commands: Sequence[str],
    *,
    workspace: str | None,
    kind: Any,
    revision: str | None,
    script: str | None,
    timeout: str | None,
    force: bool,
    keep_failed: bool,
) -> tuple[Cassette, list[str]]:
    """Run, and write ``file`` when every expectation holds. Returns the recording, and what does not hold.

    Raises ``BadInput`` (a name that no test would have, a file that is there, no command) or ``Refused``.
    """
    path = Path(file)
    if not path.name.endswith(SUFFIX):
        raise BadInput("file", file, f"a name that ends with {SUFFIX}")
    if path.exists() and not force:
        raise BadInput("file", file, "a file that is not there yet (--force writes over it)")
    if not path.parent.is_dir():
        raise BadInput("file", file, "a file in a folder that exists")
    if revision is not None and kind != "git":
        raise BadInput("revision", revision, "nothing without --as git")
    if workspace is None and kind != "inline":
        raise BadInput("as", kind, "--workspace beside it")
    steps = [*((command, {}) for command in commands), *(_lines(script) if script is not None else ())]
    if not steps:
        raise BadInput("commands", list(commands), "at least one command, or --script")
    options: dict[str, Any] = {"no_store": True} if timeout is None else {"no_store": True, "timeout": number(timeout)}
    start = taken_in(None if workspace is None else Path(workspace), kind, path.parent, revision)
    with take_slot(DETERMINISTIC.place, "slot") as slot:
        stage = Stage.make(slot.path, DETERMINISTIC, os.environ)
        header = new_header(start, stage, path)
        recorder = Recorder(stage)
        wrong: list[str] = []
        for at, (command, expect) in enumerate(steps, 1):
            result = recorder.run(command, {**options, "expect": expect})
            said = (*result.verdict.failed, *result.verdict.inconclusive)
            wrong += [f"step {at}: {judgement.check}: {judgement.message}" for judgement in said]
        tape = recorder.cassette(header)
    if not wrong or keep_failed:
        save(path, encode(tape))
    return tape, wrong


def _lines(script: str) -> list[Line]:
    """The commands of a script, a line each, with their expectations."""
    try:
        data = sys.stdin.buffer.read() if script == "-" else Path(script).read_bytes()
    except (OSError, ValueError) as error:
        raise BadInput("script", script, f"a file that can be read ({error})") from None
    found: list[tuple[str, list[str]]] = []
    for line in os.fsdecode(data).splitlines():
        text = line.strip()
        if text.startswith("?"):
            if not found:
                raise BadInput("script", text, "a command above the first expectation")
            found[-1][1].append(text[1:].strip())
        elif text and not text.startswith("#"):
            found.append((text, []))
    return [(command, expectations(words)) for command, words in found]
