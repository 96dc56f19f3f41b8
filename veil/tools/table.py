"""One table of tools: what each is called, what it takes and what it answers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import veil
from veil.asking.options import JSON_NAMES, RunOptions
from veil.model.command import Sandbox
from veil.tools import replies
from veil.tools.typed import Schema, hints_of, schema_of


@dataclass(frozen=True)
class Tool:
    """One tool, neutral of any provider.

    Attributes:
        name, description: for the model.
        input_schema, output_schema: JSON Schemas of the arguments and of the reply.
        aliases: what agents call an argument by mistake, and what it is.
        read_only: it runs nothing and changes nothing.
    """

    name: str
    description: str
    input_schema: Schema
    output_schema: Schema
    aliases: Mapping[str, str] = field(default_factory=dict)
    read_only: bool = False

    @property
    def arguments(self) -> dict[str, Schema]:
        """Schema by argument."""
        found: dict[str, Schema] = self.input_schema["properties"]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data: ``name``, ``description``, ``input_schema``, ``output_schema``."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
        }


#: Options of a run that the tool has, in this order, with what is said of them to a model.
_RUN_WORDS = {
    "cwd": "Working directory (default: the server's own).",
    "timeout_ms": "Time limit in milliseconds (default 120000). At its end the whole process tree is killed.",
    "expect": "Post-conditions, verified in the same call; what does not hold is in assertions_failed.",
    "background": "Start a server or a watcher and return at once: follow it with sh_logs, end it with sh_kill.",
    "full": "Give stdout and stderr uncondensed.",
    "retries": "Further attempts after a failed one (0 to 100).",
    "retry_on_exit": "Exit code or codes that are retried (default: every failure but a timeout).",
    "backoff_ms": "Milliseconds before the second attempt; doubled before each later one.",
    "sandbox": "Confine it: true lets it write below cwd and a private temp folder only. Refused where that cannot be.",
    "trace": "Tell from system calls what it read, wrote, ran and connected to (Linux).",
    "preview": "Run it in a disposable view of cwd and tell what would have changed.",
    "scrub_env": "Take variables that look like credentials out of its environment.",
    "session": "Name of a shell session: cd, export, functions and the like stay for its next command. Begun when new.",
    "no_store": "Keep the record in memory only: for output that may hold secrets.",
    "env": "Additions to the environment; null takes a variable away.",
    "stdin": "Text for standard input (default: it is empty).",
    "effects": 'Whether to look which files changed; "all" also those that git ignores (default: true).',
}
_SANDBOX_WORDS = {
    "network": "false takes the network away.",
    "writable": "Further folders that may be written to.",
    "protect_secrets": "The usual credential files cannot be read, and scrub_env is on.",
    "deny_read": "Further paths that cannot be read.",
}
_TEXTS = schema_of(str | list[str])
_CHECKS: dict[str, Schema] = {
    "exit": schema_of(int | list[int]),
    **dict.fromkeys(("stdout_contains", "stderr_contains", "stdout_matches", "stderr_matches"), _TEXTS),
    **dict.fromkeys(("stdout_empty", "stderr_empty"), schema_of(bool)),
    "json": {},
    **dict.fromkeys(("file_exists", "file_absent"), _TEXTS),
    "changed": schema_of(bool | str | list[str]),
    "max_ms": schema_of(float),
}


def _described(schema: Schema, words: str) -> Schema:
    return {**schema, "description": words}


def _expect() -> Schema:
    """The post-conditions there are, those of plugins too."""
    from veil.wiring import checks

    return {
        "type": "object",
        "properties": {name: _CHECKS.get(name, {}) for name in checks()},
        "additionalProperties": False,
    }


def _sandbox() -> Schema:
    parts = {
        name: _described(schema_of(kind), _SANDBOX_WORDS[name]) if name in _SANDBOX_WORDS else schema_of(kind)
        for name, kind in hints_of(Sandbox).items()
    }
    return {"anyOf": [{"type": "boolean"}, {"type": "object", "properties": parts, "additionalProperties": False}]}


def _run_arguments() -> dict[str, Schema]:
    hints = hints_of(RunOptions)
    made = {"command": _described(schema_of(str | list[str]), "Shell text (bash), or an argv that no shell reads.")}
    special: dict[str, Callable[[], Schema]] = {
        "expect": _expect,
        "sandbox": _sandbox,
        "background": lambda: schema_of(bool),
        "session": lambda: schema_of(str),
    }
    for name, words in _RUN_WORDS.items():
        option = JSON_NAMES[name][0] if name in JSON_NAMES else name
        schema = special[name]() if name in special else schema_of(hints[option])
        made[name] = _described(schema, words)
    return made


def _from(function: Callable[..., Any], **words: str) -> dict[str, Schema]:
    """Arguments by the annotations of a function of the Python API, with what is said of each."""
    hints = hints_of(function)
    return {name: _described(schema_of(hints[name]), said) for name, said in words.items()}


def _tool(
    name: str,
    description: str,
    arguments: dict[str, Schema],
    reply: type,
    required: tuple[str, ...] = (),
    aliases: Mapping[str, str] | None = None,
    read_only: bool = False,
) -> Tool:
    takes: Schema = {"type": "object", "properties": arguments, "additionalProperties": False}
    if required:
        takes["required"] = list(required)
    # what is refused answers with an error instead, so nothing is required; layers and plugins may add fields
    gives = {**schema_of(reply, reply=True)["properties"], **schema_of(replies.Failure, reply=True)["properties"]}
    return Tool(name, description, takes, {"type": "object", "properties": gives}, aliases or {}, read_only)


def _run() -> Tool:
    return _tool(
        "sh_run",
        "Run a command and get a short structured result: exit, which files changed, and stdout and stderr condensed "
        "to fit a context window. All of the output is kept: ask sh_detail for it by id instead of running again.",
        _run_arguments(),
        replies.RunReply,
        ("command",),
        {"cmd": "command", "timeout": "timeout_ms", "run_in_background": "background"},
    )


def _detail() -> Tool:
    arguments = _from(
        veil.detail,
        id="Of the run (default: the newest).",
        selector="What to give (default: full).",
        match="Regular expression: only lines in which it is found, with their numbers.",
    )
    arguments |= _from(
        veil.Detail.to_dict,
        lines="First and last line, from 1.",
        offset="Byte of the stream to start at: next_offset of an earlier reply.",
        limit="About so many bytes at most.",
    )
    return _tool(
        "sh_detail",
        "Output and metadata of an earlier run by id, in pages. Nothing is run again.",
        arguments,
        replies.DetailReply,
        read_only=True,
    )


def _logs() -> Tool:
    arguments = _from(
        veil.logs,
        id="Of the run (default: the only one that is alive).",
        stdout_cursor="Only stdout from this byte on: the cursor that an earlier reply gave.",
        stderr_cursor="Only stderr from this byte on.",
        stream="Which stream (default: both).",
        full="Give it uncondensed.",
    )
    words = "New output of a background run and how it stands."
    return _tool("sh_logs", words, arguments, replies.LogsReply, read_only=True)


def _kill() -> Tool:
    arguments = _from(
        veil.kill,
        id="Of the run (default: the only one that is alive).",
        signal="Which one (default: SIGTERM, and SIGKILL 2 s later).",
    )
    words = "Instead of id: name of a shell session to be forgotten (see session of sh_run)."
    arguments["session"] = _described(schema_of(str), words)
    return _tool(
        "sh_kill",
        "Signal the whole process tree of a background run. Harmless when it has ended.",
        arguments,
        replies.KillReply,
    )


def _plan() -> Tool:
    return _tool(
        "sh_plan",
        "Judge from its text alone what a command may do (read-only, mutating, network, destructive ...) and which "
        "files it would touch. Nothing is run. It errs towards the worse.",
        _from(veil.plan, command="Shell text, or an argv."),
        replies.PlanReply,
        ("command",),
        {"cmd": "command"},
        read_only=True,
    )


_FOLDER = "The folder (default: the server's working directory)."


def _checkpoint() -> Tool:
    return _tool(
        "sh_checkpoint",
        "Keep everything that is in a folder now, to be brought back by sh_restore.",
        _from(veil.checkpoint, label="A name for it (default: none; it has an id).", dir=_FOLDER),
        replies.CheckpointReply,
    )


def _restore() -> Tool:
    return _tool(
        "sh_restore",
        "Make a folder what it was at a checkpoint; files that came later are deleted. What is there now is kept first "
        "under the label before-restore.",
        _from(veil.restore, label="Label or id (default: the newest checkpoint of the folder).", dir=_FOLDER),
        replies.RestoreReply,
    )


def _checkpoints() -> Tool:
    return _tool(
        "sh_checkpoints",
        "List the checkpoints of a folder, the newest first.",
        _from(veil.checkpoints, dir=_FOLDER),
        replies.CheckpointsReply,
        read_only=True,
    )


def governed(arguments: Schema) -> Tool:
    """``run_shell_command``. ``arguments``: the schema that its boundary gives."""
    gives = schema_of(replies.GovernedReply, reply=True)["properties"]
    gives |= schema_of(replies.Failure, reply=True)["properties"]
    return Tool(
        "run_shell_command",
        "Run one program with its arguments, without a shell, as far as the policy of this workspace allows. What is "
        "refused says why.",
        arguments,
        {"type": "object", "properties": gives},
    )


@functools.cache
def catalogue() -> tuple[Tool, ...]:
    """Every tool that needs no policy, in the order of the reference."""
    return (_run(), _detail(), _logs(), _kill(), _plan(), _checkpoint(), _restore(), _checkpoints())
