"""Putting files where a recording has them: all of it or none of it, and only below the root."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.host.applying import SMALL, Put, apply
from veil.model.errors import Refused


def shown(root: Path) -> dict[str, tuple[str, int, bytes]]:
    found: dict[str, tuple[str, int, bytes]] = {}
    for path in sorted(root.rglob("*")):
        name, mode = path.relative_to(root).as_posix(), path.lstat().st_mode & 0o7777
        if path.is_symlink():
            found[name] = ("symlink", 0, os.fsencode(os.readlink(path)))
        elif path.is_dir():
            found[name] = ("dir", mode, b"")
        else:
            found[name] = ("file", mode, path.read_bytes())
    return found


def test_a_file_is_written_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"long before\n")
    file.chmod(0o640)
    inode = file.stat().st_ino
    apply(str(tmp_path), [Put("f", "file", 0o755, b"new\n"), Put("g", "file", 0o604, b"")])
    assert shown(tmp_path) == {"f": ("file", 0o755, b"new\n"), "g": ("file", 0o604, b"")}
    assert file.stat().st_ino == inode


def test_a_new_file_has_the_recorded_mode_under_any_umask_and_nothing_is_lost_where_one_stands(tmp_path: Path) -> None:
    (tmp_path / "stands").write_bytes(b"long before\n")
    modes = {"a": 0o644, "b": 0o666, "c": 0o000, "d": 0o4755}
    umask = os.umask(0o077)
    try:
        apply(
            str(tmp_path),
            [Put(name, "file", mode, b"x", new=True) for name, mode in (*modes.items(), ("stands", 0o600))],
        )
    finally:
        os.umask(umask)
    for name, mode in (*modes.items(), ("stands", 0o600)):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
        (tmp_path / name).chmod(0o600)
        assert (tmp_path / name).read_bytes() == b"x"
    assert sorted(os.listdir(tmp_path)) == sorted([*modes, "stands"])


def test_another_name_of_a_file_keeps_what_it_has(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    outside = tmp_path / "outside"
    outside.write_bytes(b"keep")
    os.link(outside, root / "f")
    apply(str(root), [Put("f", "file", 0o644, b"new")])
    assert (root / "f").read_bytes() == b"new"
    assert outside.read_bytes() == b"keep"


@pytest.mark.parametrize("what", ["file", "symlink"])
def test_what_becomes_a_folder_is_filled(tmp_path: Path, what: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    (outside / "sub").mkdir(parents=True)
    (outside / "sub" / "f").write_bytes(b"keep")
    if what == "file":
        (root / "y").touch()
    else:
        (root / "y").symlink_to(outside)
    with pytest.raises(Refused):
        apply(str(root), [Put("y/sub/f", "file", 0o644, b"x")])
    apply(str(root), [Put("y", "dir", 0o755), Put("y/sub", "dir", 0o755), Put("y/sub/f", "file", 0o644, b"x")])
    assert (root / "y" / "sub" / "f").read_bytes() == b"x"
    assert not (root / "y").is_symlink()
    assert (outside / "sub" / "f").read_bytes() == b"keep"


@pytest.mark.parametrize("what", ["symlink", "dir", "fifo"])
def test_what_stands_there_is_replaced_not_written_through(tmp_path: Path, what: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    outside = tmp_path / "outside"
    outside.write_bytes(b"keep")
    path = root / "f"
    if what == "symlink":
        path.symlink_to(outside)
    elif what == "dir":
        path.mkdir()
        (path / "inside").write_bytes(b"goes")
    else:
        os.mkfifo(path)
    apply(str(root), [Put("f", "file", 0o644, b"new")])
    assert shown(root) == {"f": ("file", 0o644, b"new")}
    assert outside.read_bytes() == b"keep"


@pytest.mark.parametrize("path", ["../f", "/f", "a/../f", "", "link/f"])
def test_nothing_is_put_outside(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(Refused) as caught:
        apply(str(root), [Put("first", "file", 0o644, b"x"), Put(path, "file", 0o644, b"x")])
    assert caught.value.code == "not_applied"
    assert [entry.name for entry in root.iterdir()] == ["link"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["root"]


FULL = """
import resource, signal, sys
from veil.host.applying import Put, apply
from veil.model.errors import Refused
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    files = {"a": b"new", "b": b"x", "c": b"y" * 200}
    apply(sys.argv[1], [Put(name, "file", 0o644, data) for name, data in files.items()])
except Refused as refused:
    print(refused.code)
"""


def test_a_disk_that_refuses_changes_nothing(tmp_path: Path) -> None:
    """The limit for the size of a file stands for a full disk: the third file cannot be written whole."""
    (tmp_path / "a").write_bytes(b"before")
    (tmp_path / "a").chmod(0o444)
    before = shown(tmp_path)
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "not_applied\n"
    assert shown(tmp_path) == before


contents = st.one_of(st.binary(max_size=40), st.just(b"x" * (SMALL + 1)))
names = st.sampled_from(["a", "b", "d/a", "d/e/f"])


@given(
    before=st.dictionaries(names, contents, max_size=4),
    puts=st.dictionaries(names, st.one_of(st.none(), contents), min_size=1, max_size=4),
)
def test_the_tree_is_as_asked_for(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, bytes], puts: dict[str, bytes | None]
) -> None:
    root = tmp_path_factory.mktemp("root")
    for name, data in before.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    apply(
        str(root),
        [Put(name, None) if content is None else Put(name, "file", 0o640, content) for name, content in puts.items()],
    )
    files = {name: row[2] for name, row in shown(root).items() if row[0] == "file"}
    wanted = {**before, **puts}
    assert files == {name: data for name, data in wanted.items() if data is not None}
