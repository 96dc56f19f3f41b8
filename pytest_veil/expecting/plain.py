"""Text that may stand in a message: on one line, with nothing in it that a terminal would obey or hide."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from pytest_veil.expecting.seams import scrubbed

if TYPE_CHECKING:
    from veil import Result

#: Characters of a command that is shown whole.
COMMAND = 4_000
#: Lines of a command that stay lines; a longer one is spelled on a single line.
COMMAND_LINES = 8

# A shell text made of these alone means the same behind ``cd DIR &&`` and in any shell.
_SIMPLE = re.compile(r"[A-Za-z0-9_@%+=:,./ '\"-]+")
_SPELLED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def plain(text: str) -> str:
    """The text on one line; what is not printable is spelled (``\\x1b``, ``\\u202e``, ``\\n``).

    Secrets go here already: half a secret, left by a later cut, would not be known as one.
    """
    text = scrubbed(text)
    if text.isprintable():
        return text
    return "".join([sign if sign.isprintable() else _spelled(sign) for sign in text])


def _spelled(sign: str) -> str:
    code = ord(sign)
    if code < 0x100:
        return _SPELLED.get(sign, f"\\x{code:02x}")
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # a byte that is not UTF-8
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clipped(text: str, most: int) -> str:
    """At most ``most`` characters; a cut is shown by its last three."""
    return text if len(text) <= most else text[: max(0, most - 3)] + "..."


def count(number: int, what: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def short_command(result: Result) -> str:
    """A few words of the command, for a first line."""
    return clipped(plain(result.command.strip()), 60)


def pasteable(result: Result) -> list[str]:
    """Lines that, pasted into a shell, do what the run did in the folder where it did it.

    A shell text with anything but plain words goes to its own shell as one argument: behind ``cd DIR &&`` an ``a || b``
    would mean something else, and an ``exit`` would end the reader's shell.
    """
    text = result.record.text
    if text is not None and _SIMPLE.fullmatch(text):
        command = text
    else:
        command = " ".join(_quoted(word) for word in result.argv)
    command = f"cd {_quoted(result.cwd)} && {command}"
    command = scrubbed(command)
    if len(command) > COMMAND:
        more = len(command) - COMMAND
        command = f"{command[:COMMAND]} [... {count(more, 'more character')}; the whole is in record {result.id}]"
    return command.split("\n")


def _quoted(word: str) -> str:
    lines = word.split("\n")
    if len(lines) <= COMMAND_LINES and all(line.isprintable() for line in lines):
        return shlex.quote(word)
    spelled = "".join([_ansi(sign) for sign in word])
    return f"$'{spelled}'"


def _ansi(sign: str) -> str:
    """One character within ``$'...'``."""
    if sign in "\\'":
        return "\\" + sign
    return sign if sign.isprintable() else _octal_or_unicode(sign)


def _octal_or_unicode(sign: str) -> str:
    # \\x takes as many hex digits as follow in some shells, octal always three
    code = ord(sign)
    if sign in _SPELLED:
        return _SPELLED[sign]
    if code < 0x80:
        return f"\\{code:03o}"
    return "".join(f"\\{byte:03o}" for byte in sign.encode("utf-8", "surrogateescape"))
