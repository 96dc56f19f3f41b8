"""``veil cassette``: recordings shown, compared, checked and made, without pytest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from veil.cli import options, screen

_SETTINGS: dict[str, Any] = {"context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100}}


@click.group("cassette", **_SETTINGS)
def cassette() -> None:
    """Recordings (NAME.veil.txtar): show, compare, check and make them."""


def _command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    made: Callable[[Callable[..., Any]], click.Command] = cassette.command(name, **_SETTINGS)
    return made


@_command("show")
@click.argument("file")
@click.option("--step", type=int, default=None, metavar="N", help="Everything that was recorded of step N.")
@options.as_json
def show(file: str, step: int | None, as_json: bool) -> int:
    """What stands in the recording FILE: a line or two for each step."""
    from veil.cli import shown

    tape = shown.read(file)
    if as_json:
        screen.document(shown.data(file, tape, step))
    else:
        screen.show(shown.summary(file, tape) if step is None else shown.one(tape, step))
    return 0


@_command("diff")
@click.argument("old")
@click.argument("new")
@click.option("--exact", is_flag=True, help="Use no normaliser: only the same bytes are the same.")
@options.as_json
def diff(old: str, new: str, exact: bool, as_json: bool) -> int:
    """Compare two recordings step by step, in the words of verify mode.

    Exits with 0 when NEW repeats OLD, with 1 when it does not, 125 when one of them cannot be read.
    """
    from veil.cli import compared

    rows = compared.rows(old, new, exact=exact)
    same = all(row.same for row in rows)
    if as_json:
        screen.document({"same": same, "steps": [row.to_dict() for row in rows]})
    else:
        screen.show(compared.lines(rows))
    return 0 if same else 1


@_command("check")
@click.argument("paths", nargs=-1, required=True)
@options.as_json
def check(paths: tuple[str, ...], as_json: bool) -> int:
    """Whether recordings are whole: format, digests, totals. PATHS are files, or folders that are looked through.

    Exits with 0 when all are, with 1 when one is not, or when there is none.
    """
    from veil.cli import checking

    found = checking.check(paths)
    good = bool(found) and all(row["ok"] for row in found)
    if as_json:
        screen.document({"ok": good, "files": found})
    else:
        screen.show(checking.lines(found))
    return 0 if good else 1


@_command("record")
@click.argument("file")
@click.argument("commands", nargs=-1)
@click.option("--workspace", metavar="DIR", default=None, help="What the commands find (default: an empty folder).")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["inline", "folder", "git"]),
    default="inline",
    help="How FILE names it: inside FILE (default), by its place, or by its git revision.",
)
@click.option("--revision", metavar="REV", default=None, help="With --as git: which one (default: HEAD).")
@click.option("--script", metavar="PATH", default=None, help="A file with a command a line, '-' for standard input.")
@click.option("--timeout", metavar="SECONDS", default=None, help="Time limit of each command (default: 120).")
@click.option("--force", is_flag=True, help="Write over FILE.")
@click.option("--keep-failed", is_flag=True, help="Write FILE although an expectation does not hold.")
@options.as_json
def record(file: str, commands: Sequence[str], as_json: bool, **said: Any) -> int:
    """Run COMMANDS (shell texts) one after the other in a fresh workspace, and write FILE.

    FILE is then a test: pytest --veil plays it. In a script, a line that begins with "?" is an expectation of the
    command above it ("? exit=0"), and one that begins with "#" is a comment. Exits with 1, and writes nothing, when
    an expectation does not hold.
    """
    from veil.cli import shown, taping

    tape, wrong = taping.record(file, commands, **said)
    if as_json:
        screen.document({**shown.data(file, tape, None), "written": not wrong or said["keep_failed"], "failed": wrong})
    else:
        screen.show([*shown.summary(file, tape), *(("bad", line) for line in wrong)])
    return 1 if wrong else 0
