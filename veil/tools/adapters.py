"""The table in the shapes that providers and frameworks want: one small function each."""

from __future__ import annotations

import importlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from veil.tools.table import Tool
from veil.tools.toolbox import Toolbox

_Called = TypeVar("_Called", bound=Callable[..., Any])


def openai_tools(box: Toolbox | None = None) -> list[dict[str, Any]]:
    """For ``tools=`` of an OpenAI-style chat completion (``{"type": "function", "function": {...}}``)."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
        }
        for tool in _box(box).tools
    ]


def anthropic_tools(box: Toolbox | None = None) -> list[dict[str, Any]]:
    """For ``tools=`` of an Anthropic message (``name``, ``description``, ``input_schema``)."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in _box(box).tools
    ]


def langchain_tools(box: Toolbox | None = None) -> list[Any]:
    """``StructuredTool`` objects of LangChain. Raises ``ImportError`` where ``langchain-core`` is not installed."""
    made = importlib.import_module("langchain_core.tools").StructuredTool.from_function
    box = _box(box)
    return [
        made(
            func=_callable(box, tool),
            coroutine=_awaitable(box, tool),
            name=tool.name,
            description=tool.description,
            args_schema=tool.input_schema,
        )
        for tool in box.tools
    ]


def pydantic_ai_tools(box: Toolbox | None = None) -> list[Any]:
    """``Tool`` objects of pydantic-ai. Raises ``ImportError`` where it is not installed."""
    made = importlib.import_module("pydantic_ai").Tool.from_schema
    box = _box(box)
    return [made(_awaitable(box, tool), tool.name, tool.description, tool.input_schema) for tool in box.tools]


def _box(box: Toolbox | None) -> Toolbox:
    return Toolbox() if box is None else box


def _callable(box: Toolbox, tool: Tool) -> Callable[..., str]:
    """A function of keywords that answers with JSON text."""

    def call(**arguments: Any) -> str:
        return json.dumps(box.call(tool.name, arguments))

    return _named(call, tool)


def _awaitable(box: Toolbox, tool: Tool) -> Callable[..., Awaitable[str]]:
    """The same for a loop; cancelling it ends the command, where a function on a thread would go on."""

    async def call(**arguments: Any) -> str:
        return json.dumps(await box.acall(tool.name, arguments))

    return _named(call, tool)


def _named(call: _Called, tool: Tool) -> _Called:
    call.__name__ = tool.name
    call.__doc__ = tool.description
    return call
