"""Scripts that an interpreter is given by name: what stands in them is judged with the words, and looked at again.

An interpreter opens its script itself. So nothing here can keep another content from being in it by then; but an
approval is good for the content that was there, and what was changed until the end is told.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from veil.governed.executables import Executables
from veil.policy.interpreters import files_of, interpreter_of
from veil.policy.launchers import Seen

#: Bytes; of a larger file only its times and its size are compared.
_LARGEST = 64 << 20
#: Longer words are no names of files.
_LONGEST = 4096
_SOURCING = frozenset({".", "source"})


@dataclass(frozen=True)
class Script:
    """Attributes: path: absolute. digest: of its content. state: where the name leads, and the times of the file."""

    path: str
    digest: str
    state: tuple[object, ...]

    def to_dict(self) -> dict[str, str]:
        """The JSON view."""
        return {"path": self.path, "digest": self.digest}


def scripts(programs: Iterable[Seen], cwd: str, executables: Executables) -> tuple[Script, ...]:
    """The scripts that these programs are given, each once."""
    found: dict[str, Script] = {}
    for one in programs:
        places = (1,) if one.argv[0] in _SOURCING and len(one.argv) > 1 else files_of(one.argv, one.program.names)
        interpreter = interpreter_of(one.program.names)
        for at in places:
            script = _script(one.argv[at], cwd, executables)
            if script is not None:
                found[script.path] = script
                if interpreter is not None and interpreter.unknown:
                    break  # the words behind it are its own
    return tuple(found.values())


def changed(script: Script, executables: Executables) -> bool:
    """Whether there is anything else by now."""
    return _script(script.path, "/", executables) != script


def _script(word: str, cwd: str, executables: Executables) -> Script | None:
    if not word or len(word) > _LONGEST or "\0" in word:
        return None
    path = os.path.join(cwd, word)
    try:
        file = os.stat(path)
        if not stat.S_ISREG(file.st_mode):
            return None
        state = executables.state(path)
        digest = "" if file.st_size > _LARGEST else executables.content(path, file)
    except OSError:
        return None
    return Script(path, digest, state)
