"""What is mounted where, by its name: any that a folder can have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, sys
from veil.host.confine.allowances import _file_system
from veil.host.mounts import mounted_below
top, name = os.fsdecode(bytes.fromhex(sys.argv[1])), os.fsdecode(bytes.fromhex(sys.argv[2]))
print(mounted_below(top) == [name], _file_system(f"{top}/{name}"), _file_system(f"{top}/{name}/below"),
      _file_system(top) == "tmpfs")
"""


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
@pytest.mark.parametrize(
    "name",
    [
        b"plain",
        b"a blank",
        b"\\040",
        b"\xe4\xb8\xad \xc3\xa9",
        b"\xff\xfe",
        b"a\nb",
        b"a\rb",
        b"a\x1fb\xc2\xa0c",
        b"#x",
    ],
)
def test_names_of_mount_points(name: bytes, tmp_path: Path) -> None:
    top = os.path.realpath(tmp_path)
    point = os.path.join(os.fsencode(top), name)
    os.mkdir(point)
    script = 'mount -t tmpfs tmpfs "$1" && shift && exec "$@"'
    words = ["unshare", "-Urm", "sh", "-c", script, "sh", point, sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        [*words, os.fsencode(top).hex(), name.hex()],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "True tmpfs tmpfs False\n", done.stderr
