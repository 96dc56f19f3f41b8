"""Approvals by the person behind an MCP client, with the official SDK's own client."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp.types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from raw_client import LONG

from veil.governed import Audit, Boundary, Policy, Rule
from veil.serving.answering import Answering
from veil.serving.eliciting import ask_client
from veil.tools import Toolbox


@pytest.fixture
def boundary(tmp_path: Path) -> Boundary:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "in").write_text("inside\n")
    policy = Policy("allowlist", (Rule("no rm", "deny", prefix=("rm",)),))
    options = {"contain": False, "effects": False, "no_store": True}
    return Boundary(tmp_path / "w", policy, approver=ask_client, audit=Audit(), **options)


def calls(boundary: Boundary, *argv: list[str], **client: Any) -> list[dict[str, Any]]:
    """The replies to one call for each argv, one after the other in one session."""

    async def run() -> list[dict[str, Any]]:
        box = Toolbox(boundary=boundary, only=["run_shell_command"])
        async with Client(Answering(box).server, **client) as there:
            replies = []
            for words in argv:
                called: Awaitable[Any] = there.call_tool("run_shell_command", {"argv": words})
                replies.append((await asyncio.wait_for(called, LONG)).structured_content)
            return replies

    return asyncio.run(run())


#: Both generations of the protocol: the server asks back, or the client calls again with the answer.
MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])


def answering(action: str, run: object, asked: list[str]) -> Callable[..., Awaitable[types.ElicitResult]]:
    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action=action, content={"run": run} if action == "accept" else None)  # type: ignore[arg-type, dict-item]

    return answer


@MODES
def test_a_person_who_approves_is_asked_for_each_run(boundary: Boundary, mode: str) -> None:
    asked: list[str] = []
    words = ["cat", "in", "r\u217f x"]
    replies = calls(boundary, ["cat", "in"], words, elicitation_callback=answering("accept", True, asked), mode=mode)
    assert [reply["ok"] for reply in replies] == [True, True]
    assert replies[0]["stdout"] == "inside\n"
    assert len(asked) == 2
    assert "argv[2]: 'r\\u217f x'" in asked[1], "no word can be mistaken for another"
    approved = [line["by"] for line in boundary.audit.lines() if line["kind"] == "approved"]
    assert approved == ["mcp client", "mcp client"]


@MODES
@pytest.mark.parametrize(("action", "run"), [("accept", False), ("decline", None), ("cancel", None)])
def test_anything_else_is_a_denial_for_good(boundary: Boundary, action: str, run: object, mode: str) -> None:
    asked: list[str] = []
    callback = answering(action, run, asked)
    replies = calls(boundary, ["cat", "in"], ["nice", "cat", "in"], elicitation_callback=callback, mode=mode)
    # called again with the answer, the request meets a denial that has been noted already
    assert replies[0]["error"] == ("denied_by_approver" if mode == "legacy" else "denied_before")
    assert replies[1]["error"] == "denied_before"
    assert len(asked) == 1
    assert [line["by"] for line in boundary.audit.lines() if line["kind"] == "denied"] == ["mcp client"]


@MODES
def test_a_client_that_can_ask_nobody_leaves_the_question_open(boundary: Boundary, mode: str) -> None:
    (reply,) = calls(boundary, ["cat", "in"], mode=mode)
    assert reply["error"] == "approval_required"
    assert [line["kind"] for line in boundary.audit.lines()] == ["request", "asked"]


def test_nobody_is_asked_about_what_is_denied(boundary: Boundary) -> None:
    asked: list[str] = []
    (reply,) = calls(boundary, ["rm", "in"], elicitation_callback=answering("accept", True, asked))
    assert (reply["error"], asked) == ("policy_denied", [])


@MODES
@pytest.mark.parametrize(
    ("action", "run", "error"),
    [
        ("accept", True, None),
        ("accept", False, "denied"),
        ("decline", None, "denied"),
        ("cancel", None, "denied"),
        (None, None, "approval_required"),
    ],
)
def test_the_server_as_a_program_asks_the_person_behind_its_client(
    tmp_path: Path, own_state: Path, action: str | None, run: object, error: str | None, mode: str
) -> None:
    """``veil mcp --policy`` over pipes: what is answered decides whether the command leaves its file."""
    here = tmp_path / "w"
    here.mkdir()
    (tmp_path / "policy.toml").write_text('level = "allowlist"\n')
    argv = ["-m", "veil", "mcp", "--policy", str(tmp_path / "policy.toml"), "--tool", "run_shell_command"]
    server = StdioServerParameters(command=sys.executable, args=argv, env=dict(os.environ), cwd=here)
    asked: list[str] = []
    client: dict[str, Any] = {} if action is None else {"elicitation_callback": answering(action, run, asked)}

    async def talk() -> list[Any]:
        async with Client(server, mode=mode, **client) as there:
            replies = []
            for words in (["touch", "made"], ["nice", "touch", "made"]):
                called: Awaitable[Any] = there.call_tool("run_shell_command", {"argv": words})
                replies.append((await asyncio.wait_for(called, LONG)).structured_content)
            return replies

    first, second = asyncio.run(talk())
    assert (here / "made").exists() == (error is None)
    if error is None:
        assert (first["ok"], first["returncode"], second["ok"], len(asked)) == (True, 0, True, 2)
    elif error == "denied":
        assert first["error"] in ("denied_by_approver", "denied_before")
        assert (second["error"], len(asked)) == ("denied_before", 1)
    else:
        assert [first["error"], second["error"], len(asked)] == [error, error, 0]
