"""How long, how fast, and sizes that are the file system's and not the program's. Erased."""

from __future__ import annotations

import re

from veil.cassettes.normalise import Context, Normaliser, erased

_NUMBER = rb"[0-9]+(?:[.,][0-9]+)?(?:e-?[0-9]+)?"

_SIZE = rb"[0-9]+(?:\.[0-9]+)?[KMGT]?"
_LS_TOTAL = re.compile(rb"^total " + _SIZE + rb"$", re.MULTILINE)
_LS_ROW = re.compile(
    rb"^(?P<kind>[bcdlps-])(?P<rights>[rwxsStT-]{9}[.+@]? +[0-9]+ +\S+ +\S+) +(?P<size>" + _SIZE + rb") ", re.MULTILINE
)


def _dir_sizes(text: bytes, context: Context) -> bytes:
    """Sizes of files stay, but not their alignment: the column is as wide as its widest size."""

    def replace(row: re.Match[bytes]) -> bytes:
        size = b"<size>" if row["kind"] == b"d" else row["size"]
        return b"%s%s %s " % (row["kind"], row["rights"], size)

    return _LS_ROW.sub(replace, _LS_TOTAL.sub(b"total <size>", text))


FAMILY = (
    erased(
        "speeds", 1, "bytes per second", "speed", rb"(?<![\w.])" + _NUMBER + rb" ?[kKMGT]?i?[Bb](?:/s|ps)(?![A-Za-z])"
    ),
    erased(
        "durations",
        1,
        "numbers with a unit of time: 0.01s, 12 ms, 3 seconds, 0m0.023s",
        "duration",
        rb"(?<![\w.])[0-9]+m ?[0-9]+(?:[.,][0-9]+)?s(?![A-Za-z0-9])",
        rb"(?<![\w.])"
        + _NUMBER
        + rb" ?(?:ns|us|\xc2\xb5s|\xce\xbcs|ms|s|secs?|seconds?|mins?|minutes?|hours?)(?![A-Za-z0-9_])",
    ),
    Normaliser(
        "dir_sizes",
        1,
        "ls -l: blocks in total and sizes of directories, which the file system chooses",
        True,
        ("size",),
        _dir_sizes,
    ),
)
