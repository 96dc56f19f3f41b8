"""Where the tests of one process have their folders."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_veil.config import Settings
from pytest_veil.real_disk import never_fake

if TYPE_CHECKING:
    from veil.taping import Slot


class Grounds:
    """The folder of the session, and a place for each stage: in the eval mode the same for every test here."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder: Path | None = None
        self._slot: Slot | None = None

    def folder(self) -> Path:
        """What the session keeps: pytest's own folder, with its retention, where pytest makes one."""
        if self._folder is None:
            factory = getattr(self._config, "_tmp_path_factory", None)
            if isinstance(factory, pytest.TempPathFactory):
                self._folder = factory.getbasetemp() / "veil"
                self._folder.mkdir(mode=0o700, exist_ok=True)
            else:
                made = self._folder = Path(tempfile.mkdtemp(prefix="veil-"))
                self._config.add_cleanup(lambda: shutil.rmtree(made, ignore_errors=True))
        return self._folder

    def base(self, settings: Settings, name: str | None) -> tuple[Path, Slot | None]:
        """A folder for a stage, which may be emptied; and its slot, when the stage (called ``name``) has its own."""
        from veil.taping import PROFILES, take_slot

        if settings.mode == "off":
            return Path(tempfile.mkdtemp(prefix="off-", dir=self.folder())), None
        if name is None and self._slot is not None:
            return self._slot.path, None
        slot = take_slot(PROFILES[settings.env or "deterministic"].place, "slot")
        if name is None:
            self._slot = slot
            return slot.path, None
        return slot.path, slot

    def close(self) -> None:
        """Give the place of this process back."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None


def import_all() -> None:
    """Import now what tests would import later, perhaps while pyfakefs makes every module that it sees a fake one."""
    from pytest_veil import confining, filling, looking, populating, rewinding, running  # noqa: F401 - for what they import
    from veil import Handle, run, taping  # noqa: F401 - each brings its module along

    never_fake()
