"""``veil run``: arguments, exit codes, the two views, and output that no terminal, locale or reader is made for."""

# over 300 lines because: it is one command, with each kind of reader that its output has

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import VEIL, environment, veil, veil_json


def test_one_argument_is_a_shell_text_and_several_are_a_program(tmp_path: Path) -> None:
    assert veil_json("run", "echo $((1 + 2)); echo 'a  b' | cat", cwd=tmp_path)["stdout"] == "3\na  b"
    assert (
        veil_json("run", "--", "echo", "$HOME", "a  b", "--json", "-x", cwd=tmp_path)["stdout"]
        == "$HOME a  b --json -x"
    )


def test_options_may_stand_behind_the_command(tmp_path: Path) -> None:
    found = veil_json("run", "echo hi", "--expect", "exit=0", "--expect", "stdout_contains=hi", cwd=tmp_path)
    assert found["assert_ok"] is True


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["true"], 0),
        (["exit 7"], 7),
        (["kill -SEGV $$"], 139),
        (["sleep 30", "--timeout", "0.2"], 124),
        (["nosuchprogram-of-mine"], 127),
        (["--", "nosuchprogram-of-mine", "x"], 127),
        (["--", "/dev/null", "x"], 126),
        (["true", "--expect", "exit=0"], 0),
        (["true", "--expect", "stdout_contains=x"], 1),
        (["true", "--expect", "exit=1"], 1),
        (["exit 7", "--expect", "stdout_contains=x"], 7),
        (["exit 7", "--expect", "exit=7"], 7),
        (["head -c 5000 /dev/zero | tr '\\0' x", "--max-output", "100", "--expect", "stdout_contains=y"], 1),
        (["true", "--timeout", "soon"], 125),
        (["true", "--timeout", "0"], 125),
        (["true", "--timeout", "nan"], 125),
        (["true", "--retries", "1.5"], 125),
        (["true", "--expect", "exti=0"], 125),
        (["true", "--expect", "stdout_matches=("], 125),
        (["true", "--env", "NAME"], 125),
        (["true", "--cwd", "/no/such/folder"], 125),
        (["true", "--stdin", "/no/such/file"], 125),
        (["true", "--left-running", "maybe"], 125),
        (["true", "--no-such-option"], 125),
        (["true", "--effects", "some"], 125),
        (["--timeout"], 125),
        ([" "], 125),
        ([], 125),
    ],
)
def test_exit_codes(tmp_path: Path, words: list[str], code: int) -> None:
    done = veil("run", *words, cwd=tmp_path)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert b"Traceback" not in done.stderr
    assert done.stderr.startswith(b"veil: ") == (code == 125)


def test_a_refusal_as_json(tmp_path: Path) -> None:
    found = veil_json("run", "true", "--timeout", "-1", cwd=tmp_path, code=125)
    assert found["error"] == "bad_input"
    assert found["facts"]["argument"] == "timeout"
    assert veil_json("run", "true", "--nope", cwd=tmp_path, code=125)["error"] == "bad_usage"
    assert veil_json("detail", "cmd999", cwd=tmp_path, code=125)["error"] == "not_found"
    bad = veil_json("run", "true", cwd=tmp_path, code=125, env={"VEIL_TIMEOUT_MS": "soon"})
    assert "VEIL_TIMEOUT_MS" in bad["message"]


def test_an_unknown_option_tells_of_the_two_dashes(tmp_path: Path) -> None:
    done = veil("run", "npm", "test", "-x", cwd=tmp_path)
    assert done.returncode == 125
    assert b"behind --" in done.stderr


def test_options_reach_the_run(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "input").write_bytes(b"from a file\n")
    command = 'pwd; echo "$ONE-$TWO-${GONE-unset}"; cat; echo err >&2; exit 3'
    found = veil_json(
        *("run", command, "--cwd", "inner", "--env", "ONE=1=1", "--env", "TWO=", "--unset-env", "GONE"),
        *("--stdin", "input", "--merge-stderr", "--retries", "1", "--retry-on-exit", "3,4", "--effects", "off"),
        *("--shell", "sh", "--no-store"),
        cwd=tmp_path,
        code=3,
        env={"GONE": "here"},
    )
    assert found["stdout"].split("\n") == [str(inner), "1=1--unset", "from a file", "err"]
    assert found["attempts"] == 2
    assert found["id"].startswith("mem")
    assert "files_changed" not in found


def test_stdin_of_veil_is_given_only_when_asked(tmp_path: Path) -> None:
    assert veil("run", "cat", "--stdin", "-", cwd=tmp_path, stdin=b"through\n").stdout.endswith(b"through\n")
    assert b"through" not in veil("run", "cat", cwd=tmp_path, stdin=b"through\n").stdout


