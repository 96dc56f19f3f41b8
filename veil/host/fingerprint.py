"""Which machine this is, as far as it bears on what commands write: kernel, libc, shell, locale and the tools named."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from veil.host import programs

#: Tools that answer ``--version`` in one line and do nothing else. Others are known by their bytes: to run a program
#: only to learn its version could do anything; so could one of these names in a project.
_TELL_VERSION = frozenset(
    {"bash", "cargo", "cc", "clang", "g++", "gcc", "git", "make", "node", "perl", "python", "python3", "ruby", "rustc"}
)
#: Bytes of a program beyond which its size stands for it.
_HASHED = 64 * 1024 * 1024
#: Seconds that a tool may take to tell its version.
_PATIENCE = 20


def fingerprint(environment: Mapping[str, str], tools: Iterable[str] = ()) -> dict[str, str]:
    """Name to text, sorted: ``kernel``, ``libc``, ``locale``, ``shell``, and each of ``tools`` that is on PATH.

    Args:
        environment: of the commands.
        tools: names of programs; a name that is not found is left out.
    """
    found = {
        "kernel": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
        "locale": environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or "C",
        "shell": _program("sh", os.path.realpath("/bin/sh")),
    }
    path = environment.get("PATH", os.defpath)
    for name in tools:
        where = None if "/" in name else shutil.which(name, path=path)
        if where is not None:
            found.setdefault(name, _program(name, os.path.realpath(where)))
    return dict(sorted(found.items()))


def _program(name: str, path: str) -> str:
    seen = os.stat(path)
    return _described(name, path, seen.st_size, seen.st_mtime_ns)


@functools.lru_cache(maxsize=512)
def _described(name: str, path: str, size: int, changed: int) -> str:
    """``changed`` makes a program that was replaced be looked at anew."""
    if name in _TELL_VERSION and not programs.of_a_project(path):
        try:
            done = subprocess.run(
                [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return "does not tell its version"
        lines = (done.stdout or done.stderr).decode("utf-8", "replace").strip().splitlines()
        if done.returncode == 0 and lines:
            return lines[0].strip()
    if size > _HASHED:
        return f"{os.path.basename(path)}, {size} bytes"
    try:
        seen = hashlib.blake2b(Path(path).read_bytes(), digest_size=6).hexdigest()
    except OSError:
        return f"{os.path.basename(path)}, {size} bytes"
    return f"{os.path.basename(path)} {seen}"
