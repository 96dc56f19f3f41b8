"""One JSON-RPC message a line over two descriptors that nobody else can reach by the usual names.

The SDK's own transport drops what it cannot parse without a word, and what a command printed must never be able to
break a frame, so frames are read and written here: malformed ones are answered, and every frame is plain ASCII.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import json
import os
import queue
import select
import socket
import stat
import sys
import threading
from collections.abc import Callable
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter

#: A frame longer than this is dropped and answered: memory is not for the taking (bytes).
MAX_FRAME = 256_000_000
#: What a cancelled request is answered with, by the number that the SDK has for it over HTTP.
_CANCELLED = -32800
#: What a pipe that can be written to takes at once without making anybody wait (POSIX: PIPE_BUF).
_AT_ONCE = select.PIPE_BUF
_PIECE = 1 << 18


def take_standard_streams() -> tuple[int, int]:
    """Descriptors of the client's two pipes, moved away: what stands at 0 and 1 afterwards is nothing and stderr."""
    sys.stdout.flush()
    # not inherited by children, and above the three that every child gets
    reading, writing = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # no standard error
        os.dup2(null, 1)
        os.dup2(null, 2)
    if null > 2:
        os.close(null)
    return reading, writing


class Incoming:
    """Reads frames and gives the messages to the loop: on the loop itself where it can tell that there is something to
    read (pipes and sockets), else on a thread.

    Args:
        complain: takes the answer to a frame that is no message; called on the loop.
        at_end: called on the loop when the client has closed its side.
    """

    def __init__(self, fd: int, complain: Callable[[dict[str, Any]], None], at_end: Callable[[], None]) -> None:
        self._fd, self._complain, self._at_end = fd, complain, at_end
        self._loop = asyncio.get_running_loop()
        self._into: MemoryObjectSendStream[SessionMessage | Exception]
        self.messages: MemoryObjectReceiveStream[SessionMessage | Exception]
        # every request gets a task at once, so a bound here would bound nothing
        self._into, self.messages = anyio.create_memory_object_stream[SessionMessage | Exception](float("inf"))
        #: What has come of a frame that is not whole yet, and how long that is.
        self._parts: list[bytes] = []
        self._size = 0
        #: The client's protocol begins with a handshake. The newer one forbids to answer what was cancelled.
        self._handshake = False
        mode = os.fstat(fd).st_mode
        self._watched = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        if self._watched:
            self._loop.add_reader(fd, self._ready)
        else:
            threading.Thread(target=self._read, name="veil-mcp-in", daemon=True).start()

    def _ready(self) -> None:
        """There is something: one read, which waits for nobody, and the loop goes on."""
        if not self._piece(self._hand_over):
            self._end()

    def _read(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server is over
            while self._piece(self._loop.call_soon_threadsafe):
                pass
            self._loop.call_soon_threadsafe(self._end)

    @staticmethod
    def _hand_over(call: Callable[..., object], *arguments: Any) -> None:
        call(*arguments)

    def _piece(self, hand_over: Callable[..., object]) -> bool:
        """Read once; ``False`` at the end. Half a frame that the end cut off is nothing that was asked."""
        try:
            piece = os.read(self._fd, _PIECE)
        except OSError:
            return False
        *whole, rest = piece.split(b"\n")
        for line in whole:
            hand_over(*self._frame(b"".join([*self._parts, line]), self._size + len(line)))
            self._parts, self._size = [], 0
        self._size += len(rest)
        if self._size > MAX_FRAME:
            self._parts = []  # its end is waited for, and then it is answered
        elif rest:
            self._parts.append(rest)
        return bool(piece)

    def _frame(self, line: bytes, size: int) -> tuple[Callable[[Any], None], Any]:
        """What the loop has to do about a frame, and with what."""
        if size > MAX_FRAME:
            return self._wrong(None, INVALID_REQUEST, f"a frame may have {MAX_FRAME} bytes; this one had {size}")
        if not line.strip():
            return _ignored, None
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            return self._other(line)
        if isinstance(message, JSONRPCNotification) and b'"id"' in line:
            return self._other(line)  # perhaps a request whose id is none: nobody would ever answer it
        return self._give, message

    def _other(self, line: bytes) -> tuple[Callable[[Any], None], Any]:
        """A frame that the strict parser would not have: a lone surrogate is let in, the rest is answered."""
        try:
            data = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            return self._wrong(None, PARSE_ERROR, f"not one JSON document in UTF-8 on one line: {error}")
        try:
            message = jsonrpc_message_adapter.validate_python(data, by_name=False)
        except ValueError:
            return self._wrong(_id_of(data), INVALID_REQUEST, "not one JSON-RPC 2.0 message (batches are not taken)")
        if isinstance(message, JSONRPCNotification) and "id" in data:
            return self._wrong(None, INVALID_REQUEST, "the id of a request is a text or a whole number")
        return self._give, message

    def _wrong(self, id: str | int | None, code: int, message: str) -> tuple[Callable[[Any], None], Any]:
        return self._complain, {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}

    def _give(self, message: Any) -> None:
        metadata = None
        if isinstance(message, JSONRPCRequest):
            self._handshake = self._handshake or message.method == "initialize"
            if self._handshake:
                metadata = ServerMessageMetadata(on_request_unanswered=functools.partial(self._cancelled, message.id))
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it is ending
            self._into.send_nowait(SessionMessage(message, metadata))

    async def _cancelled(self, id: str | int) -> None:
        """The SDK has done what was to be done and says nothing; who waits for an answer would wait for ever."""
        call, message = self._wrong(id, _CANCELLED, "Request cancelled: what it had started has ended")
        call(message)

    def _end(self) -> None:
        self.close()
        self._at_end()

    def close(self) -> None:
        """No more messages: the server sees the end of its stream. A thread stays with its read."""
        if self._watched:
            self._loop.remove_reader(self._fd)
        self._into.close()


def _ignored(nothing: None) -> None:
    """A blank line asks for nothing."""


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _id_of(data: object) -> str | int | None:
    found = data.get("id") if isinstance(data, dict) else None
    return found if isinstance(found, (str, int)) and not isinstance(found, bool) else None


class Outgoing:
    """Writes frames: small ones at once while the pipe takes them, the rest on a thread of its own.

    It has the shape of a stream that the SDK sends its messages to.

    Args:
        on_broken: called (on any thread) when the client reads no more.
    """

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        self._fd, self._on_broken = fd, on_broken
        mode = os.fstat(fd).st_mode
        self._is_pipe = stat.S_ISFIFO(mode)
        self._socket = socket.socket(fileno=os.dup(fd)) if stat.S_ISSOCK(mode) else None
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._backlog = 0
        self._broken = False
        self._thread = threading.Thread(target=self._write_all, name="veil-mcp-out", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> int:
        """Bytes that wait for the client to read."""
        return self._backlog

    async def send(self, item: SessionMessage) -> None:
        self.put(item.message.model_dump(mode="json", by_alias=True, exclude_unset=True))

    def put(self, message: dict[str, Any]) -> None:
        """One frame. Never waits: what the client does not read yet is kept."""
        # ASCII only: no reader takes U+2028 or the like for the end of a line
        frame = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        with self._lock:
            if not self._backlog and not self._broken:
                frame = self._at_once(frame)
            if not frame:
                return
            self._backlog += len(frame)
        self._waiting.put(frame)

    def _at_once(self, frame: bytes) -> bytes:
        """Write what can be written without making anybody wait; the rest of the frame."""
        if self._socket is not None:
            try:
                return frame[self._socket.send(frame, socket.MSG_DONTWAIT) :]
            except OSError:  # it is full, or the client has gone: the thread finds out
                return frame
        if self._is_pipe and len(frame) <= _AT_ONCE:
            ready = select.poll()
            ready.register(self._fd, select.POLLOUT)
            if ready.poll(0):
                self._write(frame)
                return b""
        return frame

    def _write_all(self) -> None:
        while True:
            frame = self._waiting.get()
            if frame is None:
                return
            self._write(frame)
            with self._lock:
                self._backlog -= len(frame)

    def _write(self, frame: bytes) -> None:
        view = memoryview(frame)
        try:
            while view and not self._broken:
                view = view[os.write(self._fd, view) :]
        except OSError:  # the client has gone; what it asked for is of no use any more
            self._broken = True
            self._on_broken()

    def finish(self, seconds: float) -> None:
        """Give what is still waiting this long to be read."""
        self._waiting.put(None)
        self._thread.join(seconds)

    async def aclose(self) -> None:
        """The descriptor stays open until the process ends: a thread may still be writing."""

    async def __aenter__(self) -> Outgoing:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
