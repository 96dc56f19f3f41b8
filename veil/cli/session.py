"""``veil shell``: each line that comes is a command of one session."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from veil import BadInput, VeilError
from veil.cli import options, screen

if TYPE_CHECKING:
    from veil import Shell


@click.command("shell", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--name", metavar="NAME", help="What results call the session (default: s1).")
@options.for_run
@options.as_json
def shell(name: str | None, as_json: bool, **said: Any) -> int:
    """Run each line of standard input as a command of one session: what it leaves in the shell (folder, variables,
    functions, options) is there for the next. The options are those of each command. What is not whole yet (an open
    quote or here document, an `if` without its `fi`) goes on in the next line.

    Exits with the code of the last command.
    """
    if said["stdin"] == "-":
        raise BadInput("stdin", "-", "a file (veil's own standard input has the commands)")
    return _run({"name": name, "contain": True, **options.keywords(said)}, as_json=as_json)


def _run(keywords: Mapping[str, Any], *, as_json: bool) -> int:
    """Output comes as it is written (``as_json``: one document for each command when it has ended)."""
    from veil import stateful, wiring

    wiring.own_process()
    asking = screen.is_terminal(sys.stdin) and screen.is_terminal(sys.stderr)
    code = 0
    with stateful.shell(**keywords) as session:
        while not screen.nobody_reads():
            text = _next_command(session, asking=asking)
            if text is None:
                break
            if not text.strip():
                continue
            try:
                code, ending = _one(session, text, as_json=as_json)
            except VeilError as error:
                screen.refuse(error.to_dict(), as_json=as_json)
                code, ending = 125, None
            if ending is not None and not asking:
                return 128 + ending
    if asking:
        sys.stderr.write("\n")
    return code


def _next_command(session: Shell, *, asking: bool) -> str | None:
    """One command; ``None`` at the end of input. An interrupt at the prompt drops the line."""
    lines: list[str] = []
    if sys.stdin is None:  # it was closed before veil began
        return None
    while True:
        try:
            if asking:
                sys.stderr.write("> " if lines else f"{_shown(session.cwd)} $ ")
                sys.stderr.flush()
            line = sys.stdin.buffer.readline()
        except KeyboardInterrupt:
            if not asking:
                raise
            sys.stderr.write("\n")
            lines = []
            continue
        if not line:
            return "\n".join(lines) if lines else None
        lines.append(os.fsdecode(line.replace(b"\0", b"")).removesuffix("\n").removesuffix("\r"))
        if not _goes_on("\n".join(lines)):
            return "\n".join(lines)


#: What bash says of a text that ends too early, in the language of ``LC_ALL=C``.
_TOO_EARLY = ("unexpected end of file", "unexpected EOF", "delimited by end-of-file")
#: Without one of these in it nothing can be open.
_OPENING = re.compile(r"""['"`({]|<<|\b(?:if|for|while|until|case|select)\b|(?:&&|\|)\s*$""")


def _goes_on(text: str) -> bool:
    """Whether the command is not whole: asked of bash, which reads it and runs nothing."""
    import shutil

    import veil

    if (len(text) - len(text.rstrip("\\"))) % 2:
        return True
    bash = shutil.which("bash") if _OPENING.search(text) else None
    if bash is None:
        return False
    told = veil.run([bash, "-n"], stdin=text + "\n", effects=False, no_store=True, env={"LC_ALL": "C"})
    return any(words in told.stderr for words in _TOO_EARLY)


def _one(session: Shell, text: str, *, as_json: bool) -> tuple[int, signal.Signals | None]:
    from veil.cli import human, running

    show = None if as_json else _Live()
    with session.turn(text, {} if show is None else {"on_output": show}) as (asked, carried):
        result, interrupted = running.run(asked, live=False, listener=show)
        session.take(asked, carried, result.record)
    if as_json:
        screen.document(result.to_dict())
    else:
        said = result.to_dict()
        if not result.ok or result.verdict.judgements:
            _, headline = next(iter(human.report(result, interrupted=interrupted.name if interrupted else None)))
            screen.complain(headline)
        if "session_state" in said:
            screen.complain(f"the session is {said['session_state']}")
    return result.exit, interrupted


class _Live:
    """Shows output as it comes, harmless where it is a terminal."""

    def __init__(self) -> None:
        self._safe = {"stdout": screen.is_terminal(sys.stdout), "stderr": screen.is_terminal(sys.stderr)}

    def __call__(self, name: str, data: bytes) -> None:
        screen.write_bytes(screen.harmless(data) if self._safe[name] else data, error=name == "stderr")


def _shown(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path == home or path.startswith(home + "/") else path
