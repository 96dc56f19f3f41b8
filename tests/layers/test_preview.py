"""Previews beside what every method keeps (``tests/contracts/test_preview_contract.py``): refusals, limits, company."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deeds import facts

import veil
from pytest_veil import expect
from veil.host.differing import Difference, Touched, state_of
from veil.host.rooms import Room, Rooms
from veil.host.views import CannotView, Method, open_view
from veil.model.plan import Launch
from veil.previews import Previews

OVERLAY = [pytest.mark.linux, pytest.mark.needs("user namespaces")]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a").write_text("a")
    return root


def code_of(refusal: pytest.ExceptionInfo[veil.VeilError]) -> str:
    return refusal.value.code


def test_the_background_has_no_previews(tree: Path) -> None:
    with pytest.raises(veil.Refused) as refusal:
        veil.start("true", cwd=tree, preview=True)
    assert code_of(refusal) == "background_incompatible"


def test_nothing_is_left_running_in_a_view_that_is_gone(tree: Path) -> None:
    with pytest.raises(veil.BadInput, match="left_running"):
        veil.run("true", cwd=tree, preview=True, left_running="keep")
    with pytest.raises(veil.BadInput, match="preview"):
        veil.run("true", cwd=tree, preview="yes")  # type: ignore[arg-type]


def test_the_root_folder_is_refused() -> None:
    with pytest.raises(veil.Refused, match="root folder") as refusal:
        veil.run("true", cwd="/", preview=True)
    assert code_of(refusal) == "layer_unavailable"


def test_a_copy_has_a_limit_and_is_refused_before_anything_runs(tree: Path, tmp_path: Path) -> None:
    (tree / "large").write_bytes(b"x" * 5000)
    with pytest.raises(CannotView, match="more than 4999 bytes"):
        open_view(str(tree), Rooms(tmp_path / "rooms"), most_bytes=4999, methods=["copy"])
    assert os.listdir(tmp_path / "rooms") == [".veil-owned"]
    open_view(str(tree), Rooms(tmp_path / "rooms"), most_bytes=5001, methods=["copy"]).close()


@pytest.mark.parametrize("method", [pytest.param("overlay", marks=OVERLAY), "copy"])
def test_a_run_that_cannot_have_a_view_is_refused(tmp_path: Path, method: Method) -> None:
    """A folder that goes away before the view is made."""
    tree = tmp_path / "tree"
    tree.mkdir()
    tree.rmdir()
    with pytest.raises(CannotView):
        open_view(str(tree), Rooms(None), most_bytes=9, methods=[method])


@pytest.mark.linux
@pytest.mark.needs("user namespaces")
def test_a_view_that_does_not_stand_runs_nothing(tree: Path, tmp_path: Path) -> None:
    view = open_view(str(tree), Rooms(tmp_path / "rooms"), most_bytes=9, methods=["overlay"])
    try:
        launch = view.launch(Launch(("touch", "b"), str(tree), dict(os.environ)))
        Path(view.room.path, "work").rename(Path(view.room.path, "away"))
        done = subprocess.run([*launch.outside, *launch.argv], cwd=launch.cwd, check=False)
        assert done.returncode == 125
        assert view.broken() == "No such file or directory"
    finally:
        view.close()
    assert os.listdir(tree) == ["a"]


@pytest.mark.parametrize("method", [pytest.param("overlay", marks=OVERLAY), "copy"])
def test_veils_own_state_is_no_part_of_a_view(
    tree: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    """A state folder within the folder, as when a home is previewed."""
    state = tree / ".local" / "state"
    monkeypatch.setenv("VEIL_STATE_DIR", str(state))
    veil.run("true", cwd=tree)
    view = open_view(
        str(tree),
        Rooms(state / "previews"),
        most_bytes=10**6,
        methods=[method],
        own=[str(state)],
    )
    try:
        launch = view.launch(Launch(("sh", "-c", "ls -A .local/state; echo b > b"), str(tree), dict(os.environ)))
        done = subprocess.run([*launch.outside, *launch.argv], cwd=launch.cwd, capture_output=True, check=False)
        assert b"projects" not in done.stdout
        assert [each.path for each in view.difference().touched] == ["b"]
        assert not view.room.path.startswith(str(tree))
    finally:
        view.close()
    result = veil.run("echo b > b", cwd=tree, preview=True)
    assert [change.path for change in result.files_changed] == ["b"]
    veil.apply(result.id)
    assert (tree / "b").read_text() == "b\n"


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


def test_rooms_of_killed_processes_are_swept_and_others_stay(tmp_path: Path) -> None:
    home = tmp_path / "rooms"
    rooms = Rooms(home)
    first = next(rooms.places(str(tmp_path / "tree")))
    assert isinstance(first, Room)
    program = (
        "import sys; from pathlib import Path; from veil.host.rooms import Room; room = Room(Path(sys.argv[1]));"
        "import os; os.makedirs(room.path + '/work/work'); os.chmod(room.path + '/work/work', 0); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program, home], cwd=ROOT, check=False)
    left = [name for name in os.listdir(home) if name.startswith("room-") and not first.path.endswith(name)]
    assert len(left) == 1
    rooms.sweep()
    assert left[0] in os.listdir(home)  # it is young: perhaps somebody is just making it
    for name in (*left, os.path.basename(first.path)):
        os.utime(home / name, (1, 1))
    rooms.sweep()
    assert sorted(os.listdir(home)) == sorted([".veil-owned", os.path.basename(first.path)])
    first.close()
    assert os.listdir(home) == [".veil-owned"]


def a_difference(folder: Path, size: int) -> Difference:
    """One new file of so many bytes."""
    made = folder / f"made{size}-{time.monotonic_ns()}"
    made.write_bytes(b"x" * size)
    return Difference((Touched("new", None, state_of(str(made)), source=str(made)),))


def test_gc_clears_kept_previews(tree: Path, own_state: Path) -> None:
    result = veil.run("echo b > b", cwd=tree, preview=True)
    (kept,) = [each for each in (own_state / "previews" / "kept").iterdir() if each.is_dir()]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "veil", "gc", "--json"]
    told = json.loads(subprocess.run(words, cwd=tree, env=env, capture_output=True, check=True).stdout)
    assert (told["previews_removed"], told["previews_left"]) == (0, 1)
    os.utime(kept, (1, 1))
    told = json.loads(subprocess.run(words, cwd=tree, env=env, capture_output=True, check=True).stdout)
    assert (told["previews_removed"], told["previews_left"], told["previews_bytes_left"]) == (1, 0, 0)
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(result.id)
    assert code_of(refusal) == "not_kept"


def test_kept_previews_have_limits(tmp_path: Path) -> None:
    def kept(folder: Path) -> list[str]:
        return sorted(name for name in os.listdir(folder) if name != ".veil-owned")

    store = Previews(tmp_path / "kept", max_bytes=25_000, ttl_seconds=1000, most=3)
    token, why = store.keep(str(tmp_path), a_difference(tmp_path, 25_001), 0)
    assert token is None
    assert why is not None
    assert "VEIL_MAX_PREVIEW_BYTES" in why
    tokens = []
    for number in range(5):
        token, why = store.keep(str(tmp_path), a_difference(tmp_path, 100), 0)
        assert token is not None, why
        tokens.append(token)
        os.utime(tmp_path / "kept" / token, (time.time() - 100 + number,) * 2)
    assert kept(tmp_path / "kept") == sorted(tokens[-3:])
    os.utime(tmp_path / "kept" / tokens[-1], (1, 1))
    large, why = store.keep(str(tmp_path), a_difference(tmp_path, 20_000), 0)
    assert large is not None, why
    assert tokens[-1] not in kept(tmp_path / "kept")
    other, why = store.keep(str(tmp_path), a_difference(tmp_path, 20_000), 0)
    assert other is not None, why
    assert kept(tmp_path / "kept") == [other]
    with pytest.raises(veil.Refused) as refusal:
        store.apply(large, "cmd1")
    assert code_of(refusal) == "not_kept"


@pytest.mark.parametrize("token", ["", "..", "../x", "a" * 24 + "/", "A" * 24])
def test_no_name_of_a_preview_is_a_path(tmp_path: Path, token: str) -> None:
    (tmp_path / "kept").mkdir()
    with pytest.raises(veil.Refused) as refusal:
        Previews(tmp_path / "kept", max_bytes=1, ttl_seconds=1, most=1).apply(token, "cmd1")
    assert code_of(refusal) == "not_kept"


def test_only_previews_can_be_applied(tree: Path) -> None:
    result = veil.run("echo b > b", cwd=tree)
    assert not result.previewed
    assert result.preview_method is None
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(result.id)
    assert code_of(refusal) == "no_preview"
    with pytest.raises(veil.NotFound):
        veil.apply("cmd99")
    for wrong in ("../x", None):
        with pytest.raises(veil.BadInput):
            veil.apply(wrong)  # type: ignore[arg-type]


def test_an_apply_waits_for_one_that_is_under_way(tree: Path, own_state: Path) -> None:
    result = veil.run("echo b > b", cwd=tree, preview=True)
    token = result.record.observation.findings.notes["preview_kept"]
    handle = os.open(own_state / "previews" / "kept" / token / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(veil.apply, result.id) for _ in range(2)]
        time.sleep(0.3)
        assert not (tree / "b").exists()
        os.close(handle)
        errors = [each.exception() for each in both]
    assert [getattr(error, "code", None) for error in errors if error] == ["already_applied"]
    assert (tree / "b").read_text() == "b\n"


def test_previews_at_once_do_not_see_each_other(tree: Path) -> None:
    def one(number: int) -> veil.Result:
        return veil.run(f"echo {number} >> a; sleep 0.2; cat a; ls", cwd=tree, preview=True)

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(one, range(3)))
    assert [result.stdout for result in results] == [f"a{number}\na\n" for number in range(3)]
    veil.apply(results[1].id)
    assert (tree / "a").read_text() == "a1\n"
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(results[2].id)
    assert code_of(refusal) == "moved"


def test_no_file_of_a_preview_is_there_for_anybody_to_ask(tree: Path) -> None:
    result = veil.run("echo b > b", cwd=tree, preview=True)
    assert result.previewed
    expect(result).created("b")
    with pytest.raises(veil.Refused) as refusal:
        expect(result).file("b").exists()
    assert code_of(refusal) == "previewed"


def test_the_view_says_what_would_be_and_what_to_do(tree: Path) -> None:
    result = veil.run("echo b > b", cwd=tree, preview=True)
    data = result.to_dict()
    assert data["files_changed"] == [{"path": "b", "change": "created", "kind": "file"}]
    assert data["effects_source"] == data["preview_method"] == result.preview_method
    assert data["advice"] == f"nothing was changed, it was a preview; veil apply {result.id} makes it real"
    assert "preview_kept" not in data
    assert any("outside of the folder" in gap for gap in data["preview_gaps"])
    assert veil.detail(result.id).result.previewed
    applied = veil.apply(result.id)
    assert applied.to_dict() == {
        "id": result.id,
        "applied": True,
        "folder": os.path.realpath(tree),
        "files_changed": [{"path": "b", "change": "created", "kind": "file"}],
        "paths": 1,
    }


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


def test_no_link_on_the_way_is_followed(tree: Path, tmp_path: Path) -> None:
    """What is written through a link that leads out is no part of the view, and nothing is put through one."""
    (tmp_path / "outside").mkdir()
    (tree / "folder").mkdir()
    (tree / "folder" / "x").write_text("x")
    result = veil.run("echo y > folder/x; echo n > folder/new; mkdir made; echo m > made/m", cwd=tree, preview=True)
    (tree / "folder").rename(tmp_path / "aside")
    (tree / "folder").symlink_to(tmp_path / "outside")
    (tree / "made").symlink_to(tmp_path / "outside")
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(result.id)
    assert sorted(refusal.value.facts["paths"]) == ["folder/new", "folder/x", "made"]
    assert os.listdir(tmp_path / "outside") == []


def test_a_folder_that_is_a_link_now_is_not_entered(tree: Path, tmp_path: Path) -> None:
    result = veil.run("echo b > b", cwd=tree, preview=True)
    tree.rename(tmp_path / "aside")
    with pytest.raises(veil.Refused) as gone:
        veil.apply(result.id)
    (tmp_path / "outside").mkdir()
    tree.symlink_to(tmp_path / "outside")
    with pytest.raises(veil.Refused) as link:
        veil.apply(result.id)
    assert code_of(gone) == code_of(link) == "moved"
    assert os.listdir(tmp_path / "outside") == []


def test_a_folder_reached_by_a_link_is_the_folder(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(tree)
    result = veil.run("echo b > b; pwd; echo c > '" + str(tree) + "/c'", cwd=tmp_path / "way", preview=True)
    assert [change.path for change in result.files_changed] == ["b", "c"]
    assert os.listdir(tree) == ["a"]
    assert veil.apply(result.id).folder == os.path.realpath(tree)
    assert sorted(os.listdir(tree)) == ["a", "b", "c"]


APPLY = "import sys, veil; print(veil.apply(sys.argv[1], sys.argv[2]).paths)"


def test_an_apply_that_is_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """At whatever moment: each file is the old or the new one, and the same call makes everything real."""
    text = """
        for i in $(seq 40); do echo new > file$i; rm old$i; mkdir -p made$i/deep; echo m > made$i/deep/m; done
        chmod 500 made1/deep; ln -sfn file2 link; rm -r turned; echo t > turned
    """
    rounds = int(os.environ.get("VEIL_TEST_KILLS", "8"))
    broken_off = 0
    for number in range(rounds):
        tree = tmp_path / f"tree{number}"
        (tree / "turned").mkdir(parents=True)
        (tree / "turned" / "x").write_text("x")
        (tree / "link").symlink_to("file1")
        for each in range(1, 41):
            (tree / f"file{each}").write_text("before")
            (tree / f"old{each}").write_text("old")
        result = veil.run(text, cwd=tree, preview=True, check=True)
        with subprocess.Popen([sys.executable, "-c", APPLY, result.id, ROOT], cwd=ROOT) as process:
            while process.poll() is None and not any(name.startswith(".veil-apply-") for name in os.listdir(tree)):
                time.sleep(0.0005)
            time.sleep(0.0015 * number)
            process.send_signal(signal.SIGKILL)
        for each in range(1, 41):
            assert (tree / f"file{each}").read_text() in ("before", "new\n")
        try:
            veil.apply(result.id)
            broken_off += 1
        except veil.Refused as refusal:
            if refusal.code != "already_applied":
                raise
        found = facts(tree, times=False)
        names = [f"made{each}{rest}" for each in range(1, 41) for rest in ("", "/deep", "/deep/m")]
        assert found.keys() == {"", "link", "turned", *names, *(f"file{each}" for each in range(1, 41))}
        assert {found[f"file{each}"][4] for each in range(1, 41)} == {b"new\n"}
        assert (found["made1/deep"][1], found["link"][4], found["turned"][4]) == (0o500, "file2", b"t\n")
    assert broken_off > 0


@pytest.mark.parametrize("back", [False, True])
def test_an_apply_that_was_killed_between_a_folder_and_its_file(tree: Path, own_state: Path, back: bool) -> None:
    """What the earlier try had taken away to make room counts as taken away by it, and by nobody else."""
    turned = tree / "turned"
    turned.mkdir()
    (turned / "x").write_text("x")
    text = "rm -r turned; echo t > turned"
    if back:
        (turned / "x").unlink()
        turned.rmdir()
        turned.write_text("t")
        text = "rm turned; mkdir turned; echo x > turned/x"
    result = veil.run(text, cwd=tree, preview=True, check=True)
    token = result.record.observation.findings.notes["preview_kept"]
    if back:
        turned.unlink()
    else:
        (turned / "x").unlink()
        turned.rmdir()
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(result.id)
    assert code_of(refusal) == "moved"
    (own_state / "previews" / "kept" / token / "begun").touch()  # as a killed try leaves it
    veil.apply(result.id)
    assert (turned / "x" if back else turned).read_text() == ("x\n" if back else "t\n")


def test_an_apply_that_the_disk_refuses_changes_nothing(tree: Path, own_state: Path) -> None:
    result = veil.run("echo more >> a; echo b > b", cwd=tree, preview=True)
    token = result.record.observation.findings.notes["preview_kept"]
    content = own_state / "previews" / "kept" / token / "content"
    (content / "1").rename(content / "away")
    with pytest.raises(veil.Refused) as refusal:
        veil.apply(result.id)
    assert code_of(refusal) == "not_applied"
    assert {path.name: path.read_text() for path in tree.iterdir()} == {"a": "a"}
    (content / "away").rename(content / "1")
    assert veil.apply(result.id).paths == 2


def test_an_apply_that_runs_out_of_room_changes_nothing(tree: Path) -> None:
    result = veil.run(
        "echo more >> a; rm -f x; head -c 3000000 /dev/urandom > large", cwd=tree, preview=True, check=True
    )
    code = (
        "import resource, sys, veil\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "try:\n    veil.apply(sys.argv[1], sys.argv[2])\n"
        "except veil.Refused as refusal:\n    print(refusal.code)"
    )
    done = subprocess.run([sys.executable, "-c", code, result.id, ROOT], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == b"not_applied\n"
    assert {path.name: path.read_text() for path in tree.iterdir()} == {"a": "a"}
    assert veil.apply(result.id).paths == 2
    assert (tree / "large").stat().st_size == 3_000_000


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


def test_the_command_line_previews_and_applies(tree: Path) -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = [sys.executable, "-m", "veil", *words]
        return subprocess.run(done, cwd=tree, env=env, capture_output=True, text=True, check=False, timeout=120)

    told = call("preview", "--json", "--", "sh", "-c", "echo b > b; exit 4")
    assert told.returncode == 4, told.stderr
    data = json.loads(told.stdout)
    assert data["files_changed"] == [{"path": "b", "change": "created", "kind": "file"}]
    assert os.listdir(tree) == ["a"]
    shown = call("run", "--preview", "rm a")
    assert "D a" in shown.stdout
    assert "preview_method" in shown.stdout
    done = call("apply", data["id"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{data['id']} applied in {os.path.realpath(tree)}\n--- 1 changed\nA b\n"
    again = call("apply", data["id"], "--json")
    assert again.returncode == 125
    assert json.loads(again.stdout)["error"] == "already_applied"
    assert sorted(os.listdir(tree)) == ["a", "b"]
