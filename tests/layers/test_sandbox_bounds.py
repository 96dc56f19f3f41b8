"""From a wish for a sandbox to its bounds: real paths, what is refused, and where credentials lie."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from sandboxes import home, tree

import veil
from veil.host.confine import credentials, listed
from veil.host.confine.bounds import CannotBound, Drawn, drawn
from veil.model.command import Sandbox

__all__ = ["home", "tree"]

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash", "an interpreter outside /tmp")]
NEEDS_BWRAP = pytest.mark.needs("bubblewrap")
NEEDS_GIT = pytest.mark.needs("git")


def draw(wish: Sandbox, cwd: Path, own: tuple[Path, ...] = (), **environment: str) -> Drawn:
    with drawn(wish, str(cwd), environment, tuple(map(str, own)), ()) as found:
        assert os.listdir(found.bounds.temp) == []
        assert os.stat(found.bounds.temp).st_mode & 0o777 == 0o700
    return found


# --- from a wish to bounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, (), []])
def test_absent_and_empty_lists_mean_the_same(tree: Path, value: Any) -> None:
    result = veil.run("true", cwd=tree, sandbox={"writable": value, "deny_read": value, "unix_sockets": value})
    assert result.ok
    assert result.sandbox is not None
    assert result.sandbox["network"] is True
    assert "unreadable" not in result.sandbox


def test_every_path_is_real(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "way").symlink_to(tree)
    (tree / ".env").write_text("x")
    found = draw(Sandbox(writable=("../link",), deny_read=(".env", "../way/.env")), tmp_path / "way")
    assert found.bounds.cwd == str(tree)
    assert found.bounds.writable == (str(tmp_path / "real"),)
    assert found.bounds.masked_files == (str(tree / ".env"),)


def test_a_path_may_begin_at_home(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    found = draw(Sandbox(writable=("~/cache",)), tree, HOME=str(tmp_path))
    assert found.bounds.writable == (str(tmp_path / "cache"),)


def test_of_folders_within_folders_only_the_outermost_is_masked(tree: Path) -> None:
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a-b").mkdir()
    found = draw(Sandbox(deny_read=("a/b", "a-b", "a")), tree)
    assert found.bounds.masked_folders == (str(tree / "a"), str(tree / "a-b"))
    assert veil.run("! ls a && ! ls a-b && ls", cwd=tree, sandbox={"deny_read": ["a/b", "a-b", "a"]}).ok


@pytest.mark.parametrize("option", ["writable", "unix_sockets"])
def test_what_is_granted_has_to_be_there(tree: Path, option: str) -> None:
    with pytest.raises(CannotBound, match="gone: No such file or directory; make it first"):
        draw(Sandbox(**{option: ("gone",)}), tree)


def test_a_socket_has_to_be_one(tree: Path) -> None:
    (tree / "file").touch()
    with pytest.raises(CannotBound, match="is no socket"):
        draw(Sandbox(unix_sockets=("file",)), tree)


@pytest.mark.parametrize("root", ["/", "/tmp", "/usr", "/etc", "/proc/self", "/sys/kernel", "/dev", "/run"])
def test_what_would_confine_nothing_is_refused(tree: Path, root: str) -> None:
    with pytest.raises(CannotBound, match="confines nothing"):
        draw(Sandbox(writable=(root,)), tree)


def test_the_folder_for_temporary_files_is_no_working_folder() -> None:
    with pytest.raises(veil.Refused) as refused:
        veil.run("touch x", cwd="/tmp", sandbox=True)
    assert (refused.value.code, refused.value.facts["option"]) == ("sandbox_unavailable", "cwd")
    assert not Path("/tmp/x").exists()


def test_a_mask_may_not_cover_what_is_written(tree: Path) -> None:
    with pytest.raises(CannotBound, match="is to be unreadable"):
        draw(Sandbox(deny_read=("..",)), tree)


def test_a_missing_mask_is_named_and_made_by_nobody(tree: Path) -> None:
    found = draw(Sandbox(deny_read=("gone/.env",)), tree)
    assert found.gaps == ("deny_read gone/.env: nothing was there when the run began",)
    assert list(tree.iterdir()) == []


def test_the_home_folder_as_the_working_folder_is_said(home: Path) -> None:
    (home / ".bashrc").touch()
    found = draw(Sandbox(), home, HOME=str(home))
    assert any("runs at the next login (.bashrc)" in gap for gap in found.gaps)


def test_the_state_of_veil_is_made_before_a_command_can(home: Path) -> None:
    state = home / ".local" / "state" / "veil"
    found = draw(Sandbox(), home, (state,), HOME=str(home))
    assert found.bounds.own == (str(state),)
    assert state.stat().st_mode & 0o777 == 0o700


def test_nobody_works_within_the_state_of_veil(own_state: Path) -> None:
    inside = own_state / "deep"
    inside.mkdir()
    with pytest.raises(veil.Refused, match="veil's own folder"):
        veil.run("true", cwd=inside, sandbox=True)


# --- credentials -----------------------------------------------------------------------------------------------------


def test_credentials_are_found_where_variables_put_them(home: Path, tree: Path) -> None:
    for name in (".ssh", ".config/gcloud", "elsewhere/cfg/gh", "ring"):
        (home / name).mkdir(parents=True)
    for name in (".netrc", "kube1", "kube2", "cargo"):
        (home / name).touch()
    found = draw(
        Sandbox(protect_secrets=True),
        tree,
        HOME=str(home),
        XDG_CONFIG_HOME=str(home / "elsewhere" / "cfg"),
        GNUPGHOME=str(home / "ring"),
        KUBECONFIG=f"{home}/kube1:{home}/kube2:{home}/kube3",
        NETRC="/dev/null",
        AWS_CONFIG_FILE="relative/is/ignored",
    )
    masked = {Path(path) for path in (*found.bounds.masked_folders, *found.bounds.masked_files)}
    below = {str(path.relative_to(home)) for path in masked if path.is_relative_to(home)}
    assert below == {".ssh", ".config/gcloud", "elsewhere/cfg/gh", "ring", ".netrc", "kube1", "kube2"}
    assert "/dev/null" not in found.bounds.masked_files
    assert found.secrets >= 7


def test_no_place_is_listed_as_a_relative_path_or_with_a_link_up() -> None:
    known = credentials.places({"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"})
    for place in (f"{each.folder}/{name}" for each in known for name in each.names):
        assert place == os.path.normpath(place)
        assert os.path.isabs(place)
    names = {each.folder: each.names for each in known}
    assert names["/h/.config/containers"] == names["/c/containers"] == ("auth.json",)


def test_credentials_that_come_and_go_are_seen_at_once(home: Path, tree: Path) -> None:
    """What is known of a folder is believed only while its times say that nothing came or went."""

    def masked() -> set[str]:
        found = draw(Sandbox(protect_secrets=True), tree, HOME=str(home)).bounds
        return {
            Path(p).relative_to(home).as_posix()
            for p in (*found.masked_folders, *found.masked_files)
            if home in Path(p).parents
        }

    for name in (".netrc", ".config/gcloud/x", ".config/git/credentials", ".local/state/veil/x"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    time.sleep(listed.SETTLED + 0.2)
    there = {".netrc", ".config/gcloud", ".config/git/credentials", ".local/state/veil"}
    for _ in range(2):
        assert masked() == there
    # no folder that lists names of the table is touched by this one
    (home / ".local" / "state").rename(home / ".local" / "moved")
    (home / ".local" / "state").symlink_to("moved")
    there = {*there, ".local/moved/veil"} - {".local/state/veil"}
    assert masked() == there
    (home / ".npmrc").touch()
    (home / ".config" / "gh").mkdir()
    (home / ".config" / "git" / "credentials").unlink()
    for _ in range(2):
        assert masked() == {*there, ".npmrc", ".config/gh"} - {".config/git/credentials"}
    (home / ".config").rename(home / "moved")
    for _ in range(2):
        assert masked() == {".netrc", ".npmrc", ".local/moved/veil"}
    (home / ".config").symlink_to("moved")
    assert masked() == {".netrc", ".npmrc", ".local/moved/veil", "moved/gcloud", "moved/gh"}


@pytest.mark.parametrize("change", ["moved", "linked", "deleted", "came", "another kind"])
def test_what_was_remembered_of_credentials_never_outlives_a_change(home: Path, tree: Path, change: str) -> None:
    """Each change alone, when all else has been still for long."""

    def masked() -> set[str]:
        found = draw(Sandbox(protect_secrets=True), tree, HOME=str(home)).bounds
        every = (*found.masked_folders, *found.masked_files)
        return {str(Path(p).relative_to(home)) for p in every if home in Path(p).parents}

    (home / ".local" / "state" / "veil").mkdir(parents=True)
    (home / ".aws").mkdir()
    time.sleep(listed.SETTLED + 0.2)
    for _ in range(2):
        assert masked() == {".local/state/veil", ".aws"}
    if change == "moved":
        (home / ".local").rename(home / "elsewhere")
        assert masked() == {".aws"}
    elif change == "linked":
        (home / ".local" / "state").rename(home / ".local" / "other")
        (home / ".local" / "state").symlink_to("other")
        assert masked() == {".local/other/veil", ".aws"}
    elif change == "deleted":
        (home / ".local" / "state" / "veil").rmdir()
        assert masked() == {".aws"}
    elif change == "came":
        (home / ".netrc").touch()
        assert masked() == {".local/state/veil", ".aws", ".netrc"}
    else:
        (home / ".aws").rmdir()
        (home / ".aws").write_text("a file")
        found = draw(Sandbox(protect_secrets=True), tree, HOME=str(home)).bounds
        assert str(home / ".aws") in found.masked_files


def test_protected_secrets_take_those_of_the_environment_along(tree: Path) -> None:
    result = veil.run(
        "env", cwd=tree, sandbox={"protect_secrets": True}, env={"MY_TOKEN": None, "FINE": "yes"}, scrub_env=None
    )
    assert result.ok
    os.environ["SOME_API_TOKEN"] = "hunter2-hunter2"
    try:
        shown = veil.run("env", cwd=tree, sandbox={"protect_secrets": True})
    finally:
        del os.environ["SOME_API_TOKEN"]
    assert "hunter2" not in shown.stdout
    assert shown.to_dict()["secrets_env_scrubbed"] >= 1
    assert "hunter2" not in str(shown.to_dict())


def test_variables_of_helpers_go_unless_they_were_asked_for(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/user/1/agent")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    monkeypatch.setenv("TEMP", "/elsewhere")
    text = "echo ${SSH_AUTH_SOCK-none} ${XDG_RUNTIME_DIR-none} $TMPDIR $TEMP"
    told = veil.run(text, cwd=tree, sandbox=True, env={"XDG_RUNTIME_DIR": "/asked"}).stdout.split()
    assert told[:2] == ["none", "/asked"]
    assert told[2] == told[3] != "/elsewhere"
