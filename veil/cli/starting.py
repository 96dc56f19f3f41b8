"""``veil start``: leave an owner process behind and hear from it how the run began."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from veil import VeilError

#: The owner gets the import path of this process and nothing else on its command line, so that no pattern made for the
#: command (``pkill -f``) can hit it.
_PROGRAM = (
    "import json, sys; path = sys.stdin.readline(); sys.path[:] = json.loads(path); "
    "from veil.cli.owner import main; sys.exit(main())"
)


def start(command: str | Sequence[str], options: dict[str, Any]) -> dict[str, Any]:
    """Start it; the owner's report: the run's id, pid and status, its result when it could not start, or an error.

    Raises ``VeilError`` (``owner_lost``) when the owner died without a word.
    """
    order = {"command": command if isinstance(command, str) else list(command), "options": _plain(options)}
    owner = subprocess.Popen(
        # -P would be enough but is not in Python 3.10; -I also drops the user's site folder, which the path restores
        [sys.executable, "-I", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert owner.stdin is not None
    assert owner.stdout is not None
    assert owner.stderr is not None
    with contextlib.suppress(BrokenPipeError), owner.stdin:  # it died early: its last words follow
        owner.stdin.write(f"{json.dumps(sys.path)}\n{json.dumps(order)}".encode())
    with owner.stdout, owner.stderr:
        said, complained = owner.stdout.read(), owner.stderr.read()
    owner.returncode = 0  # it lives on by itself: nobody here waits for its end
    try:
        report: dict[str, Any] = json.loads(said)
    except ValueError:
        why = complained.decode("utf-8", "replace").strip() or "no message"
        raise VeilError(f"the owner process ended before the run had begun: {why}", code="owner_lost") from None
    return report


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """The options as JSON has them: bytes in base64, numbers beyond any end as Python spells them."""
    plain = dict(options)
    if isinstance(plain.get("stdin"), bytes):
        plain["stdin"] = {"base64": base64.b64encode(plain["stdin"]).decode("ascii")}
    return plain
