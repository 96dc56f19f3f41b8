"""What an expectation can be narrowed to: one stream, one file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pytest_veil.expecting import contents, files
from pytest_veil.expecting.failures import Finding, call_text
from veil import BadInput

if TYPE_CHECKING:
    from pytest_veil.expecting.fluent import Expectation


class StreamExpectation:
    """Checks on one stream. Each returns the expectation it came from."""

    def __init__(self, parent: Expectation, name: contents.StreamName) -> None:
        self._parent = parent
        self._name = name

    @property
    def not_(self) -> StreamExpectation:
        """The next check must not hold."""
        return StreamExpectation(self._parent.not_, self._name)

    def contains(self, *texts: str) -> Expectation:
        """Each text stands in the stream, byte for byte."""
        __tracebackhide__ = True
        return self._each("contains", texts)

    def matches(self, *patterns: str) -> Expectation:
        """Each regular expression is found in it; ``^`` and ``$`` match at every line."""
        __tracebackhide__ = True
        return self._each("matches", patterns)

    def equals(self, text: str | bytes) -> Expectation:
        """It is exactly this, the last newline included."""
        __tracebackhide__ = True
        return self._parent._check(
            call_text(f"{self._name}.equals", text), lambda: [contents.equals(self._parent.result, self._name, text)]
        )

    def is_empty(self) -> Expectation:
        """Not one byte was written to it."""
        __tracebackhide__ = True
        return self._parent._check(
            f"{self._name}.is_empty()", lambda: [self._parent._judged(f"{self._name}_empty", True)]
        )

    def _each(self, word: str, items: tuple[str, ...]) -> Expectation:
        __tracebackhide__ = True
        call, check = f"{self._name}.{word}", f"{self._name}_{word}"
        if not items:
            raise BadInput(call, items, "at least one text")
        return self._parent._check(
            call_text(call, *items), lambda: [self._parent._judged(check, item) for item in items]
        )


class FileExpectation:
    """Checks on what is at a path now. Each returns the expectation it came from."""

    def __init__(self, parent: Expectation, path: str) -> None:
        self._parent = parent
        self._path = path

    @property
    def not_(self) -> FileExpectation:
        """The next check must not hold."""
        return FileExpectation(self._parent.not_, self._path)

    def exists(self) -> Expectation:
        """Something is there; a dangling symlink is something."""
        __tracebackhide__ = True
        return self._check("exists", (), lambda: [files.exists(self._parent.result, self._path, True)])

    def is_absent(self) -> Expectation:
        """Nothing is there."""
        __tracebackhide__ = True
        return self._check("is_absent", (), lambda: [files.exists(self._parent.result, self._path, False)])

    def is_file(self) -> Expectation:
        """A regular file is there, or a symlink to one."""
        __tracebackhide__ = True
        return self._check("is_file", (), lambda: [files.is_kind(self._parent.result, self._path, "file")])

    def is_dir(self) -> Expectation:
        """A folder is there, or a symlink to one."""
        __tracebackhide__ = True
        return self._check("is_dir", (), lambda: [files.is_kind(self._parent.result, self._path, "dir")])

    def is_symlink(self, to: str | None = None) -> Expectation:
        """A symlink is there, whose text is ``to``."""
        __tracebackhide__ = True
        said = () if to is None else (to,)
        return self._check("is_symlink", said, lambda: [files.is_kind(self._parent.result, self._path, "symlink", to)])

    def mode(self, bits: int) -> Expectation:
        """Its permission bits are exactly these, such as ``0o644`` (of a symlink: those of what it leads to)."""
        __tracebackhide__ = True
        shown = f"mode({bits:#o})" if isinstance(bits, int) else call_text("mode", bits)
        ask = lambda: [files.mode(self._parent.result, self._path, bits, self._negated)]  # noqa: E731
        return self._parent._check(f"{self._call}.{shown}", ask)

    def contains(self, *texts: str) -> Expectation:
        """Each text stands in it, byte for byte."""
        __tracebackhide__ = True
        return self._content("contains", texts)

    def matches(self, *patterns: str) -> Expectation:
        """Each regular expression is found in it; ``^`` and ``$`` match at every line."""
        __tracebackhide__ = True
        return self._content("matches", patterns)

    def equals(self, text: str | bytes) -> Expectation:
        """Its content is exactly this."""
        __tracebackhide__ = True
        return self._content("equals", (text,))

    def is_empty(self) -> Expectation:
        """It has no content."""
        __tracebackhide__ = True
        return self._check("is_empty", (), lambda: [self._judged("empty", True)])

    def json(self, subset: Any) -> Expectation:
        """It is one JSON document that holds at least this."""
        __tracebackhide__ = True
        return self._content("json", (subset,))

    @property
    def _call(self) -> str:
        return call_text("file", self._path)

    @property
    def _negated(self) -> bool:
        return self._parent._positive is not None

    def _content(self, word: str, items: tuple[Any, ...]) -> Expectation:
        __tracebackhide__ = True
        if not items:
            raise BadInput(f"file.{word}", items, "at least one text")
        return self._check(word, items, lambda: [self._judged(word, item) for item in items])

    def _judged(self, word: str, item: Any) -> Finding:
        return files.content(self._parent.result, self._path, word, item, self._negated)

    def _check(self, word: str, items: tuple[Any, ...], ask: Callable[[], Iterable[Finding]]) -> Expectation:
        __tracebackhide__ = True
        return self._parent._check(f"{self._call}.{call_text(word, *items)}", ask)
