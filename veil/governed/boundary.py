"""The boundary: one workspace, one policy, one audit; argv in, evidence out."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from veil.governed import evidence
from veil.governed.approvals import EXPIRES, Answer, Approver, Question
from veil.governed.approvers import later
from veil.governed.audit import Audit
from veil.governed.audit_place import opened
from veil.governed.budgets import Account, Budget, Spent
from veil.governed.calls import Bounds, call_of, note_of, refused
from veil.governed.consent import Consent
from veil.governed.denials import Denials
from veil.governed.environment import PASSED, constrained, digest_of
from veil.governed.errors import Denied
from veil.governed.executables import Executables, safe_path
from veil.governed.gate import Gate, Passed
from veil.governed.knowledge import judge_of
from veil.governed.paths import Workspace
from veil.governed.performing import Performance
from veil.governed.policies import policy_of
from veil.governed.result import GovernedResult
from veil.host.orders import Orders
from veil.model.errors import BadInput
from veil.policy.deciding import Judged
from veil.policy.labels import Clearances, DataFlow, Label
from veil.policy.rules import Policy
from veil.runner import Runner

#: Options of ``veil.run`` that a boundary may be given, once and for all of its commands.
OPTIONS = ("sandbox", "trace", "effects", "redact", "secrets", "no_store", "project", "contain", "scrub_env")


class Boundary:
    """Runs argv, and only argv, that a policy lets through. Safe to use from several threads.

    It is no sandbox of the operating system: a program that was let through does what its user can (``sandbox=`` puts
    one around it).

    Args:
        workspace: the folder that commands stay in.
        policy: a ``Policy``, or the path of its file; ``None``: nothing is allowed without an approval.
        bounds: times and sizes. budget: what may be used in all.
        path: folders of the safe PATH; ``None`` takes those of the process's own that are absolute and lie outside the
            workspace. passed: names of variables that go through. environment: variables that the host sets.
        approver: asks somebody; by default nobody is asked and ``approve`` has to follow.
        remember: an approver may ask to have its answer kept for requests that are the same.
        data_flow: judges what may be given to which program; by default the clearances of the policy.
        audit: its file, or an ``Audit``; ``None`` takes ``governed.jsonl`` beside the records of the project.
        runner: what runs the commands (a recorder or a player of a recording will do).
        options: of ``veil.run``, for every command: sandbox, trace, effects, redact, secrets, no_store, project,
            contain (default: True), scrub_env.

    Raises:
        BadInput: an argument that cannot mean anything; a missing workspace is one.
        Refused: code ``audit_unavailable``.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        policy: Policy | str | os.PathLike[str] | None = None,
        *,
        bounds: Bounds | None = None,
        budget: Budget | None = None,
        path: str | Sequence[str] | None = None,
        passed: Sequence[str] = PASSED,
        environment: Mapping[str, str] | None = None,
        approver: Approver = later,
        remember: bool = False,
        data_flow: DataFlow | None = None,
        audit: Audit | str | os.PathLike[str] | None = None,
        runner: Runner | None = None,
        **options: Any,
    ) -> None:
        for name in options:
            if name not in OPTIONS:
                raise BadInput(name, options[name], f"an option of a boundary: {', '.join(OPTIONS)}")
        self.policy = policy_of(policy)
        self.workspace = Workspace(workspace, self.policy.allowed_paths)
        self.bounds = bounds or Bounds()
        self._executables = Executables(safe_path(path, self.workspace.root), self.workspace.root)
        self._environment = constrained(self._executables.path, passed, environment or {})
        self._account = Account(budget or Budget())
        flow = data_flow or Clearances(self.policy.clearances, self.policy.clearance)
        denials, hashed = Denials(), digest_of(self._environment)
        self._environment_digest = hashed
        judge = judge_of(self.policy)
        self._gate = Gate(judge, self.workspace, self._executables, hashed, flow, self._account, denials)
        self._options = {"contain": True, **options}
        self._runner = runner or Runner()
        self._cwd = self.workspace.root
        self._running: set[Orders] = set()
        self._lock = threading.Lock()
        self._lent = isinstance(audit, Audit)
        self.audit = audit if isinstance(audit, Audit) else opened(audit, self.workspace, self._options.get("project"))
        self.approver = approver
        self._consent = Consent(approver, self.audit, denials, hashed, remember, self._gate.meant)

    # -- the working directory

    @property
    def cwd(self) -> str:
        """Where the next command runs: absolute, in the workspace."""
        return self._cwd

    def chdir(self, folder: str | os.PathLike[str]) -> str:
        """Choose where the next commands run, relative to where they run now. Returns the absolute path.

        Raises:
            BadInput: no folder. Denied: it lies outside the workspace.
        """
        name = os.fsdecode(folder)
        try:
            real = self.workspace.folder(name, self._cwd)
        except BadInput:
            raise
        except ValueError as error:
            self.audit.append("chdir", {"folder": name, "decision": "deny", "effect": "none"})
            raise Denied(f"{name!r} leads to {error}, outside the workspace", code="outside_workspace") from None
        self.audit.append("chdir", {"folder": real, "decision": "allow", "effect": "none"})
        self._cwd = real
        return real

    # -- running

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float | None = None,
        max_stdout_chars: int | None = None,
        max_stderr_chars: int | None = None,
        labels: Sequence[Label] = (),
    ) -> GovernedResult:
        """Run one argv to its end, if it may.

        Args:
            argv: the words, exactly as the program is to get them. There is no shell.
            timeout_s: seconds, within the bound. max_stdout_chars, max_stderr_chars: fewer characters than the bound.
            labels: of objects of the host that the argv carries (never told by the agent itself).

        Returns:
            The result, also of a command that failed: look at ``returncode``.

        Raises:
            BadInput: an input that cannot mean anything.
            Denied: it was refused; stop. ApprovalRequired: somebody has to approve it first.
            EffectUnknown: it was started, and how it ended is not known well enough. Look before any retry.
        """
        passed = self._judged(argv, timeout_s, max_stdout_chars, max_stderr_chars, labels)
        asked = passed.judged.decision.answer == "ask"
        if asked:
            self._consent.obtain(passed)
        return self._dispatch(passed, asked)

    def decide(self, argv: Sequence[str]) -> Judged:
        """What the policy says of an argv here, with its reasons. Runs nothing, asks nobody, leaves no evidence."""
        call = call_of(argv, None, None, None, self.bounds)
        return self._gate.decide(call.argv, self._cwd)

    def _judged(
        self, argv: Sequence[str], timeout: object, out: object, err: object, labels: Sequence[Label]
    ) -> Passed:
        note = self._note(argv)
        request, cwd = note["id"], note["cwd"]
        try:
            call = call_of(argv, timeout, out, err, self.bounds)
            note.update(timeout=call.timeout, caps=[call.stdout_chars, call.stderr_chars])
            passed = self._gate.judge_call(request, call, cwd, labels, note)
        except (BadInput, Denied) as error:
            self.audit.append("request", refused(note, error))
            raise
        self.audit.append("request", note)
        return passed

    def unheard(self, argv: object, error: BadInput) -> BadInput:
        """Note a request that cannot be put to ``run`` at all; returns the error, with the id of the request."""
        self.audit.append("request", refused(self._note(argv), error))
        return error

    def _note(self, argv: object) -> dict[str, Any]:
        return note_of(argv, self._cwd, self.policy.digest, self._environment_digest)

    # -- approvals

    def pending(self) -> tuple[Question, ...]:
        """Questions that nobody has answered, oldest first."""
        return self._consent.pending()

    def approve(self, id: str, *, by: str = "", expires: float = EXPIRES) -> None:
        """Approve one question: the very same request then runs once, within ``expires`` seconds.

        Raises ``NotFound`` for a question that is not (or no longer) open.
        """
        self._consent.approve(id, Answer(True, by=by, expires=expires))

    def deny(self, id: str, *, by: str = "", reason: str = "") -> None:
        """Deny one question. The same program and sub-command are then denied in every wrapping."""
        self._consent.deny(id, Answer(False, by=by, reason=reason))

    # -- the dispatch

    def _dispatch(self, passed: Passed, asked: bool) -> GovernedResult:
        approval = None
        if asked:
            approval = self._consent.take(passed.binding)
            if approval is None:
                raise self._refused(passed, "its approval was used up or has expired", "approval_used")
        seconds = self._account.begin(passed.call.timeout)
        if isinstance(seconds, str):
            raise self._refused(passed, seconds, "budget_spent")
        try:
            self.audit.append("dispatch", {"id": passed.id, "approval": approval, "effect": "unknown"})
            return self._perform(passed, seconds)
        finally:
            self._account.end(seconds)

    def _perform(self, passed: Passed, seconds: float) -> GovernedResult:
        orders = Orders()
        with self._lock:
            self._running.add(orders)
        try:
            return Performance(
                passed,
                replace(passed.call, timeout=seconds),
                self._gate,
                self._executables,
                self._environment,
                self._account,
                self.audit,
                self.bounds,
                {**self._options, "cwd": passed.cwd},
            ).run(self._runner, orders)
        finally:
            with self._lock:
                self._running.discard(orders)
            orders.close()

    def _refused(self, passed: Passed, why: str, code: str) -> Denied:
        error = Denied(why, code=code, id=passed.id)
        self.audit.append("refused", {"id": passed.id, "code": code, "message": str(error), "effect": "none"})
        return error

    def cancel(self) -> int:
        """End everything that runs here now; each of those calls raises ``EffectUnknown``. Returns how many."""
        with self._lock:
            running = list(self._running)
        for orders in running:
            orders.cancel()
        return len(running)

    # -- evidence

    @property
    def spent(self) -> Spent:
        """What was used of the budget so far."""
        return self._account.spent

    def completion(self, id: str) -> dict[str, Any]:
        """The completion evidence of a request. Raises ``NotFound``."""
        return evidence.completion(self.audit.lines(), id)

    def verified(self, id: str, found: str, *, by: str = "") -> None:
        """Note that somebody has looked at what a request did, and what they found.

        Raises ``NotFound``; ``BadInput`` when nothing was found out.
        """
        if not isinstance(found, str) or not found.strip():
            raise BadInput("evidence", found, "what was looked at, and what was there")
        self.completion(id)
        self.audit.append("verified", {"id": id, "evidence": found, "by": by, "effect": "verified"})

    def close(self) -> None:
        """End what runs and let go of the workspace and the audit."""
        self.cancel()
        deadline = time.monotonic() + 30
        while self._running and time.monotonic() < deadline:
            time.sleep(0.005)
        self.workspace.close()
        if not self._lent:
            self.audit.close()

    def __enter__(self) -> Boundary:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
