"""``veil_boundary``: a governed boundary around the workspace of a test, in the test's own recording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_veil.real_disk import real_disk
from pytest_veil.running import VeilRun
from veil import Record, Result
from veil.governed import Answer, Audit, Boundary, Policy, Scripted
from veil.taping import StageRunner


class VeilBoundary:
    """``veil_boundary(policy, answers=[True])`` makes a ``veil.governed.Boundary`` around the workspace of a test.

    Its commands are among those of ``veil_run``, and recorded, replayed and verified like them; they get the
    environment of the test. The policy judges in every mode, so the programs have to be there for a replay too.
    """

    def __init__(self, run: VeilRun) -> None:
        self._run = run
        self._made: list[Boundary] = []

    def __repr__(self) -> str:
        return f"<veil_boundary at {self._run.root}: {self._run.mode}>"

    def __call__(
        self,
        policy: Policy | str | os.PathLike[str] | None = None,
        *,
        answers: Iterable[Answer | bool] = (),
        **options: Any,
    ) -> Boundary:
        """A boundary of this test.

        Args:
            policy: a ``Policy``, or the path of its file.
            answers: what the approver says, one after the other; then it denies. ``boundary.approver.questions`` are
                what it was asked. ``approver=`` takes another one instead.
            options: of ``Boundary``.
        """
        __tracebackhide__ = True
        with real_disk():
            runner = _Kept(self._run)
            own: dict[str, Any] = {"approver": Scripted(answers), "audit": Audit(), "runner": runner}
            made = Boundary(self._run.root, policy, **{**own, "environment": _environment(runner), **options})
        self._made.append(made)
        return made

    def close(self) -> None:
        """End what still runs."""
        for made in self._made:
            made.close()


def _environment(runner: StageRunner) -> dict[str, str]:
    return {name: value for name, value in runner.stage.environment_now().items() if name != "PATH"}


class _Kept(StageRunner):
    """Runs as the runner of the test does, and lets the test know of it."""

    def __init__(self, run: VeilRun) -> None:
        super().__init__(run.runner.stage)
        self._run = run

    def ask(self, command: str | Sequence[str], options: Mapping[str, Any], *, background: bool = False) -> Any:
        return self._run.runner.ask(command, options, background=background)

    def perform(self, asked: Any, controls: Any) -> Record:
        return self._run.performed(lambda: Result(self._run.runner.perform(asked, controls))).record
