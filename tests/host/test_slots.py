"""Places for stages: held by one at a time, emptied, given back."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from veil.host.slots import take
from veil.model.errors import Refused


def test_each_holder_has_its_own_and_all_paths_are_equally_long(tmp_path: Path) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(take(str(tmp_path), "slot")) for _ in range(40)]
        assert len({slot.path for slot in held}) == 40
        assert len({len(str(slot.path)) for slot in held}) == 1
    assert [path for path in held[0].path.parent.iterdir() if path.is_dir()] == []


def test_a_place_is_empty_and_comes_back_under_the_same_name(tmp_path: Path) -> None:
    first = take(str(tmp_path), "slot")
    (first.path / "left").write_text("x")
    first.close(keep=True)
    first.close()
    assert (first.path / "left").exists()
    with take(str(tmp_path), "slot") as again:
        assert again.path == first.path
        assert list(again.path.iterdir()) == []


def test_the_place_of_a_dead_process_is_free(tmp_path: Path) -> None:
    code = "import sys, os; from veil.host.slots import take; print(take(sys.argv[1], 'slot').path, flush=True)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; os._exit(9)", str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    with take(str(tmp_path), "slot") as slot:
        assert str(slot.path) == done.stdout.strip()


def test_a_folder_that_somebody_else_filled_is_left_alone(tmp_path: Path) -> None:
    with take(str(tmp_path), "slot") as slot:
        base = slot.path.parent
    for path in base.iterdir():
        path.unlink()
    (base / "theirs").write_text("x")
    with pytest.raises(Refused) as caught:
        take(str(tmp_path), "slot")
    assert caught.value.code == "not_ours"
    assert (base / "theirs").read_text() == "x"
