"""The surface of the tools: pinned as a file, and true to the code and the pages that it is made from."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from marked import Marker

import veil
from veil import tools
from veil.asking.options import JSON_NAMES, NAMES
from veil.tools import replies
from veil.tools.typed import hints_of, schema_of

ROOT = Path(__file__).parents[2]
DOCS: dict[str, Any] = runpy.run_path(str(ROOT / "tests" / "test_docs.py"))


def test_the_surface_is_what_the_file_says() -> None:
    """A change here changes what every agent was told: make it on purpose, with a line in the changelog."""
    made = runpy.run_path(str(ROOT / "docs" / "make_tools.py"))["render"]()
    assert (ROOT / "docs" / "tools.json").read_text(encoding="utf-8") == made, "run: python docs/make_tools.py"


def test_every_schema_is_one() -> None:
    for tool in tools.catalogue():
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert set(tool.input_schema.get("required", ())) <= set(tool.arguments)
        assert set(tool.aliases.values()) <= set(tool.arguments)
        assert not set(tool.aliases) & set(tool.arguments)
        assert all("description" in said for said in tool.arguments.values())


def test_options_of_a_run_are_options_of_veil() -> None:
    run = tools.catalogue()[0]
    own = {"command", "background", "session"}
    assert {JSON_NAMES.get(name, (name, 1))[0] for name in run.arguments} - own <= set(NAMES)
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    (named,) = [line for line in page.split("\n\n") if line.startswith("Arguments are those of")]
    told = named.partition("`sh_run` takes:")[2].partition(". With")[0]
    assert [word.strip("` \n") for word in told.split(",")] == list(run.arguments)


@pytest.mark.parametrize(
    ("heading", "reply", "besides"),
    [
        ("## The JSON view of a run", replies.RunReply, {"pid"}),
        ("### Logs", replies.LogsReply, set()),
        ("### Kill", replies.KillReply, set()),
        ("### The reply", replies.DetailReply, set()),
        ("### Errors", replies.Failure, set()),
    ],
)
def test_replies_have_the_fields_of_their_tables(heading: str, reply: type, besides: set[str]) -> None:
    """The tables are held against the code that makes the replies."""
    assert set(DOCS["table"]("results.md", heading)) | besides == set(hints_of(reply))


def test_the_page_names_every_tool() -> None:
    names = [tool["name"] for tool in json.loads((ROOT / "docs" / "tools.json").read_text(encoding="utf-8"))]
    assert DOCS["table"]("agents.md", "## The tools") == names


def test_annotations_become_schemas() -> None:
    assert schema_of(str | None) == {"type": "string"}
    assert schema_of(bool | None, reply=True) == {"anyOf": [{"type": "boolean"}, {"type": "null"}]}
    assert schema_of(int | float) == {"type": "number"}
    assert schema_of(dict[str, int | None])["additionalProperties"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}]
    }
    assert schema_of(list[tuple[int, int]])["items"] == {"type": "array", "items": {"type": "integer"}}
    with pytest.raises(TypeError, match="no place in JSON"):
        schema_of(complex)


# -- shapes of providers


def test_openai_and_anthropic_shapes() -> None:
    for made, tool in zip(tools.openai_tools(), tools.catalogue(), strict=True):
        assert made["type"] == "function"
        assert made["function"] == {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
        }
    for plain, tool in zip(tools.anthropic_tools(), tools.catalogue(), strict=True):
        assert plain == {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
    json.dumps([tools.openai_tools(), tools.anthropic_tools(), tools.schemas()])


LANGCHAIN = """
from dataclasses import dataclass
from typing import Any, Callable

@dataclass
class StructuredTool:
    func: Callable[..., str]
    coroutine: Callable[..., Any]
    name: str
    description: str
    args_schema: dict

    @classmethod
    def from_function(cls, func=None, coroutine=None, name=None, description=None, return_direct=False,
                      args_schema=None, infer_schema=True, **more):
        return cls(func, coroutine, name, description, args_schema)

    def invoke(self, arguments):
        return self.func(**arguments)

    async def ainvoke(self, arguments):
        return await self.coroutine(**arguments)
