"""What a shell keeps between two commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Variable:
    """One that is more than a plain exported text. ``text``: the declaration that makes it again. ``flags``: letters of
    ``declare``, such as ``ix``."""

    name: str
    flags: str
    text: str


@dataclass(frozen=True)
class State:
    """Everything that is carried.

    Attributes:
        cwd: as the shell calls it (a link on the way stays one).
        exported: what programs get, by name.
        variables: the others, arrays among them, and those exported ones that are more than text.
        functions, exported_functions: text that defines them, and names.
        aliases: text that defines them.
        options: names of ``set -o`` that are on. switches_on, switches_off: names of ``shopt``.
        umask: ``None`` when it is as it was given. directories: the stack of ``pushd``, the first is cwd.
        arguments: ``$1`` and so on; ``None`` when they could not be seen (left from within a function).
    """

    cwd: str
    exported: Mapping[str, str]
    variables: tuple[Variable, ...] = ()
    functions: str = ""
    exported_functions: tuple[str, ...] = ()
    aliases: str = ""
    options: frozenset[str] = frozenset()
    switches_on: frozenset[str] = frozenset()
    switches_off: frozenset[str] = frozenset()
    umask: int | None = None
    directories: tuple[str, ...] = ()
    arguments: tuple[str, ...] | None = ()


@dataclass
class Carried:
    """What goes into one command of a session and comes out of it.

    Attributes:
        before: the state it begins in; ``None`` for the first one, which begins like any command.
        environment: what the command would get, before anything was taken out of it for this one run.
        gone: the folder it should have begun in, when that is no longer there.
        keep: whether the state afterwards is wanted.
        after: the state it left; ``None`` when it is to stay as it was.
    """

    before: State | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    gone: str | None = None
    keep: bool = True
    after: State | None = field(default=None, repr=False)


#: What every run's environment says of itself (``veil.host.processes``) is not here: the layer takes it away.
#: The environment says these itself, each time anew; what a shell makes of them is not carried.
UNCARRIED = frozenset({"_", "SHLVL"})
#: A shell that finds them in its environment starts as another shell: they are set by its own text instead.
DECIDING = frozenset({"BASH_ENV", "ENV", "POSIXLY_CORRECT"})

_SAID_BY_SHELLS = (
    "BASH BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND BASH_EXECUTION_STRING"
    " BASH_LINENO BASH_MONOSECONDS BASH_SOURCE BASH_SUBSHELL BASH_TRAPSIG BASH_VERSINFO BASH_VERSION BASH_XTRACEFD"
    " COMP_WORDBREAKS COPROC DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD LINENO"
    " PIPESTATUS PPID PWD RANDOM SECONDS SHELLOPTS SRANDOM UID"
)
#: Variables of which a shell says the value itself, or that are about the moment.
MOMENTARY = frozenset(_SAID_BY_SHELLS.split())
