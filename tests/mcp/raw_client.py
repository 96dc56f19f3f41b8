"""A client that writes and reads lines, and nothing else: what the SDK's client would smooth over stays visible."""

from __future__ import annotations

import json
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import psutil
from marked import Marker

#: Long enough that only a hang exceeds it (seconds).
LONG = 60.0
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


class Client:
    """One server on pipes. ``lines`` holds everything that it ever wrote."""

    def __init__(
        self, argv: Sequence[str] = (sys.executable, "-m", "veil", "mcp"), *, sockets: bool = False, **options: Any
    ) -> None:
        """``sockets``: the server gets sockets instead of pipes, as clients that run on Node give them."""
        streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        if sockets:
            (mine, streams["stdin"]), (back, streams["stdout"]) = socket.socketpair(), socket.socketpair()
        self.process = subprocess.Popen(argv, **streams, **options)
        if sockets:
            streams["stdin"].close()
            streams["stdout"].close()
            self.process.stdin, self.process.stdout = mine.makefile("wb"), back.makefile("rb")
            mine.close()
            back.close()
        self.lines: list[bytes] = []
        self.complaints = b""
        self._frames: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._early: list[dict[str, Any]] = []
        self._number = 0
        self._threads = [threading.Thread(target=target) for target in (self._read, self._listen)]
        for thread in self._threads:
            thread.start()

    @property
    def server(self) -> psutil.Process:
        """The process that serves: the one below its guard (Linux), or the one that was started."""
        started = psutil.Process(self.process.pid)
        below = started.children() if sys.platform == "linux" else []
        return below[0] if below else started

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                self.lines.append(line)
                self._frames.put(json.loads(line))
        self._frames.put(None)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            self.complaints = stream.read()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def ask(self, method: str, params: Any = None) -> int:
        """Send a request; its id."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return self._number

    def tell(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def next(self) -> dict[str, Any]:
        """The next frame, whatever it is."""
        if self._early:
            return self._early.pop(0)
        frame = self._frames.get(timeout=LONG)
        assert frame is not None, f"the server ended: {self.complaints.decode()}"
        return frame

    def answer(self, id: int) -> dict[str, Any]:
        """The answer to a request; other frames wait for their turn."""
        for at, frame in enumerate(self._early):
            if frame.get("id") == id and "method" not in frame:
                return self._early.pop(at)
        while True:
            frame = self._frames.get(timeout=LONG)
            assert frame is not None, f"the server ended: {self.complaints.decode()}"
            if frame.get("id") == id and "method" not in frame:
                return frame
            self._early.append(frame)

    def hello(self) -> dict[str, Any]:
        told = self.answer(self.ask("initialize", HELLO))
        self.tell("notifications/initialized")
        result: dict[str, Any] = told["result"]
        return result

    def begin(self, tool: str, meta: dict[str, Any] | None = None, **arguments: Any) -> int:
        """Send a call; its id."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})})

    def told(self, id: int) -> dict[str, Any]:
        """The structured content of a call, held against its text."""
        result = self.answer(id)["result"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert result["isError"] == ("error" in result["structuredContent"])
        content: dict[str, Any] = result["structuredContent"]
        return content

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.told(self.begin(tool, **arguments))

    def leave(self) -> int:
        """Close the client's side; the server's exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(LONG)
        for thread in self._threads:
            thread.join(LONG)
        return code

    def end(self) -> None:
        """Whatever happened before."""
        self.process.kill()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.wait()


def started(client: Client, marker: Marker) -> None:
    """A background run, a foreground run, and something that left its session."""
    client.call("sh_run", command=f"sleep {marker} & setsid sleep {marker} & wait", background=True)
    client.begin("sh_run", command=f"setsid sleep {marker} & sleep {marker}", timeout_ms=600_000)
    marker.until(4)
