"""``veil init``: the hint that makes a coding agent use veil, and what its program has to be told."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from veil import BadInput, Refused
from veil.cli import options, screen

HINT = """\
## Running commands

Run commands with veil's tools where you have them, instead of a plain shell tool:

- `sh_run` runs a command to its end and tells the exit code, a view of the output that fits, and which files changed.
  Say what must hold in `expect` (`{"exit": 0, "file_exists": "dist/app.js"}`) rather than reading for it. `timeout_ms`
  is in milliseconds. `session: "NAME"` keeps folder, variables and functions from one command to the next.
- Start servers and other long runs with `background: true`, and follow them with `sh_logs` and `sh_kill`; a `&` in a
  command is ended with it.
- Whatever is not shown is kept: `sh_detail` with the `id` of the run (and `match` or `lines`), not the command
  once more.
- Before a command that deletes or overwrites, ask `sh_plan`, and take a `sh_checkpoint`; `sh_restore` goes back.

Without these tools, `veil run --json -- COMMAND` does the same on the command line.
"""


@click.command("init", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--client", metavar="NAME", multiple=True, help="Only for this client; repeatable (default: all).")
@click.option("--dir", "folder", metavar="DIR", default=".", help="The project (default: this folder).")
@click.option("--remove", is_flag=True, help="Take the hint away again.")
@options.as_json
def init(client: tuple[str, ...], folder: str, remove: bool, as_json: bool) -> int:
    """Tell coding agents to prefer veil's tools: a marked block in AGENTS.md, and in files of single agents that are
    there (with --client: in the file that this one reads). Other text stays as it is. Prints how the agents' programs
    are told of `veil mcp`.
    """
    from veil.cli.clients import CLIENTS, command

    root = Path(os.path.abspath(folder))
    if not root.is_dir():
        raise BadInput("dir", folder, "a folder that exists")
    names = [one.name for one in CLIENTS]
    for name in client:
        if name not in names:
            raise BadInput("client", name, f"one of {', '.join(names)}")
    chosen = [one for one in CLIENTS if not client or one.name in client]
    done = _change(root, _files(root, [one.reads for one in chosen] if client else None, remove=remove), remove=remove)
    words = command()
    told = [] if remove else [{"name": one.name, "file": one.where, "config": one.form(words)} for one in chosen]
    if as_json:
        screen.document({"files": done, **({} if remove else {"clients": told})})
        return 0
    for row in done:
        screen.show([("good" if row["change"] != "unchanged" else "head", f"{row['file']}: {row['change']}")])
    if not done:
        screen.show([("head", "there is no hint in this project")])
    for one, row in zip(chosen, told, strict=False):
        screen.show([("text", ""), ("name", f"{one.title}, in {one.where}:"), ("text", row["config"])])
    return 0


def _files(root: Path, wanted: Sequence[str | None] | None, *, remove: bool) -> Iterator[str]:
    """Names of the files that the block belongs in, each file once."""
    from veil.cli.clients import KNOWN, SHARED

    seen: set[str] = set()
    for name in KNOWN:
        there = os.path.lexists(root / name)
        if wanted is not None and name not in wanted:
            continue
        if not there and (remove or (wanted is None and name != SHARED)):
            continue
        real = os.path.realpath(root / name)
        if real in seen or (not remove and wanted is None and name != SHARED and _imports(root / name)):
            continue
        seen.add(real)
        yield name


def _imports(path: Path) -> bool:
    """Whether the file has the shared one read as well (``@AGENTS.md`` on a line): the hint would stand there twice."""
    if not path.is_file():
        return False
    return any(line.strip() in (b"@AGENTS.md", b"@./AGENTS.md") for line in path.read_bytes().splitlines())


def _change(root: Path, names: Iterator[str], *, remove: bool) -> list[dict[str, Any]]:
    """All files are judged before the first is written, so that a damaged one leaves all as they are."""
    from veil.cli import marked

    planned = []
    for name in names:
        path = _target(root, name)
        before = _read(path, name)
        after = marked.put(before, HINT, name) if not remove else None if before is None else marked.taken(before, name)
        if remove and after == before:
            continue
        if after != before:
            _require_writable(path, name, there=before is not None)
        planned.append((name, path, before, after))
    done = []
    for name, path, before, after in planned:
        if after is None:
            path.unlink()
        elif after != before:
            _write(path, after)
        word = "unchanged" if after == before else "removed" if remove else "created" if before is None else "updated"
        done.append({"file": name, "change": word})
    return done


def _target(root: Path, name: str) -> Path:
    """The file itself: a link is followed, but not out of the project."""
    real = Path(os.path.realpath(root / name))
    if not real.is_relative_to(os.path.realpath(root)):
        raise Refused(
            f"{name} is a link to {real}, outside of the project; it is left as it is",
            code="leads_outside",
            file=name,
            target=str(real),
        )
    return real


def _read(path: Path, name: str) -> bytes | None:
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(kind):
        raise Refused(f"{name} is no file", code="no_file", file=name)
    try:
        text = path.read_bytes()
    except PermissionError:
        raise Refused(f"{name} cannot be read", code="not_readable", file=name) from None
    if b"\0" in text:
        raise Refused(f"{name} is no text (or UTF-16, which agents do not read)", code="no_text", file=name)
    return text


def _require_writable(path: Path, name: str, *, there: bool) -> None:
    if there and not (os.stat(path).st_mode & 0o222 and os.access(path, os.W_OK)):
        raise Refused(f"{name} is read-only; make it writable first (chmod u+w)", code="read_only", file=name)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise Refused(f"the folder of {name} cannot be written", code="read_only", file=name)


def _write(path: Path, text: bytes) -> None:
    """Whole or not at all, with the permissions that the file had."""
    handle, draft = tempfile.mkstemp(prefix=".veil-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        try:
            os.chmod(draft, stat.S_IMODE(os.stat(path).st_mode))
        except FileNotFoundError:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(draft, 0o666 & ~mask)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
