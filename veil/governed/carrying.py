"""Which paths below the workspace an argv hands to its programs, for their labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from veil.governed.paths import Workspace
from veil.governed.text_programs import Reading
from veil.policy.deciding import Judged
from veil.policy.launchers import Seen
from veil.policy.names import listed
from veil.policy.options import OPEN, has_option, is_option

#: Programs that look through the folder they are in when no word names another one: what they look for comes first.
_SEARCHING = listed("rg ag ack fd fdfind")
_GREPS = listed("grep egrep fgrep zgrep ggrep")
_FINDS = listed("find gfind")
_RECURSIVE = ("-r", "-R", "--recursive", "--dereference-recursive", "-d", "--directories")


def paths_of(
    workspace: Workspace, argv: Sequence[str], judged: Judged, cwd: str, programs: Mapping[int, Reading]
) -> list[str]:
    """Paths relative to the workspace, those of folders with a slash at the end.

    Words of the argv and of texts for a shell in it; folders of which a pattern or a variable may name anything; and
    where a program looks by itself.

    Args:
        cwd: absolute. programs: words that are programs of sed or awk, by their index.
    """
    found = dict.fromkeys(workspace.named(argv, cwd, programs))
    known = [word.partition(OPEN)[0] for word in judged.words]
    found.update(dict.fromkeys(workspace.named(("", *known), cwd)))
    for folder in _folders(judged, cwd):
        if workspace.inside(real := os.path.realpath(folder)):
            found["." if real == workspace.root else workspace.relative(real) + "/"] = None
    return list(found)


def _folders(judged: Judged, cwd: str) -> Iterator[str]:
    # what find puts in lies below the folder that it is given, which is a word
    finds = any(one.program.names & _FINDS for one in judged.seen)
    words = [word for one in judged.inside for word in one.argv[1:] if not (finds and word == "./" + OPEN)]
    for word in (*words, *judged.words):
        if OPEN in word:
            yield os.path.join(cwd, word.partition(OPEN)[0].rpartition("/")[0])
    if any(map(_looks_around, (*judged.seen, *judged.inside))):
        yield cwd


def _looks_around(one: Seen) -> bool:
    names, arguments = one.program.names, one.argv[1:]
    if names & _FINDS:
        folder = next((word for word in arguments if word not in ("-L", "-H", "-P")), "-")
        return is_option(folder) or folder in ("(", "!")
    if names & _GREPS and not any(has_option(arguments, option) for option in _RECURSIVE):
        return False
    if "git" in names:
        return arguments[:1] == ("diff",) and "--stat" not in arguments
    return bool(names & (_SEARCHING | _GREPS)) and sum(not is_option(word) for word in arguments) < 2