"""
PYDANTIC_AI = """
from dataclasses import dataclass
from typing import Any, Callable

@dataclass
class Tool:
    function: Callable[..., Any]
    name: str
    description: str
    json_schema: dict

    @classmethod
    def from_schema(cls, function, name, description, json_schema, takes_ctx=False, sequential=False):
        return cls(function, name, description, json_schema)
"""


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Packages with the interface of the two frameworks, as it stands in their documentation."""
    (tmp_path / "langchain_core").mkdir()
    (tmp_path / "langchain_core" / "__init__.py").touch()
    (tmp_path / "langchain_core" / "tools.py").write_text(LANGCHAIN)
    (tmp_path / "pydantic_ai.py").write_text(PYDANTIC_AI)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("langchain_core", "langchain_core.tools", "pydantic_ai"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in ("langchain_core", "langchain_core.tools", "pydantic_ai"):
        sys.modules.pop(name, None)


@pytest.mark.needs("bash")
def test_objects_of_langchain_and_pydantic_ai(stand_ins: None, own_state: Path) -> None:
    importlib.invalidate_caches()
    run = tools.langchain_tools()[0]
    assert run.name == "sh_run"
    assert run.args_schema == tools.catalogue()[0].input_schema
    assert json.loads(run.invoke({"command": "echo one"}))["stdout"] == "one"
    assert json.loads(run.invoke({"comand": "echo one"}))["error"] == "unknown_option"
    assert json.loads(asyncio.run(run.ainvoke({"cmd": "echo three"})))["stdout"] == "three"
    other = tools.pydantic_ai_tools()[0]
    assert (other.name, other.json_schema) == ("sh_run", tools.catalogue()[0].input_schema)
    assert json.loads(asyncio.run(other.function(command="echo two")))["stdout"] == "two"


def test_a_framework_that_is_not_there_is_missed_only_when_it_is_used() -> None:
    for name, make in (("langchain_core", tools.langchain_tools), ("pydantic_ai", tools.pydantic_ai_tools)):
        if importlib.util.find_spec(name) is None:
            with pytest.raises(ImportError, match=name):
                make()


def test_only_and_boundary_say_what_is_offered(tmp_path: Path, own_state: Path) -> None:
    from veil.governed import Audit, Boundary, Policy, Rule

    work = tmp_path / "work"
    work.mkdir()
    policy = Policy("allowlist", (Rule("a", "allow", prefix=("echo",)),))
    boundary = Boundary(work, policy, audit=Audit())
    box = tools.Toolbox(boundary=boundary, only=["run_shell_command"])
    assert [tool.name for tool in box.tools] == ["run_shell_command"]
    assert box.call("run_shell_command", {"argv": ["echo", "a b"]})["stdout"] == "a b\n"
    assert box.call("run_shell_command", {"argv": ["touch", "x"]})["ok"] is False
    with pytest.raises(veil.NotFound, match="run_shell_command"):
        box.call("sh_run", {"command": "true"})
    with pytest.raises(veil.NotFound, match="sh_run"):
        tools.Toolbox(only=["sh_rum"])
    box.close()


def test_a_cancelled_governed_call_ends_its_command(tmp_path: Path, own_state: Path, marker: Marker) -> None:
    from veil.governed import Audit, Boundary, Policy, Rule

    work = tmp_path / "work"
    work.mkdir()
    boundary = Boundary(work, Policy("allowlist", (Rule("a", "allow", prefix=("sleep",)),)), audit=Audit())
    box = tools.Toolbox(boundary=boundary)

    async def work_on_it() -> None:
        task = asyncio.ensure_future(box.acall("run_shell_command", {"argv": ["sleep", marker.text]}))
        while not marker.alive():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work_on_it())
    marker.until(0)
    assert box.call("run_shell_command", {"argv": ["sleep", "0"]})["ok"] is True
    box.close()
