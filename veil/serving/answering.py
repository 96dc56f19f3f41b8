"""The server itself: lists the tools, carries out calls, tells of progress."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
import traceback
from typing import Any

import anyio
import mcp.types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

import veil
from veil.present.text import safe_text
from veil.serving.eliciting import CALLER, Caller, needed, take
from veil.tools import Tool, Toolbox
from veil.tools.plain import plain

#: How often a client that asked for it hears of a run (seconds).
PROGRESS_EVERY = 1.0
_LINE = 200

INSTRUCTIONS = (
    "Run commands with sh_run: the reply says how it ended and which files changed, with output condensed. The whole "
    "output is kept: read more of it with sh_detail (id) instead of running the command again. Start servers and "
    "watchers with background: true, follow them with sh_logs and end them with sh_kill."
)


class Progress:
    """What a run has written so far: the pumping thread adds, the loop looks."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._bytes = 0
        self._newest = b""

    def add(self, stream: str, data: bytes) -> None:
        with self._lock:
            self._bytes += len(data)
            self._newest = (self._newest + data[-4096:])[-4096:]

    def told(self) -> tuple[float, str]:
        """Seconds so far, and a line for people: seconds, bytes and the last line that is not blank."""
        with self._lock:
            count, newest = self._bytes, self._newest
        elapsed = time.monotonic() - self._began
        lines = [line.strip() for line in safe_text(newest).splitlines() if line.strip()]
        last = f": {lines[-1][:_LINE]}" if lines else ""
        return round(elapsed, 1), plain(f"{elapsed:.1f} s, {count} bytes{last}")


class Answering:
    """Answers MCP requests with a toolbox."""

    def __init__(self, box: Toolbox) -> None:
        self._box = box
        self._running: set[asyncio.Future[dict[str, Any]]] = set()
        self._ending = threading.Event()
        self._listed = types.ListToolsResult(tools=[_listed(tool) for tool in box.tools])
        self.server: Server[Any] = Server(
            "veil",
            version=veil.__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    def end(self) -> None:
        """End the calls that are on their way, and answer them; from now on there are no others."""
        self._ending.set()
        for task in self._running:
            task.cancel()

    async def _list(
        self, context: ServerRequestContext[Any], asked: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._listed

    async def _call(
        self, context: ServerRequestContext[Any], asked: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        take(self._box.boundary, asked.input_responses)
        wants_progress = bool(context.meta) and "progress_token" in (context.meta or {})
        progress = Progress() if wants_progress else None
        CALLER.set(Caller(context.session, asyncio.get_running_loop(), context.request_id, self._ending))
        # a task of its own: the cancel scopes of the SDK would cancel it anew in every turn of the loop while it is
        # ending its tree
        task = asyncio.ensure_future(
            self._box.acall(asked.name, asked.arguments, on_output=None if progress is None else progress.add)
        )
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        if self._ending.is_set():
            task.cancel()
        try:
            while not (await asyncio.wait({task}, timeout=None if progress is None else PROGRESS_EVERY))[0]:
                if progress is not None:
                    elapsed, line = progress.told()
                    await context.session.report_progress(elapsed, message=line)
        except asyncio.CancelledError:
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # looked at; nobody waits for it any more
            raise
        reply = _reply(task)
        return needed(context.session, self._box.boundary, reply) or _answer(reply)


def _reply(task: asyncio.Future[dict[str, Any]]) -> dict[str, Any]:
    try:
        return task.result()
    except asyncio.CancelledError:
        return {"error": "server_ending", "message": "the server is ending, and what was running with it", "facts": {}}
    except veil.VeilError as error:  # a tool that there is not
        return plain(error.to_dict())
    except Exception as error:  # a bug of one call must not take the others with it
        traceback.print_exc(file=sys.stderr)
        return {
            "error": "internal_error",
            "message": plain(f"a fault in veil, not in the command: {type(error).__name__}: {error}"),
            "facts": {},
        }


def _answer(reply: dict[str, Any]) -> types.CallToolResult:
    text = types.TextContent(type="text", text=json.dumps(reply, ensure_ascii=False))
    return types.CallToolResult(content=[text], structured_content=reply, is_error="error" in reply)


def _listed(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(read_only_hint=tool.read_only, open_world_hint=not tool.read_only),
    )
