"""veil runs a command and gives back data.

    import veil
    result = veil.run("make -j2", expect={"exit": 0})
    result.ok, result.view, result.files_changed, result.assert_ok

Importing it costs little: what a run needs is imported by the first run.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    raise ImportError("veil runs on Linux and macOS; Windows has no process groups or signals that it could stand on")

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veil.api import Detail, Handle, Killed, Logs, RunOptions, arun, detail, handle_of, kill, logs, run, runs, start
    from veil.asking import UnknownOption
    from veil.model.errors import BadInput, CommandFailed, NotFound, Refused, StoreFailed, VeilError
    from veil.model.outcome import Change
    from veil.model.record import Record
    from veil.model.verdict import Judgement, Verdict
    from veil.precheck import Assessment, plan
    from veil.promoting import Applied, apply
    from veil.result import Result
    from veil.rewinding import Checkpoint, Restored, checkpoint, checkpoints, diff, drop, restore
    from veil.stateful import Shell, shell

__version__ = "0.1.0"

_WHERE = {
    **dict.fromkeys(
        (
            "Detail",
            "Handle",
            "Killed",
            "Logs",
            "RunOptions",
            "arun",
            "detail",
            "handle_of",
            "kill",
            "logs",
            "run",
            "runs",
            "start",
        ),
        "veil.api",
    ),
    "UnknownOption": "veil.asking",
    **dict.fromkeys(
        ("BadInput", "CommandFailed", "NotFound", "Refused", "StoreFailed", "VeilError"), "veil.model.errors"
    ),
    "Change": "veil.model.outcome",
    "Record": "veil.model.record",
    **dict.fromkeys(("Judgement", "Verdict"), "veil.model.verdict"),
    "Result": "veil.result",
    **dict.fromkeys(("Assessment", "plan"), "veil.precheck"),
    **dict.fromkeys(("Applied", "apply"), "veil.promoting"),
    **dict.fromkeys(
        ("Checkpoint", "Restored", "checkpoint", "checkpoints", "diff", "drop", "restore"), "veil.rewinding"
    ),
    **dict.fromkeys(("Shell", "shell"), "veil.stateful"),
}

__all__ = [
    "Applied",
    "Assessment",
    "BadInput",
    "Change",
    "Checkpoint",
    "CommandFailed",
    "Detail",
    "Handle",
    "Judgement",
    "Killed",
    "Logs",
    "NotFound",
    "Record",
    "Refused",
    "Restored",
    "Result",
    "RunOptions",
    "Shell",
    "StoreFailed",
    "UnknownOption",
    "VeilError",
    "Verdict",
    "__version__",
    "apply",
    "arun",
    "checkpoint",
    "checkpoints",
    "detail",
    "diff",
    "drop",
    "handle_of",
    "kill",
    "logs",
    "plan",
    "restore",
    "run",
    "runs",
    "shell",
    "start",
]


#: Modules that are doors of their own, imported by the first use of their name.
_DOORS = frozenset({"governed", "taping", "tools"})


def __getattr__(name: str) -> object:
    where = _WHERE.get(name)
    if where is None and name not in _DOORS:
        raise AttributeError(f"module 'veil' has no attribute {name!r}")
    import importlib

    if where is None:
        return importlib.import_module(f"veil.{name}")
    value = getattr(importlib.import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
