"""The boundary as one tool for an agent: JSON in, JSON out, never an exception for what the agent did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veil.governed.boundary import Boundary
from veil.governed.calls import HARD_CHARS
from veil.model.errors import BadInput, VeilError

NAME = "run_shell_command"
_INPUTS = ("argv", "timeout_s", "max_stdout_chars", "max_stderr_chars")


def schema(boundary: Boundary) -> dict[str, Any]:
    """The JSON schema of the tool's input, with the limits of this boundary."""
    chars = {"type": "integer", "minimum": 0, "maximum": HARD_CHARS}
    return {
        "type": "object",
        "properties": {
            "argv": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "timeout_s": {"type": "number", "exclusiveMinimum": 0, "maximum": boundary.bounds.max_timeout},
            "max_stdout_chars": chars,
            "max_stderr_chars": chars,
        },
        "required": ["argv"],
        "additionalProperties": False,
    }


def run_shell_command(boundary: Boundary, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Run one governed command.

    Returns:
        ``{"ok": true, ...}`` with the result when the dispatch succeeded, whatever the return code; else
        ``{"ok": false, "error": code, "message": ..., "facts": {...}}``.
    """
    try:
        _check(boundary, arguments)
        result = boundary.run(
            arguments.get("argv", ()),
            timeout_s=arguments.get("timeout_s"),
            max_stdout_chars=arguments.get("max_stdout_chars"),
            max_stderr_chars=arguments.get("max_stderr_chars"),
        )
    except VeilError as error:
        return {"ok": False, **error.to_dict()}
    return {"ok": True, **result.to_dict()}


def _check(boundary: Boundary, arguments: object) -> None:
    """Raises ``BadInput`` for arguments that no call has; the audit has that request too."""
    if not isinstance(arguments, Mapping):
        raise boundary.unheard(None, BadInput("arguments", arguments, "an object with argv"))
    for name in arguments:
        if name not in _INPUTS:
            wrong = BadInput(str(name), arguments[name], f"one of {', '.join(_INPUTS)} (no cwd, env, stdin or TTY)")
            raise boundary.unheard(arguments.get("argv"), wrong)
