"""What a recording asks for is data that others wrote: nothing outside the root is touched, and all is taken back."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.host.applying import Put, apply
from veil.model.errors import Refused
from veil.model.outcome import Kind


def shown(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Type and mode, number of names, and content of all that is below."""
    found: dict[str, tuple[int, int, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        row, data = path.lstat(), b""
        if path.is_symlink():
            data = os.fsencode(os.readlink(path))
        elif path.is_file():
            data = path.read_bytes()
        found[str(path.relative_to(folder))] = (row.st_mode, 0 if path.is_dir() else row.st_nlink, data)
    return found


def places(tmp_path: Path) -> tuple[Path, Path]:
    """A workspace, and a folder beside it with something in it."""
    root, out = tmp_path / "root", tmp_path / "out"
    root.mkdir()
    (out / "sub").mkdir(parents=True, mode=0o750)
    for name in ("x", "sub/x"):
        (out / name).write_bytes(b"keep")
        (out / name).chmod(0o640)
    return root, out


def test_what_was_behind_a_link_that_becomes_a_folder_stays(tmp_path: Path) -> None:
    root, out = places(tmp_path)
    before = shown(out)
    (root / "a").symlink_to(out)
    apply(
        str(root),
        [Put("a", "dir", 0o755), Put("a/x", None), Put("a/sub", None), Put("a/sub/x", None), Put("a/y", "file", 0o644)],
    )
    assert shown(out) == before
    assert shown(root) == {"a": (stat.S_IFDIR | 0o755, 0, b"")}


@pytest.mark.parametrize(
    "rows",
    [
        ["a link", "a/y file"],
        ["a/y file", "a link"],
        ["a dir", "a link", "a/y file"],
        ["a link", "a dir", "a/y file"],
        ["a none", "a link", "a/b/y file"],
        ["a link", "a/b dir"],
        ["a link", "a/sub dir", "a/sub/x mode"],
        ["a link", "a/x mode"],
        ["a link", "a/b link"],
        ["b link", "a old b", "a/y file"],
        ["a file", "a/y file"],
        ["y file", "y file"],
        ["y none", "y file"],
    ],
)
def test_nothing_is_put_below_what_is_made_no_folder_and_no_path_twice(tmp_path: Path, rows: list[str]) -> None:
    root, out = places(tmp_path)
    (root / "b").symlink_to(out)
    before = shown(tmp_path)
    puts = []
    for row in rows:
        path, what, *more = row.split(" ")
        kinds: dict[str, Kind | None] = {"link": "symlink", "none": None, "dir": "dir"}
        content = {"link": os.fsencode(out), "file": b"evil"}.get(what)
        puts.append(Put(path, kinds.get(what, "file"), 0o777, content, more[0] if more else None))
    with pytest.raises(Refused) as caught:
        apply(str(root), puts)
    assert caught.value.code == "not_applied"
    assert shown(tmp_path) == before


@pytest.mark.parametrize(
    "path", ["a\0b", "\udc00\ud800", "a/" * 2100 + "a", "q" * 300, "q" * 300 + "/a", "b/x", "a/./b"]
)
@pytest.mark.parametrize("as_old", [False, True])
def test_names_that_cannot_be_are_refused(tmp_path: Path, path: str, as_old: bool) -> None:
    root, out = places(tmp_path)
    (root / "b").symlink_to(out)
    before = shown(tmp_path)
    put = Put("new", "file", 0o644, None, path) if as_old else Put(path, "file", 0o644, b"x")
    with pytest.raises(Refused) as caught:
        apply(str(root), [Put("first", "dir", 0o755), put])
    assert caught.value.code == "not_applied"
    assert shown(tmp_path) == before


def test_a_target_that_cannot_be_is_refused(tmp_path: Path) -> None:
    for target in (b"a\0b", b""):
        with pytest.raises(Refused) as caught:
            apply(str(tmp_path), [Put("link", "symlink", 0o777, target)])
        assert caught.value.code == "not_applied"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("renamed", [False, True])
def test_no_mode_is_changed_through_a_link(tmp_path: Path, renamed: bool) -> None:
    root, _ = places(tmp_path)
    (root / "ln").symlink_to("../out/x")
    before = shown(tmp_path)
    put = Put("new", "file", 0o600, old="ln") if renamed else Put("ln", "file", 0o600)
    with pytest.raises(Refused) as caught:
        apply(str(root), [put])
    assert caught.value.code == "not_applied"
    assert shown(tmp_path) == before


def test_another_name_of_a_file_keeps_its_mode(tmp_path: Path) -> None:
    root, out = places(tmp_path)
    before = shown(out)
    os.link(out / "x", root / "f")
    apply(str(root), [Put("f", "file", 0o604)])
    assert shown(out) == before
    assert shown(root) == {"f": (stat.S_IFREG | 0o604, 1, b"keep")}


def test_modes_are_put_back(tmp_path: Path) -> None:
    root, _ = places(tmp_path)
    (root / "dd").mkdir()
    (root / "dd").chmod(0o555)
    (root / "ee").touch(0o644)
    before = shown(tmp_path)
    puts = [Put("dd", "dir", 0o700), Put("dd/new/f", "file", 0o644, b"x"), Put("ee", "file", 0o600)]
    with pytest.raises(Refused):
        apply(str(root), [*puts, Put("q" * 300, "file", 0o644, b"")])
    assert shown(tmp_path) == before
    apply(str(root), puts)
    assert shown(root)["dd"][0] == stat.S_IFDIR | 0o700
    assert shown(root)["ee"][0] == stat.S_IFREG | 0o600


def test_what_cannot_be_displaced_is_not_taken_for_gone(tmp_path: Path) -> None:
    root, _ = places(tmp_path)
    (root / "f").touch()
    with pytest.raises(Refused) as caught:
        apply(str(root), [Put("f", None)], str(tmp_path / "no staging"))
    assert caught.value.code == "not_applied"
    assert (root / "f").exists()


PLAIN = """
import os, sys
from veil.host.applying import Put, apply
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(1001)
    os.setuid(1001)
os.umask(0o022)
os.mkdir("root")
os.mkdir("staging")
with open("root/tool", "wb") as file:
    file.write(b"one")
os.chmod("root/tool", 0o6755)
os.mkdir("root/closed")
open("root/closed/old", "w").close()
os.chmod("root/closed", 0o555)

def put(*puts):
    apply("root", puts, "staging")

def mode(name):
    return oct(os.stat("root/" + name).st_mode & 0o7777)

put(Put("tool", "file", 0o6755, b"two"))
print(mode("tool"), open("root/tool").read())
put(Put("closed", "dir", 0o500), Put("closed/old", None), Put("closed/f", "file", 0o400, b"x"))
print(mode("closed"), os.listdir("root/closed"))
put(Put("blind", "dir", 0o300), Put("blind/f", "file", 0o400, b"x"))
put(Put("blind/g", "file", 0o400, b"x" * 100000))
print(mode("blind"), os.path.exists("root/blind/f"), os.path.exists("root/blind/g"), os.listdir("staging"))
"""


def test_a_user_who_is_not_root_gets_the_recorded_modes(tmp_path: Path) -> None:
    """The kernel takes the set-user-id bit off a file that such a one writes to; folders hold such a one up."""
    if os.geteuid() == 0:
        os.chown(tmp_path, 1001, 1001)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    # relative to where it is: the way here may be closed to others
    done = subprocess.run([sys.executable, "-c", PLAIN], cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.stdout.splitlines() == ["0o6755 two", "0o500 ['f']", "0o300 True True []"], done.stderr


paths = st.sampled_from(["a", "a/x", "a/sub", "a/sub/x", "b", "b/x", "ln", "../out/x", "/out", "a/../../out/x"])
rows = st.builds(
    Put,
    path=paths,
    kind=st.sampled_from([None, "file", "dir", "symlink", "fifo", "socket"]),
    mode=st.sampled_from([0o700, 0o755, 0o644]),
    content=st.sampled_from([None, b"new", b"../out", b"../out/sub", b"y" * 70000]),
    old=st.one_of(st.none(), paths),
)


@given(
    puts=st.lists(rows, min_size=1, max_size=5),
    links=st.dictionaries(st.sampled_from(["a", "b", "ln"]), st.sampled_from(["../out", "../out/x", "b"]), max_size=3),
)
def test_whatever_is_asked_for_nothing_outside_changes(
    tmp_path_factory: pytest.TempPathFactory, puts: list[Put], links: dict[str, str]
) -> None:
    root, out = places(tmp_path_factory.mktemp("case"))
    for name in ("a", "b"):
        if name in links:
            continue
        (root / name).mkdir()
        (root / name / "x").write_bytes(b"inside")
    for name, target in links.items():
        (root / name).symlink_to(target)
    before = shown(out), shown(root)
    try:
        apply(str(root), puts)
    except Refused:
        assert shown(root) == before[1]
    assert shown(out) == before[0]
    assert sorted(os.listdir(root.parent)) == ["out", "root"]


def test_a_displaced_folder_may_be_nested_deeper_than_python_calls_itself(tmp_path: Path) -> None:
    root, staging = tmp_path / "root", tmp_path / "staging"
    root.mkdir()
    staging.mkdir()
    nest = "import os\nfor _ in range(1500):\n    os.mkdir('a')\n    os.chdir('a')"
    subprocess.run([sys.executable, "-c", nest], cwd=root, check=True)
    try:
        apply(str(root), [Put("a", "file", 0o644, b"x")], str(staging))
        assert (root / "a").read_bytes() == b"x"
        assert list(staging.iterdir()) == []
    finally:
        subprocess.run(["rm", "-rf", "--", str(root), str(staging)], check=True)
