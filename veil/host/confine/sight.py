"""What a sandbox with mounts shows of the folders that it empties, and which sockets it hides."""

from __future__ import annotations

import os
from collections.abc import Iterator

from veil.host.confine.base import Bounds
from veil.host.confine.bounds import system, within

#: What the command calls its temporary folder, whatever that is on the host.
TMP = "/tmp"
#: What a read-only mount leaves open: it speaks of files, and a named pipe is none.
PIPES = "named pipes outside /run and /tmp can be written to as far as their permissions allow"
#: Of what is hidden with /run, these links are where a whole system's programs are found (NixOS).
LINKS = ("/run/current-system", "/run/booted-system", "/run/opengl-driver")
#: Read by the C library to find the resolver's configuration; often a link to below /run.
_RESOLVER = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/localtime")


def emptied() -> list[str]:
    """Where the sockets of daemons and agents lie: folders that are there, empty inside."""
    return [folder for folder in dict.fromkeys(map(system, ("/run", "/var/run"))) if os.path.isdir(folder)]


def resolver(folders: list[str]) -> Iterator[str]:
    """Files in the emptied folders that names are looked up with."""
    for path in dict.fromkeys(os.path.realpath(path) for path in _RESOLVER if os.path.islink(path)):
        if os.path.isfile(path) and any(within(path, folder) for folder in folders):
            yield path


def other_sockets(bounds: Bounds) -> list[str]:
    """Sockets by path that are not granted, where some are: a filter of system calls cannot tell one from another."""
    if bounds.network or not bounds.sockets:
        return []
    granted = {bounds.temp, *bounds.sockets}
    found: dict[str, None] = {}
    with open("/proc/net/unix", "rb") as file:  # noqa: PTH123
        for line in file.read().split(b"\n")[1:]:
            fields = line.split(b" ", 7)
            path = os.path.realpath(os.fsdecode(fields[7])) if len(fields) == 8 and fields[7][:1] == b"/" else ""
            if path and path not in granted and os.path.exists(path):
                found[path] = None
    return list(found)
