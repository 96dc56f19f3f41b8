"""The environment of governed commands: made from a list of names, never inherited."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from veil.governed.binding import digest
from veil.model.errors import BadInput
from veil.policy.names import listed

#: Names that go through from the process's own environment.
PASSED = ("HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LOGNAME", "TMPDIR", "TZ", "USER")
#: Variables by which a program runs something else than its argv says.
_STEERING = tuple(listed("LD_ DYLD_ GIT_ PYTHON PERL RUBY NODE_ JAVA_TOOL BASH_ NPM_CONFIG_ npm_config_"))
_STEERING_NAMES = listed(
    "BASH_ENV ENV IFS PATH SHELL SHELLOPTS PS4 CDPATH PROMPT_COMMAND EDITOR VISUAL PAGER BROWSER LESSOPEN LESSCLOSE "
    "MANPAGER MAKEFLAGS GCONV_PATH LOCPATH CLASSPATH _JAVA_OPTIONS"
)


def constrained(path: Sequence[str], passed: Iterable[str], additions: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a governed command.

    Args:
        path: folders of the safe PATH.
        passed: names taken from this process's environment where they are set.
        additions: what the host sets itself.

    Raises:
        BadInput: a name by which a program could be made to run something else, in ``passed``; ``PATH`` in either.
    """
    environment = {}
    for name in passed:
        if not isinstance(name, str) or name in _STEERING_NAMES or name.startswith(_STEERING):
            raise BadInput("passed", name, "names of variables that choose no program (set those in environment)")
        if name in os.environ:
            environment[name] = os.environ[name]
    for name, value in additions.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name or name == "PATH":
            raise BadInput("environment", name, "names without '=' and NUL, and not PATH (that is path=)")
        if not isinstance(value, str) or "\0" in value:
            raise BadInput(f"environment[{name!r}]", type(value).__name__, "text without NUL")
        environment[name] = value
    environment["PATH"] = os.pathsep.join(path)
    return environment


def digest_of(environment: Mapping[str, str]) -> str:
    """The hash of an environment, whatever the order of its names."""
    return digest(*(word for pair in sorted(environment.items()) for word in pair))
