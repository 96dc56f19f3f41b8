"""``expect={"file_absent": "core"}``: nothing is at the path."""

from __future__ import annotations

from typing import ClassVar

from veil.checks.files import FileCheck


class FileAbsent(FileCheck):
    """See ``FileCheck``."""

    name: ClassVar[str] = "file_absent"
    wanted: ClassVar[bool] = False
