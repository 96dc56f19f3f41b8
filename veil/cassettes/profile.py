"""The determinism profile of children: pure data that an executor applies. Named and versioned in every recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from veil.model.errors import BadInput

#: 2001-09-09T01:46:40Z: far from every real date, so that a fixed date is told from a live one at a glance.
FIXED_SECONDS = 1_000_000_000
_FIXED_DATE = f"{FIXED_SECONDS} +0000"

_FIXED: dict[str, str] = {
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "LANG": "C.UTF-8",
    "LANGUAGE": "C",
    "COLUMNS": "80",
    "LINES": "24",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "true",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_DATE": _FIXED_DATE,
    "GIT_COMMITTER_DATE": _FIXED_DATE,
    "PYTHONHASHSEED": "0",
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PERL_HASH_SEED": "0",
    "PERL_PERTURB_KEYS": "0",
    "SOURCE_DATE_EPOCH": str(FIXED_SECONDS),
    "USER": "veil",
    "LOGNAME": "veil",
    "SHELL": "/bin/sh",
}

#: Settings, not orders: what a test sets itself (``git config``, ``-c``) wins over this file, as over anybody's own.
_GIT_CONFIG = """\
[user]
\tname = veil
\temail = veil@example.invalid
[init]
\tdefaultBranch = main
[core]
\tabbrev = 12
\tautocrlf = false
\tfsmonitor = false
[color]
\tui = never
[commit]
\tgpgSign = false
[tag]
\tgpgSign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[advice]
\tdetachedHead = false
"""

#: Where tool managers keep what their launchers on PATH need, below the real home, and the variable that says so.
_MANAGERS = (
    (".pyenv", "PYENV_ROOT"),
    (".cargo", "CARGO_HOME"),
    (".nvm", "NVM_DIR"),
    (".rbenv", "RBENV_ROOT"),
    (".goenv", "GOENV_ROOT"),
    (".volta", "VOLTA_HOME"),
    (".asdf", "ASDF_DATA_DIR"),
)


@dataclass(frozen=True)
class Profile:
    """How children are run so that two runs give the same bytes.

    Attributes:
        name, version: stand in the header of a recording; the version changes whenever anything here does.
        fixed: variables with a constant value.
        passed: names let through from the real environment when set there.
        unrecorded: prefixes let through but neither matched nor recorded (they change no behaviour worth recording).
        home_files: files to write into the fresh home, by path relative to it.
        place: folder below which workspace, home and tmp are made, under the same names every time. ``/var/tmp`` lies
            on disk nearly everywhere, while ``/tmp`` is memory on some; sizes and order of directories follow that.
        file_seconds: modification time (since the epoch) that all files of a fresh workspace, and its folder, get.
        umask: for the child. fixed_addresses: turn address randomisation off where allowed
            (``personality(ADDR_NO_RANDOMIZE)``). empty_stdin: standard input is the null device unless given.
        inherit: the real environment goes through whole (then ``fixed`` is empty).
    """

    name: str
    version: int
    fixed: Mapping[str, str] = field(default_factory=dict)
    passed: frozenset[str] = frozenset()
    unrecorded: tuple[str, ...] = ("COVERAGE_", "COV_CORE_")
    home_files: Mapping[str, str] = field(default_factory=dict)
    place: str | None = None
    file_seconds: int | None = None
    umask: int | None = None
    fixed_addresses: bool = False
    empty_stdin: bool = False
    inherit: bool = False

    def environment(self, base: Mapping[str, str], home: str, tmp: str, also: Iterable[str] = ()) -> dict[str, str]:
        """The whole environment of a child.

        Args:
            base: the real environment.
            home: a fresh folder, always the same path. tmp: likewise, for temporary files.
            also: further names to let through.

        Raises:
            BadInput: ``home`` or ``tmp`` is not absolute.
        """
        for argument, path in (("home", home), ("tmp", tmp)):
            if not path.startswith("/"):
                raise BadInput(argument, path, "an absolute path")
        wanted = self.passed.union(also)
        found = {
            name: value
            for name, value in base.items()
            if not name.startswith("PYTEST_") and (self.inherit or name in wanted or not self.recorded(name))
        }
        if self.inherit:
            return found
        found.update(_managers(base))
        found.update(self.fixed)
        found.update(PATH=tidy_path(base.get("PATH", "")), HOME=home, TMPDIR=tmp)
        found["GIT_CONFIG_GLOBAL"] = str(PurePosixPath(home, ".gitconfig"))
        return found

    def recorded(self, name: str) -> bool:
        """Whether a variable of this name may be part of a step's identity."""
        return not name.startswith(self.unrecorded)


DETERMINISTIC = Profile(
    name="deterministic",
    version=1,
    fixed=_FIXED,
    passed=frozenset({"VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOROOT", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"})
    | {name for _, name in _MANAGERS},
    home_files={".gitconfig": _GIT_CONFIG},
    place="/var/tmp",
    file_seconds=FIXED_SECONDS,
    umask=0o022,
    fixed_addresses=True,
    empty_stdin=True,
)
INHERIT = Profile(name="inherit", version=1, inherit=True)

#: What ``--veil-env`` can name.
PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (DETERMINISTIC, INHERIT)}


def tidy_path(path: str) -> str:
    """PATH without relative, empty and repeated entries (what they mean depends on the folder); never empty."""
    entries = dict.fromkeys(entry.rstrip("/") or "/" for entry in path.split(":") if entry.startswith("/"))
    return ":".join(entries) or "/usr/local/bin:/usr/bin:/bin"


def _managers(base: Mapping[str, str]) -> dict[str, str]:
    """Variables without which launchers on PATH would look for their tools in the fresh home, and find none."""
    home = base.get("HOME", "").rstrip("/")
    found: dict[str, str] = {}
    if not home.startswith("/"):
        return found
    entries = base.get("PATH", "").split(":")
    for folder, name in _MANAGERS:
        place = f"{home}/{folder}"
        if any(entry == place or entry.startswith(place + "/") for entry in entries):
            found[name] = base.get(name, place)
    if "CARGO_HOME" in found:
        found["RUSTUP_HOME"] = base.get("RUSTUP_HOME", f"{home}/.rustup")
    return found
