"""Previews on machines of many kinds: mounts, full disks, overlays, sandboxes, and where nobody may mount."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from deeds import facts
from previewing import tree

import veil
from veil.host.rooms import Rooms
from veil.host.views import open_view
from veil.model.plan import Launch
from veil.previews import Previews

__all__ = ["tree"]

ROOT = Path(__file__).parents[2]


@pytest.mark.linux
@pytest.mark.needs("root", "user namespaces")
@pytest.mark.parametrize("mount", ["mount -t tmpfs none", 'mount --bind "$1-outside"'])
def test_what_is_mounted_below_is_named_and_never_written(tree: Path, own_state: Path, mount: str) -> None:
    (tree / "below").mkdir()
    tree.with_name(f"{tree.name}-outside").mkdir()  # on the device of the tree
    program = """
import os, sys, veil
tree = sys.argv[1]
result = veil.run("echo x > below/x; echo b > b; cat below/here", cwd=tree, preview=True)
print(result.preview_method, sorted(os.listdir(tree)), os.listdir(tree + "/below"), sep="|")
print([gap for gap in result.to_dict()["preview_gaps"] if gap.startswith("below ")])
try:
    veil.apply(result.id)
except veil.Refused as refusal:
    print(refusal.code, sorted(refusal.facts["paths"]))
print(sorted(os.listdir(tree)), os.listdir(tree + "/below"))
"""
    script = mount + ' "$1/below" && echo here > "$1/below/here" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", tree, sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    ran, gaps, applied, after = done.stdout.splitlines()
    assert ran.split("|")[1:] == ["['a', 'below']", "['here']"]
    assert "another file system" in gaps
    assert applied == "moved ['below/x']"
    assert after == "['a', 'below'] ['here']"


@pytest.mark.linux
@pytest.mark.needs("root", "user namespaces")
def test_a_full_disk_that_the_folder_is_not_on_is_a_gap(tree: Path, tmp_path: Path) -> None:
    state = tmp_path / "small"
    state.mkdir()
    program = """
import sys, veil
for text in ("echo x > small", "head -c 8000000 /dev/zero > big; true"):
    result = veil.run(text, cwd=sys.argv[1], preview=True)
    print([gap for gap in result.to_dict()["preview_gaps"] if "full" in gap])
