"""The tools in the hands of real agent frameworks."""

from __future__ import annotations

import asyncio
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from marked import Marker

from veil import tools


@pytest.mark.needs("bash")
@pytest.mark.frameworks
def test_with_langchain_itself(own_state: Path, marker: Marker) -> None:
    made = tools.langchain_tools()
    assert [tool.name for tool in made] == [tool.name for tool in tools.catalogue()]
    asked = {"type": "tool_call", "id": "c1", "name": "sh_run", "args": {"cmd": "echo one; exit 3", "description": "x"}}
    message = made[0].invoke(asked)
    assert message.tool_call_id == "c1"
    assert json.loads(message.content)["exit"] == 3
    assert json.loads(made[1].invoke({}))["status"] == "exited"

    async def give_up() -> None:
        task = asyncio.ensure_future(made[0].ainvoke({"command": f"sleep {marker} & sleep {marker}"}))
        while len(marker.alive()) < 3:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    marker.until(0)


@pytest.mark.needs("bash")
@pytest.mark.frameworks
def test_with_pydantic_ai_itself(own_state: Path) -> None:
    ai = importlib.import_module("pydantic_ai")
    messages = importlib.import_module("pydantic_ai.messages")
    function = importlib.import_module("pydantic_ai.models.function")
    asked = [
        ("sh_run", {"command": "echo one", "expect": {"exit": 0}}),
        ("sh_run", {"cmd": "exit 4"}),
        ("sh_detail", {}),
    ]
    told: list[dict[str, Any]] = []

    def model(said: Any, info: Any) -> Any:
        told.extend(json.loads(part.content) for part in said[-1].parts if part.part_kind == "tool-return")
        if len(told) == len(asked):
            return messages.ModelResponse(parts=[messages.TextPart("done")])
        return messages.ModelResponse(parts=[messages.ToolCallPart(*asked[len(told)])])

    agent = ai.Agent(function.FunctionModel(model), tools=tools.pydantic_ai_tools())
    assert asyncio.run(agent.run("go")).output == "done"
    assert (told[0]["stdout"], told[0]["assert_ok"], told[1]["exit"]) == ("one", True, 4)
    assert told[2]["id"] == told[1]["id"]
