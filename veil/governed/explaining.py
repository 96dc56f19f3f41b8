"""What a policy says of an argv, and why, without a boundary: for people who write policies. Runs nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from veil.governed.calls import Bounds, call_of
from veil.governed.executables import Executables, safe_path
from veil.governed.knowledge import judge_of
from veil.governed.paths import Workspace
from veil.governed.policies import load_policy
from veil.governed.text_programs import needed, readings
from veil.model.errors import BadInput
from veil.policy.deciding import Judge, Reason
from veil.policy.programs import Program
from veil.policy.reading import BadPolicy
from veil.policy.rules import Answer, Example, Policy


@dataclass(frozen=True)
class Explained:
    """Attributes: answer: of policy and containment together. reasons: of the answer first, then the others.
    missing: the program is not on this machine and was judged by its name."""

    argv: tuple[str, ...]
    answer: Answer
    reasons: tuple[Reason, ...]
    missing: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The JSON view."""
        shown = {"argv": list(self.argv), "answer": self.answer, "reasons": [one.to_dict() for one in self.reasons]}
        return {**shown, "missing": True} if self.missing else shown


@dataclass(frozen=True)
class Tried:
    """One example of a policy, tried. ``told`` is what the policy answers."""

    example: Example
    told: Explained

    @property
    def ok(self) -> bool:
        """It answers what the example says."""
        return self.told.answer == self.example.expect


def policy_here() -> Policy:
    """The policy of ``pyproject.toml`` in this folder; an empty one where there is none."""
    try:
        return load_policy("pyproject.toml")
    except BadPolicy as error:
        if error.facts.get("missing"):
            return Policy()
        raise
    except BadInput:
        if os.path.lexists("pyproject.toml"):
            raise
        return Policy()


class Explainer:
    """Explains one policy over one workspace. A program that is not on this machine is judged by its name.

    Raises ``BadInput`` when the workspace is no folder.
    """

    def __init__(self, policy: Policy, workspace: str | os.PathLike[str]) -> None:
        self._policy = policy
        self._judge: Judge = judge_of(policy)
        self._workspace = Workspace(workspace, policy.allowed_paths)
        root = self._workspace.root
        self._executables = Executables(safe_path(None, root), root)

    def explain(self, argv: Sequence[str], cwd: str = ".") -> Explained:
        """The answer with its reasons. ``cwd``: relative to the workspace. Raises ``BadInput`` for no argv."""
        words = call_of(argv, None, None, None, Bounds()).argv
        folder = self._workspace.root if cwd == "." else os.path.join(self._workspace.root, cwd)

        def lookup(word: str) -> Program:
            found = self._executables.find(word, folder)
            return replace(found, why_not=None) if found.path is None and "/" not in word else found

        judged = self._judge.judge(words, cwd, lookup, lookup)
        reasons, answer = list(judged.reasons), judged.decision.answer
        programs = readings(self._judge.see(words, lookup)) if needed(words) else {}
        escape = self._workspace.escape(words, folder, programs) or self._workspace.escape_of_text(
            words, judged, folder
        )
        if escape is not None:
            answer = "deny"
            reasons.insert(0, Reason("deny", "builtin:outside_workspace", f"{escape.word!r}: {escape.why}", words[0]))
        ordered = sorted(dict.fromkeys(reasons), key=lambda reason: reason.answer != answer)
        return Explained(words, answer, tuple(ordered), judged.seen[0].program.path is None)

    def examples(self) -> tuple[Tried, ...]:
        """Every example that stands in the policy, tried."""
        return tuple(Tried(one, self.explain(one.argv, one.cwd)) for one in self._policy.examples)
