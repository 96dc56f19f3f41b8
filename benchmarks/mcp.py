"""What the MCP server costs over standard streams: ratios of interleaved medians, each with its target.

python benchmarks/mcp.py [ROUNDS]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from run import bare, line, make_repository, medians

SERVER = [sys.executable, "-m", "veil", "mcp"]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Client:
    """Lines over pipes, so that what is measured is the server."""

    def __init__(self, cwd: Path) -> None:
        self._process = subprocess.Popen(SERVER, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._id = 0
        self.ask("initialize", HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, method: str, params: object) -> dict[str, object]:
        assert self._process.stdout is not None
        self._id += 1
        self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        told = json.loads(self._process.stdout.readline())
        assert told["id"] == self._id, told
        result: dict[str, object] = told["result"]
        return result

    def run_true(self) -> None:
        told = self.ask("tools/call", {"name": "sh_run", "arguments": {"command": "true"}})
        assert told["isError"] is False, told

    def leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(60) == 0


def start(cwd: Path, ready: list[float]) -> None:
    """From the start of the process to its first answer; what it takes to end is taken off the clock."""
    client = Client(cwd)
    ended = time.perf_counter()
    client.leave()
    ready.append(time.perf_counter() - ended)


def started(cwd: Path, rounds: int) -> float:
    """Median of the start, as a multiple of what the SDK's own import takes."""
    taken: dict[str, list[float]] = {"import": [], "start": []}
    for _ in range(rounds):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import mcp.server"], check=True, cwd=cwd)
        taken["import"].append(time.perf_counter() - begun)
        ending: list[float] = []
        begun = time.perf_counter()
        start(cwd, ending)
        taken["start"].append(time.perf_counter() - begun - ending[0])
    middle = {name: sorted(values)[len(values) // 2] for name, values in taken.items()}
    print(f"import mcp.server: {middle['import'] * 1000:.0f} ms, start to answer: {middle['start'] * 1000:.0f} ms")
    return middle["start"] / middle["import"]


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="veil-bench-") as name:
        base = Path(name).resolve()
        os.environ["VEIL_STATE_DIR"] = str(base / "state")
        os.chdir(base)
        empty, small = base / "empty", make_repository(base / "small", 10)
        empty.mkdir()
        plain, in_git = Client(empty), Client(small)
        told = medians({"bare": partial(bare, empty), "plain": plain.run_true, "git": in_git.run_true}, rounds)
        plain.leave()
        in_git.leave()
        print(f"subprocess.run(bash -c true): {told['bare']:.3f} ms, round trip of sh_run true: {told['plain']:.3f} ms")
        line("round trip of sh_run true", told["plain"] / told["bare"], 3.0)
        line("the same in a git tree of 10 files", told["git"] / told["bare"], 4.0)
        line("server start to first answer, of import mcp.server", started(empty, max(7, rounds // 20)), 1.5)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
