"""Whether a request may run: everything that can refuse it, in the order of the reference, before anybody is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veil.governed.binding import binding
from veil.governed.budgets import Account
from veil.governed.calls import Call
from veil.governed.carrying import paths_of
from veil.governed.denials import Denials
from veil.governed.errors import Denied
from veil.governed.executables import Executables
from veil.governed.git_words import git_words
from veil.governed.paths import Workspace
from veil.governed.scripts import Script, scripts
from veil.governed.text_programs import Reading, needed, readings
from veil.policy.deciding import Judge, Judged
from veil.policy.git_reads import READS
from veil.policy.labels import DataFlow, Label, carried
from veil.policy.launchers import Seen
from veil.policy.options import OPEN
from veil.policy.programs import Program

_CODES = {"builtin:git": "git_refused", "builtin:executable": "executable_refused"}


def _identity(program: Program) -> dict[str, str | None]:
    return {"path": program.path, "real": program.real, "digest": program.digest}


@dataclass(frozen=True)
class Passed:
    """A request that may run, or may be asked about.

    Attributes:
        id: of the request. cwd: absolute, without links. program: what runs. judged: the decision.
        binding: what an approval has to be bound to. words: the argv that is really run.
        scripts: files with code that interpreters are given by name.
    """

    id: str
    call: Call
    cwd: str
    program: Program
    judged: Judged
    binding: str
    words: tuple[str, ...]
    scripts: tuple[Script, ...] = ()

    @property
    def behind(self) -> tuple[Seen, ...]:
        """What is started behind the first program: by launchers, and out of texts for a shell."""
        return (*self.judged.seen[1:], *self.judged.inside)

    @property
    def is_read(self) -> bool:
        """One of the git reads, which change nothing."""
        return self.call.argv in READS


class Gate:
    """Judges requests. ``labels``: pairs of pattern and sensitivity of the policy."""

    def __init__(
        self,
        judge: Judge,
        workspace: Workspace,
        executables: Executables,
        environment: str,
        flow: DataFlow,
        account: Account,
        denials: Denials,
    ) -> None:
        self.judge = judge
        self._workspace = workspace
        self._executables = executables
        self._environment = environment
        self._flow = flow
        self._account = account
        self._denials = denials

    def decide(self, argv: Sequence[str], cwd: str) -> Judged:
        """The decision of the policy alone. ``cwd``: absolute, in the workspace."""
        lookup = self._executables.lookup(cwd)
        return self.judge.judge(argv, self._workspace.relative(cwd), lookup, self._executables.named())

    def _programs(self, argv: Sequence[str], cwd: str) -> Mapping[int, Reading]:
        """Words that are programs of sed or awk."""
        return readings(self.judge.see(argv, self._executables.lookup(cwd))) if needed(argv) else {}

    def meant(self, argv: Sequence[str], cwd: str) -> tuple[Seen, ...]:
        """The programs that somebody means who denies this argv: those that it starts.

        Of what a text for a shell starts, that which the policy would allow by itself is not meant.
        """
        judged = self.decide(argv, cwd)
        texts = (one for one in judged.inside if len(one.argv) > 1 and not any(OPEN in word for word in one.argv))
        return (*judged.seen, *(one for one in texts if self.decide(one.argv, cwd).decision.answer != "allow"))

    def unfit(self, argv: Sequence[str], cwd: str, judged: Judged | None = None) -> tuple[str, str] | None:
        """Why the workspace, the working directory or a path is refused: code and reason. Asked again at dispatch."""
        gone = self._workspace.missing()
        if gone is not None:
            return "workspace_missing", f"the workspace is missing ({gone})"
        try:
            if self._workspace.folder(cwd, cwd) != cwd:
                return "outside_workspace", f"the working directory {cwd} has become a link"
        except ValueError as error:
            return "outside_workspace", f"the working directory is {error}: {cwd} leads out of the workspace"
        escape = self._workspace.escape(argv, cwd, self._programs(argv, cwd))
        if escape is None and judged is not None:
            escape = self._workspace.escape_of_text(argv, judged, cwd)
        if escape is not None:
            return "outside_workspace", f"{escape.word!r} is refused: {escape.why}"
        return None

    def judge_call(self, id: str, call: Call, cwd: str, labels: Sequence[Label], note: dict[str, Any]) -> Passed:
        """The request, judged; ``note`` is filled with what the audit is to know of it, also when this raises.

        Raises:
            Denied: with the code of whatever refused it.
        """
        unfit = self.unfit(call.argv, cwd)
        if unfit is not None:
            note.update(decision="deny", rules=[f"builtin:{unfit[0]}"])
            raise Denied(unfit[1], code=unfit[0])
        judged = self.decide(call.argv, cwd)
        decision = judged.decision
        program = judged.seen[0].program
        note.update(
            decision=decision.answer,
            rules=list(decision.rules),
            errors=list(decision.errors),
            policy=decision.policy,
            executable=_identity(program),
            behind=[
                {"word": word, **_identity(one)}
                for word, one in dict.fromkeys(
                    (seen.argv[0], seen.program)
                    for seen in (*judged.seen[1:], *judged.inside)
                    if seen.program.path is not None
                )
            ],
            reasons=[reason.to_dict() for reason in judged.told],
        )
        if decision.answer == "deny":
            told = judged.told
            code = next((_CODES[reason.rule] for reason in told if reason.rule in _CODES), "policy_denied")
            why = "; ".join(dict.fromkeys(f"{reason.why} [{reason.rule}]" for reason in told))
            raise Denied(why, code=code, rules=list(decision.rules))
        # what is denied is told as that, also where its words lead out
        escape = self._workspace.escape_of_text(call.argv, judged, cwd)
        if escape is not None:
            note.update(decision="deny", rules=["builtin:outside_workspace"])
            raise Denied(f"{escape.word!r} is refused: {escape.why}", code="outside_workspace")
        self._others(judged, call, cwd, labels)
        words = self._words(call, program)
        # what launchers start, and what a script says, is approved with them
        programs = [program, *(one.program for one in (*judged.seen[1:], *judged.inside) if one.program.path)]
        read = scripts((*judged.seen, *judged.inside), cwd, self._executables)
        note.update(scripts=[one.to_dict() for one in read])
        identity = [word for one in programs for word in (one.path or "", one.digest or "", str(one.inode))]
        identity += [word for one in read for word in ("script", one.path, one.digest or str(one.state))]
        bound = binding(call.argv, cwd, call.timeout, self._environment, identity, decision.policy or "")
        return Passed(id, call, cwd, program, judged, bound, words, read)

    def _others(self, judged: Judged, call: Call, cwd: str, labels: Sequence[Label]) -> None:
        again = self._denials.find((*judged.seen, *judged.inside))
        if again is not None:
            raise Denied(f"{again!r} was denied before, and is denied in every other wrapping", code="denied_before")
        patterns = self.judge.policy.labels
        programs = self._programs(call.argv, cwd)
        paths = paths_of(self._workspace, call.argv, judged, cwd, programs) if patterns else []
        try:
            why = self._flow((*judged.seen, *judged.inside), (*labels, *carried(paths, patterns)))
        except Exception as error:  # what cannot be judged is not allowed
            why = f"judging the data flow failed: {type(error).__name__}: {error}"
        if why is not None:
            raise Denied(why, code="data_flow_denied")
        spent = self._account.empty()
        if spent is not None:
            raise Denied(f"{spent}", code="budget_spent")

    def _words(self, call: Call, program: Program) -> tuple[str, ...]:
        """What is really run: the judged path, and for a git read everything that hardens it."""
        assert program.path is not None
        argv = call.argv
        if argv in READS:
            argv = git_words(argv, self._workspace)
        return (program.path, *argv[1:])