def test_the_human_view(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("1")
    command = "echo out; echo oops >&2; touch new; echo 2 >> old; rm -f none; exit 2"
    done = veil("run", command, "--expect", "file_exists=new", "--expect", "stdout_contains=x", cwd=tmp_path)
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("exit 2 in ")
    assert lines[0].endswith(" [cmd1]")
    assert lines[1:] == [
        "--- stdout (1 line)",
        "out",
        "--- stderr (1 line)",
        "oops",
        "--- 2 changed (scan)",
        "A new",
        "M old",
        "--- 1 of 2 expectations hold",
        lines[-1],
    ]
    assert lines[-1].startswith("failed: stdout_contains: ")
    assert done.stderr == b""


def test_long_output_is_condensed_and_full_shows_it(tmp_path: Path) -> None:
    assert len(veil("run", "seq 1000", cwd=tmp_path).stdout.splitlines()) < 60
    assert len(veil("run", "seq 1000", "--full", cwd=tmp_path).stdout.splitlines()) > 1000


@pytest.mark.needs("bash")
def test_nothing_that_is_shown_to_people_drives_their_terminal(tmp_path: Path) -> None:
    named = "$'\\e]0;title\\a\\e[2J\\nx'"
    shown = [
        veil("run", f"touch {named}", cwd=tmp_path),
        veil("run", f"rm {named}", cwd=tmp_path),
        veil("runs", cwd=tmp_path),
        veil("run", "echo $'\\e[2J\\e]0;title\\a'", cwd=tmp_path),
        *(veil("detail", *page, cwd=tmp_path) for page in ((), ("--selector", "meta"), ("--match", "."))),
        *(
            veil("detail", "--selector", "stdout", *page, cwd=tmp_path)
            for page in (("--limit", "99"), ("--lines", "1:1"))
        ),
        veil("run", "--stdin", "\x1b[2J", "true", cwd=tmp_path),
        veil("run", "--project", "\x1b[2J", "true", cwd=tmp_path),
        veil("\x1b[2J", cwd=tmp_path),
    ]
    assert b"advice: it destroys" in shown[1].stdout
    for done in shown:
        assert b"\x1b" not in done.stdout + done.stderr, done
        assert b"\a" not in done.stdout + done.stderr, done


#: Bytes that are no text, escapes, a lone surrogate in UTF-8 spelling, names that are hard to print.
NASTY = (
    r"printf '\377\376\200\355\240\200 \033[2J\033]0;title\007 \r\b caf\303\251 \342\200\256'; "
    r"touch $'a\nb' $'\377' $'\033[31m'"
)


@pytest.mark.needs("bash")
@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"LC_ALL": "C.UTF-8"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "utf-16"},
    ],
    ids=lambda env: next(iter(env.values())) + str(len(env)),
)
def test_any_output_in_any_locale(tmp_path: Path, env: dict[str, str]) -> None:
    done = veil("run", NASTY, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert b"\x1b[2J" not in done.stdout
    assert b"\x1b[31m" not in done.stdout
    done = veil("run", "--json", NASTY, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode(env.get("PYTHONIOENCODING", "utf-8"))
    assert json.loads(text)["ok"] is True
    for words in (["runs"], ["detail"], ["detail", "--selector", "meta"], ["detail", "--match", "caf"]):
        done = veil(*words, cwd=tmp_path, env=env)
        assert done.returncode == 0, (words, done.stderr)
        assert done.stderr == b""


def test_arguments_that_are_no_text(tmp_path: Path) -> None:
    done = subprocess.run(
        (*VEIL, "run", "--json", "--", "printf", "%s", b"\xff\xe9"),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert veil("detail", "--selector", "stdout", cwd=tmp_path).stdout == b"\xff\xe9"


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_reader_that_goes_away(tmp_path: Path, more: list[str]) -> None:
    """``veil run ... | head -1`` prints no traceback and ends with the command's code."""
    run = f"'{sys.executable}' -m veil run 'seq 100000; exit 5' --full {' '.join(more)}"
    script = f"{run} | head -c 10; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, timeout=120)
    assert done.stdout.splitlines()[-1].endswith(b"5")
    assert done.stderr == b""


def test_closed_streams(tmp_path: Path) -> None:
    script = f"'{sys.executable}' -m veil run 'exit 5' >&- 2>&-; echo $?"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, timeout=120)
    assert done.stdout == b"5\n"


def test_closed_streams_and_a_library_that_keeps_a_file_open(tmp_path: Path) -> None:
    """As libffi does, whose file would be taken for standard output."""
    (tmp_path / "kept").touch()
    (tmp_path / "main.py").write_text(
        "import sys\n"
        "class Library:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'click': sys.kept = open('kept', 'r+')\n"
        "sys.meta_path.insert(0, Library())\n"
        "from veil.cli import main\n"
        "sys.exit(main(['run', 'exit 5']))\n"
    )
    script = f"'{sys.executable}' main.py >&-; echo $? >&2"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, timeout=120)
    assert done.stderr == b"5\n"
    assert (tmp_path / "kept").read_bytes() == b""


def on_a_terminal(cwd: Path, *words: str, **env: str) -> tuple[str, int]:
    """What ``veil WORDS`` paints on a terminal, and its exit code."""
    master, slave = pty.openpty()
    variables = {k: v for k, v in environment(**{"TERM": "xterm", "COLUMNS": "80", **env}).items() if v}
    child = subprocess.Popen((*VEIL, *words), cwd=cwd, env=variables, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    while True:
        assert select.select([master], [], [], 120)[0], seen
        try:
            data = os.read(master, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not data:
            break
        seen += data
    os.close(master)
    return seen.decode(), child.wait(60)


def test_a_terminal_gets_colours_and_a_live_line(tmp_path: Path) -> None:
    seen, code = on_a_terminal(tmp_path, "run", "echo first; sleep 1.5; echo last; exit 3", NO_COLOR="")
    assert code == 3
    assert "\x1b[1;31mexit 3 in" in seen
    live, view = seen.split("exit 3 in")
    assert " 6 bytes" in live
    assert "first" in live
    assert view.split("\r\n")[1:4] == ["\x1b[2m--- stdout (2 lines)\x1b[0m", "first", "last"]


def test_no_color_and_dumb_terminals(tmp_path: Path) -> None:
    seen, _ = on_a_terminal(tmp_path, "run", "sleep 1; echo hi", NO_COLOR="1")
    assert "hi" in seen
    assert not [part for part in seen.split("\x1b[")[1:] if part.split("m")[0].replace(";", "").isdigit()]
    seen, _ = on_a_terminal(tmp_path, "run", "sleep 1; echo hi", TERM="dumb")
    assert "hi" in seen
    assert "\x1b" not in seen


def test_the_terminal_is_not_driven_by_output(tmp_path: Path) -> None:
    seen, _ = on_a_terminal(tmp_path, "run", r"printf '\033]0;title\007\033[6n[bold]x[/bold]\n'; sleep 0.6")
    assert "\x1b]0;" not in seen
    assert "\x1b[6n" not in seen
    assert "[bold]x[/bold]" in seen


def test_the_json_view_is_the_result(tmp_path: Path) -> None:
    found = veil_json("run", "echo hi; touch f", cwd=tmp_path)
    ms = found.pop("ms")
    assert isinstance(ms, int)
    assert found == {
        "id": "cmd1",
        "exit": 0,
        "ok": True,
        "stdout_lines": 1,
        "files_changed": [{"path": "f", "change": "created", "kind": "file"}],
        "effects_source": "scan",
        "stdout": "hi",
    }


def test_version_without_click(tmp_path: Path) -> None:
    code = "import sys; from veil.cli import main; main(['--version']); print({'click', 'rich'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, timeout=60
    )
    assert done.stdout.decode().splitlines()[1:] == ["set()"], done.stderr
    assert veil("--version", cwd=tmp_path).stdout.startswith(b"veil 0.")


def test_stored_output_of_another_project(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    veil_json("run", "seq 20; echo 7 wrong >&2", "--project", str(other), cwd=tmp_path)
    found = veil("detail", "--match", "7", "--project", str(other), cwd=tmp_path)
    assert found.stdout == b"stdout:7:7\nstdout:17:17\nstderr:1:7 wrong\n"
    found = veil("detail", "--selector", "stdout", "--lines", "3:4", "--project", str(other), cwd=tmp_path)
    assert found.stdout.splitlines()[:2] == [b"3", b"4"]
    assert veil_json("detail", "cmd1", cwd=tmp_path, code=125)["error"] == "not_found"
    for words in (["--lines", "x"], ["--lines", "4:3", "--selector", "stdout"], ["--selector", "all"]):
        assert veil_json("detail", *words, "--project", str(other), cwd=tmp_path, code=125)["error"] == "bad_input"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "words", [("run", "echo hi"), ("run", "--json", "echo hi"), ("detail", "--selector", "stdout")]
)
def test_a_full_disk_behind_standard_output_is_told_in_a_line(words: tuple[str, ...], tmp_path: Path) -> None:
    veil("run", "echo before", cwd=tmp_path)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            (*VEIL, *words), cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    told = "veil: standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (125, told)
