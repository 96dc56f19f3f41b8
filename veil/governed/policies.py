"""Policies from files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from veil.governed.binding import digest
from veil.model.errors import BadInput
from veil.policy.reading import read
from veil.policy.rules import Policy


def load_policy(file: str | os.PathLike[str]) -> Policy:
    """The policy of a TOML file, or of ``[tool.veil.policy]`` in a ``pyproject.toml``.

    Raises:
        BadInput: the file cannot be read. BadPolicy: it cannot mean anything; names the line.
    """
    path = Path(file)
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("policy", os.fspath(file), f"a file in UTF-8 that can be read ({error})") from error
    return read(text, os.fspath(file))


def policy_of(given: Policy | str | os.PathLike[str] | None) -> Policy:
    """A policy as it is, or from its file; without one, everything is asked."""
    policy = Policy() if given is None else given if isinstance(given, Policy) else load_policy(given)
    return policy if policy.digest else replace(policy, digest=_digest(policy))


def _digest(policy: Policy) -> str:
    """The hash of a policy that came from no file. A function counts by its name, which is all that can be told."""
    named = [replace(rule, when=None) for rule in policy.rules]
    functions = [f"{r.when.__module__}.{r.when.__qualname__}" if r.when else "" for r in policy.rules]
    return digest(repr(replace(policy, rules=tuple(named))), *functions)
