"""Policies from files."""

from __future__ import annotations

import os
from pathlib import Path

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
    if given is None:
        return Policy()
    return given if isinstance(given, Policy) else load_policy(given)
