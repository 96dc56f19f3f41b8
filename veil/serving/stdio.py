"""The server over standard input and output: one client, which started this process."""

from __future__ import annotations

import asyncio
import os
import sys

from veil import wiring
from veil.host import prctl
from veil.serving.answering import Answering
from veil.serving.lifetime import Lifetime, reap
from veil.serving.wires import Incoming, Outgoing, take_standard_streams
from veil.tools import Toolbox

#: How long the last answers wait for the client to read them (seconds).
_LAST_WORDS = 2.0


def serve(box: Toolbox, parent: int) -> int:
    """Serve until the client leaves or the process ``parent`` (0: none) ends; returns the exit code of the process."""
    if os.isatty(0):
        sys.stderr.write("veil: speaking MCP on standard input and output; a client has to start this command\n")
    reading, writing = take_standard_streams()
    wiring.own_process()
    prctl.keep_private()  # the wire stands in /proc as well, where a command could write to it
    try:
        number = asyncio.run(_serve(box, reading, writing, parent))
    finally:
        reap(box)
    return 0 if number is None else 128 + number


async def _serve(box: Toolbox, reading: int, writing: int, parent: int) -> int | None:
    loop = asyncio.get_running_loop()
    life = Lifetime(lambda: incoming.close())
    outgoing = Outgoing(writing, lambda: _on(loop, life))
    incoming = Incoming(reading, outgoing.put, life.stop)
    server = Answering(box).server
    with life.watching(parent):
        await server.run(incoming.messages, outgoing, server.create_initialization_options())
        outgoing.finish(_LAST_WORDS)
    return life.signal


def _on(loop: asyncio.AbstractEventLoop, life: Lifetime) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(life.stop)
