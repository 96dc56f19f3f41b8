"""What stays of a failed test, and where a report says that it is."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_veil.scenes import Scene


def tell_places(scene: Scene, report: pytest.TestReport, folder: Path) -> None:
    """Add to a failed call where the runs that its message names, and its workspace, are to be found."""
    if report.when != "call" or not scene.ran:
        return
    told = []
    if scene.player is None and (folder / "records").is_dir():
        told.append(f"records: VEIL_STATE_DIR={folder / 'records'} veil detail ID")
    kept = _kept_place(scene, folder)
    if kept is not None:
        told.append(f"workspace: {kept}")
    if told:
        report.sections.append(("veil", "\n".join(told)))


def leave_place(scene: Scene, phases: Mapping[str, pytest.TestReport], folder: Path) -> None:
    """Keep the workspace of a failed test, where that is wanted; with the eval mode off, others go at once."""
    if not any(phase.failed for phase in phases.values()):
        if scene.settings.mode == "off":
            shutil.rmtree(scene.stage.root.parent, ignore_errors=True)
        return
    kept = _kept_place(scene, folder)
    if kept is None or kept == scene.stage.root:
        return
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(scene.stage.root, kept)


def _kept_place(scene: Scene, folder: Path) -> Path | None:
    """Where the workspace of a failed test stays; None when it does not."""
    if scene.settings.mode == "off":
        return scene.stage.root
    if not scene.settings.keep_failed or scene.settings.mode == "verify":  # there it is not yet known what failed
        return None
    from veil.taping import file_stem

    return folder / "failed" / file_stem(scene.nodeid)
