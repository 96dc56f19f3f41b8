"""Rules: what they are, and when one speaks of a program. Tokens are compared as tokens; nothing is ever joined.

A rule that forbids or asks matches loosely (``veil.policy.names``, ``veil.policy.options``), one that allows exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from veil.policy.launchers import Seen
from veil.policy.names import names_of
from veil.policy.options import follows, has_option, is_option
from veil.policy.programs import Lookup, Program

Answer = Literal["allow", "ask", "deny"]
#: Forbid beats ask beats allow.
STRENGTH: Mapping[str, int] = {"allow": 0, "ask": 1, "deny": 2}
LEVELS = ("always_deny", "allowlist", "blocklist", "always_allow")
#: What the built-in judgements know, and their answer unless the policy gives another.
JUDGEMENTS: Mapping[str, Answer] = {
    "interpreters": "ask",
    "packages": "ask",
    "network": "ask",
    "destructive": "ask",
    "elevation": "ask",
    "opaque": "ask",
    "local": "ask",
}


@dataclass(frozen=True)
class Situation:
    """What a rule may look at besides the program.

    Attributes:
        cwd: relative to the workspace, ``.`` for the workspace itself.
        network: the program is known to connect.
        lookup: finds the program that a rule itself names.
    """

    cwd: str
    network: bool
    lookup: Lookup


@dataclass(frozen=True)
class Rule:
    """One rule. All of its conditions have to hold.

    Attributes:
        id: unique in its policy.
        effect: ``allow``, ``ask`` or ``deny``.
        exact: the whole argv. prefix: what the argv begins with.
        executable: absolute path, or ``sha256:`` and the hash of the file.
        options: of a rule that forbids or asks: one of them is there; of one that allows: no other options are.
        cwd: folder below the workspace; ``x/**`` also means all below it.
        network: whether the program is known to connect.
        when: for rules written in Python; an exception in it denies.
        reason: said to whoever is refused or asked.
    """

    id: str
    effect: Answer
    exact: tuple[str, ...] | None = None
    prefix: tuple[str, ...] | None = None
    executable: str | None = None
    options: tuple[str, ...] = ()
    cwd: str | None = None
    network: bool | None = None
    when: Callable[[Seen, Situation], bool] | None = None
    reason: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The words it begins with: ``exact`` or ``prefix``."""
        return self.exact or self.prefix or ()

    def speaks_of(self, seen: Seen, situation: Situation) -> bool:
        """Whether it matches. May raise what ``when`` raises; then the request is denied."""
        if self.effect == "allow":
            if not seen.sure or not self._exactly(seen, situation):
                return False
        elif not self._loosely(seen, situation):
            return False
        if self.cwd is not None and not _within(situation.cwd, self.cwd):
            return False
        if self.network is not None and self.network != situation.network:
            return False
        return self.when is None or bool(self.when(seen, situation))

    def _exactly(self, seen: Seen, situation: Situation) -> bool:
        argv = seen.argv
        if self.exact is not None and argv != self.exact:
            return False
        if self.prefix is not None and argv[: len(self.prefix)] != self.prefix:
            return False
        # an allowed name without a slash means what the safe PATH has under it, never a file of the workspace
        if self.words and "/" not in self.words[0] and seen.program.local:
            return False
        if self.executable is not None and not _is(seen.program, self.executable, exactly=True):
            return False
        if self.options:
            rest = argv[len(self.words) or 1 :]
            return all(not is_option(word) or _named(word, self.options) for word in rest)
        return True

    def _loosely(self, seen: Seen, situation: Situation) -> bool:
        words, arguments = self.words, seen.argv[1:]
        if words:
            if not self._same_program(words[0], seen, situation):
                return False
            if self.exact is not None and seen.sure and arguments != words[1:]:
                return False
            if not follows(arguments, words[1:]):
                return False
        if self.executable is not None and not _is(seen.program, self.executable, exactly=False):
            return False
        return not self.options or any(has_option(arguments, option) for option in self.options)

    def _same_program(self, word: str, seen: Seen, situation: Situation) -> bool:
        if names_of(word) & seen.program.names:
            return True
        return seen.program.same_file(situation.lookup(word))

    def answers(self, at: int, argv: Sequence[str]) -> bool:
        """Whether this rule, which allows, names the word of ``argv`` that a concern stands on."""
        if self.exact is not None or (at == 0 and (self.prefix or self.executable)):
            return True
        return at < len(self.prefix or ()) or (at < len(argv) and _named(argv[at], self.options))


def _named(word: str, options: Sequence[str]) -> bool:
    return word in options or word.partition("=")[0] in options


def _is(program: Program, wanted: str, *, exactly: bool) -> bool:
    if wanted.startswith("sha256:"):
        return program.digest == wanted
    if wanted in (program.path, program.real):
        return True
    # a program that was not found has no path to tell it apart by: for what forbids, its name does
    return not exactly and program.path is None and bool(names_of(wanted) & program.names)


def _within(cwd: str, wanted: str) -> bool:
    if wanted == "**":
        return True
    if wanted.endswith("/**"):
        folder = wanted[:-3].strip("/") or "."
        return folder == "." or cwd == folder or cwd.startswith(folder + "/")
    return cwd == (wanted.strip("/") or ".")


@dataclass(frozen=True)
class Example:
    """An argv and what the policy is meant to answer. ``line`` of the file that it stands in."""

    argv: tuple[str, ...]
    expect: Answer
    cwd: str = "."
    line: int = 0


@dataclass(frozen=True)
class Policy:
    """Everything that a file says.

    Attributes:
        level: ``always_deny``; ``allowlist``: ask for what no rule allows; ``blocklist``: allow what no rule or
            judgement holds up; ``always_allow``: the same without the built-in judgements.
        judgements: answers of the built-in judgements where they differ.
        allowed_paths: folders outside the workspace that arguments may name.
        clearances: the highest sensitivity that a program may be given, by absolute path, name or ``sha256:``.
        clearance: of programs that are not named. labels: pairs of a glob below the workspace and its sensitivity.
        digest: hash of all that it says; ``""`` when it was made by hand.
    """

    level: str = "allowlist"
    rules: tuple[Rule, ...] = ()
    judgements: Mapping[str, Answer] = field(default_factory=dict)
    allowed_paths: tuple[str, ...] = ()
    clearances: Mapping[str, str] = field(default_factory=dict)
    clearance: str = "internal"
    labels: tuple[tuple[str, str], ...] = ()
    examples: tuple[Example, ...] = ()
    digest: str = ""

    def judgement(self, kind: str) -> Answer:
        """The answer of a built-in judgement under this policy."""
        return self.judgements.get(kind, JUDGEMENTS[kind])

    @property
    def forbids(self) -> bool:
        """Whether there is anything that a program which cannot be seen could be breaking."""
        return any(rule.effect != "allow" for rule in self.rules)
