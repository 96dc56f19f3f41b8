"""The options of ``veil run`` and ``veil start``: the keywords of ``veil.run`` by the same names.

Text becomes values here and nothing more: whether a value can mean anything is decided in one place for every door.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from veil import BadInput
from veil.cli.expecting import confined, expectations, number

F = TypeVar("F", bound=Callable[..., Any])

_COMMON: tuple[Callable[[F], F], ...] = (
    click.option("--cwd", metavar="DIR", help="Working directory (default: this one)."),
    click.option("--env", metavar="NAME=VALUE", multiple=True, help="Add to the environment; repeatable."),
    click.option("--unset-env", metavar="NAME", multiple=True, help="Take away from the environment; repeatable."),
    click.option("--stdin", metavar="FILE", help="Standard input from a file, '-' for veil's own (default: none)."),
    click.option("--effects", type=click.Choice(["on", "off", "all"]), help="Tell files changed; 'all': ignored too."),
    click.option("--no-store", is_flag=True, default=None, help="Leave nothing of the run on disk."),
    click.option("--scrub-env/--no-scrub-env", default=None, help="Take credential-shaped variables away."),
    click.option("--redact/--no-redact", default=None, help="Replace known secret values before anything is kept."),
    click.option("--merge-stderr", is_flag=True, default=None, help="One stream in true order."),
    click.option("--shell", metavar="PROGRAM", help="The shell that reads a command text (default: bash, else sh)."),
    click.option("--max-output", metavar="BYTES", help="Bytes kept of each stream (default: 5000000)."),
    click.option("--left-running", metavar="kill|keep", help="What becomes of processes that the command leaves."),
    click.option("--sandbox/--no-sandbox", default=None, help="Confine it: writes only to cwd and a private temp."),
    click.option(
        "--sandbox-option", metavar="KEY=VALUE", multiple=True, help="As network=off, writable=DIR; repeatable."
    ),
    click.option("--project", metavar="DIR", help="Folder whose records and settings are used."),
)
_WAITING: tuple[Callable[[F], F], ...] = (
    click.option("--timeout", metavar="SECONDS", help="Time limit, 'inf' for none (default: 120)."),
    click.option("--expect", metavar="KEY=VALUE", multiple=True, help="A post-condition; repeatable."),
    click.option("--retries", metavar="N", help="Further attempts after a failed one."),
    click.option("--retry-on-exit", metavar="CODE", multiple=True, help="Retry these exit codes only; repeatable."),
    click.option("--backoff", metavar="SECONDS", help="Rest before the second attempt; doubled before each later one."),
    click.option("--trace", is_flag=True, default=None, help="Tell from system calls what it read, wrote and ran."),
    click.option("--preview", is_flag=True, default=None, help="Run in a disposable view; tell what would change."),
    click.option("--full", is_flag=True, default=None, help="Show the streams uncondensed."),
    click.option(
        "--contain/--no-contain",
        default=None,
        help="A supervisor owns the run, so nothing survives even a killed veil (default: on).",
    ),
)
project = _COMMON[-1]
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def for_run(function: F) -> F:
    """Every option of a foreground run."""
    return _with(function, (*_WAITING, *_COMMON))


def for_start(function: F) -> F:
    """Every option of a background run: those that wait for the end come too, and are refused by name."""
    return _with(function, (*_COMMON, *_WAITING))


def _with(function: F, options: Sequence[Callable[[F], F]]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def command_of(words: Sequence[str]) -> str | list[str]:
    """One word is a shell text, several are an argv."""
    return words[0] if len(words) == 1 else list(words)


def keywords(said: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of ``veil.run`` for what was said; what was not said is left out. Raises ``BadInput``."""
    found = {name: value for name, value in said.items() if value is not None and value != ()}
    for name in ("timeout", "backoff", "retries", "max_output"):
        if name in found:
            found[name] = number(found[name])
    if "retry_on_exit" in found:
        found["retry_on_exit"] = [number(part) for word in found["retry_on_exit"] for part in word.split(",")]
    if "effects" in found:
        found["effects"] = {"on": True, "off": False, "all": "all"}[found["effects"]]
    if "expect" in found:
        found["expect"] = expectations(found["expect"])
    options = found.pop("sandbox_option", ())
    if options:
        if found.get("sandbox") is False:
            raise BadInput("sandbox", False, "left out with --sandbox-option")
        found["sandbox"] = confined(options)
    if "stdin" in found:
        found["stdin"] = _stdin(found["stdin"])
    env = _environment(found.pop("env", ()), found.pop("unset_env", ()))
    if env:
        found["env"] = env
    return found


def _environment(added: Sequence[str], taken: Sequence[str]) -> dict[str, str | None]:
    env: dict[str, str | None] = dict.fromkeys(taken)
    for word in added:
        name, equals, value = word.partition("=")
        if not equals:
            # what stands in the place of a name may be a secret that slipped: it is not repeated
            raise BadInput("env", "...", "NAME=VALUE (--unset-env NAME takes one away)")
        env[name] = value
    return env


def _stdin(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise BadInput("stdin", name, f"a file that can be read ({error})") from None
