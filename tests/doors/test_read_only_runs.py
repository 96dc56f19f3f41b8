"""What the pre-check calls read-only neither waits for its turn nor is looked at; nothing is claimed of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import veil

pytestmark = pytest.mark.needs("bash")


@contextmanager
def busy(folder: Path) -> Iterator[None]:
    """Another run holds the window of the folder until the block ends."""
    gate = folder / "gate"
    begun = threading.Event()
    holder = threading.Thread(
        target=lambda: veil.run(
            "echo in; while [ ! -e gate ]; do sleep 0.02; done", cwd=folder, on_output=lambda *_: begun.set()
        )
    )
    holder.start()
    try:
        assert begun.wait(60)
        yield
    finally:
        gate.touch()
        holder.join()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_EFFECTS_WAIT_MS", "60000")


@pytest.mark.parametrize("command", ["ls | wc -l", ["cat", "a"]])
def test_it_does_not_wait(tmp_path: Path, command: Any) -> None:
    (tmp_path / "a").write_text("x")
    with busy(tmp_path):
        result = veil.run(command, cwd=tmp_path)  # would wait for a minute, and the gate opens only after it
    assert result.ok
    assert result.to_dict()["effects"] == "read-only"
    assert result.effects_source is None
    assert result.files_changed == []
    assert "read-only" in (result.effects_unavailable or "")
    assert result.judge({"changed": False}).ok is None


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("touch b", {}),
        ("cat a", {"effects": True}),
        ("cat a", {"expect": {"changed": False}}),
        ("cat a", {"env": {"LD_PRELOAD": ""}}),
        ("cat a", {"shell": "/usr/bin/env"}),
    ],
)
def test_whatever_may_write_or_was_asked_for_is_looked_at(
    tmp_path: Path, command: str, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("x")
    monkeypatch.setenv("VEIL_EFFECTS_WAIT_MS", "50")
    with busy(tmp_path):
        result = veil.run(command, cwd=tmp_path, **options)
    assert "effects" not in result.to_dict()
    assert result.shared is True  # it waited for its turn in vain
