"""Parts gathered once and bound to a project."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import veil
from veil import wiring
from veil.layers.base import Layer
from veil.model.command import Effects, Look, ScrubEnv


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def environment(state: Path, **more: str) -> dict[str, str]:
    return {"VEIL_STATE_DIR": str(state), **more}


def test_one_session_for_one_project_and_one_set_of_variables(tmp_path: Path, own_state: Path) -> None:
    first = wiring.session(environment(own_state), tmp_path)
    assert wiring.session(environment(own_state, UNRELATED="x"), tmp_path) is first
    assert wiring.session(environment(own_state), str(tmp_path) + "/.") is first
    other = wiring.session(environment(own_state, VEIL_TIMEOUT_MS="5"), tmp_path)
    assert other is not first
    assert other.settings.timeout == 0.005
    (tmp_path / "sub").mkdir()
    assert wiring.session(environment(own_state), tmp_path / "sub") is not first


def test_a_sub_folder_of_a_repository_is_its_project(tmp_path: Path, own_state: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    deep = wiring.session(environment(own_state), tmp_path / "a" / "b")
    assert deep.project == tmp_path.resolve()
    assert deep is wiring.session(environment(own_state), tmp_path)


def test_every_wish_and_every_check_has_one_part(tmp_path: Path, own_state: Path) -> None:
    kit = wiring.session(environment(own_state), tmp_path).kit
    assert {Effects, Look, ScrubEnv} <= kit.wishes.keys()
    assert set(kit.wishes.values()) == set(kit.layers)
    layers: list[Layer] = list(kit.layers)
    assert len({layer.name for layer in layers}) == len(layers)
    assert {
        "exit",
        "stdout_contains",
        "stdout_matches",
        "stderr_empty",
        "file_exists",
        "file_absent",
    } <= kit.checks.keys()
    assert {"changed", "max_ms"} <= kit.checks.keys()
    assert all(name == check.name for name, check in kit.checks.items())


def test_many_sessions_close_old_stores_and_lose_nothing(tmp_path: Path, own_state: Path) -> None:
    """A program that keeps changing its variables, with a run in the background since the first of them."""
    going = veil.start("while [ ! -e go ]; do sleep 0.02; done; echo end")
    folders = [tmp_path / f"p{n}" for n in range(40)]
    for folder in folders:
        folder.mkdir()
        assert veil.run("true", project=folder).stored == "disk"
    (tmp_path / "go").touch()
    result = going.wait(60)
    assert (result.stdout, result.stored) == ("end\n", "disk")
    assert veil.detail(result.id).result.stdout == "end\n"
    assert all(veil.detail("cmd1", project=folder).result.ok for folder in folders)


def test_threads_that_come_first_together_share_one_session(tmp_path: Path, own_state: Path) -> None:
    found: list[wiring.Session] = []
    ready = threading.Barrier(8)

    def ask() -> None:
        ready.wait()
        found.append(wiring.session(environment(own_state), tmp_path))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(session) for session in found}) == 1


def test_without_a_place_for_records_runs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("VEIL_STATE_DIR", str(blocked / "below"))
    result = veil.run("echo still", project=tmp_path)
    assert (result.stdout, result.ok) == ("still\n", True)
    if result.stored != "disk":  # else a fallback place was found
        assert result.to_dict()["why_memory"]
    assert veil.detail(result.id, project=tmp_path).result.stdout == "still\n"


def test_two_parts_for_one_thing_are_a_conflict(tmp_path: Path, own_state: Path) -> None:
    import pluggy

    class Twice:
        @pluggy.HookimplMarker("veil")
        def veil_layers(self) -> list[tuple[type, object]]:
            return [(ScrubEnv, first.kit.wishes[ScrubEnv])]

    first = wiring.session(environment(own_state), tmp_path)
    manager, plugin = wiring.plugins(), Twice()
    manager.register(plugin, "twice")
    try:
        with pytest.raises(veil.Refused) as caught:
            wiring.session(environment(own_state, VEIL_TIMEOUT_MS="77"), tmp_path)
        assert caught.value.code == "plugin_conflict"
    finally:
        manager.unregister(plugin)
