"""What the tests of the policy share: a judge without files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veil.governed.knowledge import judge_of
from veil.policy.deciding import Judged
from veil.policy.programs import Program
from veil.policy.rules import Policy, Rule


def found(word: str) -> Program:
    """Every word names a program in /usr/bin, told apart by its name alone."""
    name = word.rpartition("/")[2] or word
    path = f"/usr/bin/{name}"
    return Program(
        word, path, path, f"sha256:{name}", (1, int.from_bytes(name.encode("utf-8", "surrogateescape"), "big"))
    )


def judged(
    argv: Sequence[str],
    *rules: Rule,
    level: str = "allowlist",
    cwd: str = ".",
    programs: Mapping[str, Program] | None = None,
    **more: object,
) -> Judged:
    """The decision for an argv under these rules. ``programs``: what words name instead."""

    def lookup(word: str) -> Program:
        return (programs or {}).get(word) or found(word)

    return judge_of(Policy(level, rules, **more)).judge(argv, cwd, lookup, lookup)  # type: ignore[arg-type]


def answer(argv: Sequence[str], *rules: Rule, **more: object) -> str:
    """Its answer alone."""
    return judged(argv, *rules, **more).decision.answer  # type: ignore[arg-type]


def allow(*prefix: str, **more: object) -> Rule:
    """A rule that allows what begins so."""
    return Rule(f"allow {prefix}", "allow", prefix=prefix, **more)  # type: ignore[arg-type]


def deny(*prefix: str, **more: object) -> Rule:
    """A rule that forbids what begins so."""
    return Rule(f"deny {prefix}", "deny", prefix=prefix, **more)  # type: ignore[arg-type]


def ask(*prefix: str) -> Rule:
    """A rule that asks about what begins so."""
    return Rule(f"ask {prefix}", "ask", prefix=prefix)