"""
    script = 'mount -t tmpfs -o size=4m none "$2" && exec "$3" -c "$4" "$1"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", tree, state, sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "VEIL_STATE_DIR": str(state)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "[]"
    assert "is full" in second


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
def test_what_an_overlay_does_otherwise_is_said(tree: Path) -> None:
    (tree / "other name").hardlink_to(tree / "a")
    (tree / "folder").mkdir()
    (tree / "folder" / "x").write_text("x")
    code = "import os; open('a', 'a').write('b'); os.rename('folder', 'moved')"
    result = veil.run([sys.executable, "-c", code], cwd=tree, preview=True)
    gaps = "\n".join(result.to_dict()["preview_gaps"])
    assert "a is a hard link" in gaps
    assert "not renamed but copied (EXDEV)" in gaps
    assert result.exit == 1


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
@pytest.mark.parametrize("command", ["ln a z", "ln a z; chmod 640 a", "ln a h; echo z > z; ln -f h z", "mv linked z"])
@pytest.mark.parametrize("backend", [None, pytest.param("landlock", marks=pytest.mark.needs("landlock"))])
def test_a_new_name_of_an_old_file_that_applying_does_not_link_is_said(
    tree: Path, command: str, backend: str | None
) -> None:
    (tree / "b").write_text("b")
    (tree / "linked").hardlink_to(tree / "b")
    sandbox = None if backend is None else {"backend": backend}
    result = veil.run(command, cwd=tree, preview=True, sandbox=sandbox)
    assert result.exit == 0
    assert result.to_dict()["preview_method"] == ("overlay" if backend is None else "copy")
    assert any(gap.startswith("z is another name of a file") for gap in result.to_dict()["preview_gaps"])
    veil.apply(result.id)
    assert (tree / "z").stat().st_nlink == 1 + command.count("ln -f")


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
def test_names_that_are_all_new_are_linked_and_nothing_is_said(tree: Path) -> None:
    result = veil.run("echo n > n; ln n m; echo y > y; ln -f y a; mv a b", cwd=tree, preview=True)
    assert not [gap for gap in result.to_dict()["preview_gaps"] if "name of a file" in gap]
    veil.apply(result.id)
    assert (tree / "n").samefile(tree / "m")
    assert (tree / "y").samefile(tree / "b")


@pytest.mark.linux
@pytest.mark.needs("user namespaces", "bubblewrap")
@pytest.mark.parametrize("backend", [None, "bubblewrap"])
def test_a_sandbox_holds_back_what_a_preview_cannot(tree: Path, tmp_path: Path, backend: str | None) -> None:
    text = f"echo x >> a; echo b > b; echo out > '{tmp_path}/out'; umount '{tree}'; echo c > '{tree}/c'; cat a; exit 3"
    result = veil.run(text, cwd=tree, preview=True, sandbox={"network": False, "backend": backend})
    assert (result.exit, result.stdout) == (3, "ax\n")
    assert [change.path for change in result.files_changed] == ["a", "b", "c"]
    data = result.to_dict()
    assert data["sandboxed"] is True
    assert "preview_gaps" not in data
    assert facts(tmp_path, times=False).keys() == {"", "tree", "tree/a"}
    veil.apply(result.id)
    assert {path.name: path.read_text() for path in tree.iterdir()} == {"a": "ax\n", "b": "b\n", "c": "c\n"}


@pytest.mark.linux
@pytest.mark.needs("landlock")
def test_where_nobody_may_mount_a_copy_is_run_in(tree: Path, tmp_path: Path) -> None:
    text = f"echo x >> a; echo b > b; echo out > '{tmp_path}/out'; echo c > '{tree}/c'; pwd"
    result = veil.run(
        text, cwd=tree, preview=True, sandbox={"backend": "landlock"}, expect={"file_exists": ["b", str(tree / "b")]}
    )
    assert result.preview_method in ("clone", "copy")
    assert result.assert_ok is True
    assert [change.path for change in result.files_changed] == ["a", "b"]
    assert result.stdout.strip() != str(tree)
    assert any("paths in what it wrote differ" in gap for gap in result.to_dict()["preview_gaps"])
    assert facts(tmp_path, times=False).keys() == {"", "tree", "tree/a"}
    assert not os.path.exists(result.stdout.strip())


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
def test_a_machine_without_namespaces_gets_a_copy(tree: Path) -> None:
    code = (
        "import sys, veil\n"
        "result = veil.run('echo x >> a; echo b > b', cwd=sys.argv[1], preview=True)\n"
        "print(result.preview_method in ('clone', 'copy'), [change.path for change in result.files_changed])\n"
        "print('no overlay' in '; '.join(result.to_dict()['preview_gaps']))\n"
        "print(veil.apply(result.id).paths)"
    )
    # of this namespace alone: it may have no further ones below it
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" -c "$1" "$2"'
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", script, sys.executable, code, tree],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout == "True ['a', 'b']\nTrue\n2\n", done.stderr
    assert {path.name: path.read_text() for path in tree.iterdir()} == {"a": "ax\n", "b": "b\n"}


@pytest.mark.linux
@pytest.mark.needs("user namespaces", "strace")
def test_a_trace_in_a_preview(tree: Path) -> None:
    result = veil.run("cat a; echo b > b; rm a", cwd=tree, preview=True, trace=True)
    assert [(change.path, change.change) for change in result.files_changed] == [("a", "deleted"), ("b", "created")]
    assert result.effects_source == result.preview_method
    assert "a" in result.to_dict()["trace_summary"]["deleted"]["first"]
    assert os.listdir(tree) == ["a"]


def test_a_preview_in_a_preview(tree: Path) -> None:
    code = (
        "import veil; r = veil.run('echo inner > b; cat a', preview=True);"
        "print(r.exit, [c.path for c in r.files_changed], r.stdout)"
    )
    words = ["sh", "-c", f'echo outer > a; "{sys.executable}" -c "$0"; ls', code]
    result = veil.run(words, cwd=tree, preview=True, env={"PYTHONPATH": str(ROOT)})
    assert result.stdout == "0 ['b'] outer\n\na\n", result.stderr
    assert (tree / "a").read_text() == "a"


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
def test_views_and_what_is_kept_may_lie_on_several_file_systems(tree: Path, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        view = open_view(str(tree), Rooms(Path(elsewhere, "rooms")), most_bytes=9, methods=["overlay"])
        try:
            launch = view.launch(Launch(("sh", "-c", "echo b >> a; echo c > c; ln c d; chmod 0 c"), str(tree), {}))
            subprocess.run([*launch.outside, *launch.argv], cwd=launch.cwd, check=True)
            kept = Previews(tmp_path / "kept", max_bytes=10**6, ttl_seconds=60, most=9)
            token, why = kept.keep(view.folder, view.difference(), view.opened_ns)
            assert token is not None, why
        finally:
            view.close()
    assert kept.apply(token, "cmd1").left == {}
    assert (tree / "a").read_text() == "ab\n"
    assert (tree / "c").samefile(tree / "d")
    assert (tree / "c").stat().st_mode & 0o777 == 0
