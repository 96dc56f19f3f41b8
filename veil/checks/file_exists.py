"""``expect={"file_exists": "dist/app.js"}``: something is at the path."""

from __future__ import annotations

from typing import ClassVar

from veil.checks.files import FileCheck


class FileExists(FileCheck):
    """See ``FileCheck``."""

    name: ClassVar[str] = "file_exists"
    wanted: ClassVar[bool] = True
