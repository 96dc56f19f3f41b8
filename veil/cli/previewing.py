"""``veil apply``: what a previewed run would have changed, made real."""

from __future__ import annotations

from collections.abc import Iterator

import click

import veil
from veil.cli import human, options, screen
from veil.cli.screen import Line
from veil.present.changes import fitting


@click.command("apply", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("id")
@options.project
@options.as_json
def apply(id: str, project: str | None, as_json: bool) -> int:
    """Make real what the previewed run ID would have changed, unless something there has moved since."""
    done = veil.apply(id, project)
    if as_json:
        screen.document(done.to_dict())
    else:
        screen.show(_told(done))
    return 0


def _told(done: veil.Applied) -> Iterator[Line]:
    if not done.paths:
        yield "good", f"{done.id} would have changed nothing"
        return
    yield "good", f"{done.id} applied in {human.name_of(done.folder)}"
    if done.files_changed:
        yield "head", f"--- {len(done.files_changed)} changed"
    for row in fitting(done.files_changed):
        yield human.change(row)
    more = done.paths - len(done.files_changed)
    if more > 0:
        yield "text", f"and {more} more path{'s' if more != 1 else ''} that are not told (folders, git's own, ignored)"
    for path, why in done.left.items():
        yield "warn", f"not as it was to be: {human.name_of(path)} ({human.one_line(why)})"
