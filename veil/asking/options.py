"""The options of a run: names, types and meaning, once for every door."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from veil.model.command import Sandbox


class RunOptions(TypedDict, total=False):
    """Keywords of ``veil.run``, ``veil.arun`` and ``veil.start``. ``None`` means not said.

    Attributes:
        cwd: working directory (default: the process's own).
        timeout: seconds; ``math.inf`` for no limit (default 120, ``VEIL_TIMEOUT_MS``).
        env: additions to the environment; a value of ``None`` takes the name away.
        stdin: text or bytes for standard input (default: ``/dev/null``).
        expect: post-conditions by name, such as ``{"exit": 0, "file_exists": "dist/app.js"}``.
        retries: further attempts after a failed one (0 to 100).
        retry_on_exit: exit code or codes that are retried (default: any failure but a timeout).
        backoff: seconds before the second attempt; doubled before each later one.
        full: the JSON view and the command line show the streams uncondensed.
        effects: ``True``, ``False`` or ``"all"`` (also files that git ignores).
        no_store: nothing of the run goes to disk.
        scrub_env: take credential-shaped variables out of the child's environment.
        redact: replace known secret values before anything is kept.
        secrets: further secret values to replace (at least 8 characters each); implies ``redact``.
        check: raise ``CommandFailed`` when the command fails or a post-condition does not hold.
        merge_stderr: one stream in true order, in stdout.
        on_output: called with the stream's name and each piece of bytes as it comes.
        shell: the shell that reads a command text (default: bash where there is one, else sh).
        max_output: bytes kept of each stream (default 5,000,000, ``VEIL_MAX_STREAM_BYTES``).
        contain: a supervisor process owns the run, so that nothing of it survives, whatever it did.
        left_running: ``"kill"`` (default) or ``"keep"`` what is still running when the command itself has ended.
        sandbox: ``True``, or a mapping of what to confine (see ``Sandbox``); refused where it cannot be granted.
        trace: tell from system calls what was read, written, executed and connected to (Linux, strace).
        preview: run in a disposable view of cwd and tell what would have changed.
        project: folder whose records and settings are used (default: the git top level, else the folder, that the
            process was in when it first used veil).
    """

    cwd: str | os.PathLike[str] | None
    timeout: float | None
    env: Mapping[str, str | None] | None
    stdin: str | bytes | None
    expect: Mapping[str, Any] | None
    retries: int | None
    retry_on_exit: int | Sequence[int] | None
    backoff: float | None
    full: bool | None
    effects: bool | Literal["all"] | None
    no_store: bool | None
    scrub_env: bool | None
    redact: bool | None
    secrets: Sequence[str] | None
    check: bool | None
    merge_stderr: bool | None
    on_output: Callable[[str, bytes], None] | None
    shell: str | os.PathLike[str] | None
    max_output: int | None
    contain: bool | None
    left_running: Literal["kill", "keep"] | None
    sandbox: bool | Mapping[str, Any] | Sandbox | None
    trace: bool | None
    preview: bool | None
    project: str | os.PathLike[str] | None


NAMES = tuple(RunOptions.__annotations__)

_KEPT = "output is always kept, as text and as bytes"
#: Words of ``subprocess`` and of other doors that are no options, and what an error says of them.
OTHER_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("capture_output", "stdout", "text", "encoding", "errors", "universal_newlines"), _KEPT),
    "stderr": f"{_KEPT}; merge_stderr=True makes one stream of both",
    "input": "it is called 'stdin'",
    "background": "veil.start leaves a command running",
}

#: What the JSON tools call some options, and the factor from their unit to ours.
JSON_NAMES: Mapping[str, tuple[str, float]] = {"timeout_ms": ("timeout", 1000.0), "backoff_ms": ("backoff", 1000.0)}

#: Options that only make sense when somebody waits for the end (tools reference, background processes).
BACKGROUND_INCOMPATIBLE = ("expect", "retries", "retry_on_exit", "backoff", "full", "timeout", "check", "effects")
#: Refused in the background by the same code, whatever they say.
NOT_IN_BACKGROUND = ("preview", "trace")
