"""What can be wrong with a recording. None of these ever means "there is no recording"."""

from __future__ import annotations

from typing import Any

from veil.model.errors import VeilError


class CassetteDamaged(VeilError, ValueError):
    """The file is torn, foreign or edited so that it no longer says one thing.

    ``facts``: ``file``, ``line`` (1-based), ``problem``.
    """

    code = "cassette_damaged"

    def __init__(self, file: str, line: int, problem: str, **facts: Any) -> None:
        super().__init__(f"{file}:{line}: {problem}", file=file, line=line, problem=problem, **facts)


class CassetteVersion(VeilError):
    """Whole, but written in a format that this version cannot read. ``facts``: file, line, found, known."""

    code = "cassette_version"

    def __init__(self, file: str, found: int, known: int) -> None:
        super().__init__(
            f"{file}:1: recorded in format {found}; this version reads format {known} (record again, or use a version"
            f" that reads format {found})",
            file=file,
            line=1,
            found=found,
            known=known,
        )


class CassetteMiss(VeilError, LookupError):
    """No recorded step answers what was asked, and nothing was run.

    ``facts``: ``reason`` (``never_recorded``, ``already_used``, ``no_cassette_file``, ``other_version``), ``file``,
    ``asked``, ``nearest`` (number of the nearest step or None), ``differs`` (rows of field, asked, recorded),
    ``unused`` (numbers of the steps not used yet).
    """

    code = "cassette_miss"
