"""The window of a tree: turns, going ahead, jobs beside, and what the dead leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from veil.host import beside, locks

CHILD = """
import sys, time
from pathlib import Path
from veil.host import beside, locks
directory, root, what = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
held = locks.mark_job(directory, root) if what == "job" else locks.enter(directory, root, 30.0)
print("held", flush=True)
sys.stdin.read()
held.close() if what == "job" else held.leave()
"""


@pytest.fixture
def root(tmp_path: Path) -> str:
    tree = tmp_path / "tree"
    tree.mkdir()
    return str(tree)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "locks"


def other_process(directory: Path, root: str, what: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(directory), root, what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    child.wait(timeout=30)
    child.stdout.close()


def test_one_after_the_other_is_not_shared(directory: Path, root: str) -> None:
    for _ in range(3):
        assert locks.enter(directory, root, 1.0).leave() is False
    folder = Path(locks.folder_of(directory, root))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(os.listdir(folder)) == ["root", "window"]


def test_leaving_twice_says_the_same(directory: Path, root: str) -> None:
    window = locks.enter(directory, root, 1.0)
    assert window.leave() is False
    ahead = locks.enter(directory, root, 1.0)
    assert window.leave() is False
    assert ahead.leave() is False


def test_threads_take_turns(directory: Path, root: str) -> None:
    inside = 0
    most = 0
    told: list[beside.Shared] = []

    def one() -> None:
        nonlocal inside, most
        window = locks.enter(directory, root, 60.0)
        inside += 1
        most = max(most, inside)
        time.sleep(0.01)
        inside -= 1
        told.append(window.leave())

    threads = [threading.Thread(target=one) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert told == [False] * 10


def test_processes_take_turns(directory: Path, root: str) -> None:
    child = other_process(directory, root, "window")
    threading.Timer(0.2, end, [child]).start()
    start = time.monotonic()
    window = locks.enter(directory, root, 30.0)
    assert time.monotonic() - start > 0.1
    assert window.leave() is False


def test_a_dead_holder_holds_nothing(directory: Path, root: str) -> None:
    child = other_process(directory, root, "window")
    child.kill()
    end(child)
    assert locks.enter(directory, root, 0.0).leave() is False


def test_going_ahead_is_seen_by_the_one_who_holds_and_the_one_after(directory: Path, root: str) -> None:
    holder = locks.enter(directory, root, 0.0)
    ahead = locks.enter(directory, root, 0.02)
    assert holder.leave() is True
    after = locks.enter(directory, root, 0.0)
    assert ahead.leave() is True
    assert after.leave() is True  # it began beside the one who had gone ahead
    assert locks.enter(directory, root, 0.0).leave() is False


def test_ended_on_another_thread(directory: Path, root: str) -> None:
    for begin in (True, False):
        window = locks.enter(directory, root, 0.0)
        late: list[locks.Window] = []
        if begin:  # the way through filelock: somebody waits
            waiter = threading.Thread(target=lambda late=late: late.append(locks.enter(directory, root, 30.0)))
            waiter.start()
            time.sleep(0.05)
        ender = threading.Thread(target=window.leave)
        ender.start()
        ender.join()
        if begin:
            waiter.join()
            assert late[0].leave() is False
    assert locks.enter(directory, root, 0.0).leave() is False


def test_other_trees_do_not_wait(directory: Path, root: str, tmp_path: Path) -> None:
    holder = locks.enter(directory, root, 0.0)
    assert locks.enter(directory, str(tmp_path), 0.0).leave() is False
    assert holder.leave() is False


def test_a_job_before_and_a_job_meanwhile(directory: Path, root: str) -> None:
    with locks.mark_job(directory, root) as job:
        assert job.seen
        window = locks.enter(directory, root, 0.0)
    assert window.leave() is True
    window = locks.enter(directory, root, 0.0)
    locks.mark_job(directory, root).close()
    assert window.leave() is True
    assert locks.enter(directory, root, 0.0).leave() is False


def test_a_job_of_another_process_and_its_death(directory: Path, root: str) -> None:
    child = other_process(directory, root, "job")
    assert locks.enter(directory, root, 0.0).leave() is True
    child.kill()
    end(child)
    folder = Path(locks.folder_of(directory, root))
    assert any(name.startswith("job-") for name in os.listdir(folder))
    assert locks.enter(directory, root, 0.0).leave() is False
    assert not any(name.startswith("job-") for name in os.listdir(folder))


def test_a_job_is_ended_in_spite_of_a_forked_copy(directory: Path, root: str) -> None:
    window = locks.enter(directory, root, 0.0)
    job = locks.mark_job(directory, root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the test run itself do not matter to the child
        pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    try:
        job.close()
        window.leave()
        assert locks.enter(directory, root, 0.0).leave() is False
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_many_jobs_leave_no_files_and_a_bounded_counter(directory: Path, root: str) -> None:
    folder = Path(locks.folder_of(directory, root))
    locks.mark_job(directory, root).close()
    (folder / "came").write_bytes(b"." * 70_000)
    holder = locks.enter(directory, root, 0.0)
    assert (folder / "came").stat().st_size == 0
    assert holder.leave() is False
    for _ in range(20):
        locks.mark_job(directory, root).close()
    assert sorted(os.listdir(folder)) == ["came", "root", "window"]


def test_rubbish_of_a_job_that_was_never_born_is_cleared_when_old(directory: Path, root: str) -> None:
    locks.enter(directory, root, 0.0).leave()
    folder = Path(locks.folder_of(directory, root))
    (folder / "new-1-a").touch()
    (folder / "new-1-b").touch()
    os.utime(folder / "new-1-b", (1, 1))
    assert locks.enter(directory, root, 0.0).leave() is False
    assert (folder / "new-1-a").exists()
    assert not (folder / "new-1-b").exists()


def test_no_place_for_locks(directory: Path, root: str, tmp_path: Path) -> None:
    assert locks.enter(None, root, 0.0).leave() == "unknown"
    blocked = tmp_path / "file"
    blocked.touch()
    assert locks.enter(blocked / "locks", root, 0.0).leave() == "unknown"
    job = locks.mark_job(blocked / "locks", root)
    assert not job.seen
    job.close()


def test_a_folder_that_others_may_write_to_is_not_trusted(directory: Path, root: str) -> None:
    locks.enter(directory, root, 0.0).leave()
    Path(locks.folder_of(directory, root)).chmod(0o777)
    assert locks.enter(directory, root, 0.0).leave() == "unknown"


def test_a_link_in_place_of_the_lock_is_not_followed(directory: Path, root: str, tmp_path: Path) -> None:
    locks.enter(directory, root, 0.0).leave()
    window = Path(locks.folder_of(directory, root)) / "window"
    window.unlink()
    window.symlink_to(tmp_path / "victim")
    locks.enter(directory, root, 0.0).leave()
    assert not (tmp_path / "victim").exists()


def test_state_cleared_away_meanwhile(directory: Path, root: str) -> None:
    window = locks.enter(directory, root, 0.0)
    subprocess.run(["rm", "-rf", str(directory)], check=True)
    assert window.leave() in (False, True)
    assert locks.enter(directory, root, 0.0).leave() is False


def test_folders_of_trees_that_are_gone_are_cleared(directory: Path, tmp_path: Path) -> None:
    roots = [tmp_path / f"t{number}" for number in range(5)]
    for tree in roots:
        tree.mkdir()
        locks.enter(directory, str(tree), 0.0).leave()
    roots[0].rmdir()
    roots[1].rmdir()
    job = locks.mark_job(directory, str(roots[1]))
    assert locks.prune(directory) == 1  # not that of the tree with a living job
    assert not Path(locks.folder_of(directory, str(roots[0]))).exists()
    assert Path(locks.folder_of(directory, str(roots[2]))).exists()
    job.close()
    assert locks.prune(directory) == 1


def test_no_descriptor_is_left(directory: Path, root: str) -> None:
    locks.enter(directory, root, 0.0).leave()
    before = len(os.listdir("/dev/fd"))
    for _ in range(50):
        holder = locks.enter(directory, root, 0.0)
        locks.enter(directory, root, 0.0).leave()
        holder.leave()
    assert len(os.listdir("/dev/fd")) <= before  # fewer: rubbish of earlier tests went meanwhile
