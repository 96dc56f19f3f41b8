"""Raw git: six exact reads at the top of the workspace, hardened, and nothing else (command-execution reference).

A repository is data from somewhere. Its configuration can name programs, so each of these runs without pager, hooks,
file system monitor, external diff, text conversion, content filters, lazy fetches and all else that starts one.
"""

from __future__ import annotations

from collections.abc import Sequence

from veil.policy.launchers import Seen
from veil.policy.names import names_of, skeleton
from veil.policy.programs import Lookup, Program

#: The reads, word for word.
READS = (
    ("git", "status"),
    ("git", "status", "--short"),
    ("git", "branch", "--show-current"),
    ("git", "rev-parse", "--show-toplevel"),
    ("git", "diff"),
    ("git", "diff", "--stat"),
)
#: Programs that are git by another name, or a door to all of it.
_ALSO = frozenset({"scalar", "gitk", "git", "hub"})
#: Tools that are never git.
_OTHERS = ("make", "cc", "python3", "sh")


def is_git(seen: Seen, same: bool) -> bool:
    """Whether a program is git. ``same``: it is the very file that git is."""
    return same or any(name in _ALSO or name.startswith("git-") for name in seen.program.names)


def is_copy(program: Program, git: Program, lookup: Lookup) -> bool:
    """Whether a program that the host has under another name in the safe PATH is git.

    One file may stand behind all developer tools of a machine; then the same content tells nothing.
    """
    if git.digest is None or program.digest != git.digest or "git" not in names_of(git.real or ""):
        return False
    return all(lookup(word).digest != git.digest for word in _OTHERS)


def refusal(argv: Sequence[str], cwd: str) -> str | None:
    """Why this argv, which starts git, is refused; ``None`` for one of the six reads at the top of the workspace."""
    words = tuple(argv)
    if words not in READS:
        reads = "; ".join(" ".join(read) for read in READS)
        if words and words[0] != "git" and skeleton(words[0]).endswith("git"):
            return f"git is only run as 'git', found in the safe PATH, and only for: {reads}"
        return f"raw git is refused but for exactly these: {reads}"
    return None if cwd == "." else f"git is only run at the top of the workspace, not in {cwd}"


#: Settings that could start a program or leave the machine, at their harmless value.
HARDENED = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=",
    "core.pager=cat",
    "core.askPass=",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.editor=false",
    "core.alternateRefsCommand=true",
    "credential.helper=",
    "diff.external=",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "status.submoduleSummary=false",
    "safe.bareRepository=explicit",
)
#: Variables that git gets on top of the constrained environment.
ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_PAGER": "cat",
    "GIT_ASKPASS": "",
    "GIT_SSH_COMMAND": "false",
}
_MORE = {
    "status": ("--ignore-submodules=dirty",),
    "diff": ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"),
}


def hardened(argv: Sequence[str], drivers: Sequence[str]) -> tuple[str, ...]:
    """The argv that is really run for one of the reads.

    Args:
        drivers: sections of content filters that the repository's configuration names, such as ``filter.lfs``.
    """
    words = [argv[0], "--no-pager"]
    blanked = [f"{driver}.{end}" for driver in drivers for end in ("clean=", "smudge=", "process=", "required=false")]
    for setting in (*HARDENED, *blanked):
        words += ("-c", setting)
    return (*words, argv[1], *_MORE.get(argv[1], ()), *argv[2:])
