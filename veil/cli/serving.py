"""``veil mcp``: the tools for an MCP client."""

from __future__ import annotations

from pathlib import Path

from veil import BadInput, Refused


def serve(*, http: bool, port: int, token_file: Path | None) -> int:
    """Serve until the client leaves or a signal comes; the exit code.

    Raises ``Refused`` (``not_installed``) without the SDK, or as the server does.
    """
    if not http and (port or token_file):
        raise BadInput("http", False, "--http with --port or --token-file (standard input and output have neither)")
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
    return loopback.serve(port, token_file) if http else stdio.serve()
