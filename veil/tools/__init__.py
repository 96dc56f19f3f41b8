"""veil as tools for a model: one table of JSON Schemas, and ``call(name, arguments)``.

    from veil import tools
    tools.openai_tools()                              # or anthropic_tools(), langchain_tools(), pydantic_ai_tools()
    tools.call("sh_run", {"command": "make -j2"})     # a dict, also when veil refuses

The names, arguments and replies are the same in every shape and over MCP (``veil mcp``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from veil.tools.adapters import anthropic_tools, langchain_tools, openai_tools, pydantic_ai_tools
from veil.tools.table import Tool, catalogue
from veil.tools.toolbox import Everywhere, Place, Toolbox, single

__all__ = [
    "Everywhere",
    "Place",
    "Tool",
    "Toolbox",
    "acall",
    "anthropic_tools",
    "call",
    "catalogue",
    "langchain_tools",
    "openai_tools",
    "pydantic_ai_tools",
    "schemas",
    "single",
]

_own = Toolbox()


def schemas() -> list[dict[str, Any]]:
    """Every tool as plain data: ``name``, ``description``, ``input_schema``, ``output_schema``."""
    return [tool.to_dict() for tool in catalogue()]


def call(name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """See ``Toolbox.call``."""
    return _own.call(name, arguments)


async def acall(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    on_output: Callable[[str, bytes], None] | None = None,
) -> dict[str, Any]:
    """See ``Toolbox.acall``."""
    return await _own.acall(name, arguments, on_output=on_output)
