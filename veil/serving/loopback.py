"""The server over HTTP on this machine only, for clients that hold the token."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import uvicorn

from veil import Refused, wiring
from veil.host import prctl
from veil.serving.answering import Answering
from veil.serving.lifetime import Lifetime, reap
from veil.tools import Toolbox

HOST, PATH = "127.0.0.1", "/mcp"
#: A given token that is shorter could be guessed (characters).
_SHORTEST = 16
#: As large as what one call may carry (bytes).
_MAX_BODY = 64_000_000
#: How long answers that are on their way have when the server ends (seconds).
_PATIENCE = 2

_App = Callable[
    [MutableMapping[str, Any], Callable[..., Awaitable[Any]], Callable[..., Awaitable[None]]], Awaitable[None]
]


def token_of(path: Path | None) -> str:
    """The token that clients have to show: what the file holds, else a new one, which is written there.

    Raises ``Refused``: ``weak_token`` for one that could be guessed, ``token_unreadable``.
    """
    if path is None:
        return secrets.token_urlsafe(32)
    try:
        with contextlib.suppress(FileExistsError), open(path, "x", opener=_private) as made:
            made.write(secrets.token_urlsafe(32) + "\n")
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"the token in {path} cannot be had: {error}", code="token_unreadable", path=str(path)) from None
    if len(token) < _SHORTEST or not token.isprintable() or " " in token:
        raise Refused(
            f"the token in {path} needs {_SHORTEST} characters at least and no blank; remove the file and one is made",
            code="weak_token",
            path=str(path),
        )
    return token


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def serve(box: Toolbox, port: int, token_file: Path | None, parent: int) -> int:
    """Serve on 127.0.0.1 until a signal comes; returns the exit code of the process.

    Args:
        box: the tools that are offered.
        port: 0 takes a free one. The address stands on standard error.
        token_file: where the token is or will be; without one a new token stands on standard error.
        parent: with this process the server ends as well (0: none).

    Raises ``Refused`` for a port that cannot be had, and as ``token_of``.
    """
    token = token_of(token_file)
    try:
        listening = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise Refused(f"port {port} of {HOST} cannot be had: {error}", code="port_unavailable", port=port) from None
    listening.set_inheritable(False)
    wiring.own_process()
    prctl.keep_private()  # the token stands in this process's memory
    told = f"veil: serving on http://{HOST}:{listening.getsockname()[1]}{PATH}\n"
    if token_file is None:
        told += f"veil: Authorization: Bearer {token}\n"
    try:
        number = asyncio.run(_serve(box, listening, token, told, parent))
    finally:
        reap(box)
    return 0 if number is None else 128 + number


async def _serve(box: Toolbox, listening: socket.socket, token: str, told: str, parent: int) -> int | None:
    answering = Answering(box)
    app = answering.server.streamable_http_app(streamable_http_path=PATH, host=HOST, max_request_body_size=_MAX_BODY)
    config = uvicorn.Config(
        _guarded(app, token), log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=_PATIENCE
    )
    server = _Server(config)

    def stop() -> None:
        answering.end()
        server.should_exit = True
        # a stream that is held open for news is cut off; that is no fault
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)

    life = Lifetime(stop)
    with life.watching(parent):
        sys.stderr.write(told)
        sys.stderr.flush()
        await server.serve(sockets=[listening])
    return life.signal


class _Server(uvicorn.Server):
    """Signals are the affair of ``Lifetime``."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _guarded(app: _App, token: str) -> _App:
    """Lets nobody in who does not show the token. Compared in constant time."""
    wanted = f"Bearer {token}".encode("latin-1")

    async def guard(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            shown = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(shown, wanted):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"show the token of this server\n"})
                return
        await app(scope, receive, send)

    return guard
