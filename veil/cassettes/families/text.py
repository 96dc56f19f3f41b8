"""How text is dressed: line ends and terminal colours."""

from __future__ import annotations

import re

from veil.cassettes.normalise import Context, Normaliser

_ANSI = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC: titles, links
    rb"|\x1b[()][0-9A-Za-z]"  # character sets
    rb"|\x1b[=>78cDEHMNOZ]"
)


def _line_ends(text: bytes, context: Context) -> bytes:
    return text.replace(b"\r\n", b"\n")


def _ansi(text: bytes, context: Context) -> bytes:
    return _ANSI.sub(b"", text) if b"\x1b" in text else text


FAMILY = (
    Normaliser("line_ends", 1, "CRLF becomes LF", True, (), _line_ends),
    Normaliser("ansi", 1, "terminal escape sequences are removed", True, (), _ansi),
)
