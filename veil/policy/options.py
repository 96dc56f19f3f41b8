"""Options and sub-commands compared loosely: what forbids ``rm -rf`` also means ``rm -f -r`` and ``rm -vfr``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veil.policy.names import skeleton

#: Stands in a word for what is known only at run time. No argument of a program can hold it.
OPEN = "\0"


def is_option(word: str) -> bool:
    """Begins with a dash and is more than one."""
    return len(word) > 1 and word[0] == "-"


def has_option(arguments: Sequence[str], option: str) -> bool:
    """Whether an option may be among these words: bundled, abbreviated, with a value glued to it, after ``--`` too."""
    if any(_may_become(word, option) for word in arguments if OPEN in word):
        return True
    if option.startswith("--"):
        return any(_long(word, option) for word in arguments)
    if not is_option(option):
        return option in arguments
    letters = set(option[1:])
    seen: set[str] = set()
    for word in arguments:
        if word == option or word.startswith((option + "=", option)):
            return True
        if is_option(word) and not word.startswith("--"):
            seen.update(word[1:])
    return letters <= seen


def _may_become(word: str, option: str) -> bool:
    known = word.partition(OPEN)[0]
    bundled = is_option(known) and not known.startswith("--") and not option.startswith("--")
    return option.startswith(known) or bundled


def _long(word: str, option: str) -> bool:
    name = word.partition("=")[0]
    # getopt_long takes any beginning of a long option, and some programs one dash for two
    if name.startswith("--"):
        return len(name) > 2 and option.startswith(name)
    return is_option(name) and name[1:] == option[2:]


def leading(words: Sequence[str], start: int = 0) -> Iterator[int]:
    """Places where the sub-command may stand: the first word that is no option, and where an option before it may
    have taken that for its value, the next one too."""
    previous_is_option = False
    for at in range(start, len(words)):
        if is_option(words[at]):
            previous_is_option = words[at] != "--"
            continue
        yield at
        if not previous_is_option:
            return
        previous_is_option = False


def follows(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether ``wanted`` may be what these arguments begin with, options between them or not.

    Words of ``wanted`` that are options may stand anywhere; the others must come in order.
    """
    if any(is_option(want) and not has_option(words, want) for want in wanted):
        return False
    plain = [skeleton(want) for want in wanted if not is_option(want)]
    return _from(words, 0, plain)


def _from(words: Sequence[str], start: int, wanted: Sequence[str]) -> bool:
    if not wanted:
        return True
    for at in leading(words, start):
        known, open_end, _ = words[at].partition(OPEN)
        # what is open may become several words
        if open_end and wanted[0].startswith(skeleton(known)):
            return True
        # many tools take any beginning of a sub-command, and short names for them mostly are one (``npm i``)
        if words[at] and wanted[0].startswith(skeleton(words[at])) and _from(words, at + 1, wanted[1:]):
            return True
    return False
