"""Folders that differ from run to run (workspace, home, temporary folder) stand in a recording as tokens, reversibly.

``<root>`` in a cassette is the workspace wherever it is today: ``hide`` before writing, ``show`` when replaying. Text
that already looks like such a token gets a ``=`` (``<=root>``), so that ``show(hide(x)) == x`` for every ``x``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from veil.model.errors import BadInput

#: What text with NUL between its parts (``find -print0``) does not hold.
_CONTROLS = re.compile(rb"[\x01-\x06\x0e-\x1a\x1c-\x1f]")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def _binary(data: bytes) -> bool:
    """Formats with lengths in them, which a token of another length than the path would break. Tokens and paths have no
    control characters, so the answer is the same before and after."""
    return b"\0" in data and _CONTROLS.search(data) is not None


@dataclass(frozen=True)
class Roots:
    """Attributes: folders: pairs of token name (``root``, ``home``, ``tmp``) and absolute path. One name may come with
    several paths (a path and what it resolves to); ``show`` gives back the first."""

    folders: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        for name, path in self.folders:
            if not _NAME.fullmatch(name):
                raise BadInput("folders", name, "lower-case token names")
            if not path.startswith("/") or path.rstrip("/") == "":
                raise BadInput("folders", path, "absolute paths below /")

    @classmethod
    def of(cls, folders: Mapping[str, str]) -> Roots:
        """From a mapping of token name to path."""
        return cls(tuple(folders.items()))

    @cached_property
    def _paths(self) -> dict[bytes, bytes]:
        """Path to token; where one path has two names the first wins."""
        found: dict[bytes, bytes] = {}
        for name, path in self.folders:
            found.setdefault(path.rstrip("/").encode("utf-8", "surrogateescape"), name.encode())
        return found

    @cached_property
    def _tokens(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for name, path in self.folders:
            found.setdefault(name.encode(), path.rstrip("/").encode("utf-8", "surrogateescape"))
        return found

    @cached_property
    def _hidden(self) -> re.Pattern[bytes]:
        """Literal tokens, and the paths (longest first) where a path could end.

        ``/tmp/w`` is not in ``/tmp/w2`` nor in ``/tmp/w.bak``; a path of one or two parts is also not in the middle of
        a longer one (``/tmp`` in ``/var/tmp``).
        """
        literal = rb"<(?P<more>=*(?:" + b"|".join(map(re.escape, self._tokens)) + rb")>)"
        paths = [
            (b"" if path.count(b"/") > 2 else rb"(?<![A-Za-z0-9_.~-])") + re.escape(path)
            for path in sorted(self._paths, key=len, reverse=True)
        ]
        end = rb"(?![A-Za-z0-9_~-]|\.[A-Za-z0-9_])"
        return re.compile(literal + rb"|(?P<path>" + b"|".join(paths) + rb")" + end)

    @cached_property
    def _shown(self) -> re.Pattern[bytes]:
        return re.compile(rb"<(=*)(" + b"|".join(map(re.escape, self._tokens)) + rb")>")

    def hide(self, data: bytes) -> bytes:
        """``data`` with tokens for folders; binary data stays as it is."""
        # to look for texts is many times as fast as to look for a pattern
        if not self.folders or not (b"<" in data or any(path in data for path in self._paths)) or _binary(data):
            return data
        return self._hidden.sub(
            lambda m: b"<" + self._paths[m["path"]] + b">" if m["more"] is None else b"<=" + m["more"], data
        )

    def show(self, data: bytes) -> bytes:
        """``data`` with today's folders for tokens; binary data stays as it is."""
        if not self.folders or b"<" not in data or _binary(data):
            return data
        return self._shown.sub(lambda m: b"<" + m[0][2:] if m[1] else self._tokens[m[2]], data)

    def hide_text(self, text: str) -> str:
        """``hide`` for text with surrogate escapes."""
        return self.hide(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def show_text(self, text: str) -> str:
        """``show`` for text with surrogate escapes."""
        return self.show(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
