"""Write ``docs/cli.md``: text from here, help and output from the command itself: ``python docs/make_cli.py``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAD = """\
# The command line

<!-- made by `python docs/make_cli.py`: change it there, or in the help texts of veil/cli -->

`veil run` takes a shell text as one argument, or a program and its arguments as several; behind `--` everything belongs
to the command. The options are the keywords of `veil.run` by the same names, in seconds and bytes.

"""
ENDING = """\
## Exit codes

| code | meaning |
|---|---|
| the command's own | whatever it was, 128+n after signal n, 126 and 127 when it could not start |
| 1 | the command ended with 0, but an expectation does not hold or could not be judged (`veil diff`: it found one) |
| 124 | the time limit |
| 125 | veil refused, or something went wrong inside veil; one line on standard error says what (`--json`: a document) |
| 130, 143, 129 | veil itself was ended by SIGINT, SIGTERM or SIGHUP, and the command with it |

A command may end with any of these by itself; `--json` tells them apart (`ended`, `timed_out`, `cancelled`, `error`).

## What ends with what

A run of the command line belongs to a supervisor process, so nothing of it is alive afterwards, whatever it did: also
when veil or its whole process group gets SIGKILL. That is slower than without by about the start of one Python;
`--no-contain` saves it, and then only a killed veil leaves the command behind (Linux; on macOS a process that left its
parents cannot be followed, and the result says `survivors: unknown`). `--left-running keep` lets live on purpose.

The first Ctrl-C ends the command with SIGTERM, and SIGKILL after 2 seconds; the second with SIGKILL at once.

`veil start` leaves one small process that holds the run, writes its output down, and ends with it. When that process is
killed, the run dies too; whoever looks next finds it `killed`, with the output so far and a note (`owner_lost`).
On disk a stream takes no more than `--max-output` bytes while it runs; older bytes go, and a cursor in front of them
gets `gap`. `--no-store` is refused there, because nobody could read the run.

Text that is shown is made harmless for terminals. `veil detail ID --selector stdout > FILE` and `veil logs --follow`
into a pipe give the bytes as they were written.
"""
SCENE = (
    (
        "run",
        "echo built > app.js; echo 1 warning >&2; echo done",
        "--expect",
        "exit=0",
        "--expect",
        "file_exists=app.map",
    ),
    ("start", "echo listening; sleep 60"),
    ("kill",),
    ("detail", "cmd1", "--match", "warn"),
    ("runs",),
)
SAFETY = """\
## Looking ahead and going back

`veil plan` tells [what a command may do](plan.md) without running it. The others keep [checkpoints](checkpoints.md) of
this folder, or of the one that `--dir` names.

"""
CARE = (
    ("plan", "git add -A && git reset --hard > log"),
    ("run", "echo precious > notes"),
    ("checkpoint", "before the upgrade"),
    ("run", "rm notes; mkdir junk"),
    ("diff",),
    ("restore",),
    ("diff",),
)
RECORDINGS = """\
## Recordings

`veil cassette` works on [cassettes](cassettes.md) without pytest: it makes files that are tests of their own, shows
what stands in one, compares two in the words of [verify mode](verify.md), and tells whether files are whole.

"""
TAPED = (
    ("cassette", "record", "greet.veil.txtar", "--", "echo hello > f; cat f", "exit 3"),
    ("cassette", "record", "other.veil.txtar", "--", "echo HELLO > f; cat f", "exit 3"),
    ("cassette", "show", "greet.veil.txtar", "--step", "1"),
    ("cassette", "diff", "greet.veil.txtar", "other.veil.txtar"),
    ("cassette", "check", "."),
)
COMMANDS = ("run", "shell", "init", "mcp", "start", "logs", "kill", "detail", "runs", "ps")
COMMANDS += ("plan", "preview", "apply", "checkpoint", "restore", "checkpoints", "diff", "drop", "gc", "doctor")
COMMANDS += ("policy check", "policy explain", "policy test", "policy audit")
COMMANDS += ("cassette show", "cassette diff", "cassette check", "cassette record")


def veil(*words: str, cwd: str) -> str:
    """What the command prints, in a place of its own."""
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "VEIL_STATE_DIR": f"{cwd}/.state",
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run((sys.executable, "-m", "veil", *words), cwd=cwd, env=env, capture_output=True, text=True)
    return done.stdout + done.stderr


def helps() -> str:
    """The help of every command, as it prints."""
    with tempfile.TemporaryDirectory() as cwd:
        texts = [veil(*name.split(), "--help", cwd=cwd) for name in COMMANDS]
    # one version of click breaks lines elsewhere than another: only what is said counts
    return "\n".join(
        f"### veil {name}\n\n```text\n{text.rstrip()}\n```\n" for name, text in zip(COMMANDS, texts, strict=True)
    )


def scene(lines: Sequence[tuple[str, ...]]) -> str:
    """A session as it really went."""
    with tempfile.TemporaryDirectory() as cwd:
        shown = []
        for words in lines:
            line = " ".join(word if re.fullmatch(r"[\w=.-]+", word) else f"'{word}'" for word in words)
            shown.append(f"$ veil {line}\n{veil(*words, cwd=cwd)}")
    return f"```text\n{''.join(shown)}```\n"


def render() -> str:
    """The whole page."""
    return f"{HEAD}{scene(SCENE)}\n{ENDING}\n{SAFETY}{scene(CARE)}\n{RECORDINGS}{scene(TAPED)}\n## Options\n\n{helps()}"


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(render(), encoding="utf-8")
