"""What Landlock refuses to promise, what it leaves open, and what its rules do in the process that makes them."""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from veil.host import prctl, restricted
from veil.host.confine import landlock
from veil.host.confine.base import Allowance, Bounds
from veil.host.confine.landlock import Landlock, gaps_of, too_old
from veil.host.confine.ruleset import Ruleset, write_rights
from veil.model.errors import VeilError

pytestmark = [pytest.mark.linux, pytest.mark.needs("landlock")]


# -- what is refused, and what is told


def test_what_it_cannot_express_is_refused() -> None:
    confine = Landlock()
    plain = Bounds("/work", "/tmp/t", masked_folders=("/home/u/.ssh",), own=("/home/u/.local/state/veil",))
    assert confine.lacks(plain) is None
    refused: list[dict[str, Any]] = [
        {"masked_folders": ("/work/secret",)},
        {"masked_files": ("/work/a/b/.env",)},
        {"own": ("/work",)},
        {"readonly": ("/work/.git/hooks",)},
        {"pinned": ("/work/.git",)},
        {"masked_files": ("/dev/shm/secret",)},
    ]
    for more in refused:
        bounds = Bounds("/work", "/tmp/t", **more)
        reason = confine.lacks(bounds)
        assert reason is not None
        assert next(iter(more.values()))[0] in reason
    assert confine.lacks(Bounds("/work", "/tmp/t", allowance=Allowance(memory=1))) is not None
    # what lies beside is not below
    assert confine.lacks(Bounds("/work", "/tmp/t", masked_folders=("/workshop",), readonly=("/etc",))) is None


@pytest.mark.parametrize("abi", [0, 1, 2])
def test_an_old_kernel_is_refused(abi: int) -> None:
    """sbx-08."""
    reason = too_old(abi)
    assert reason is not None
    assert "Linux 6.2" in reason


def test_why_the_second_version_is_too_old(tmp_path: Path) -> None:
    """Under the rights of ABI 2 a file outside can be emptied; ABI 3 knows a right for that."""
    (tmp_path / "file").write_text("full")

    def emptied(abi: int) -> bool:
        rules = Ruleset(write_rights(abi), network=True, abi=abi)

        def restrict() -> None:
            prctl.no_new_privileges()
            rules.restrict_thread()

        def empty() -> bool:
            try:
                os.truncate(tmp_path / "file", 0)
            except PermissionError:
                return False
            return True

        return restricted.start(restrict, empty)

    assert not emptied(3)
    assert emptied(2)
    assert too_old(3) is None


def test_gaps_shrink_with_every_version() -> None:
    bounds = Bounds("/work", "/tmp/t", network=False, sockets=("/run/x",), masked_folders=("/home",))
    told = [set(gaps_of(abi, bounds)) for abi in (3, 4, 5, 6, 7)]
    assert told[0] == told[1] > told[2] > told[3] == told[4]
    joined = "\n".join(told[4])
    for word in (
        "mode, owner, times",
        "processes outside can be seen",
        "/dev/shm",
        "away from its parents",
        "loopback",
    ):
        assert word in joined
    assert any("signals" in gap for gap in told[2] - told[3])
    assert any("ioctl" in gap for gap in told[1] - told[2])


# -- this process


def start(bounds: Bounds, text: str) -> int:
    with Landlock().confine(("/bin/sh", "-c", text), bounds) as wrapped:
        child = restricted.start(
            wrapped.restrict, lambda: subprocess.Popen(wrapped.argv, cwd=bounds.cwd, stderr=subprocess.DEVNULL)
        )
        return child.wait(60)


@pytest.fixture
def bounds(tmp_path: Path) -> Bounds:
    real = Path(os.path.realpath(tmp_path))
    for name in ("cwd", "temp", "home", "home/keys"):
        (real / name).mkdir()
    (real / "home" / "keys" / "id").write_text("secret")
    return Bounds(str(real / "cwd"), str(real / "temp"), masked_folders=(str(real / "home" / "keys"),))


def test_this_process_stays_free(bounds: Bounds, tmp_path: Path) -> None:
    assert start(bounds, "echo x >../outside") != 0
    (tmp_path / "outside").write_text("x")
    assert Path(bounds.masked_folders[0], "id").read_text() == "secret"
    status = Path("/proc/self/status").read_text()
    assert "NoNewPrivs:\t0" in status
    assert "Seccomp:\t0" in status
    if os.getuid() == 0:
        assert ctypes.CDLL(None).prctl(23, 21, 0, 0, 0) == 1  # PR_CAPBSET_READ


def test_what_comes_and_goes_beside_a_hidden_folder_is_noticed(bounds: Bounds, tmp_path: Path) -> None:
    """Rules are kept between runs: they must never open what was hidden since, nor hide what has come."""
    home = tmp_path / "home"
    (home / "open").mkdir()
    (home / "open" / "file").write_text("x")
    assert start(bounds, "cat ../home/open/file") == 0
    (home / "later").write_text("x")
    assert start(bounds, "cat ../home/later") == 0
    assert start(bounds, "cat ../home/keys/id") != 0
    (home / "open").rename(home / "keys" / "open")
    assert start(bounds, "cat ../home/keys/open/file") != 0
    assert start(bounds, "cat ../home/later && echo x >written") == 0


def test_rules_are_used_again_as_long_as_they_are_right(bounds: Bounds, tmp_path: Path) -> None:
    kept = landlock._Rules(settled=0)
    for _ in range(100):  # others may be at work in the folders above
        first = kept.of(bounds)
        if kept.of(bounds) is first:
            break
    assert kept.of(bounds) is first
    (tmp_path / "home" / "new").write_text("x")
    assert kept.of(bounds) is not first
    hasty = landlock._Rules(settled=3600)
    assert hasty.of(bounds) is not hasty.of(bounds)
    cwd = Path(bounds.cwd)
    cwd.rename(tmp_path / "away")
    cwd.mkdir()
    assert start(bounds, "echo x >here") == 0
    assert start(bounds, "echo x >../away/there") != 0


def test_a_folder_that_is_gone_grants_nothing(bounds: Bounds) -> None:
    os.rmdir(bounds.temp)
    assert start(bounds, "echo x >here") == 0


def test_a_path_that_has_become_a_link_grants_nothing(bounds: Bounds, tmp_path: Path) -> None:
    """Somebody puts a link in the place of a folder between the look and the rules."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "cwd" / "sub").symlink_to(tmp_path / "outside")
    swapped = dataclasses.replace(bounds, writable=(str(tmp_path / "cwd" / "sub"),))
    assert start(swapped, "echo x >sub/planted") != 0
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_restriction_that_fails_is_no_failed_command(bounds: Bounds) -> None:
    """The kernel takes sixteen domains inside one another, and then no more."""

    def nested(depth: int) -> str:
        with Landlock().confine(("true",), bounds) as wrapped:
            assert wrapped.restrict is not None
            for _ in range(depth):
                settle = wrapped.restrict()
                assert settle is not None
                settle(None)
        return "all"

    assert restricted.start(lambda: None, lambda: nested(3)) == "all"
    with pytest.raises(VeilError) as caught:
        restricted.start(lambda: None, lambda: nested(20))
    assert caught.value.code == "sandbox_broken"
    assert os.strerror(errno.E2BIG) in str(caught.value)
    assert sys.exc_info() == (None, None, None)
