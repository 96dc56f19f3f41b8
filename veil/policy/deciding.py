"""From what an argv may start to one answer. Forbid beats ask beats allow, and a rule that errors denies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from veil.model.plan import Decision
from veil.policy.git_reads import READS, is_git, refusal
from veil.policy.judgements import Concern, Tables, code_text, concerns, is_transparent
from veil.policy.launchers import Launcher, Seen, see
from veil.policy.names import names_of, words_in
from veil.policy.programs import Lookup, Program
from veil.policy.rules import STRENGTH, Answer, Policy, Rule, Situation

#: Judged under ``always_allow`` too when there is a rule that a hidden program could be breaking.
_HIDING = ("opaque", "interpreters", "local")


@dataclass(frozen=True)
class Reason:
    """One thing that spoke for an answer. ``rule``: its id; ``builtin:...`` and ``level:...`` are veil's own."""

    answer: Answer
    rule: str
    why: str
    program: str = ""

    def to_dict(self) -> dict[str, str]:
        """The JSON view."""
        return {"answer": self.answer, "rule": self.rule, "why": self.why, "program": self.program}


@dataclass(frozen=True)
class Judged:
    """The answer with everything that led to it.

    Attributes:
        seen: the programs that the argv may start. reasons: of every one, in order.
        final: no approval and no rule changes it (raw git, a rule that failed).
    """

    decision: Decision
    reasons: tuple[Reason, ...]
    seen: tuple[Seen, ...]
    final: bool = False

    @property
    def told(self) -> tuple[Reason, ...]:
        """The reasons that led to the answer, each once."""
        return tuple(dict.fromkeys(reason for reason in self.reasons if reason.answer == self.decision.answer))


