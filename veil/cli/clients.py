"""The programs that can be told of ``veil mcp``: where it keeps that, in which form, which file its agent reads."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Files with instructions for agents that are not read by a client below alone.
SHARED = "AGENTS.md"


@dataclass(frozen=True)
class Client:
    """Attributes: name: for ``--client``. title: for people. where: the file of its configuration. reads: the file of
    the project that its agent reads, ``None`` when it reads none. form: the configuration from the command's words."""

    name: str
    title: str
    where: str
    reads: str | None
    form: Callable[[Sequence[str]], str]


def command() -> list[str]:
    """The words that start the server: with the program of this very installation, wherever the client is started."""
    beside = os.path.join(os.path.dirname(sys.executable), "veil")
    return [beside, "mcp"] if os.access(beside, os.X_OK) else [sys.executable, "-m", "veil", "mcp"]


def _json(key: str, **more: str) -> Callable[[Sequence[str]], str]:
    def form(words: Sequence[str]) -> str:
        server = {**more, "command": words[0], "args": list(words[1:])}
        return json.dumps({key: {"veil": server}}, indent=2, ensure_ascii=False)

    return form


def _toml(words: Sequence[str]) -> str:
    # a JSON string is a basic string of TOML, but for DEL
    said = [json.dumps(word).replace("\x7f", "\\u007f") for word in words]
    return f"[mcp_servers.veil]\ncommand = {said[0]}\nargs = [{', '.join(said[1:])}]"


CLIENTS = (
    Client("claude-code", "Claude Code", ".mcp.json", "CLAUDE.md", _json("mcpServers")),
    Client(
        "claude-desktop",
        "Claude Desktop",
        "claude_desktop_config.json (Settings, Developer, Edit Config)",
        None,
        _json("mcpServers"),
    ),
    Client("cursor", "Cursor", ".cursor/mcp.json", SHARED, _json("mcpServers")),
    Client("vscode", "VS Code", ".vscode/mcp.json", SHARED, _json("servers", type="stdio")),
    Client("codex", "Codex", "~/.codex/config.toml", SHARED, _toml),
    Client("gemini", "Gemini CLI", ".gemini/settings.json", "GEMINI.md", _json("mcpServers")),
    Client("windsurf", "Windsurf", "~/.codeium/windsurf/mcp_config.json", SHARED, _json("mcpServers")),
)
#: Files of a project that agents read, where they are there already.
KNOWN = (SHARED, "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".windsurfrules", ".clinerules")
