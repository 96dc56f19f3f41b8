"""Text for views: what a terminal would have shown at the end, with nothing in it that could drive a terminal.

Stored bytes are never touched; this is only how they are shown. Three things happen, in time linear in the input:

* a line that was painted over (carriage returns, backspaces, erase sequences) becomes what it finally was;
* styling that a reader loses nothing by (colours, cursor moves, hyperlink frames) goes;
* every other control, escape, bidirectional override and invisible tag character is spelt out (``\\x07``, ``\\u202e``),
  so it can neither act nor hide.
"""

from __future__ import annotations

import re

from veil.model.outcome import Stream

# Deleting these leaves a shorter byte string exactly when there is something to do: far faster than a search.
_CONTROL_BYTES = bytes(n for n in range(32) if n not in b"\t\n") + b"\x7f"

_SUSPECT = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, embeddings, overrides, isolates
    r"\u2028\u2029"  # line breaks to some readers but not to a terminal
    r"\ud800-\udfff"  # lone surrogates: cannot be encoded
    r"\U000e0000-\U000e007f"  # tag characters: text that no one can see
)
_suspect = re.compile(f"[{_SUSPECT}]+")

# Styling and movement: colours (m), cursor (A-H, d, e, f, s, u, `, a), erase (J, K, X), scroll (S, T, r), modes (h, l).
# Private or unusual forms such as ``\x1b[>4;2m`` or ``\x1b[6n`` (which makes a terminal answer) do not match.
_REST = (
    r"|\x1b\](?:0|1|2|8);[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\|\x9c)"  # window title, hyperlink frame
    r"|\x1b[()][0AB]|\x1b[78=>]|\x0f"  # character set, save and restore, keypad: what `tput sgr0` and friends send
)
_STYLING = re.compile(r"\x1b\[\??[0-9;:]*[A-HJKSTXabdefhlmrsu`]" + _REST)
_STYLING_THAT_STAYS_PUT = re.compile(r"\x1b\[\??[0-9;:]*[ABEFHJSTXabdefhlmrsu`]" + _REST)  # without C, D, G, K
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
# Painting over: anything that moves within the line or erases in it. Runs count as one token.
_PAINT = re.compile(r"\r+|\x08+|\x1b\[([0-9]{0,9})([CDGK])")
_OVERSTRUCK = re.compile(r"[^\x00-\x1f\x7f-\x9f]\x08(?=[^\x00-\x1f\x7f-\x9f])")


def safe_text(source: Stream | bytes | str) -> str:
    """The text of a stream, made harmless, for a view.

    Args:
        source: a captured stream, bytes (UTF-8, undecodable bytes become U+FFFD) or text.

    Returns:
        Text in which tabs and newlines are the only control characters left. It has as many newlines as the input,
        and one line more for a truncated stream: that line says how many bytes are not kept.
    """
    if isinstance(source, Stream):
        if not source.truncated:
            return safe_text(source.data)
        head, tail = safe_text(source.head), safe_text(source.tail)
        return head + ("" if head.endswith("\n") or not head else "\n") + gap_notice(source.dropped) + "\n" + tail
    if isinstance(source, bytes):
        plain = len(source.translate(None, _CONTROL_BYTES)) == len(source)
        if plain and source.isascii():
            return source.decode("ascii")
        source = source.decode("utf-8", "replace")
    return _safe(source)


def gap_notice(dropped: int) -> str:
    """The line that stands where bytes of a stream were not kept."""
    return f"[... {dropped:,} bytes not kept ...]"


def _safe(text: str) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "\x1b[" in text:
        text = _COLOUR.sub("", text)
    if not _suspect.search(text):
        return text
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text)
    if "\n" not in text:
        return _safe_line(text)
    return "\n".join([_safe_line(line) if _suspect.search(line) else line for line in text.split("\n")])


def _safe_line(line: str) -> str:
    if _PAINT.search(line):
        # First what takes up no columns on a terminal: it must not be painted over, nor shift what is.
        line = _STYLING_THAT_STAYS_PUT.sub("", line)
        line = _final(line) if "\x08" in line or "\x1b" in line else _last_frame(line)
    if "\x1b" in line or "\x0f" in line:
        line = _STYLING.sub("", line)
    return _suspect.sub(_spelt, line)


def _spelt(found: re.Match[str]) -> str:
    return "".join([_SPELLING.get(character) or _spell(character) for character in found.group()])


def _spell(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SPELLING = {chr(code): _spell(chr(code)) for code in range(0xA0)}


def _last_frame(line: str) -> str:
    """The common case, carriage returns only: the last frame, then what longer frames before it left uncovered."""
    shown = ""
    for frame in reversed(line.split("\r")):
        if len(frame) > len(shown):
            shown += frame[len(shown) :]
    return shown


def _final(line: str) -> str:
    """What stands on the line after all painting. One character is one column; each step costs what it writes, so the
    whole is linear: a move past the end adds a single blank, and erasing the front only counts at the end of the line
    (where it empties it)."""
    cells: list[str] = []
    column = at = 0
    for token in _PAINT.finditer(line):
        column = _write(cells, column, line[at : token.start()])
        at = token.end()
        kind, count = token.group(2), token.group(1)
        number = int(count) if count else (0 if kind == "K" else 1)
        if kind is None:
            column = 0 if token.group()[0] == "\r" else max(0, column - len(token.group()))
        elif kind == "G":
            column = min(max(number - 1, 0), len(cells))
        elif kind == "D":
            column = max(0, column - number)
        elif kind == "C":
            if column + number > len(cells):
                column = _write(cells, len(cells), " ")
            else:
                column += number
        elif number == 0:
            del cells[column:]
        elif number == 2 or column >= len(cells):
            cells.clear()
            column = 0
    _write(cells, column, line[at:])
    return "".join(cells)


def _write(cells: list[str], column: int, piece: str) -> int:
    if not piece:
        return column
    end = column + len(piece)
    cells[column:end] = piece
    return end
