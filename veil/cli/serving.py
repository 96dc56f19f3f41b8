"""``veil mcp``: the tools for an MCP client."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from veil import BadInput, Refused
from veil.host.guarding import stand_guard
from veil.tools import Toolbox


def serve(*, http: bool, port: int, token_file: str | None, policy: str | None, tool: Sequence[str]) -> int:
    """Serve until the client leaves or a signal comes; the exit code.

    Raises ``Refused`` (``not_installed``) without the SDK; as the server, a boundary and a toolbox do.
    """
    if not http and (port or token_file):
        raise BadInput("http", False, "--http with --port or --token-file (standard input and output have neither)")
    # before anything large is imported, which the guard has no need of
    code, parent = stand_guard(leave_with_parent=not http)
    if code is not None:
        return code
    try:
        if http:
            from veil.serving import loopback
        else:
            from veil.serving import stdio
    except ImportError as error:
        raise Refused(
            f"the MCP server needs the official SDK, version 2 or newer: pip install 'pytest-veil[mcp]' ({error})",
            code="not_installed",
        ) from None
    box = _box(policy, tool)
    if http:
        return loopback.serve(box, port, None if token_file is None else Path(token_file), parent)
    return stdio.serve(box, parent)


def _box(policy: str | None, only: Sequence[str]) -> Toolbox:
    boundary = None
    if policy is not None:
        from veil.governed import Boundary
        from veil.serving.eliciting import ask_client

        boundary = Boundary(Path.cwd(), policy, approver=ask_client)
    return Toolbox(boundary=boundary, only=only or None)
