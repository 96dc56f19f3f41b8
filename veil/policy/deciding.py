"""From what an argv may start to one answer. Forbid beats ask beats allow, and a rule that errors denies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from veil.model.plan import Decision
from veil.policy.git_reads import READS, is_copy, is_git, refusal
from veil.policy.judgements import Concern, Tables, concerns, handed_on, is_transparent, texts_of
from veil.policy.launchers import Launcher, Seen, see
from veil.policy.names import names_of
from veil.policy.programs import Lookup, Program
from veil.policy.rules import STRENGTH, Answer, Policy, Rule, Situation
from veil.policy.started import NOTHING, Inside, inside, is_shell

#: Judged under ``always_allow`` too when there is a rule that a hidden program could be breaking.
_HIDING = ("opaque", "interpreters", "local")
#: Denials that no approval and no rule can lift.
_FINAL = ("builtin:git", "builtin:executable", "builtin:error")


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
        inside: what it may start besides, out of texts that a shell reads. words: of these texts, quotes undone.
    """

    decision: Decision
    reasons: tuple[Reason, ...]
    seen: tuple[Seen, ...]
    final: bool = False
    inside: tuple[Seen, ...] = ()
    words: tuple[str, ...] = ()

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
        #: With the names that a program has to have for the rule to speak of it; ``None``: any.
        self._by_name = tuple((names_of(rule.words[0]) if rule.words else None, rule) for rule in self._loose)
        self._asks_network = any(rule.network is not None for rule in policy.rules)
        #: Names that a rule against something speaks of: other words of a script are not looked at further.
        spoken = [word for rule in self._loose for word in (*rule.words[:1], rule.executable) if word]
        self._named = frozenset({"git"}).union(*(names_of(word) for word in spoken))

    def see(self, argv: Sequence[str], lookup: Lookup) -> tuple[Seen, ...]:
        """The programs that an argv may start."""
        return see(argv, self._launchers, lookup)

    def judge(self, argv: Sequence[str], cwd: str, lookup: Lookup, named: Lookup) -> Judged:
        """The answer for one argv.

        Args:
            cwd: relative to the workspace, ``.`` for its top.
            lookup: finds programs; its answer for the first word is what is going to run.
            named: finds the programs that rules name, to know them under other names.
        """
        seen = self.see(argv, lookup)
        git = named("git")
        reasons: list[Reason] = []
        errors: list[str] = []
        try:
            within = inside(tuple(argv), seen, self._tables, lookup)
        except Exception as error:  # what cannot be judged is not allowed
            within = NOTHING
            errors.append(f"builtin: {type(error).__name__}: {error}")
            reasons.append(Reason("deny", "builtin:error", f"reading it failed: {error}", argv[0]))
        reasons += self._read(within, argv, cwd, named, git, errors)
        for one in seen:
            reasons += self._one(one, argv, cwd, named, git, errors, within)
        final = bool(errors) or any(reason.rule in _FINAL for reason in reasons)
        if self.policy.level == "always_deny":
            reasons.append(Reason("deny", "level:always_deny", "this policy denies everything"))
        # something has to have spoken: an argv of which nothing is known is not allowed by silence
        answer: Answer = max((reason.answer for reason in reasons), key=STRENGTH.__getitem__, default="deny")
        rules = tuple(dict.fromkeys(reason.rule for reason in reasons if reason.answer == answer))
        decision = Decision(answer, rules, tuple(errors), self.policy.digest)
        return Judged(decision, tuple(reasons), seen, final, within.programs, within.words)

    def _read(
        self, within: Inside, argv: Sequence[str], cwd: str, lookup: Lookup, git: Program, errors: list[str]
    ) -> Iterator[Reason]:
        """What is forbidden among the programs that a shell would start; and what nobody can tell may be git."""
        for one in (*within.programs, *within.maybe):
            yield from self._git(one, git, argv, cwd, lookup)
            yield from self._against(one, Situation(cwd, self._connects(one), lookup), errors)
        if within.unclear:
            why = f"what it starts cannot be read for sure, and could be git ({within.unclear}); write the program out"
            yield Reason("deny", "builtin:git", why, argv[0])

    def _one(
        self,
        one: Seen,
        argv: Sequence[str],
        cwd: str,
        lookup: Lookup,
        git: Program,
        errors: list[str],
        within: Inside,
    ) -> Iterator[Reason]:
        name = one.argv[0]
        try:
            network = one.sure and self._connects(one)
            found = concerns(one, self._tables, self._named) if one.sure else ()
            texts = tuple(self._texts(one, found)) if one.sure else ()
        except Exception as error:  # what cannot be judged is not allowed
            errors.append(f"builtin: {type(error).__name__}: {error}")
            yield Reason("deny", "builtin:error", f"judging it failed: {error}", name)
            return
        situation = Situation(cwd, network, lookup)
        for part in (one, *texts):
            yield from self._git(part, git, argv, cwd, lookup)
        held = [reason for part in (one, *texts) for reason in self._against(part, situation, errors)]
        yield from held
        if not one.sure:
            return
        if one.program.why_not is not None:
            yield Reason("deny", "builtin:executable", one.program.why_not, name)
            return
        allowing = []
        for rule in self._strict:
            if rule.words and rule.words[0] != name:
                continue
            answer = _speaks(rule, one, situation, errors)
            if answer == "deny":
                yield Reason("deny", rule.id, f"rule {rule.id} failed", name)
            elif answer is not None:
                allowing.append(rule)
        if tuple(one.argv) in READS and one.at == 0:
            yield Reason("allow", "builtin:git-read", "one of the six reads, hardened", name)
            return
        yield from self._weighed(one, self._counted(one, found, within), allowing, bool(held))

    def _connects(self, one: Seen) -> bool:
        """Whether a program is known to connect, as far as a rule asks. A worse thing that it does hides no other."""
        if not self._asks_network:
            return False
        category = self._tables.risk(one.argv)[0]
        if category != "destructive":
            return category == "network"
        fewer = (one.argv[:at] + one.argv[at + 1 :] for at in range(1, min(len(one.argv), 64)))
        return any(self._tables.risk(words)[0] == "network" for words in fewer)

    def _git(self, one: Seen, git: Program, argv: Sequence[str], cwd: str, lookup: Lookup) -> Iterator[Reason]:
        """Raw git, in front, behind launchers or in a text."""
        if is_git(one, git.path is not None and (one.program.same_file(git) or is_copy(one.program, git, lookup))):
            why = refusal(argv, cwd) if one.sure and one.at == 0 else refusal((), cwd)
            if why is not None:
                yield Reason("deny", "builtin:git", why, one.argv[0])

    def _against(self, one: Seen, situation: Situation, errors: list[str]) -> Iterator[Reason]:
        """What the rules that forbid or ask say."""
        names, local = one.program.names, one.program.local
        for wanted, rule in self._by_name:
            # a file of the workspace may be the program of a rule by what is in it
            if wanted is not None and not local and wanted.isdisjoint(names):
                continue
            answer = _speaks(rule, one, situation, errors)
            if answer is not None:
                yield Reason(answer, rule.id, rule.reason or f"rule {rule.id}", one.argv[0])

    def _texts(self, one: Seen, found: Sequence[Concern]) -> Iterator[Seen]:
        """What the texts of a program may start, as far as a rule or the git guard speaks of it."""
        through = (*one.through, one.argv[0])
        for words in (*texts_of(one, found), *handed_on(one, found, self._tables)):
            for at, word in enumerate(words):
                names = names_of(word)
                if names & self._named or any(name.startswith("git-") for name in names):
                    yield Seen(words[at : at + 64], -1, Program(word), sure=False, through=through)

    def _weighed(self, one: Seen, found: Sequence[Concern], allowing: Sequence[Rule], held: bool) -> Iterator[Reason]:
        """The allowing rules against the concerns that they do not name, or else the level."""
        name = one.argv[0]
        for concern in found:
            by = next((rule for rule in allowing if rule.answers(concern.at, one.argv)), None)
            named = by is None and concern.kind == "network" and any(rule.network for rule in allowing)
            if by is None and not named:
                answer = self.policy.judgement(concern.kind)
                word = one.argv[concern.at] if 0 < concern.at < len(one.argv) else name
                more = f"; {', '.join(rule.id for rule in allowing)} does not name {word!r}" if allowing else ""
                yield Reason(answer, f"builtin:{concern.kind}", f"{concern.why} ({word!r}){more}", name)
        for rule in allowing:
            yield Reason("allow", rule.id, rule.reason or f"rule {rule.id}", name)
        if allowing or held:
            return
        if self.policy.level == "allowlist":
            if is_transparent(one):
                yield Reason("allow", "builtin:launcher", "the answer is that of what it starts", name)
            else:
                yield Reason("ask", "level:allowlist", "no rule allows it", name)
        elif self.policy.level != "always_deny":
            yield Reason("allow", f"level:{self.policy.level}", "no rule holds it up", name)

    def _counted(self, one: Seen, found: Sequence[Concern], within: Inside) -> list[Concern]:
        """The concerns that count at this level: under ``always_allow`` those about code that nobody can read."""
        if self.policy.level != "always_allow":
            return list(found)
        if self.policy.forbids:
            return [concern for concern in found if concern.kind in _HIDING]
        # the git guard always stands: what runs a text may run git
        read = is_shell(one) and not within.foreign
        return [concern for concern in found if concern.hides and not read]


def _speaks(rule: Rule, one: Seen, situation: Situation, errors: list[str]) -> Answer | None:
    """The rule's effect when it matches; ``deny`` when it fails, since nobody knows then what it would have said."""
    try:
        return rule.effect if rule.speaks_of(one, situation) else None
    except Exception as error:
        errors.append(f"{rule.id}: {type(error).__name__}: {error}")
        return "deny"
