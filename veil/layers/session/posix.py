"""The same for a POSIX ``sh`` (dash, ash, a bash called sh): what it can tell of itself.

There is no file that it reads first, so one command is put in front of the command's own text, on its
first line (so that aliases are known from its second line on). It has no arrays and cannot print its functions; a trap
on EXIT of the command's own takes the place of the one that tells.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

from veil.layers.session.bash import END, MARK
from veil.layers.session.quoting import decoded, entries
from veil.layers.session.state import MOMENTARY, UNCARRIED, State, Variable

_OWN = MOMENTARY | UNCARRIED | {"OPTIND", "POSIXLY_CORRECT"}
_FIXED = frozenset({"noexec", "onecmd", "privileged", "restricted", "interactive", "posix", "stdin", "nolog", "debug"})
_USUAL = frozenset({"braceexpand", "hashall", "interactive-comments"})
_LOUD = ("verbose", "xtrace")
_SET = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)
_EXPORTED = re.compile(r"(?:export|declare -\S+) ([A-Za-z_]\w*)(?:=(.*))?\Z", re.DOTALL)

#: No function and no alias may stand for one of these: functions are not carried, and ``unset`` cannot be one.
_DUMP = r"""\unset -f printf alias umask pwd; \trap '' XFSZ; \printf '\0veil\0'
\set +o; \printf '\0'
\set +exvu
\alias; \printf '\0'
\umask; \printf '\0'
\pwd; \printf '\0'
\printf '%s\0' "$#" "$@"
\export -p; \printf '\0'
\set; \printf '\0end\0'; \trap - XFSZ"""


def dump(out: int) -> str:
    """Tells the state to the descriptor ``out``; by its name, since dash knows descriptors of one digit only."""
    return f"{{ {_DUMP}\n}} 2>/dev/null >>/dev/fd/{out}"


def shown(out: int) -> tuple[str, ...]:
    """See ``veil.layers.session.bash.shown``: some of these shells are a bash."""
    return (dump(out) + "\n",)


def reading(into: int) -> str:
    """What stands in front of the command."""
    return f". /dev/fd/{into}; "


def beginning(state: State | None, env: Mapping[str, str], out: int, moved: Mapping[str, str]) -> str:
    """The file that is read first; see ``veil.layers.session.bash.beginning``."""
    lines = [f"printf 'begun\\0' >>/dev/fd/{out}", "{ :"]
    steps: list[tuple[str, str]] = []
    if state is not None:
        lines += [v.text for v in state.variables if v.name not in env]
        if state.aliases:
            steps.append(("aliases", "eval " + shlex.quote(state.aliases)))
        if state.umask is not None:
            steps.append(("umask", f"umask {state.umask:04o}"))
        if state.arguments:
            steps.append(("arguments", f"set -- {shlex.join(state.arguments)}"))
    steps += [("variables", f"export {name}={shlex.quote(moved[name])}") for name in sorted(moved)]
    lines += [f"{step} || {{ printf 'lost\\0{part}\\0' >>/dev/fd/{out}; exit 125; }}" for part, step in steps]
    lines.append("} 2>/dev/null")
    if state is None:
        lines.append(dump(out))
    lines.append(f"printf 'ready\\0' >>/dev/fd/{out}")
    lines.append(f"trap {shlex.quote(dump(out))} EXIT")
    if state is not None:
        wanted = [("-o", name) for name in sorted(state.options - _USUAL) if name not in _LOUD]
        wanted += [("-o", name) for name in _LOUD if name in state.options]
        if wanted:
            lines.append(f"{{ set {' '.join(' '.join(pair) for pair in wanted)}; }} 2>/dev/null")
    return "\n".join(lines) + "\n"


def told(data: bytes) -> State | None:
    """The state in the last telling of ``data``; ``None`` when there is no whole one."""
    _, mark, rest = data.rpartition(MARK)
    if not mark or not rest.endswith(END):
        return None
    parts = os.fsdecode(rest).split("\0")
    try:
        return _state(parts)
    except (ValueError, IndexError):  # the command wrote to the descriptor as well
        return None


def _state(parts: list[str]) -> State:
    options, aliases, umask, folder = parts[:4]
    many = int(parts[4])
    arguments = tuple(parts[5 : 5 + many])
    exports, everything, *end = parts[5 + many :]
    if end != ["end", ""] or not folder.startswith("/"):
        raise ValueError("not what a shell told")
    exported: dict[str, str] = {}
    for entry in entries(exports):
        found = _EXPORTED.match(entry)
        if found is not None and found[2] is not None and found[1] not in _OWN:
            exported[found[1]] = decoded(found[2])
    variables = []
    for entry in entries(everything):
        found = _SET.match(entry)
        if found is not None and found[1] not in exported and found[1] not in _OWN:
            variables.append(Variable(found[1], "-", entry))
    lines = (line if line.startswith("alias ") else f"alias {line}" for line in entries(aliases))
    return State(
        cwd=folder.removesuffix("\n"),
        exported=exported,
        variables=tuple(variables),
        aliases="\n".join(lines),
        options=frozenset(_on(options)) - _FIXED,
        umask=int(umask, 8),
        arguments=arguments,
    )


def _on(text: str) -> list[str]:
    return [line.split()[2] for line in text.splitlines() if line.startswith("set -o ")]
