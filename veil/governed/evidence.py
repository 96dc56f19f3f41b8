"""What the audit knows of one request: the completion evidence that an agent has to give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from veil.model.errors import NotFound

_OF_REQUEST = (
    "argv",
    "cwd",
    "timeout",
    "environment",
    "executable",
    "behind",
    "scripts",
    "decision",
    "rules",
    "policy",
    "code",
)
_OF_END = ("returncode", "ended", "stdout_truncated", "stderr_truncated", "replaced", "record", "used", "confirmed")


def completion(lines: Iterable[Mapping[str, Any]], id: str) -> dict[str, Any]:
    """The evidence for one request, gathered from the audit.

    ``open`` lists what is still missing before the request can be called complete; it is empty when nothing is.

    Raises:
        NotFound: no such request in this audit.
    """
    found: dict[str, Any] = {}
    known: list[str] = []
    checks: list[Any] = []
    for line in lines:
        if line.get("kind") == "request":
            known.append(str(line["id"]))
        if line.get("id") != id:
            continue
        for name in (*_OF_REQUEST, *_OF_END, "approval", "by", "effect"):
            if name in line:
                found[name] = line[name]
        if line["kind"] == "verified":
            checks.append({"by": line.get("by", ""), "evidence": line["evidence"]})
    if not found:
        raise NotFound(f"the request {id}", known[::-1][:20])
    found["checks"] = checks
    return {"id": id, **found, "open": _missing(found)}


def _missing(found: Mapping[str, Any]) -> list[str]:
    if found.get("ended") is None:
        if found.get("effect") == "none":
            return ["nothing was run"]
        return ["how it ended is not known: inspect what it has done before any retry"]
    missing = []
    if found["ended"] not in ("exited", "signaled"):
        missing.append(f"it ended as {found['ended']}: inspect what it has done before any retry")
    missing += [f"{name} is a prefix" for name in ("stdout", "stderr") if found.get(f"{name}_truncated")]
    if found.get("replaced"):
        missing.append("bytes that are no UTF-8 were replaced")
    if found.get("effect") == "unknown":
        missing.append("nobody has looked at what it changed")
    return missing
