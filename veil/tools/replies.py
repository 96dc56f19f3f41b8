"""The shapes of the replies, as types: output schemas are made from them. A field is there only when it says something.

``tests/tools/test_tools_surface.py`` holds them against the tables of ``docs/results.md``, which are held against the
code that makes the replies.
"""

from __future__ import annotations

from typing import Any, TypedDict


class Failure(TypedDict, total=False):
    """Why a call was not carried out; nothing has run then. ``error`` is the code."""

    error: str
    message: str
    facts: dict[str, Any]


class ChangeRow(TypedDict, total=False):
    """One changed file, or many of one folder summed up (``count``)."""

    path: str
    change: str
    kind: str
    old: str
    count: int


class JudgementRow(TypedDict, total=False):
    """One post-condition that does not hold or cannot be told."""

    check: str
    expected: Any
    got: Any
    message: str


class RunReply(TypedDict, total=False):
    """See the JSON view of a run in ``docs/results.md``. ``pid`` is of a background run that has just started."""

    id: str
    exit: int
    ok: bool
    ms: int
    background: bool
    pid: int
    status: str
    attempts: int
    ended: str
    signal: str
    timed_out: bool
    cancelled: bool
    spawn_error: str
    left_running: int
    survivors: str
    stdout_lines: int
    stderr_lines: int
    stdout_truncated: bool
    stderr_truncated: bool
    stdout_total_bytes: int
    stderr_total_bytes: int
    stdout_dropped_bytes: int
    stderr_dropped_bytes: int
    stdout_binary: bool
    stderr_binary: bool
    stdout_lossy: bool
    stderr_lossy: bool
    files_changed: list[ChangeRow]
    files_changed_total: int
    effects_source: str
    effects_unavailable: str
    effects: str
    effects_gaps: list[Any]
    shared: bool | str
    head: dict[str, Any]
    branch: dict[str, Any]
    stash: dict[str, Any]
    look_gaps: Any
    secrets_env_scrubbed: int
    sandboxed: bool
    sandbox: dict[str, Any]
    secrets_protected: int
    limit: str
    previewed: bool
    preview_method: str
    preview_gaps: list[str]
    preview_more: dict[str, int]
    preview_git: list[str]
    preview_not_kept: str
    session: str
    cwd: str
    session_state: str
    session_cwd_gone: str
    trace_summary: dict[str, Any]
    trace_truncated: bool
    trace_gaps: list[str]
    trace_unavailable: str
    effects_untraced: dict[str, Any]
    skipped: dict[str, str]
    stored: str
    why_memory: str
    owner_lost: str
    assert_ok: bool | None
    assertions_failed: list[JudgementRow]
    assertions_inconclusive: list[JudgementRow]
    advice: str
    stdout: str
    stderr: str
    stdout_base64: str
    stderr_base64: str
    hint: str


class LogsReply(TypedDict, total=False):
    """New output of a background run and how it stands."""

    id: str
    status: str
    running_ms: int
    exit: int
    signal: str
    owner_lost: str
    gap: bool
    stdout_cursor: int
    stderr_cursor: int
    stdout_lines: int
    stderr_lines: int
    stdout_binary: bool
    stderr_binary: bool
    stdout: str
    stderr: str


class KillReply(TypedDict, total=False):
    """What a kill did. ``session``: the one that was forgotten (``status`` is ``closed``)."""

    id: str
    session: str
    status: str
    already_exited: bool
    signal: str
    exit: int


class DetailReply(TypedDict, total=False):
    """A part of a stored run; ``stdout`` and ``stderr`` are pages with their totals."""

    id: str
    selector: str
    status: str
    meta: dict[str, Any]
    stdout: dict[str, Any]
    stderr: dict[str, Any]
    trace: dict[str, Any]
    counts: dict[str, int]
    events: int
    offset: int
    next_offset: int
    trace_unavailable: str
    trace_truncated: bool
    trace_gaps: list[str]


class EffectRow(TypedDict, total=False):
    """One file that a command would touch, as far as its text tells."""

    path: str
    what: str


class SegmentRow(TypedDict, total=False):
    """One command, redirection or assignment of a text."""

    text: str
    span: list[int]
    category: str
    reason: str
    effects: list[EffectRow]


class PlanReply(TypedDict, total=False):
    """What a command may do, told without running it."""

    category: str
    reversible: bool
    effects: list[EffectRow]
    segments: list[SegmentRow]
    warning: str


class CheckpointReply(TypedDict, total=False):
    """A kept state of a folder. ``created``: seconds since 1970."""

    id: str
    label: str
    created: float
    files: int
    bytes: int
    left_out: dict[str, str]
    over_limit: Any


class RestoreReply(TypedDict, total=False):
    """What a restore did; ``before`` is the label that brings back what was there."""

    id: str
    label: str
    created: int
    replaced: int
    deleted: int
    adjusted: int
    before: str
    before_id: str
    left: dict[str, str]


class CheckpointsReply(TypedDict, total=False):
    """Checkpoints of a folder, the newest first."""

    checkpoints: list[CheckpointReply]


class GovernedReply(TypedDict, total=False):
    """A command that the policy let through."""

    ok: bool
    argv: list[str]
    returncode: int
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    id: str
    record: str
    effect: str
    cut: dict[str, str]
