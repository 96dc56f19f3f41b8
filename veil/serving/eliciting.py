"""Approvals by the person behind an MCP client, where the client offers to ask one (elicitation).

In the older protocol the server asks the client while the call is on its way. In the newer one the call is answered
with what it needs, and the client calls again with the answer.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import mcp.types as types
from mcp.server.session import ServerSession
from mcp.shared.exceptions import NoBackChannelError

from veil import NotFound
from veil.governed import Answer, Boundary, Later, Question

#: Seconds that a person has to answer; then the question stays open, and the request is refused for now.
PATIENCE = 300.0
_LOOK = 0.2
_BY, _REASON = "mcp client", "denied by the person behind the client"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"run": {"type": "boolean", "title": "Run this once", "default": False}},
    "required": ["run"],
}


@dataclass(frozen=True)
class Caller:
    """Whose call is carried out. ``request``: its id. ``ending``: set when the server ends."""

    session: ServerSession
    loop: asyncio.AbstractEventLoop
    request: Any
    ending: threading.Event


#: Set by the server around each call; threads of the toolbox inherit it.
CALLER: ContextVar[Caller | None] = ContextVar("veil_mcp_caller", default=None)


def ask_client(question: Question) -> Answer:
    """An approver: asks the person behind the client whose call this is.

    Raises:
        Later: the client cannot ask anybody, nobody answered in time, or the server is ending.
    """
    caller = CALLER.get()
    if caller is None or not _offers(caller.session):
        raise Later(question.id)
    asked = caller.session.elicit_form(_words(question), _SCHEMA, related_request_id=caller.request)
    future = asyncio.run_coroutine_threadsafe(asked, caller.loop)
    waited = 0.0
    while True:
        try:
            answer = future.result(_LOOK)
            break
        except NoBackChannelError:  # the newer protocol: ``needed`` asks
            raise Later(question.id) from None
        except concurrent.futures.TimeoutError:
            waited += _LOOK
            # the loop waits for this thread when the server ends, and would wait for ever
            if waited >= PATIENCE or caller.ending.is_set():
                future.cancel()
                raise Later(question.id) from None
    return Answer(_approves(answer), by=_BY, reason=_REASON)


def needed(
    session: ServerSession, boundary: Boundary | None, reply: dict[str, Any]
) -> types.InputRequiredResult | None:
    """What the client has to ask before this call can be carried out; ``None`` when that is nothing, or it cannot."""
    if boundary is None or reply.get("error") != "approval_required" or not _offers(session):
        return None
    approval = reply.get("facts", {}).get("approval")
    question = next((one for one in boundary.pending() if one.id == approval), None)
    if question is None:
        return None
    form = types.ElicitRequestFormParams(message=_words(question), requested_schema=_SCHEMA)
    return types.InputRequiredResult(input_requests={question.id: types.ElicitRequest(params=form)})


def take(boundary: Boundary | None, answers: dict[str, Any] | None) -> None:
    """Note what the client was told, before the call is carried out again. Answers to no open question are nothing."""
    for question, answer in (answers or {}).items():
        if boundary is not None and isinstance(answer, types.ElicitResult):
            try:
                if _approves(answer):
                    boundary.approve(question, by=_BY)
                else:
                    boundary.deny(question, by=_BY, reason=_REASON)
            except NotFound:
                continue


def _offers(session: ServerSession) -> bool:
    return session.check_client_capability(types.ClientCapabilities(elicitation=types.ElicitationCapability()))


def _approves(answer: types.ElicitResult) -> bool:
    return answer.action == "accept" and (answer.content or {}).get("run") is True


def _words(question: Question) -> str:
    """Every word apart and spelt out, so that none can be mistaken for another."""
    lines = [f"argv[{at}]: {word!a}" for at, word in enumerate(question.argv)]
    lines += [f"program: {question.executable!a}", f"in: {question.cwd!a}", f"timeout: {question.timeout:g} s"]
    return "\n".join([*lines, *(f"because {ascii(reason)[1:-1]}" for reason in question.reasons)])
