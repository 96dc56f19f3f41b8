"""Asking somebody, and what is made of the answer: an approval for exactly this, or a denial that is final."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from veil.governed.approvals import Answer, Approvals, Approver, Later, Question
from veil.governed.audit import Audit
from veil.governed.denials import Denials
from veil.governed.errors import ApprovalRequired, Denied
from veil.governed.gate import Passed
from veil.policy.launchers import Seen


class Consent:
    """Who approves what in one boundary.

    Args:
        environment: hash of the environment that commands get.
        remember: an approver may have its answer kept.
        meant: the programs that a denial of an argv, in a folder, is about.
    """

    def __init__(
        self,
        approver: Approver,
        audit: Audit,
        denials: Denials,
        environment: str,
        remember: bool,
        meant: Callable[[Sequence[str], str], tuple[Seen, ...]],
    ) -> None:
        self._approver = approver
        self._audit = audit
        self._denials = denials
        self._environment = environment
        self._remember = remember
        self._meant = meant
        self._approvals = Approvals()

    def obtain(self, passed: Passed) -> None:
        """Make sure that there is an approval for this. Raises ``Denied`` or ``ApprovalRequired``."""
        if self._approvals.has(passed.binding):
            return
        question = self._question(passed)
        self._audit.append("asked", {"id": passed.id, "approval": question.id, "binding": question.binding})
        answer = self._ask(question)
        if answer.approved:
            self._grant(question, answer)
            return
        self._deny(question, answer)
        why = answer.reason or "it was not approved"
        raise Denied(why, code="denied_by_approver", id=question.request, approval=question.id)

    def take(self, binding: str) -> str | None:
        """Use up the approval for exactly this; ``None`` when there is none (any more)."""
        return self._approvals.take(binding)

    def _question(self, passed: Passed) -> Question:
        program, told = passed.program, passed.judged.told
        return Question(
            id=self._approvals.new_id(),
            request=passed.id,
            argv=passed.call.argv,
            cwd=passed.cwd,
            timeout=passed.call.timeout,
            environment=self._environment,
            executable=program.path or "",
            digest=program.digest or "",
            reasons=tuple(dict.fromkeys(f"{reason.why} [{reason.rule}]" for reason in told)),
            rules=passed.judged.decision.rules,
            binding=passed.binding,
        )

    def _ask(self, question: Question) -> Answer:
        try:
            said = self._approver(question)
            answer = Answer(said) if isinstance(said, bool) else said
            if not isinstance(answer, Answer):
                raise TypeError(f"an approver answered {answer!r}")
        except Later:
            self._approvals.ask(question)
            raise ApprovalRequired(
                f"this needs an approval first ({'; '.join(question.reasons)}); ask for it, do not try another way",
                id=question.request,
                approval=question.id,
                effect="none",
            ) from None
        except Exception as error:  # an approver that fails has not approved
            answer = Answer(False, by="error", reason=f"asking failed: {type(error).__name__}: {error}")
        return answer

    def _grant(self, question: Question, answer: Answer) -> None:
        keep = answer.remember and self._remember
        self._approvals.give(question, answer, keep=keep)
        facts = {"id": question.request, "approval": question.id, "by": answer.by, "expires": answer.expires}
        self._audit.append("approved", {**facts, "binding": question.binding, "remember": keep})

    def _deny(self, question: Question, answer: Answer) -> None:
        self._denials.add(self._meant(question.argv, question.cwd))
        facts = {"id": question.request, "approval": question.id, "by": answer.by, "reason": answer.reason}
        self._audit.append("denied", {**facts, "code": "denied_by_approver", "effect": "none"})

    # -- answers that come later

    def pending(self) -> tuple[Question, ...]:
        """Questions that nobody has answered, oldest first."""
        return self._approvals.pending()

    def approve(self, id: str, answer: Answer) -> None:
        """Approve an open question. Raises ``NotFound``."""
        self._grant(self._approvals.answered(id), answer)

    def deny(self, id: str, answer: Answer) -> None:
        """Deny an open question, for good. Raises ``NotFound``."""
        self._deny(self._approvals.answered(id), answer)
