"""One dispatch, from the last look before it starts to the line in the audit that says how it ended."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import time
from collections.abc import Mapping
from typing import Any

from veil.governed.audit import Audit
from veil.governed.budgets import Account
from veil.governed.calls import Bounds, Call
from veil.governed.dispatch import Bind, Recheck, Watched, governed
from veil.governed.errors import Denied, EffectUnknown
from veil.governed.executables import Executables
from veil.governed.gate import Gate, Passed
from veil.governed.result import GovernedResult, narrowed
from veil.host.orders import Controls, Orders
from veil.model.errors import Refused
from veil.model.outcome import Outcome
from veil.model.record import Record
from veil.policy.git_reads import ENVIRONMENT
from veil.runner import Runner


class Performance:
    """Runs a request that has passed. ``call`` may have fewer seconds than the request."""

    def __init__(
        self,
        passed: Passed,
        call: Call,
        gate: Gate,
        executables: Executables,
        environment: Mapping[str, str],
        account: Account,
        audit: Audit,
        bounds: Bounds,
        options: Mapping[str, Any],
    ) -> None:
        self._passed = passed
        self._call = call
        self._gate = gate
        self._executables = executables
        # a repository's own idea of where its work tree is could lead anywhere
        hardened = {**ENVIRONMENT, "GIT_WORK_TREE": passed.cwd} if passed.is_read else {}
        self._environment = {**environment, **hardened}
        self._account = account
        self._audit = audit
        self._bounds = bounds
        self._options = options
        self._watched = Watched()
        self._written = {"stdout": 0, "stderr": 0}
        self._began = time.monotonic()

    def run(self, runner: Runner, orders: Orders) -> GovernedResult:
        """See it through. Raises ``Denied`` when it did not start, ``EffectUnknown`` when it did and is not clear."""
        try:
            record = self._perform(runner, orders)
        except Refused as error:
            self._broke(error)
            error.facts.setdefault("id", self._passed.id)
            raise
        except Exception as error:
            self._broke(error)
            if not self._watched.dispatched:
                raise
            why = f"what runs it has failed: {type(error).__name__}: {error}"
            raise EffectUnknown(why, id=self._passed.id) from error
        except BaseException as error:
            self._broke(error)
            raise
        outcome = record.observation.outcome
        usage = outcome.usage
        cpu = 0.0 if usage is None else usage.user_seconds + usage.system_seconds
        if outcome.signal == "SIGXCPU":
            # the kernel counts for its limit in another way than it tells: what was left is used up
            cpu = max(cpu, self._left("cpu") or 0.0)
        self._account.charge(outcome.seconds, cpu, 0 if usage is None else usage.max_rss_bytes)
        try:
            return self._conclude(record, cpu)
        except Refused as error:  # it ran, and the audit cannot say so
            why = f"how it ended could not be noted ({error})"
            raise EffectUnknown(why, id=self._passed.id, record=record.id) from error

    def _perform(self, runner: Runner, orders: Orders) -> Record:
        passed = self._passed
        own = {"timeout": self._call.timeout, "max_output": self._bounds.max_bytes}
        asked = runner.ask(list(passed.call.argv), {**self._options, **own})
        others = {seen.program: None for seen in passed.behind if seen.program.path is not None}
        folder = self._folder()
        try:
            recheck = Recheck(
                passed.program,
                self._executables,
                self._again(folder),
                passed.cwd,
                folder,
                tuple(others),
                passed.scripts,
                self._watched,
                self._left("cpu"),
                self._account.budget.memory,
            )
            decision = dataclasses.replace(passed.judged.decision, request=passed.id)
            asked = governed(asked, Bind(passed.words, decision), recheck, self._expected())
            asked = dataclasses.replace(asked, environment=self._environment)

            def listen(stream: str, data: bytes) -> None:
                self._written[stream] += len(data)
                if self._written[stream] > self._bounds.max_bytes:
                    orders.send(signal.SIGKILL)

            return runner.perform(asked, Controls(listener=listen, orders=orders))
        finally:
            os.close(folder)

    def _left(self, what: str) -> float | None:
        most: float | None = getattr(self._account.budget, what)
        return None if most is None else max(0.0, most - getattr(self._account.spent, what))

    def _folder(self) -> int:
        try:
            return os.open(self._passed.cwd, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise Denied(f"the working directory has changed ({error.strerror})", code="path_changed") from error

    def _again(self, folder: int) -> Any:
        passed = self._passed

        def look() -> str | None:
            held, now = os.fstat(folder), os.stat(passed.cwd)
            if (held.st_dev, held.st_ino) != (now.st_dev, now.st_ino):
                return "another folder is in the place of the working directory"
            unfit = self._gate.unfit(passed.call.argv, passed.cwd, passed.judged)
            return None if unfit is None else unfit[1]

        return look

    def _expected(self) -> frozenset[tuple[int, int]]:
        """The files that /proc may show as running: the program, or for a script its interpreter."""
        program = self._passed.program
        if not program.interpreter:
            return frozenset() if program.inode is None else frozenset({program.inode})
        try:
            seen = os.stat(program.interpreter[0])
        except OSError:
            return frozenset()
        return frozenset({(seen.st_dev, seen.st_ino)})

    # -- the end

    def _broke(self, error: BaseException) -> None:
        """It raised: nothing came of it, or nobody knows what did."""
        effect = "unknown" if self._watched.dispatched else "none"
        if self._watched.dispatched:
            self._account.charge(time.monotonic() - self._began, 0.0, 0)
        code = getattr(error, "code", type(error).__name__)
        ended = "not_dispatched" if effect == "none" else "broken"
        self._end(ended=ended, code=code, message=str(error), effect=effect)

    def _end(self, **facts: Any) -> None:
        self._audit.append("end", {"id": self._passed.id, **facts})

    def _conclude(self, record: Record, cpu: float) -> GovernedResult:
        outcome = record.observation.outcome
        used = {"wall": round(outcome.seconds, 6), "cpu": round(cpu, 6)}
        if outcome.usage is not None:
            used["memory"] = outcome.usage.max_rss_bytes
        facts: dict[str, Any] = {"record": record.id, "used": used, "confirmed": self._watched.confirmed}
        facts["held"] = self._watched.held
        lost = self._lost(outcome)
        if lost is not None:
            code, why = lost
            self._end(ended=code, returncode=outcome.exit, effect="unknown", **facts)
            raise EffectUnknown(why, code=code, id=self._passed.id, record=record.id)
        result = self._result(record, outcome)
        size = len(json.dumps(result.to_dict()))
        facts["replaced"] = outcome.stdout.lossy_characters + outcome.stderr.lossy_characters
        facts |= {"stdout_truncated": result.stdout_truncated, "stderr_truncated": result.stderr_truncated}
        if size > self._bounds.max_persisted:
            self._end(ended="result_omitted", returncode=outcome.exit, bytes=size, **facts, effect="unknown")
            raise EffectUnknown(
                f"the result has {size} bytes, more than {self._bounds.max_persisted}, and was left out",
                code="result_omitted",
                id=self._passed.id,
                record=record.id,
                bytes=size,
            )
        self._end(ended=outcome.ended, returncode=outcome.exit, effect=result.effect, **facts)
        return result

    def _lost(self, outcome: Outcome) -> tuple[str, str] | None:
        """Why there is no result to go by, as code and reason; ``None`` when there is one."""
        if self._watched.changed:
            return "executable_changed", "the program or its script was changed while it started or ran"
        most = self._bounds.max_bytes
        if outcome.stdout.truncated or outcome.stderr.truncated or max(self._written.values()) > most:
            return "output_limit", f"it wrote more than {most} bytes and was killed; its output is lost"
        if outcome.cancelled:
            return "cancelled", "it was cancelled"
        if outcome.timed_out:
            if self._call.timeout < self._passed.call.timeout:
                return "budget_spent", "the seconds of the budget were used up, and it was ended"
            return "timed_out", f"it was ended after {self._call.timeout:g} s"
        if outcome.ended == "spawn_failed":
            return "not_started", f"it could not be started ({outcome.spawn_error})"
        if outcome.signal == "SIGXCPU" and self._account.budget.cpu is not None:
            return "budget_spent", "the processor time of the budget was used up, and it was ended"
        return None

    def _result(self, record: Record, outcome: Outcome) -> GovernedResult:
        call, most = self._passed.call, self._bounds.max_chars
        stdout, out_cut = narrowed(outcome.stdout.text, most, call.stdout_chars)
        stderr, err_cut = narrowed(outcome.stderr.text, most, call.stderr_chars)
        cut = [(name, by) for name, by in (("stdout", out_cut), ("stderr", err_cut)) if by is not None]
        return GovernedResult(
            argv=call.argv,
            cwd=self._passed.cwd,
            timeout=call.timeout,
            returncode=outcome.exit,
            stdout=stdout,
            stderr=stderr,
            stdout_truncated=out_cut is not None,
            stderr_truncated=err_cut is not None,
            id=self._passed.id,
            record=record.id,
            effect="none" if self._passed.is_read else "unknown",
            cut=tuple(cut),
        )
