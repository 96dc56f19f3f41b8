"""Writing to the caller: any text in any locale, a reader that went away, and colours where a terminal takes them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

#: Whether a reader of standard output has gone away.
_left = [False]
#: A line of the human view: its style (a word of ``_STYLES``) and its text.
Line = tuple[str, str]

_STYLES = {
    "good": "bold green",
    "bad": "bold red",
    "warn": "yellow",
    "head": "dim",
    "name": "cyan",
    "text": "",
}


class CannotWrite(Exception):
    """Standard output takes no more (a full disk, say); the message says why."""


def prepare() -> None:
    """Make both streams take any text: what the locale cannot write, and lone surrogates, are spelt out."""
    # where the caller closed one, ``main`` has opened its descriptor on nothing; they live as long as the process
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether lines can be painted over and coloured there; ``None``: it was closed before Python began."""
    if stream is None:
        return False
    try:
        return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    except ValueError:  # closed
        return False


def reader_left(descriptor: int = 1) -> None:
    """Nobody reads there any more (``| head``): later writes go nowhere, and nothing complains at exit."""
    if descriptor == 1:
        _left[0] = True
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def write(text: str) -> None:
    """Text on standard output. A reader that went away is no error. Raises ``CannotWrite``."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        reader_left()
    except OSError as error:
        raise _cannot_write(1, error) from error


def write_bytes(data: bytes, *, error: bool = False) -> None:
    """Bytes as they are on standard output or standard error. Raises ``CannotWrite``."""
    stream = sys.stderr if error else sys.stdout
    try:
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()
    except BrokenPipeError:
        reader_left(2 if error else 1)
    except OSError as failed:
        raise _cannot_write(2 if error else 1, failed) from failed


def _cannot_write(descriptor: int, error: OSError) -> CannotWrite:
    reader_left(descriptor)  # what is still in the buffer would fail once more at exit
    return CannotWrite(f"standard {'output' if descriptor == 1 else 'error'} cannot be written: {error.strerror}")


def document(data: Any) -> None:
    """One JSON document on a line of its own."""
    text = json.dumps(data, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:  # lone surrogates, or a locale without these letters: JSON has its own spelling
        text = json.dumps(data)
    write(text + "\n")


def show(lines: Iterable[Line]) -> None:
    """The human view on standard output, coloured where it is a terminal that wants colours.

    What is not a line of text (whose maker answers for it) may hold names of files: none of them can drive a terminal.
    """
    from veil.present.text import safe_text

    lines = [(style, text if style == "text" else safe_text(text).replace("\n", "\\n")) for style, text in lines]
    if not is_terminal(sys.stdout) or os.environ.get("NO_COLOR"):
        write("".join(f"{text}\n" for _, text in lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    try:
        for style, text in lines:
            console.print(Text(text, _STYLES[style]), soft_wrap=True)
    except BrokenPipeError:
        reader_left()


def complain(message: str) -> None:
    """A message on standard error."""
    from veil.present.text import safe_text

    try:
        sys.stderr.write(f"veil: {safe_text(message)}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        reader_left(2)


def refuse(error: Mapping[str, Any], *, as_json: bool) -> None:
    """An error that veil raised on purpose: for people on standard error, as a document on standard output."""
    if as_json:
        document(dict(error))
    else:
        complain(str(error["message"]))


def harmless(data: bytes) -> bytes:
    """Bytes of a command as text that cannot drive a terminal."""
    from veil.present.text import safe_text

    return safe_text(data).encode("utf-8")


def nobody_reads() -> bool:
    """Whether a reader of standard output has gone away."""
    return _left[0]
