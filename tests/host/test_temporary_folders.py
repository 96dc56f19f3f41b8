"""The private temporary folders of confined runs: nobody's but one run's, and none that stays."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from veil.host.confine import temporary as rooms
from veil.host.confine.temporary import temporary


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def once(*, deserted: bool = True, kept: bool = False, leave: str | None = None, mode: int | None = None) -> Path:
    with temporary() as made:
        path = Path(made.path)
        assert list(path.iterdir()) == []
        assert path.stat().st_mode & 0o777 == 0o700
        made.deserted, made.kept = deserted, kept
        if leave is not None:
            (path / leave).mkdir()
            (path / leave / "file").write_text("x")
            os.chmod(path / leave, 0)
        if mode is not None:
            path.chmod(mode)
    return path


def test_a_bare_folder_serves_the_next_run(base: Path) -> None:
    assert once() == once()


def test_bare_folders_of_another_place_do_not_stand_in_the_way(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = base / "before"
    before.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(before))
    with contextlib.ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(temporary()).deserted = True
    assert list(before.iterdir()) != []
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    with temporary() as one, temporary() as two, temporary() as three, temporary() as four:
        for made in (one, two, three, four):
            made.deserted = True
    assert once().exists()
    assert list(before.iterdir()) == [], "they made room"


def test_a_link_to_the_folder_for_temporary_files_is_no_other_folder(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "real").mkdir()
    (base / "link").symlink_to("real")
    monkeypatch.setattr(tempfile, "tempdir", str(base / "link"))
    assert once() == once()


def test_one_that_somebody_deletes_in_meanwhile_is_gone(base: Path) -> None:
    for _ in range(30):
        with temporary() as made:
            names = [Path(made.path, f"file{number}") for number in range(300)]
            for name in names:
                name.touch()
            other = threading.Thread(target=lambda names=names: [name.unlink(missing_ok=True) for name in names])
            other.start()
        other.join()
        assert not Path(made.path).exists()


def test_two_runs_at_once_have_two_folders(base: Path) -> None:
    once()
    with temporary() as one, temporary() as two:
        assert one.path != two.path


@pytest.mark.parametrize("wrong", [{"leave": "x"}, {"mode": 0o777}, {"mode": 0}, {"deserted": False}])
def test_any_other_folder_is_gone(base: Path, wrong: dict[str, object]) -> None:
    path = once(**wrong)  # type: ignore[arg-type]
    assert not path.exists()


def test_one_that_is_still_used_stays(base: Path) -> None:
    path = once(kept=True, leave="x")
    assert (path / "x").exists()
    os.chmod(path / "x", 0o700)


def test_a_link_in_it_is_not_followed(base: Path) -> None:
    (base / "outside").mkdir()
    (base / "outside" / "f").touch()
    with temporary() as made:
        (Path(made.path) / "link").symlink_to(base / "outside")
        Path(made.path).chmod(0)
    assert (base / "outside" / "f").exists()
    assert not Path(made.path).exists()


def test_one_that_somebody_else_cleared_away_is_not_handed_out(base: Path) -> None:
    path = once()
    path.rmdir()
    again = once()
    assert again.exists()


def test_what_a_killed_process_left_bare_is_swept_by_the_next(base: Path) -> None:
    code = (
        "import os, sys, tempfile; tempfile.tempdir = sys.argv[1]; "
        "from veil.host.confine.temporary import temporary\n"
        "with temporary() as a, temporary() as b:\n"
        "    open(b.path + '/f', 'w').close(); print(a.path); print(b.path, flush=True); os._exit(0)"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code, str(base)], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    bare, used = (Path(path) for path in told[0])
    assert not bare.exists()
    assert used.exists()  # whatever is in it may be of use to somebody
    rooms._sweep(str(base))
    assert not Path(told[1][0]).exists()
    with temporary() as mine:
        rooms._sweep(str(base))
        assert Path(mine.path).exists()


def test_a_fork_does_not_hand_out_its_parents_folders(base: Path) -> None:
    path = once()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        with temporary() as made:
            os.write(write, made.path.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with open(read, "rb") as file:  # noqa: PTH123
        assert Path(file.read().decode()) != path
    assert path.exists()
