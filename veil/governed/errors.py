"""What a governed boundary raises. A command that ran and failed is data; these are refusals and lost results."""

from __future__ import annotations

from typing import Any

from veil.model.errors import Refused, VeilError


class Denied(Refused):
    """The request was refused before anything ran; its effect is ``none``. A denial is a stop condition.

    Attributes:
        code: ``policy_denied``, ``git_refused``, ``outside_workspace``, ``executable_refused``, ``workspace_missing``,
            ``budget_spent``, ``data_flow_denied``, ``denied_by_approver``, ``denied_before``, ``executable_changed``,
            ``path_changed``, ``approval_used``.
        facts: ``id`` of the request, ``effect`` (always ``none``), ``rules``, ``reasons``.
    """

    code = "policy_denied"

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(
            f"{message}. Stop here: do not wrap, split, rename or move the command to get around this",
            **{"effect": "none", **facts},
        )


class ApprovalRequired(Refused):
    """Somebody has to approve this first, and there is nobody to ask right now.

    ``facts["approval"]`` is what ``Boundary.approve`` takes; afterwards the very same request runs once.
    """

    code = "approval_required"


class EffectUnknown(VeilError):
    """The command was started, and how it ended is not known well enough: there is no output to go by.

    Attributes:
        code: ``timed_out``, ``output_limit``, ``cancelled``, ``not_started``, ``result_omitted``,
            ``executable_changed``, ``budget_spent``, ``provider_failed``.
        facts: ``id`` of the request, ``effect`` (always ``unknown``), ``record`` where there is one.
    """

    code = "provider_failed"

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(
            f"{message}. What it has done is not known: look at the state of things before any retry",
            **{"effect": "unknown", **facts},
        )
