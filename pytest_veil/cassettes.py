"""The files: which test has which, reading, writing whole or not at all, and removing those without a test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_veil.config import Settings

if TYPE_CHECKING:
    import pytest

    from veil.taping import Cassette

FOLDER = "cassettes"
SUFFIX = ".veil.txtar"


def cassette_of(item: pytest.Item, settings: Settings) -> Path:
    """Where the recording of a test is, or would be."""
    from veil.taping import file_name

    inner = item.nodeid.partition("::")[2]
    module = item.path
    folder = folder_beside(module, item.config.rootpath, settings.cassettes)
    if settings.cassette is None:
        return folder / file_name(_title(module, inner))
    if settings.cassette.endswith(SUFFIX):
        return Path(os.path.abspath(folder / settings.cassette))
    return folder / file_name(settings.cassette)


def shared_cassette(name: str, owner: Path | None, root: Path, settings: Settings) -> Path:
    """Where the recording of a shared runner is: ``owner`` is the module or package that it belongs to, None the
    session."""
    from veil.taping import file_name

    if owner is None:
        return (settings.cassettes or root / FOLDER) / file_name(f"session.{name}")
    if owner.is_dir():
        return folder_beside(owner / "__init__.py", root, settings.cassettes) / file_name(f"package.{name}")
    return folder_beside(owner, root, settings.cassettes) / file_name(f"{_stem(owner)}.{name}")


def folder_beside(module: Path, root: Path, chosen: Path | None) -> Path:
    """``cassettes`` beside a module; below a chosen folder the same sub-folder as below the root."""
    if chosen is None:
        return module.parent / FOLDER
    inner = os.path.relpath(module.parent, root)
    if inner == ".." or inner.startswith(".." + os.sep):
        from veil.taping import file_stem

        inner = file_stem(str(module.parent))  # outside the root: a name that no folder inside has
    return Path(os.path.normpath(chosen / inner))


def _stem(module: Path) -> str:
    return module.name.removesuffix(".py")


def _title(module: Path, inner: str) -> str:
    """The text that names a test within its folder. Dots in it could come from either side, so then colons divide."""
    names, bracket, parameters = inner.partition("[")  # what stands in there is anything
    parts = [_stem(module), *names.split("::")]
    plain = not any("." in part for part in parts)
    return (".".join if plain else "::".join)(parts) + bracket + parameters


def read_cassette(path: Path, shown: str) -> Cassette | None:
    """The recording; None when there is no such file.

    Raises ``CassetteDamaged`` or ``CassetteVersion`` naming file and line.
    """
    from veil.taping import CassetteDamaged, decode

    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CassetteDamaged(shown, 1, f"it cannot be read: {error.strerror}") from None
    return decode(data, shown)


def write_whole(path: Path, data: bytes) -> bool:
    """Put ``data`` there at once: whoever reads sees the old file or the new one. False when it is there already."""
    from veil.taping import save

    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    save(path, data)
    return True


def stale_cassettes(owned: Iterable[Path]) -> list[Path]:
    """Recordings that lie beside ``owned`` ones and are not among them. One that stands alone is a test, not stale."""
    kept = set(owned)
    found: set[Path] = set()
    for folder in {path.parent for path in kept}:
        found.update(path for path in folder.glob(f"*{SUFFIX}") if path not in kept and path.is_file())
    return sorted(path for path in found if not _may_stand_alone(path))


def _may_stand_alone(path: Path) -> bool:
    """Whether it names a workspace of its own; also when that cannot be read."""
    from veil import VeilError

    try:
        cassette = read_cassette(path, str(path))
    except VeilError:
        return True
    return cassette is not None and cassette.header.workspace.kind != "given"
