"""A warm process that begins an operation on checkpoints in a child of its own and kills that child in the middle.

As a program it takes one order a line and answers each with how the child ended. Starting Python and importing is most
of what an operation on a small tree costs, and nothing that is to be killed here.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: The operation answered with an error of ours.
REFUSED = 2


class Killer:
    """The process, from outside."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    def done(self, state: Path, ws: Path, verb: str, label: str, **more: Any) -> bool:
        """Whether the operation was done before it was killed. Arguments as for ``ends``."""
        code = self.ends(state, ws, verb, label, **more)
        assert code in (0, -signal.SIGKILL), f"the operation ended by itself: {code}"
        return code == 0

    def ends(self, state: Path, ws: Path, verb: str, label: str, **more: Any) -> int:
        """How it ended: 0, ``REFUSED``, or the negative number of the signal.

        Args:
            after: seconds until SIGKILL. moment: instead, the number of the call of the system at which the child kills
                itself so (of those calls that Python tells audit hooks of). powers: whether it keeps those of root.
        """
        order = {"state": str(state), "ws": str(ws), "verb": verb, "label": label, **more}
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(order) + "\n")
        self._child.stdin.flush()
        return int(self._child.stdout.readline())


@contextlib.contextmanager
def started() -> Iterator[Killer]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests" / "checkpoints")))}
    with subprocess.Popen(
        [sys.executable, __file__], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        yield Killer(child)


def _operate(order: dict[str, Any]) -> None:
    from ckpt_trees import give_up_powers

    from veil.model.errors import VeilError
    from veil.snapshots import Checkpoints

    if not order.get("powers", True):
        give_up_powers()
    left = order.get("moment", 0)

    def count(event: str, arguments: object) -> None:
        nonlocal left
        if event.startswith(("open", "os.", "sqlite3.")):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    try:
        getattr(Checkpoints(Path(order["state"])), order["verb"])(order["ws"], order["label"])
    except VeilError:
        os._exit(REFUSED)


def _serve() -> None:
    import sqlite3  # noqa: F401 (once, for all children)

    import veil.snapshots  # noqa: F401

    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if not pid:
            try:
                _operate(order)
                os._exit(0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        if "after" in order:
            time.sleep(order["after"])
            os.kill(pid, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve()
