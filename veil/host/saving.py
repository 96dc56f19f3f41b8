"""Writing a file so that there is the old one or the new one, whole, whatever happens in between."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def save(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path``: written beside it, on disk before it takes the name. A link there is followed.

    Raises ``OSError``; then ``path`` is as it was, and nothing is left beside it.
    """
    path = Path(os.path.realpath(path))
    try:
        mode = path.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0o077)
        os.umask(mask)
        mode = 0o666 & ~mask
    descriptor, name = tempfile.mkstemp(prefix=".veil-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise
