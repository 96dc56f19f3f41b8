"""The profile is an allow-list: the same environment whatever the host says, and tools still work under it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from veil.cassettes.profile import DETERMINISTIC, FIXED_SECONDS, INHERIT, PROFILES, Profile, tidy_path
from veil.model.errors import BadInput

HOSTS = [
    {"LANG": "C", "TZ": "UTC", "COLUMNS": "80", "USER": "root", "PATH": "/usr/bin:/bin"},
    {"LANG": "de_DE.UTF-8", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Tokyo", "USER": "ci",
     "PATH": "/usr/bin:.::/bin:/usr/bin/",
     "AWS_SECRET_ACCESS_KEY": "x", "PYTHONPATH": "/evil", "LD_PRELOAD": "/evil.so", "GIT_DIR": "/elsewhere",
     "PYTEST_CURRENT_TEST": "t (call)", "PYTEST_XDIST_WORKER": "gw1", "CLICOLOR_FORCE": "1", "XDG_CONFIG_HOME": "/c"},
]  # fmt: skip


def test_hosts_that_drifted_give_one_environment() -> None:
    one, two = (DETERMINISTIC.environment(host, "/h", "/t") for host in HOSTS)
    assert one == two
    assert one["HOME"] == "/h"
    assert one["TMPDIR"] == "/t"
    assert one["PATH"] == "/usr/bin:/bin"
    assert one["GIT_CONFIG_GLOBAL"] == "/h/.gitconfig"


def test_coverage_goes_through_but_is_neither_matched_nor_recorded() -> None:
    base = {"PATH": "/bin", "COVERAGE_PROCESS_START": "/c", "COVERAGE_PROCESS_CONFIG": "x", "PYTEST_ADDOPTS": "-x"}
    found = DETERMINISTIC.environment(base, "/h", "/t")
    assert found["COVERAGE_PROCESS_START"] == "/c"
    assert not DETERMINISTIC.recorded("COVERAGE_PROCESS_START")
    assert DETERMINISTIC.recorded("COLUMNS")
    assert "PYTEST_ADDOPTS" not in found


def test_names_can_be_let_through() -> None:
    base = {"PATH": "/bin", "HTTPS_PROXY": "http://p", "OTHER": "1"}
    found = DETERMINISTIC.environment(base, "/h", "/t", also=["HTTPS_PROXY"])
    assert found["HTTPS_PROXY"] == "http://p"
    assert "OTHER" not in found


def test_inherit_keeps_everything_but_the_runner_s_own() -> None:
    base = {"A": "1", "HOME": "/me", "PYTEST_VERSION": "9"}
    assert INHERIT.environment(base, "/h", "/t") == {"A": "1", "HOME": "/me"}
    assert PROFILES["inherit"] is INHERIT


def test_launchers_of_tool_managers_find_their_real_home() -> None:
    base = {"HOME": "/me", "PATH": "/me/.pyenv/shims:/me/.cargo/bin:/bin"}
    found = DETERMINISTIC.environment(base, "/h", "/t")
    assert found["PYENV_ROOT"] == "/me/.pyenv"
    assert (found["CARGO_HOME"], found["RUSTUP_HOME"]) == ("/me/.cargo", "/me/.rustup")
    assert "NVM_DIR" not in found
    moved = DETERMINISTIC.environment(base | {"RUSTUP_HOME": "/opt/rustup"}, "/h", "/t")
    assert moved["RUSTUP_HOME"] == "/opt/rustup"


@pytest.mark.parametrize(
    ("path", "tidy"),
    [("", "/usr/local/bin:/usr/bin:/bin"), ("/a:/b:/a", "/a:/b"), ("x:/a::.", "/a"), ("/:/a//", "/:/a")],
)
def test_path(path: str, tidy: str) -> None:
    assert tidy_path(path) == tidy


@pytest.mark.parametrize("argument", ["home", "tmp"])
def test_folders_must_be_absolute(argument: str) -> None:
    folders = {"home": "/h", "tmp": "/t", argument: "x"}
    with pytest.raises(BadInput, match=argument):
        DETERMINISTIC.environment({}, folders["home"], folders["tmp"])


def fresh(profile: Profile, folder: Path) -> dict[str, str]:
    (folder / "home").mkdir(parents=True)
    (folder / "tmp").mkdir()
    for name, text in profile.home_files.items():
        (folder / "home" / name).write_text(text)
    return profile.environment(os.environ, str(folder / "home"), str(folder / "tmp"))


def git(folder: Path, env: dict[str, str], *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


def test_real_git_commits_the_same_id_everywhere_and_a_test_s_own_settings_win(tmp_path: Path) -> None:
    ids = set()
    for name in ("one", "two"):
        env = fresh(DETERMINISTIC, tmp_path / name)
        work = tmp_path / name / "w"
        work.mkdir()
        git(work, env, "init", "-q")
        (work / "a").write_text("a\n")
        git(work, env, "add", "-A")
        git(work, env, "commit", "-qm", "m")
        ids.add(git(work, env, "rev-parse", "HEAD"))
        assert git(work, env, "log", "-1", "--format=%an %at %D").split() == [
            "veil", str(FIXED_SECONDS), "HEAD", "->", "main",
        ]  # fmt: skip
        git(work, env, "config", "user.name", "Somebody")
        git(work, env, "commit", "-q", "--allow-empty", "-m", "n")
        assert git(work, env, "log", "-1", "--format=%an").strip() == "Somebody"
        git(work, env, "config", "--global", "alias.x", "status")
        assert "alias" in (tmp_path / name / "home" / ".gitconfig").read_text()
    assert len(ids) == 1
