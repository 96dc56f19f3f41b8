"""The governed boundary: argv only, by policy, with evidence. ``import veil.governed`` when you need it.

    from veil.governed import Boundary
    boundary = Boundary("work", "policy.toml", audit="audit.jsonl")
    boundary.run(["pytest", "-q"], timeout_s=300)

It decides which programs are started and with which words. It is no sandbox: what a program does then is its own.
"""

from __future__ import annotations

from veil.governed.approvals import Answer, Approver, Later, Question
from veil.governed.approvers import Scripted, Terminal, later
from veil.governed.audit import Audit, Verified, verify
from veil.governed.boundary import Boundary
from veil.governed.budgets import Budget, Spent
from veil.governed.calls import Bounds
from veil.governed.errors import ApprovalRequired, Denied, EffectUnknown
from veil.governed.policies import load_policy
from veil.governed.result import GovernedResult
from veil.governed.tool import run_shell_command, schema
from veil.policy.deciding import Judged, Reason
from veil.policy.labels import Clearances, DataFlow, Label
from veil.policy.reading import BadPolicy
from veil.policy.rules import Example, Policy, Rule

__all__ = [
    "Answer",
    "ApprovalRequired",
    "Approver",
    "Audit",
    "BadPolicy",
    "Boundary",
    "Bounds",
    "Budget",
    "Clearances",
    "DataFlow",
    "Denied",
    "EffectUnknown",
    "Example",
    "GovernedResult",
    "Judged",
    "Label",
    "Later",
    "Policy",
    "Question",
    "Reason",
    "Rule",
    "Scripted",
    "Spent",
    "Terminal",
    "Verified",
    "later",
    "load_policy",
    "run_shell_command",
    "schema",
    "verify",
]
