"""The ``veil`` command: what it takes, and from arguments to exit codes."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import click

import veil
from veil.cli import governing, hinting, options, previewing, safety, screen, session, tapes

_HELP: dict[str, Any] = {"context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100}}

#: Exit code of the command line itself: refusals, bad input, and what went wrong inside veil.
REFUSED = 125


def execute(words: Sequence[str]) -> int:
    """Run the command line with these arguments; returns the exit code. Only a bug in veil gives a traceback."""
    screen.prepare()
    own = words[: words.index("--")] if "--" in words else words
    as_json = "--json" in own
    try:
        code = cli.main(args=list(words), prog_name="veil", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        screen.refuse({"error": "bad_usage", "message": _usage(error)}, as_json=as_json)
    except veil.VeilError as error:
        screen.refuse(error.to_dict(), as_json=as_json)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        screen.reader_left()
        return 0
    except screen.CannotWrite as error:
        screen.complain(str(error))
    except Exception:
        traceback.print_exc()
    else:
        return code if isinstance(code, int) else 0
    return REFUSED


def _usage(error: click.ClickException) -> str:
    message = error.format_message()
    if isinstance(error, click.NoSuchOption):
        message += " Options of the command itself go behind --, as in: veil run -- npm test -x"
    return message


@click.group(invoke_without_command=True, **_HELP)
@click.option("--version", is_flag=True, help="Print the version.")
@click.pass_context
def cli(context: click.Context, version: bool) -> int:
    """Run a command and get data back: its end, what it wrote in a view that fits, and which files it changed."""
    if version:
        screen.write(f"veil {veil.__version__}\n")
    elif context.invoked_subcommand is None:
        screen.write(context.get_help() + "\n")
    return 0


def _command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    made: Callable[[Callable[..., Any]], click.Command] = cli.command(name, **_HELP)
    return made


_words = click.argument("command", nargs=-1, required=True)
_id = click.argument("id", required=False)


@_command("run")
@_words
@options.for_run
@options.as_json
def run(command: tuple[str, ...], as_json: bool, **said: Any) -> int:
    """Run COMMAND to its end. One argument is a shell text, several are a program and its arguments; before a program
    with options of its own write `--`, or they are taken for veil's.

    Exits with the command's code; 1 when only expectations do not hold; 124 at the time limit; 125 when veil refuses.
    """
    return _run(command, as_json, said)


@_command("preview")
@_words
@options.for_run
@options.as_json
def preview(command: tuple[str, ...], as_json: bool, **said: Any) -> int:
    """Run COMMAND in a disposable view of its folder and tell what it would change there: `veil run --preview`.

    `veil apply ID` makes it real. Exits as `veil run`.
    """
    return _run(command, as_json, {**said, "preview": True})


def _run(command: tuple[str, ...], as_json: bool, said: dict[str, Any]) -> int:
    from veil import wiring
    from veil.cli import human, running
    from veil.runner import Runner

    wiring.own_process()
    asked = Runner().ask(options.command_of(command), {"contain": True, **options.keywords(said)})
    result, interrupted = running.run(asked, live=not as_json and running.wants_live_line())
    if as_json:
        screen.document(result.to_dict())
    else:
        screen.show(human.report(result, interrupted=None if interrupted is None else interrupted.name))
    return (
        128 + interrupted if interrupted is not None and result.record.observation.outcome.cancelled else _code(result)
    )


def _code(result: veil.Result) -> int:
    if result.exit == 0 and result.verdict.judgements and result.assert_ok is not True:
        return 1
    return result.exit


@_command("start")
@_words
@options.for_start
@options.as_json
def start(command: tuple[str, ...], as_json: bool, **said: Any) -> int:
    """Start COMMAND in the background and return. A small process stays with it until it ends."""
    from veil.cli import starting

    report = starting.start(options.command_of(command), options.keywords(said))
    if "error" in report:
        screen.refuse(report, as_json=as_json)
        return REFUSED
    if as_json:
        screen.document(report)
    elif report.get("pid") is None:
        screen.show([("bad", f"{report['id']} could not start: {report.get('spawn_error')}, exit {report['exit']}")])
    else:
        name = report["id"]
        screen.show(
            [
                ("good", f"{name} {report['status']}, pid {report['pid']}"),
                ("text", f"veil logs {name} --follow shows what it writes, veil kill {name} ends it"),
            ]
        )
    return int(report.get("exit", 0))


@_command("logs")
@click.argument("id")
@click.option("--stdout-cursor", type=int, default=0, metavar="N", help="Only stdout from this byte on.")
@click.option("--stderr-cursor", type=int, default=0, metavar="N", help="Only stderr from this byte on.")
@click.option("--stream", default="both", metavar="stdout|stderr|both", help="Which stream (default: both).")
@click.option("--full", is_flag=True, help="Show all of it uncondensed.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the run ends; stderr goes to stderr.")
@options.project
@options.as_json
def logs(id: str, follow: bool, full: bool, as_json: bool, **said: Any) -> int:
    """Output of the background run ID and how it stands, while it runs and afterwards."""
    from veil.cli import human

    if follow:
        return _follow(id, as_json, said)
    seen = veil.logs(id, **said)
    if as_json:
        screen.document(seen.to_dict(full=full))
    else:
        screen.show(human.polled(seen, full=full))
    return 0


#: Between two looks at the output of a run that is followed (seconds).
_FOLLOW = 0.2


def _follow(id: str, as_json: bool, said: dict[str, Any]) -> int:
    """New output as it comes: its bytes, or one JSON document for each look that found something."""
    safe = {name: screen.is_terminal(stream) for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr))}
    while True:
        seen = veil.logs(id, **said)
        data = {"stdout": seen.stdout_bytes, "stderr": seen.stderr_bytes}
        over = seen.status != "running"
        if as_json:
            if over or any(data.values()):
                screen.document(seen.to_dict(full=True))
        else:
            if seen.gap:
                screen.complain("bytes were dropped at the byte cap between two looks")
            for name, new in data.items():
                shown = screen.harmless(new) if safe[name] else new
                screen.write_bytes(shown, error=name == "stderr")
        moved = (seen.stdout_cursor, seen.stderr_cursor) != (said["stdout_cursor"], said["stderr_cursor"])
        said.update(stdout_cursor=seen.stdout_cursor, stderr_cursor=seen.stderr_cursor)
        # an ended stream with a gap comes in pieces
        if over and not moved:
            if not as_json:
                screen.complain(f"{id} {seen.status}, {seen.signal or f'exit {seen.exit}'}")
            return 0
        if screen.nobody_reads():
            return 0
        if not over:
            time.sleep(_FOLLOW)


@_command("kill")
@_id
@click.option("--signal", default="SIGTERM", help="Which one (default: SIGTERM, and SIGKILL 2 s later).")
@options.project
@options.as_json
def kill(id: str | None, as_json: bool, **said: Any) -> int:
    """Signal the background run ID, or the only one that is alive, and wait for its end."""
    done = veil.kill(id, **said)
    if as_json:
        screen.document(done.to_dict())
    elif done.already_exited:
        screen.show([("head", f"{done.id} had already ended, exit {done.exit}")])
    else:
        ended = "" if done.exit is None else f", exit {done.exit}"
        screen.show([("good", f"{done.id} {done.status} ({done.signal}){ended}")])
    return 0


@_command("detail")
@_id
@click.option("--selector", default=None, metavar="PART", help="stdout, stderr, meta, trace or full (default).")
@click.option("--match", default=None, metavar="RE", help="Only lines in which this is found, with their numbers.")
@click.option("--lines", default=None, metavar="A:B", help="Lines A to B, from 1.")
@click.option("--offset", type=int, default=None, metavar="N", help="From this byte on.")
@click.option("--limit", type=int, default=None, metavar="BYTES", help="About so many bytes.")
@options.project
@options.as_json
def detail(id: str | None, as_json: bool, **said: Any) -> int:
    """What was kept of the run ID, or of the newest: a stream whole (as bytes, when piped), a part, matching lines."""
    from veil.cli import stored

    return stored.detail(id, as_json=as_json, **said)


@_command("runs")
@click.option("--limit", type=int, default=20, metavar="N", help="How many (default: 20).")
@options.project
@options.as_json
def runs(limit: int, as_json: bool, project: str | None) -> int:
    """The newest runs of this project."""
    from veil.cli import stored

    return stored.listed(veil.runs(limit, project=project), as_json=as_json)


@_command("ps")
@options.project
@options.as_json
def ps(as_json: bool, project: str | None) -> int:
    """Background runs of this project that are alive."""
    from veil.cli import stored

    return stored.listed(stored.alive(project), as_json=as_json)


@_command("gc")
@options.project
@options.as_json
def gc(as_json: bool, project: str | None) -> int:
    """Clear away records of this project and checkpoints of all folders that are over their limits."""
    from veil.cli import stored

    return stored.gc(project, as_json=as_json)


@_command("mcp")
@click.option("--http", is_flag=True, help="Streamable HTTP on this machine instead of standard input and output.")
@click.option("--port", type=int, default=0, metavar="N", help="With --http: which one (default: a free one).")
@click.option("--token-file", default=None, metavar="FILE", help="With --http: holds the token; made when missing.")
@click.option("--policy", default=None, metavar="FILE", help="Adds run_shell_command, governed by this policy.")
@click.option("--tool", multiple=True, metavar="NAME", help="Offer this tool only. Repeatable.")
def mcp(**said: Any) -> int:
    """Serve the tools to an MCP client. All that was started ends with the client, or with this process."""
    from veil.cli import serving

    return serving.serve(**said)


@_command("doctor")
@options.as_json
def doctor(as_json: bool) -> int:
    """What this machine can do for veil, and how to get the rest."""
    from veil.cli import doctor as room

    return room.doctor(as_json=as_json)


for command in (*safety.COMMANDS, previewing.apply, session.shell, hinting.init, tapes.cassette, governing.policy):
    cli.add_command(command)
