"""How long, how fast, and sizes that are the file system's and not the program's. Erased."""

from __future__ import annotations

from veil.cassettes.normalise import erased

_NUMBER = rb"[0-9]+(?:[.,][0-9]+)?(?:e-?[0-9]+)?"

FAMILY = (
    erased("speeds", 1, "bytes per second", "speed", _NUMBER + rb" ?[kKMGT]?i?[Bb](?:/s|ps)(?![A-Za-z])"),
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
    erased(
        "dir_sizes",
        1,
        "ls -l: blocks in total and sizes of directories, which the file system chooses",
        "size",
        rb"^total (?P<value>[0-9]+(?:\.[0-9]+)?[KMGT]?)$",
        rb"^d[rwxsStT-]{9}[.+@]? +[0-9]+ \S+ +\S+ +(?P<value>[0-9]+(?:\.[0-9]+)?[KMGT]?) ",
    ),
)
