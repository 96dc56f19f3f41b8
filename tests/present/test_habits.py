"""Advice on commands that wait for somebody, and on pipes that hide an exit code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.model.outcome import Observation, Outcome, Stream
from veil.model.record import Record
from veil.present.habits import commands, interactive, masked
from veil.present.reply import advice_for


def record(text: str | None, exit: int = 0, argv: tuple[str, ...] = ("bash", "-c", "x")) -> Record:
    outcome = Outcome(ended="exited", exit=exit, stdout=Stream(), stderr=Stream())
    return Record("cmd1", 0.0, text or "", argv, "/", Observation(outcome), text=text)


#: Text, exit code, program that is named. Each waits for a person.
WAITING = [
    ("vim notes.txt", 1, "vim"),
    ("cd src && nano +3 a.c", 0, "nano"),
    ("emacs -nw a", 1, "emacs"),
    ("python", 0, "python"),
    ("python3.12 -i", 0, "python3.12"),
    ("/usr/bin/python3; echo done", 0, "python3"),
    ("FOO=1 node", 0, "node"),
    ("bash", 0, "bash"),
    ("psql -U me db", 2, "psql"),
    ("git rebase -i HEAD~3", 1, "git"),
    ("git -C repo rebase --interactive main", 1, "git"),
    ("git add --patch", 1, "git"),
    ("git commit", 1, "git"),
    ("git commit -a", 1, "git"),
    ("top", 1, "top"),
    ("watch -n 1 ls", 124, "watch"),
    ("sudo apt-get update", 1, "sudo"),
    ("ssh host uptime", 255, "ssh"),
    ("scp a host:b", 255, "scp"),
    ("docker run -it image sh", 1, "docker"),
    ("apt-get install jq", 1, "apt-get"),
    ("time vim x", 1, "vim"),
    ("if true; then vim x; fi", 1, "vim"),
    ("timeout 5 python", 124, "python"),
    ("python 2>&1", 0, "python"),
    ("python >out.txt 2>/dev/null", 0, "python"),
    ("echo 'it is' \"open\"; vim x", 1, "vim"),
    ('git commit "--all" --quiet', 1, "git"),
]
#: Each is as it should be, or nobody can be sure.
FINE = [
    ("vim -es -c wq a", 0),
    ("emacs --batch -l x.el", 0),
    ("python script.py", 1),
    ("python -c 'print(1)'", 0),
    ("python -m pytest", 1),
    ("python --version", 0),
    ("echo 'print(1)' | python", 0),
    ("python < script.py", 0),
    ("python - <<'EOF'\nvim\nEOF", 0),
    ("cat <<EOF\nvim x\nEOF", 0),
    ("echo vim", 0),
    ("echo 'run; vim'", 0),
    ("grep -n top file", 1),
    ("which vim python", 1),
    ("bash script.sh", 1),
    ("bash -c 'true'", 0),
    ("psql -c 'select 1'", 1),
    ("psql < dump.sql", 1),
    ("git commit -m x", 1),
    ("git commit -am x", 1),
    ("git commit --amend --no-edit", 1),
    ("GIT_SEQUENCE_EDITOR=true git rebase -i HEAD~3", 1),
    ("git rebase main", 1),
    ("sudo true", 0),
    ("sudo -n true", 1),
    ("ssh -o BatchMode=yes host uptime", 255),
    ("ssh host uptime", 0),
    ("top -b -n 1", 0),
    ("docker run image", 1),
    ("apt-get install -y jq", 1),
    ("echo \"it's open", 2),
    ("x=$(vim)", 1),
    ("echo a # vim b", 1),
    ("echo a#b '#' \\; vim-like", 1),
    ("find . -name x -exec ls {} \\;", 1),
]


@pytest.mark.parametrize(("text", "exit", "program"), WAITING)
def test_what_waits_for_a_person_is_named(text: str, exit: int, program: str) -> None:
    told = interactive(record(text, exit))
    assert told is not None
    assert told.startswith(f"{program} waits for a person")


@pytest.mark.parametrize(("text", "exit"), FINE)
def test_what_waits_for_nobody_is_left_alone(text: str, exit: int) -> None:
    assert interactive(record(text, exit)) is None


def test_what_never_started_waited_for_nobody() -> None:
    outcome = Outcome(ended="spawn_failed", exit=126, stdout=Stream(), stderr=Stream(), spawn_error="Permission denied")
    assert interactive(Record("cmd1", 0.0, "passwd", ("/etc/passwd",), "/", Observation(outcome))) is None


def test_an_argv_is_read_too() -> None:
    assert "vim waits" in str(interactive(record(None, 1, ("/usr/bin/vim", "a file"))))
    assert interactive(record(None, 1, ("echo", "; vim"))) is None


MASKED = [
    ("make | tail", "make"),
    ("make -j2 2>&1 | tail -20", "make"),
    ("cd app && npm test 2>&1 | grep -v skip | tail -n 5", "npm"),
    ("python -m pytest -q | tee log", "python"),
    ("./build.sh |& head", "build.sh"),
    ("bash run.sh | sed 's/a/b/'\n", "bash"),
    ("CI=1 cargo test | cat", "cargo"),
]
UNMASKED = [
    "make",
    "ls | head",
    "cat make | tail",
    "grep -r make . | head",
    "set -o pipefail; make | tail",
    "make | grep error",
    "make | tail; echo $?",
    "make | tail && echo ok",
    "make && ls | tail",
    "echo 'make | tail'",
    "python -c 'print(1)' | head",
    "git log | head",
    "grep '|' make | tail",
    "echo \\| make | tail",
]


@pytest.mark.parametrize(("text", "program"), MASKED)
def test_a_pipe_that_hides_an_exit_code_is_named(text: str, program: str) -> None:
    told = masked(record(text))
    assert told is not None
    assert f"not of {program}:" in told
    assert masked(record(text, exit=2)) is None, "what failed hides nothing"


@pytest.mark.parametrize("text", UNMASKED)
def test_other_pipes_are_left_alone(text: str) -> None:
    assert masked(record(text)) is None


def test_it_is_the_advice_of_a_result() -> None:
    assert str(advice_for(record("make | tail"))).startswith("exit 0 is that of tail")
    assert str(advice_for(record("vim x", 1))).startswith("vim waits")
    assert advice_for(record("echo hi")) is None


@given(st.text(st.sampled_from(list("ab |&;<>()\n'\"\\$`={}!#-")), max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    for simple in commands(record(text)):
        assert set(simple.program) <= set(text)
    interactive(record(text, 1))
    masked(record(text))
