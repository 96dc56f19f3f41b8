"""Every option means the same in run, arun and start, and is the same by setting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import veil

Door = Callable[..., veil.Result]
DOORS: dict[str, Door] = {
    "run": veil.run,
    "arun": lambda command, **options: asyncio.run(veil.arun(command, **options)),
    "start": lambda command, **options: veil.start(command, **options).wait(60),
}
EACH = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@EACH
def test_the_same_in_every_door(door: Door, here: Path) -> None:
    (here / "sub").mkdir()
    heard: list[tuple[str, bytes]] = []
    result = door(
        'pwd; echo "$SAID"; cat; echo err >&2',
        cwd="sub",
        env={"SAID": "x y"},
        stdin="in\n",
        merge_stderr=True,
        on_output=lambda name, data: heard.append((name, data)),
        no_store=True,
        effects=False,
        project=here,
    )
    assert result.stdout == f"{here.resolve()}/sub\nx y\nin\nerr\n"
    assert result.cwd == str(here / "sub")
    assert (result.stderr, result.stored, result.effects_source) == ("", "memory-only", None)
    assert b"".join(data for _, data in heard) == result.stdout_bytes
    assert door("echo $0", shell="sh").stdout.endswith("sh\n")
    assert door("seq 1000", max_output=100).stdout_truncated
    assert door(["printf", "%s|", "a b", "*"]).stdout == "a b|*|"


@EACH
@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"max_output": -1}, "max_output"),
        ({"on_output": 5}, "on_output"),
        ({"project": 5}, "project"),
        ({"project": "/is/not/there"}, "project"),
        ({"env": {"a": 5}}, "env['a']"),
        ({"stdim": ""}, "stdim"),
        ({"secrets": ["short"]}, "secrets[0]"),
    ],
)
def test_bad_input_is_named_before_anything_runs(door: Door, options: dict[str, Any], argument: str) -> None:
    with pytest.raises(veil.BadInput) as caught:
        door("touch ran", **options)
    assert caught.value.facts["argument"] == argument
    assert caught.value.to_dict()["error"] in ("bad_input", "unknown_option")
    assert not Path("ran").exists()


@EACH
def test_settings_hold_where_the_call_says_nothing(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_MAX_STREAM_BYTES", "7")
    monkeypatch.setenv("VEIL_NO_STORE", "1")
    result = door("seq 100")
    assert (len(result.stdout_bytes), result.stored) == (7, "memory-only")
    other = door("seq 100", max_output=1000, no_store=False)
    assert (other.stdout_truncated, other.stored) == (False, "disk")


def test_the_time_limit_by_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_TIMEOUT_MS", "200")
    assert veil.run("sleep 60").timed_out
    assert veil.run("sleep 0.5", timeout=60).ok
    monkeypatch.setenv("VEIL_EFFECTS", "0")
    assert veil.run("touch a").effects_source is None
    assert veil.run("touch b", effects=True).created == ["b"]
    monkeypatch.setenv("VEIL_EFFECTS", "maybe")
    with pytest.raises(veil.BadInput, match="VEIL_EFFECTS"):
        veil.run("true")


def test_projects_keep_their_records_apart(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    ids = [veil.run(f"echo {folder.name}", project=folder).id for folder in folders]
    assert ids == ["cmd1", "cmd1"]
    for folder in folders:
        assert veil.detail("cmd1", project=folder).result.stdout == f"{folder.name}\n"
        assert [found.id for found in veil.runs(project=folder)] == ["cmd1"]


def test_background_runs_of_two_projects_are_not_mixed_up(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    handles = []
    for folder in folders:
        folder.mkdir()
        handles.append(veil.start(f"echo {folder.name}; sleep 600", project=folder))
    try:
        assert [handle.id for handle in handles] == ["cmd1", "cmd1"]
        for folder, handle in zip(folders, handles, strict=True):
            handle.wait_for(pattern=folder.name, timeout=60)
            assert veil.logs("cmd1", project=folder).stdout == f"{folder.name}\n"
        assert veil.kill("cmd1", project=folders[0]).status == "killed"
        assert [handle.running() for handle in handles] == [False, True]
    finally:
        for handle in handles:
            handle.kill("SIGKILL")


def test_full_is_the_view_and_never_the_kept_bytes() -> None:
    short, full = veil.run("seq 1 500"), veil.run("seq 1 500", full=True)
    assert short.stdout == full.stdout
    assert full.to_dict()["stdout"] == full.stdout
    assert len(short.to_dict()["stdout"]) < 1000
    assert short.to_dict(full=True)["stdout"] == short.stdout
