"""The client of the official SDK: connected for one piece of work, and one that gives up waiting."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from marked import Marker
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from raw_client import LONG


async def give_up(client: Client, marker: Marker) -> None:
    """Ask for a command that goes on, stop waiting for it, and see all of it end."""
    task = asyncio.ensure_future(client.call_tool("sh_run", {"command": f"sleep {marker} & sleep {marker}"}))
    while len(marker.alive()) < 3:
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while marker.alive():
        await asyncio.sleep(0.05)


def with_client(server: Any, work: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        async with Client(server, **options) as client:
            return await asyncio.wait_for(work(client), LONG)

    return asyncio.run(run())


def over_pipes(work: Callable[[Client], Awaitable[Any]], *words: str, **options: Any) -> Any:
    argv = ["-m", "veil", "mcp", *words]
    # the SDK hands a few variables on and no others
    started = StdioServerParameters(command=sys.executable, args=argv, env=dict(os.environ))
    return with_client(started, work, **options)
