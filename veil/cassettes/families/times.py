"""Points in time, as programs print them. Erased: when it was says nothing about what was done."""

from __future__ import annotations

from veil.cassettes.normalise import erased

_DAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK = rb"[0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
_ZONE = rb"(?: ?(?:Z|UTC|GMT|[A-Z]{3,4}|[+-][0-9]{2}:?[0-9]{2})(?![A-Za-z0-9]))?"
_YEAR = rb"(?:19|20)[0-9]{2}"

FAMILY = (
    erased(
        "human_times",
        2,
        "dates as date(1), git, HTTP, mail, C compilers and logs of web servers write them",
        "time",
        rb"\b" + _DAY + rb" " + _MONTH + rb" [ 0-9]?[0-9] " + _CLOCK + rb"(?: [AP]M)?" + _ZONE
        + rb"(?: " + _YEAR + rb")?(?: [+-][0-9]{4})?(?![A-Za-z0-9])",
        rb"\b" + _DAY + rb",? [ 0-9]?[0-9] " + _MONTH + rb" " + _YEAR + rb" " + _CLOCK + rb"(?: [AP]M)?" + _ZONE,
        rb"\b" + _MONTH + rb" [ 0-9][0-9] " + _YEAR + rb" " + _CLOCK,
        rb"(?<![\w/.-])[0-3][0-9]/" + _MONTH + rb"/" + _YEAR + rb"[: ]" + _CLOCK + rb"(?: [+-][0-9]{4})?(?![\w:])",
    ),
    erased(
        "iso_times",
        1,
        "2001-09-09T01:46:40Z and its relatives, with or without fraction and zone",
        "time",
        rb"(?<![0-9-])" + _YEAR + rb"-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9]"
        rb"(?::[0-6][0-9](?:[.,][0-9]+)?)?(?: ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?(?![0-9])",
    ),
    erased(
        "ls_times",
        1,
        "the time column of ls -l, tar -tv and the like",
        "time",
        rb"(?<=[0-9] )(?P<value>" + _MONTH + rb" [ 0-9][0-9] (?:[0-2][0-9]:[0-5][0-9]| " + _YEAR + rb"))(?= )",
    ),
    erased("iso_dates", 1, "2001-09-09 alone", "time",
           rb"(?<![\w.-])" + _YEAR + rb"-[01][0-9]-[0-3][0-9](?![\w-])"),
    erased("clock_times", 1, "01:46:40 alone, with or without fraction", "time",
           rb"(?<![0-9:.])" + _CLOCK + rb"(?:[.,][0-9]+)?(?![0-9:])"),
    erased(
        "epoch_times",
        1,
        "seconds since 1970 from 2017 to 2033, also with a fraction or in ms, us, ns",
        "time",
        rb"(?<![\w.-])1[5-9][0-9]{8}(?:[0-9]{3}|[0-9]{6}|[0-9]{9})?(?:\.[0-9]+)?(?![\w-]|\.[0-9])",
    ),
)  # fmt: skip
