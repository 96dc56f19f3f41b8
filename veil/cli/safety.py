"""``veil plan``, ``checkpoint``, ``restore``, ``checkpoints``, ``diff`` and ``drop``: looking ahead and going back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import click

import veil
from veil.cli import human, options, screen
from veil.cli.screen import Line
from veil.present.changes import fitting

F = TypeVar("F", bound=Callable[..., Any])

_SETTINGS: dict[str, Any] = {"context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100}}
_STYLES = {"read-only": "good", "mutating": "name", "destructive": "bad"}
_UNDOING = {True: ", can be undone", False: ", not to be undone", None: ""}

#: Every command of this room.
COMMANDS: list[click.Command] = []


def _command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    decorate: Callable[[Callable[..., Any]], click.Command] = click.command(name, **_SETTINGS)

    def add(function: Callable[..., Any]) -> click.Command:
        made = decorate(function)
        COMMANDS.append(made)
        return made

    return add


_label = click.argument("label", required=False)


def _placed(function: F) -> F:
    for option in (
        options.as_json,
        options.project,
        click.option("--dir", metavar="DIR", default=None, help="The folder (default: this one)."),
    ):
        function = option(function)
    return function


@_command("plan")
@click.argument("command", nargs=-1, required=True)
@options.as_json
def plan(command: tuple[str, ...], as_json: bool) -> int:
    """Tell what COMMAND may do, from its text alone: nothing is run or looked at. One argument is a shell text, several
    are a program and its arguments.

    Exits with 0, whatever the answer is.
    """
    found = veil.plan(options.command_of(command))
    if as_json:
        screen.document(found.to_dict())
    else:
        screen.show(_planned(found))
    return 0


def _planned(found: veil.Assessment) -> Iterator[Line]:
    undoing = "" if found.category == "read-only" else _UNDOING[found.reversible]
    yield _STYLES.get(found.category, "warn"), found.category + undoing
    if len(found.segments) > 1 or found.category != "read-only":
        for segment in found.segments:
            style = _STYLES.get(segment.category, "warn")
            yield style, f"  {segment.category:<11}  {human.one_line(segment.text, 60)}  ({segment.reason})"
    for effect in found.effects:
        yield "name", f"{effect.what} {human.name_of(effect.path)}"
    if found.warning:
        yield "bad", human.one_line(found.warning, 500)


@_command("checkpoint")
@_label
@_placed
def checkpoint(label: str | None, dir: str | None, project: str | None, as_json: bool) -> int:
    """Keep everything that is in a folder now, under LABEL if one is given; `veil restore` brings it back."""
    made = veil.checkpoint(label, dir, project=project)
    if as_json:
        screen.document(made.to_dict())
    else:
        screen.show(_kept(made))
    return 0


def _kept(made: veil.Checkpoint) -> Iterator[Line]:
    named = "" if made.label is None else f" {human.name_of(made.label)}"
    yield "good", f"{made.id}{named}: {made.files} file{'s' if made.files != 1 else ''}, {made.bytes} bytes"
    yield from _reasons("by name only", made.left_out)
    if made.over_limit is not None:
        yield "warn", f"checkpoints are over their limit: {made.over_limit}"


def _reasons(what: str, why: Mapping[str, str]) -> Iterator[Line]:
    for path, reason in why.items():
        yield "warn", f"{what}: {human.name_of(path)} ({human.one_line(reason)})"


@_command("restore")
@_label
@click.option("--force-origin", is_flag=True, help="Take a checkpoint of another folder when this one has no such.")
@_placed
def restore(label: str | None, dir: str | None, force_origin: bool, project: str | None, as_json: bool) -> int:
    """Make a folder what it was at the checkpoint LABEL (a label or an id), or at the newest.

    What came later is deleted; `veil restore before-restore` takes it back.
    """
    done = veil.restore(label, dir, force_origin=force_origin, project=project)
    if as_json:
        screen.document(done.to_dict())
        return 0
    named = done.checkpoint.id if done.checkpoint.label is None else human.name_of(done.checkpoint.label)
    told = ", ".join(f"{count} {word}" for word, count in done.counts.items() if count) or "nothing had changed"
    screen.show(
        [
            ("good", f"as at {named}: {told}"),
            *_reasons("not as it was", done.left),
            ("text", f"veil restore {done.before_id} takes it back"),
        ]
    )
    return 0


@_command("checkpoints")
@_placed
def checkpoints(dir: str | None, project: str | None, as_json: bool) -> int:
    """The checkpoints of a folder, newest first."""
    found = veil.checkpoints(dir, project=project)
    if as_json:
        screen.document([each.to_dict() for each in found])
    else:
        screen.show([_row(each) for each in found] or [("head", "none")])
    return 0


def _row(each: veil.Checkpoint) -> Line:
    made = time.strftime("%m-%d %H:%M:%S", time.localtime(each.created))
    label = "" if each.label is None else human.name_of(each.label)
    return "text", f"{each.id:<16} {made}  {each.files:>8} files {each.bytes:>12} bytes  {label}".rstrip()


@_command("diff")
@_label
@_placed
def diff(label: str | None, dir: str | None, project: str | None, as_json: bool) -> int:
    """What is different in a folder since the checkpoint LABEL (a label or an id), or since the newest.

    Exits with 0 when nothing is, with 1 when something is.
    """
    found = veil.diff(label, dir, project=project)
    rows = fitting(found)
    if as_json:
        total = {"files_changed_total": len(found)} if len(rows) < len(found) else {}
        screen.document({"files_changed": rows, **total})
    elif not found:
        screen.show([("good", "nothing is different")])
    else:
        screen.show([("head", f"{len(found)} changed"), *(human.change(row) for row in rows)])
    return 1 if found else 0


@_command("drop")
@click.argument("label")
@_placed
def drop(label: str, dir: str | None, project: str | None, as_json: bool) -> int:
    """Delete the checkpoints that have this LABEL, or the one with this id."""
    many = veil.drop(label, dir, project=project)
    if as_json:
        screen.document({"dropped": many})
    else:
        screen.show([("good", f"{many} checkpoint{'s' if many != 1 else ''} dropped")])
    return 0
