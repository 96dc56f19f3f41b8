"""What the value of a setting may be, whether it comes as the text of a variable, from TOML or as an argument.

Plain classes: a frozen dataclass costs about a millisecond each at import, and these are on the way of every start.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PREFIX = "VEIL_"


class Kind(abc.ABC):
    """How one kind of value is read. Each reader raises ``ValueError`` for a value that cannot be meant.

    Attributes:
        range: what a variable or a file may say, as an error tells it.
        python_range: what an argument may be.
    """

    range: str
    python_range: str

    @abc.abstractmethod
    def from_text(self, text: str, environ: Mapping[str, str]) -> Any:
        """The value of a variable, blanks around it already dropped."""

    @abc.abstractmethod
    def from_toml(self, value: Any) -> Any:
        """The value of a key in TOML's own types."""

    @abc.abstractmethod
    def from_python(self, value: Any) -> Any:
        """An argument, in the units of the field."""

    def to_text(self, value: Any) -> str:
        """The value as a variable would say it; empty for one that is not set."""
        return "" if value is None else str(value)


class Number(Kind):
    """A whole number of ``unit``; with ``scale=1000`` milliseconds that become seconds. ``none`` lifts the limit."""

    def __init__(self, low: int, high: int, unit: str, *, scale: int = 1, none: bool = False) -> None:
        self.low, self.high, self.scale, self.none = low, high, scale, none
        self.range = f"a whole number of {unit} from {low} to {high}" + (", or none" if none else "")
        if scale == 1:
            self.python_range = self.range.replace("none", "None")
        else:
            self.python_range = f"seconds from {low / scale:g} to {high // scale}" + (", or None" if none else "")

    def from_text(self, text: str, environ: Mapping[str, str]) -> Any:
        if self.none and text.lower() == "none":
            return None
        # int() alone would take "1_000", "+5" and digits of other scripts; 20 digits are past every range.
        if not (text.isascii() and text.isdigit() and len(text) <= 20):
            raise ValueError(text)
        return self._scaled(int(text))

    def from_toml(self, value: Any) -> Any:
        if self.none and value == "none":
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(value)
        return self._scaled(value)

    def from_python(self, value: Any) -> Any:
        if self.none and value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int if self.scale == 1 else (int, float)):
            raise ValueError(value)
        # compared before anything is converted: an int may be past every float, and NaN is in no range
        if not self.low <= value * self.scale <= self.high:
            raise ValueError(value)
        return value if self.scale == 1 else float(value)

    def _scaled(self, number: int) -> int | float:
        if not self.low <= number <= self.high:
            raise ValueError(number)
        return number if self.scale == 1 else number / self.scale

    def to_text(self, value: Any) -> str:
        return "none" if value is None else str(round(value * self.scale))


class Switch(Kind):
    """On or off; ``words`` are further answers that stand for themselves."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.range = ", ".join(["1 (true, yes, on)", "0 (false, no, off)", *words])
        self.python_range = ", ".join(["True", "False", *map(repr, words)])

    def from_text(self, text: str, environ: Mapping[str, str]) -> Any:
        word = text.lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off"):
            return False
        return self.from_python(word)

    def from_toml(self, value: Any) -> Any:
        return self.from_python(value)

    def from_python(self, value: Any) -> Any:
        if isinstance(value, bool) or (isinstance(value, str) and value in self.words):
            return value
        raise ValueError(value)

    def to_text(self, value: Any) -> str:
        return value if isinstance(value, str) else str(int(value))


class Folder(Kind):
    """An absolute folder. ``~/`` is the home of the environment that is read, not of this process."""

    range = "an absolute path, or one that begins with ~/"
    python_range = "an absolute path (str or pathlib.Path), or None"

    def from_text(self, text: str, environ: Mapping[str, str]) -> Any:
        if text == "~" or text.startswith("~/"):
            home = environ.get("HOME", "")
            text = home + text[1:] if home else text  # without a home there is no such folder: "/state" is another one
        if not text.startswith("/") or "\0" in text:
            raise ValueError(text)
        return Path(text)

    def from_toml(self, value: Any) -> Any:
        raise ValueError(value)

    def from_python(self, value: Any) -> Any:
        return None if value is None else self.from_text(_path_text(value), {})


class Program(Kind):
    """A program: an absolute path, or a bare name that is looked up in PATH. Whether it exists is seen at the run."""

    range = "an absolute path, or the name of a program in PATH"
    python_range = "an absolute path, the name of a program in PATH, or None"

    def from_text(self, text: str, environ: Mapping[str, str]) -> Any:
        if not text.strip() or "\0" in text or ("/" in text and not text.startswith("/")):
            raise ValueError(text)
        return text

    def from_toml(self, value: Any) -> Any:
        raise ValueError(value)

    def from_python(self, value: Any) -> Any:
        return None if value is None else self.from_text(_path_text(value), {})


def _path_text(value: Any) -> str:
    if isinstance(value, (str, Path)):
        return os.fspath(value)
    raise ValueError(value)


class Setting:
    """One line of the table.

    Attributes:
        variable: name in the environment.
        key: name in ``[tool.veil]``: the variable in lower case without the prefix.
        meaning: one sentence for the docs.
        in_project: whether a project may set it. A checkout that somebody else wrote must not choose which program
            interprets commands or where records are written.
    """

    def __init__(self, variable: str, kind: Kind, meaning: str, *, in_project: bool = True) -> None:
        self.variable, self.kind, self.meaning, self.in_project = variable, kind, meaning, in_project
        self.key = variable[len(PREFIX) :].lower()
