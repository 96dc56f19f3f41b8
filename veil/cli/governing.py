"""``veil policy``: policies of the governed boundary checked, explained and tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from veil.cli import options, screen
from veil.cli.screen import Line

if TYPE_CHECKING:
    from veil.governed.explaining import Explained, Tried

_SETTINGS: dict[str, Any] = {"context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100}}
_SHADES = {"allow": "good", "ask": "warn", "deny": "bad"}


@click.group("policy", **_SETTINGS)
def policy() -> None:
    """Policies of the governed boundary: check one, ask it about an argv, try its examples."""


def _command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    made: Callable[[Callable[..., Any]], click.Command] = policy.command(name, **_SETTINGS)
    return made


_workspace = click.option(
    "--workspace", default=".", metavar="DIR", help="The workspace that paths are judged in (default: here)."
)


@_command("check")
@click.argument("file")
@options.as_json
def check(file: str, as_json: bool) -> int:
    """Is FILE a policy: a TOML file, or a pyproject.toml with a table [tool.veil.policy]?

    Exits with 0 when it is, 125 when it is not; the line that is wrong is named.
    """
    from veil.governed import load_policy

    found = load_policy(file)
    if as_json:
        told = {"file": file, "level": found.level, "rules": len(found.rules), "examples": len(found.examples)}
        screen.document({**told, "digest": found.digest})
    else:
        rules, examples = len(found.rules), len(found.examples)
        screen.show([("good", f"{file}: level {found.level}, {rules} rules, {examples} examples, {found.digest}")])
    return 0


@_command("explain")
@click.argument("argv", nargs=-1, required=True)
@click.option("--policy", "file", default=None, metavar="FILE", help="Default: pyproject.toml, else an empty one.")
@_workspace
@options.as_json
def explain(argv: tuple[str, ...], file: str | None, workspace: str, as_json: bool) -> int:
    """What the policy says of ARGV here, which rules lead to it, and why. Runs nothing.

    Before an argv with options of its own write `--`.
    """
    from veil.governed import load_policy
    from veil.governed.explaining import Explainer, policy_here

    policy = policy_here() if file is None else load_policy(file)
    told = Explainer(policy, workspace).explain(argv)
    if as_json:
        screen.document(told.to_dict())
    else:
        screen.show(_explained(told))
    return 0


def _explained(told: Explained) -> Iterator[Line]:
    yield _SHADES[told.answer], told.answer
    if told.missing:
        yield "warn", f"  {told.argv[0]} is not on this machine: it was judged by its name"
    width = max((len(reason.rule) for reason in told.reasons), default=0)
    for reason in told.reasons:
        yield "text", f"  {reason.answer:<5}  {reason.rule:<{width}}  {reason.program}: {reason.why}"


@_command("audit")
@click.argument("file")
@options.as_json
def audit(file: str, as_json: bool) -> int:
    """Is the audit FILE of a boundary whole: nothing edited, removed or put in between?

    Exits with 1 when it is not. That the newest lines are gone shows only beside a hash of the last one kept elsewhere.
    """
    from veil import BadInput
    from veil.governed import verify

    try:
        found = verify(file)
    except OSError as error:
        raise BadInput("FILE", file, f"an audit that can be read ({error.strerror})") from None
    if as_json:
        told = {"file": file, "ok": found.ok, "lines": found.lines, "head": found.head}
        screen.document({**told, "problems": list(found.problems)})
    else:
        screen.show([("bad", problem) for problem in found.problems])
        screen.show([("good" if found.ok else "bad", f"{found.lines} lines, the last one {found.head}")])
    return 0 if found.ok else 1


@_command("test")
@click.argument("file")
@_workspace
@options.as_json
def try_examples(file: str, workspace: str, as_json: bool) -> int:
    """Try the examples that stand in FILE ([[example]]: argv, expect). Runs nothing.

    Exits with 1 when the policy answers one of them otherwise than it says.
    """
    from veil.governed import load_policy
    from veil.governed.explaining import Explainer

    tried = Explainer(load_policy(file), workspace).examples()
    good = all(one.ok for one in tried)
    if as_json:
        rows = [{"line": t.example.line, "expect": t.example.expect, "ok": t.ok, **t.told.to_dict()} for t in tried]
        screen.document({"ok": good, "examples": rows})
    else:
        screen.show(_table(tried))
    return 0 if good else 1


def _table(tried: tuple[Tried, ...]) -> Iterator[Line]:
    yield "head", f"{'line':>5}  {'expect':<6}  {'told':<6}  argv"
    for one in tried:
        told, example = one.told, one.example
        row = f"{example.line:>5}  {example.expect:<6}  {told.answer:<6}  {_shown(told.argv)}"
        yield "text" if one.ok else "bad", row
        if not one.ok:
            for reason in told.reasons[:3]:
                yield "text", f"{'':>5}  {'':<6}  {'':<6}  {reason.rule}: {reason.why}"
    wrong = sum(not one.ok for one in tried)
    yield "good" if not wrong else "bad", f"{len(tried)} examples, {wrong} answered otherwise"


def _shown(argv: tuple[str, ...]) -> str:
    """Words that nobody can take for others: each quoted by Python where a blank or a sign stands in it."""
    plain = [word.isascii() and word.isprintable() and " " not in word and bool(word) for word in argv]
    return " ".join(word if good else ascii(word) for word, good in zip(argv, plain, strict=True))
