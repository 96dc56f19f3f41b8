"""What to do about a run in a sandbox: told from what the layer found and from the words of a command that failed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from veil.model.record import Record
from veil.present.text import safe_text

#: Lines of each stream that are read, from the end: that is where a command says why it gave up.
_LINES = 200
#: An absolute path in quotes, or bare up to a colon or a blank.
_PATH = re.compile(r"""(?P<quote>['"`‘])(?P<quoted>/[^'"`’]+)['"`’]|(?<![\w/.])(?P<bare>/[^\s:,;)'"]+)""")
#: A shell begins with its own name.
_SHELL = re.compile(r"^/\S+: (line \d+|\d+): ")
_READ_ONLY = re.compile(r"read-only file ?system|EROFS|errno 30\b", re.IGNORECASE)
_DENIED = re.compile(r"permission denied|EACCES|errno 13\b", re.IGNORECASE)
_GONE = re.compile(r"no such file or directory|ENOENT|cannot stat|errno 2\b", re.IGNORECASE)
_NETWORK = re.compile(
    r"network is unreachable|no route to host|unknown host|getaddrinfo|failed to establish a new connection"
    r"|(could ?n[o']t|unable to|failed to) resolve|temporary failure (in name )?resolution|temporary failure resolving"
    r"|name or service not known|nodename nor servname|name resolution|cannot assign requested address"
    r"|could ?n[o']t connect to server|EAI_AGAIN|ENETUNREACH|ENOTFOUND"
    r"|(operation not permitted|EPERM)[^\n]{0,60}(connect|bind)"
    r"|connect[^\n]{0,80}(operation not permitted|EPERM)",
    re.IGNORECASE,
)
_FORBIDDEN = re.compile(r"operation not permitted|EPERM|errno 1\b", re.IGNORECASE)
#: Lines of a traceback that belong to one error.
_ABOVE = 8
#: Backends that deny by a rule, in the words of a missing permission.
_BY_RULES = ("landlock", "seatbelt")
#: What runs programs in a repository.
_GIT = re.compile(r"(?<![\w.])\.git/(config|hooks)\b")
#: Folders that are never writable as a whole, and those in which nothing is.
_NEVER_WHOLE, _NEVER = ("", "/etc", "/usr", "/dev", "/run", "/var/run", "/tmp"), ("/proc/", "/sys/")
#: A sandbox with mounts puts a folder of its own there.
_PRIVATE = ("/tmp/", "/run/", "/var/run/")


def urgent(record: Record) -> str | None:
    """What has to be known whatever else there is to say."""
    notes = record.observation.findings.notes
    previewed = notes.get("preview_git")
    changed = _told(record).get("git_changed") or previewed
    if not changed:
        return None
    shown = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "")
    did, when = ("would change", "it is applied") if previewed else ("changed", "anybody uses git here")
    return (
        f"it {did} {shown}, from which git runs programs: look at it before {when}; "
        "protect_git=True in the sandbox keeps it as it is"
    )


def advice(record: Record) -> str | None:
    """Which grant would help a command that failed because of its sandbox, as far as it can be told."""
    limit = record.observation.findings.notes.get("limit")
    if limit is not None:
        return f"the sandbox's {limit} ended it; raise it when the command is meant to use that much"
    told, outcome = _told(record), record.observation.outcome
    if not told or outcome.ok:
        return None
    lines = list(_lines(record))
    for at, line in enumerate(lines):
        # a traceback names the call some lines above the error; these are read from the end
        unable = _FORBIDDEN.search(line) and any("socket" in above for above in lines[at : at + _ABOVE])
        found = _grant(line, record, told, sockets=bool(unable))
        if found is not None:
            return found
    return None


def _told(record: Record) -> Mapping[str, Any]:
    told = record.observation.findings.notes.get("sandbox")
    return told if isinstance(told, Mapping) else {}


def _lines(record: Record) -> Iterator[str]:
    outcome = record.observation.outcome
    if outcome.spawn_error is not None:
        yield outcome.spawn_error
    for stream in (outcome.stderr, outcome.stdout):
        if not stream.binary:
            yield from (line[:1000] for line in reversed(safe_text(stream).split("\n")[-_LINES:]))


def _grant(line: str, record: Record, told: Mapping[str, Any], *, sockets: bool) -> str | None:
    if told.get("network") is False and (sockets or _NETWORK.search(line)):
        return "the sandbox has no network (network=False); network=True gives it, unix_sockets one socket by its path"
    if sockets and told.get("backend") == "landlock":
        return "the sandbox denies unix sockets; unix_sockets grants them, and a backend with namespaces needs no grant"
    path = _path(line)
    outside = path is not None and not f"{path}/".startswith(record.cwd.rstrip("/") + "/")
    if _READ_ONLY.search(line):
        if path is not None and outside:
            return _writable(f"the sandbox keeps {path} read-only", path)
        if _GIT.search(line):
            return (
                "the sandbox keeps hooks and configuration of a repository as they are (protect_git); without it the "
                "command may change those in its folder"
            )
        return "the sandbox keeps a place read-only; name its folder in writable to let the command write there"
    if told.get("foreign_cwd") is not None and not outside and _DENIED.search(line):
        return (
            f"the working folder belongs to user {told['foreign_cwd']}, and in a sandbox root has no rights over the "
            "files of others; run it as that user"
        )
    if path is None or not outside:
        return None
    if _DENIED.search(line):
        return _denied(path, told, record)
    if path.startswith(_PRIVATE) and _GONE.search(line):
        folder = path.rpartition("/")[0]
        named = path if folder in _NEVER_WHOLE else f"the folder of {path}"
        return f"the sandbox has a /{path.split('/')[1]} of its own; name {named} in writable to have it there"
    return None


def _denied(path: str, told: Mapping[str, Any], record: Record) -> str | None:
    if told.get("unreadable"):
        return f"{path} may be kept from the command; take it out of deny_read (or protect_secrets) if it is to be read"
    # whoever confines by mounts says that they are read-only: the file's own mode denies this, as it does a start
    if told.get("backend") in _BY_RULES and record.observation.outcome.spawn_error is None:
        return _writable(f"{path} is outside of what may be written to", path)
    return None


def _writable(said: str, path: str) -> str:
    """With the grant that would help, where there is one."""
    folder = path.rstrip("/").rpartition("/")[0]
    if f"{path}/".startswith(_NEVER):
        return f"{said}, and no option grants it"
    if folder in _NEVER_WHOLE:
        return (
            f"{said}, and no option grants all of {folder or '/'}; name it alone in writable if it is there, or let "
            "the command write elsewhere"
        )
    return f"{said}; name its folder in writable to let the command write there"


def _path(line: str) -> str | None:
    """The last absolute path of a line: programs name themselves first."""
    found = None
    for match in _PATH.finditer(_SHELL.sub("", line)):
        found = match["quoted"] or match["bare"]
    return found
