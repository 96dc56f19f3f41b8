"""Whether the words of an argv stay in the workspace. Looked at when a request is judged, and again when it starts."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from veil.governed.text_programs import Reading
from veil.model.errors import BadInput
from veil.policy.containment import Candidate, candidates, leaving, of_sed, refused
from veil.policy.deciding import Judged
from veil.policy.names import listed, names_of
from veil.policy.options import OPEN

#: Files outside that tell nothing and keep nothing.
_NOTHING = frozenset({"/dev/null"})
#: Its scripts name files in a way of their own. Words as long as this are no name of a program.
_SED = listed("sed gsed ssed minised")
_NAME = 256


@dataclass(frozen=True)
class Escape:
    """A word that leads out. Attributes: word: as it stands in the argv. why: in a few words."""

    word: str
    why: str


class Workspace:
    """The folder that commands are to stay in, held open, so that another one in its place is noticed.

    Args:
        root: an existing folder.
        allowed: absolute paths outside that arguments may name.

    Raises:
        BadInput: ``root`` is missing, empty, or no folder. A boundary without one would contain nothing.
    """

    def __init__(self, root: object, allowed: Sequence[str] = ()) -> None:
        try:
            name = os.fsdecode(root)  # type: ignore[arg-type]  # the TypeError is the check
        except TypeError:
            raise BadInput("workspace", root, "a folder that exists") from None
        if not name or "\0" in name or not os.path.isdir(name):
            raise BadInput("workspace", root, "a folder that exists")
        self.root = os.path.realpath(name)
        if self.root == "/":
            raise BadInput("workspace", root, "a folder below the root of the file system")
        self._allowed = tuple(os.path.realpath(path) for path in allowed)
        self._fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of the folder."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def missing(self) -> str | None:
        """Why the workspace is not what it was when the boundary was made; ``None`` when it is."""
        try:
            there, held = os.stat(self.root), os.fstat(self._fd)
        except OSError as error:
            return error.strerror or "gone"
        if (there.st_dev, there.st_ino) != (held.st_dev, held.st_ino) or not held.st_nlink:
            return "another folder is in its place"
        return None

    def inside(self, real: str) -> bool:
        """Whether a path without links lies in the workspace."""
        return real == self.root or real.startswith(self.root + "/")

    def admits(self, real: str) -> bool:
        """Whether a path without links lies in the workspace, or in a folder outside that may be named."""
        return self.inside(real) or any(real == root or real.startswith(root + "/") for root in self._allowed)

    def relative(self, real: str) -> str:
        """A path inside, from the top of the workspace on; ``.`` for the top itself."""
        return "." if real == self.root else real[len(self.root) + 1 :]

    def folder(self, given: str, cwd: str) -> str:
        """The real path of a folder inside. Raises ``BadInput`` for what is none, ``ValueError`` for one outside."""
        if not given or "\0" in given:
            raise BadInput("cwd", given, "a folder in the workspace")
        real = os.path.realpath(os.path.join(cwd, given))
        if not self.inside(real):
            raise ValueError(real)
        if not os.path.isdir(real):
            raise BadInput("cwd", given, "a folder that exists in the workspace")
        return real

    def escape(self, words: Sequence[str], cwd: str, programs: Mapping[int, Reading] | None = None) -> Escape | None:
        """The first word behind the program that leads out, and how; ``None`` when all stay inside.

        Args:
            programs: words that are programs of sed or awk, by their index, and how those are read.
        """
        read = _reading(words)
        for at, word in enumerate(words[1:], 1):
            reading = None if programs is None else programs.get(at)
            for text in (word,) if reading is None else reading.names:
                why = refused(text)
                if why is not None:
                    return Escape(word, why)
            for candidate in read(word) if reading is None else (*map(Candidate, reading.names), *reading.parts):
                out = self._leads_out(candidate, cwd)
                if out is not None:
                    return Escape(word, out)
        return None

    def escape_of_text(self, words: Sequence[str], judged: Judged, cwd: str) -> Escape | None:
        """The same for what a shell makes of the texts in these words."""
        if not judged.words:
            return None
        home = leaving((one.argv for one in judged.inside), words)
        if home is not None:
            return Escape(*home)
        # what follows is known only at run time
        return self.escape(("", *(word.partition(OPEN)[0] for word in judged.words)), cwd)

    def named(self, words: Sequence[str], cwd: str, programs: Mapping[int, Reading] | None = None) -> list[str]:
        """Every existing path below the workspace that the words behind the program may name, relative to it.

        A folder has a slash at its end, but for ``.``.
        """
        found: dict[str, None] = {}
        read = _reading(words)
        for at, word in enumerate(words[1:], 1):
            more = map(Candidate, programs[at].names if programs and at in programs else ())
            for candidate in (*read(word), *more):
                path = os.path.join(cwd, candidate.text)
                if os.path.lexists(path) and self.inside(real := os.path.realpath(path)):
                    found[self.relative(real) + ("/" if os.path.isdir(real) and real != self.root else "")] = None
        return list(found)

    def _leads_out(self, candidate: Candidate, cwd: str) -> str | None:
        text = candidate.text
        if candidate.unless is not None and not os.path.lexists(os.path.join(cwd, candidate.unless)):
            return None
        path = os.path.join(cwd, text)
        if "/" not in text and text not in ("..", "."):
            try:
                if not stat.S_ISLNK(os.lstat(path).st_mode):
                    return None
            except (OSError, ValueError):
                return None  # nothing of that name is here; a new file would be inside
        # in a text for a shell, what stands behind a blank is looked at by itself
        if text.split(" ", 1)[0] in _NOTHING or (candidate.only_if_there and not _there(path, candidate.or_folder)):
            return None
        real = os.path.realpath(path)
        if self.admits(real):
            return None
        return f"{text!r} leads to {real}, outside the workspace"


def _reading(words: Sequence[str]) -> Callable[[str], Iterator[Candidate]]:
    """How the words of this argv are read."""
    if any(len(word) < _NAME and names_of(word) & _SED for word in words):
        return lambda word: chain(candidates(word), of_sed(word))
    return candidates


def _there(path: str, or_folder: bool) -> bool:
    folder = os.path.dirname(path)
    return os.path.lexists(path) or (or_folder and folder.strip("/") != "" and os.path.isdir(folder))