class Judge:
    """A policy, ready to judge.

    Args:
        launchers: how programs that start others are read, by name.
        tables: what is known of tools.
    """

    def __init__(self, policy: Policy, launchers: Mapping[str, Launcher], tables: Tables) -> None:
        self.policy = policy
        self._launchers = launchers
        self._tables = tables
        self._strict = tuple(rule for rule in policy.rules if rule.effect == "allow")
        self._loose = tuple(rule for rule in policy.rules if rule.effect != "allow")
        #: Names that a rule against something speaks of: other words of a script are not looked at further.
        self._named = frozenset().union(*(names_of(rule.words[0]) for rule in self._loose if rule.words))

    def judge(self, argv: Sequence[str], cwd: str, lookup: Lookup) -> Judged:
        """The answer for one argv.

        Args:
            cwd: relative to the workspace, ``.`` for its top.
            lookup: finds programs; its answer for the first word is what is going to run.
        """
        seen = see(argv, self._launchers, lookup)
        git = lookup("git")
        reasons = [reason for one in seen for reason in self._git(one, git, argv, cwd)]
        final = any(reason.answer == "deny" for reason in reasons)
        errors: list[str] = []
        for one in seen:
            reasons += self._one(one, cwd, lookup, errors)
        final = final or bool(errors)
        if self.policy.level == "always_deny":
            reasons.append(Reason("deny", "level:always_deny", "this policy denies everything"))
        # something has to have spoken: an argv of which nothing is known is not allowed by silence
        answer: Answer = max((reason.answer for reason in reasons), key=STRENGTH.__getitem__, default="deny")
        rules = tuple(dict.fromkeys(reason.rule for reason in reasons if reason.answer == answer))
        return Judged(Decision(answer, rules, tuple(errors), self.policy.digest), tuple(reasons), seen, final)

    # -- raw git

    def _git(self, one: Seen, git: Program, argv: Sequence[str], cwd: str) -> Iterator[Reason]:
        same = one.sure and git.path is not None and one.program.same_file(git)
        if is_git(one, git.path, same):
            why = refusal(argv, cwd) if one.sure and one.at == 0 else refusal((), cwd)
            if why is not None:
                yield Reason("deny", "builtin:git", why, one.argv[0])
        text = code_text(one) if one.sure and not one.launcher else None
        if text is not None and any("git" in names_of(word) for word in words_in(text)):
            yield Reason("deny", "builtin:git", refusal((), cwd) or "", one.argv[0])

    # -- rules, judgements, level

    def _one(self, one: Seen, cwd: str, lookup: Lookup, errors: list[str]) -> Iterator[Reason]:
        name = one.argv[0]
        try:
            network = one.sure and self._tables.risk(one.argv)[0] == "network"
        except Exception as error:  # what cannot be judged is not allowed
            errors.append(f"builtin: {type(error).__name__}: {error}")
            yield Reason("deny", "builtin:error", f"judging it failed: {error}", name)
            return
        situation = Situation(cwd, network, lookup)
        found = False
        for part in (one, *self._inside(one)):
            for rule in self._loose:
                answer = _speaks(rule, part, situation, errors)
                if answer is not None:
                    found = found or part is one
                    yield Reason(answer, rule.id, rule.reason or f"rule {rule.id}", part.argv[0])
        if not one.sure:
            return
        if one.program.why_not is not None:
            yield Reason("deny", "builtin:executable", one.program.why_not, name)
            return
        allowing = []
        for rule in self._strict:
            answer = _speaks(rule, one, situation, errors)
            if answer == "deny":
                yield Reason("deny", rule.id, f"rule {rule.id} failed", name)
            elif answer is not None:
                allowing.append(rule)
        if tuple(one.argv) in READS and one.at == 0:
            yield Reason("allow", "builtin:git-read", "one of the six reads, hardened", name)
            return
        yield from self._weighed(one, allowing, found)

    def _inside(self, one: Seen) -> Iterator[Seen]:
        """What the text of a script may start, as far as a rule speaks of it."""
        text = code_text(one) if one.sure and not one.launcher else None
        if text is None or not self._named:
            return
        words = words_in(text)
        for at, word in enumerate(words):
            if names_of(word) & self._named:
                yield Seen(words[at : at + 64], -1, Program(word), sure=False, through=(*one.through, one.argv[0]))

    def _weighed(self, one: Seen, allowing: Sequence[Rule], found: bool) -> Iterator[Reason]:
        """The allowing rules against the concerns that they do not name, or else the level."""
        name = one.argv[0]
        for concern in self._concerns(one):
            by = next((rule for rule in allowing if rule.answers(concern.at, one.argv)), None)
            named = by is None and concern.kind == "network" and any(rule.network for rule in allowing)
            if by is None and not named:
                answer = self.policy.judgement(concern.kind)
                word = one.argv[concern.at] if 0 < concern.at < len(one.argv) else name
                more = f"; {', '.join(rule.id for rule in allowing)} does not name {word!r}" if allowing else ""
                yield Reason(answer, f"builtin:{concern.kind}", f"{concern.why} ({word!r}){more}", name)
        for rule in allowing:
            yield Reason("allow", rule.id, rule.reason or f"rule {rule.id}", name)
        if allowing or found:
            return
        if self.policy.level == "allowlist":
            if is_transparent(one):
                yield Reason("allow", "builtin:launcher", "the answer is that of what it starts", name)
            else:
                yield Reason("ask", "level:allowlist", "no rule allows it", name)
        elif self.policy.level != "always_deny":
            yield Reason("allow", f"level:{self.policy.level}", "no rule holds it up", name)

    def _concerns(self, one: Seen) -> Iterator[Concern]:
        quiet = self.policy.level == "always_allow"
        for concern in concerns(one, self._tables):
            if not quiet or (self.policy.forbids and concern.kind in _HIDING):
                yield concern


def _speaks(rule: Rule, one: Seen, situation: Situation, errors: list[str]) -> Answer | None:
    """The rule's effect when it matches; ``deny`` when it fails, since nobody knows then what it would have said."""
    try:
        return rule.effect if rule.speaks_of(one, situation) else None
    except Exception as error:
        errors.append(f"{rule.id}: {type(error).__name__}: {error}")
        return "deny"
