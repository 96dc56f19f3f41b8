"""A command of a session reads, traps and ends as it does alone, and leaves what it did."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from shell_sessions import out, sh

import veil

__all__ = ["sh"]

pytestmark = pytest.mark.needs("bash")


# How a command ends ------------------------------------------------------------------------------------------------


def test_exit_ends_the_command_and_not_the_session(sh: veil.Shell) -> None:
    result = sh.run("x=1; cd ..; exit 3; x=2")
    assert (result.exit, result.ended) == (3, "exited")
    assert result.to_dict()["cwd"] == sh.cwd
    assert out(sh, "echo $x; pwd") == f"1\n{sh.cwd}\n"


def test_a_failing_command_leaves_what_it_did(sh: veil.Shell) -> None:
    assert sh.run("x=1; no-such-command; false").exit == 1
    assert out(sh, "echo $x") == "1\n"


def test_set_e_ends_one_command_after_the_other(sh: veil.Shell) -> None:
    assert sh.run("set -e; x=1; false; x=2").exit == 1
    assert sh.run("echo $x; false; echo not here").stdout == "1\n"
    assert sh.run("set +e; false; echo here").stdout == "here\n"


def test_set_u_and_an_unset_variable(sh: veil.Shell) -> None:
    result = sh.run("set -u; x=1; echo $nothing; x=2")
    assert result.exit != 0
    assert "nothing: unbound variable" in result.stderr
    assert out(sh, "echo $x") == "1\n"


@pytest.mark.parametrize("signal", ["KILL", "TERM", "HUP", "INT", "PIPE"])
def test_killed_leaves_the_state_as_it_was(sh: veil.Shell, signal: str) -> None:
    sh.run("x=1")
    result = sh.run(f"cd /; x=2; kill -{signal} $$; sleep 5")
    assert result.signal == f"SIG{signal}"
    assert result.to_dict()["session_state"] == f"as before: the command was ended by SIG{signal}"
    assert "cwd" not in result.to_dict()
    assert out(sh, "echo $x; pwd") == f"1\n{sh.cwd}\n"


def test_timed_out_leaves_the_state_as_it_was(sh: veil.Shell) -> None:
    sh.run("x=1")
    result = sh.run("cd /; x=2; sleep 60", timeout=0.5)
    assert result.timed_out
    assert result.to_dict()["session_state"] == "as before: the command was ended at its time limit"
    assert out(sh, "echo $x; pwd") == f"1\n{sh.cwd}\n"


def test_cancelled_leaves_the_state_as_it_was(sh: veil.Shell) -> None:
    sh.run("x=1")

    # the callback comes on another thread: only the loop's own may cancel
    async def main() -> None:
        loop = asyncio.get_running_loop()
        task: asyncio.Future[Any]

        def cancel() -> None:
            loop.call_soon_threadsafe(task.cancel)

        task = asyncio.ensure_future(sh.arun("x=2; echo up; sleep 60", on_output=lambda *_: cancel()))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await sh.arun("echo $x")).stdout == "1\n"

    asyncio.run(main())


def test_exec_replaces_the_shell(sh: veil.Shell) -> None:
    sh.run("x=1")
    result = sh.run("x=2; exec echo replaced")
    assert (result.stdout, result.exit) == ("replaced\n", 0)
    assert result.to_dict()["session_state"].startswith("as before: the shell did not come to its end (exec")
    assert out(sh, "echo $x") == "1\n"


def test_exec_of_descriptors_does_not(sh: veil.Shell) -> None:
    assert out(sh, "exec 3>log; echo to log >&3; x=1; exec 1>&- 2>&-") == ""
    assert out(sh, "cat log; echo $x") == "to log\n1\n"


def test_every_descriptor_closed(sh: veil.Shell) -> None:
    """Then nobody can be told anything: the state stays, and the result says so."""
    result = sh.run('x=1; for fd in /dev/fd/*; do fd=${fd##*/}; [[ $fd -gt 2 ]] && eval "exec $fd>&-"; done; exit 4')
    assert (result.exit, result.stderr) == (4, "")
    assert result.to_dict()["session_state"].startswith("as before")


def test_syntax_errors_have_the_lines_of_the_text(sh: veil.Shell) -> None:
    sh.run("x=1; f() { :; }")
    for text in ("echo 'one", "if true\nthen fi", "echo )", "x=2; case"):
        mine, theirs = sh.run(text), veil.run(text, cwd=sh.cwd, effects=False)
        assert (mine.exit, mine.stdout, mine.stderr) == (theirs.exit, theirs.stdout, theirs.stderr)
    assert out(sh, "echo $x; type -t f") == "1\nfunction\n"


@pytest.mark.parametrize(
    "text",
    [
        "echo $0 $LINENO ${BASH_SOURCE[0]-none} $# $BASH_SUBSHELL\necho $LINENO\nno-such-command\nfalse",
        "return 3; echo after",
        "cat <<A; cat <<'B'\none $0\nA\ntwo $0\nB",
        "cat <<E\nnever ended",
        "echo last # a comment",
        "echo a \\\n  b",
        "\n\n  echo after blank lines; echo $LINENO",
        "# a comment first\necho $LINENO",
        "f() { echo ${FUNCNAME[*]}; caller; }; f",
        "echo $-; trap -p; jobs; type -t cd exit",
        "sleep 0.1 & wait $!; echo $?",
        "set -x; f() { echo in f; }; f; [[ 1 == 1 ]]",
        "false | true; echo ${PIPESTATUS[*]}",
        "echo $BASH_EXECUTION_STRING",
        "break; continue; echo on",
        "exit 300",
        "! true",
        "bash -c 'echo $BASH_ENV; exit 7'",
        "compgen -v | grep -i veil; declare -F; env | grep -c BASH_ENV",
        "printf 'no newline'",
        "ulimit -f 0; echo still",
        "echo $(trap 'echo sub' EXIT; echo x)",
        "(exit 5)",
        "history; echo $HISTFILE",
        "[ -t 0 ]; cat; read x",
    ],
)
def test_a_command_reads_as_it_does_alone(sh: veil.Shell, text: str) -> None:
    """The first of a session, and a later one: exit and both streams are those of ``veil.run``."""
    alone = veil.run(text, cwd=sh.cwd, effects=False)
    for _ in range(2):
        mine = sh.run(text)
        assert (mine.exit, mine.stdout, mine.stderr) == (alone.exit, alone.stdout, alone.stderr)
        assert (mine.record.text, mine.argv, mine.command) == (text, alone.argv, text)
        sh.run("set +x; unset -f f")


@pytest.mark.parametrize(
    "text", ["echo hi\necho ho", "x=1", "trap 'echo bye' EXIT\nx=2", "trap '' EXIT", "exit 3", "f() { exit 4; }\nf"]
)
def test_what_is_shown_as_it_is_read_is_the_commands_own(sh: veil.Shell, text: str) -> None:
    alone = veil.run(f"set -v\n{text}", cwd=sh.cwd, effects=False)
    assert out(sh, "set -v") == ""
    for merge_stderr in (False, True):
        sh.run(text)
        mine = sh.run(text, merge_stderr=merge_stderr)
        theirs = veil.run(f"set -v\n{text}", cwd=sh.cwd, effects=False, merge_stderr=merge_stderr)
        assert (mine.exit, mine.stdout, mine.stderr) == (theirs.exit, theirs.stdout, theirs.stderr)
        streams = mine.record.observation.outcome.stderr, theirs.record.observation.outcome.stderr
        assert streams[0] == streams[1]
    assert alone.exit == mine.exit


#: Names of what the way of the state is made of, taken by the command.
_IN_THE_WAY = {
    "functions of every other name": "declare() { :; }; printf() { :; }; unset() { :; }; shopt() { :; }; "
    "eval() { :; }; command() { :; }; alias() { :; }; umask() { :; }; set() { :; }; export() { :; }; "
    "exit() { :; }; pwd() { :; }",
    "a function called trap": 'trap() { echo "no trap"; }',
    "a function called builtin": "builtin() { echo no; return 1; }",
    "the same under set -e": "builtin() { return 1; }; set -e",
    "the same in POSIX mode": "builtin() { return 1; }; set -o posix",
    "one that passes on": 'builtin() { command builtin "$@"; }',
    "aliases": "shopt -s expand_aliases; alias builtin=echo printf=false trap=: set=false declare=:",
    "a trace elsewhere": "exec 5>/dev/null; BASH_XTRACEFD=5; set -x",
    "a prompt of the trace": "PS4='$(touch made) '; set -x",
}


@pytest.mark.parametrize("text", _IN_THE_WAY.values(), ids=list(_IN_THE_WAY))
def test_what_is_called_like_the_way_is_not_in_it(sh: veil.Shell, text: str) -> None:
    sh.run("x=1; export A=2; f() { :; }; shopt -u sourcepath")
    for _ in range(2):
        assert "session_state" not in sh.run(f"{text}\ny=3").to_dict()
        told = sh.run("[[ $x$A$y == 123 ]] && type -t f && cd .. && cd -")
        assert told.stdout == f"function\n{sh.cwd}\n", told
    if "posix" not in text:  # which switches it on
        assert sh.run("[[ $BASHOPTS != *sourcepath* ]]").ok


def test_a_function_called_trap_is_carried_and_ours_is_not(sh: veil.Shell) -> None:
    out(sh, 'trap() { echo "mine $*"; }')
    assert out(sh, "trap x EXIT; declare -F") == "mine x EXIT\ndeclare -f trap\n"
    out(sh, "unset -f trap")
    assert out(sh, "trap 'echo bye' EXIT; true") == "bye\n"
    assert out(sh, "declare -F") == ""


@pytest.mark.parametrize("name", ["declare", "shopt", "printf", "set"])
def test_a_shell_that_can_not_tell_leaves_the_state_as_it_was(sh: veil.Shell, name: str) -> None:
    sh.run("x=1")
    assert sh.run(f"enable -n {name}; x=2").to_dict()["session_state"].startswith("as before: ")
    assert out(sh, "echo $x") == "1\n"


# Traps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "trap 'echo bye $?' EXIT; x=1; exit 4",
        "trap 'echo bye; exit 9' 0; x=1",
        "trap 'echo \"it'\\''s\"; false' EXIT; x=1; false",
        "trap 'echo one' EXIT; trap 'echo two' EXIT; x=1",
        "trap 'echo gone' EXIT; trap - EXIT; x=1",
        "trap '' EXIT; x=1",
        "trap 'echo u' USR1; kill -USR1 $$; x=1",
        "trap 'echo sig' TERM EXIT; kill -TERM $$; x=1",
        "trap 'echo err' ERR; false; x=1; trap 'echo dbg' DEBUG; true",
        "(trap 'echo sub' EXIT; :); x=1",
        "trap 'echo a' EXIT; trap -p; trap; trap -p EXIT; x=$(trap -p EXIT); echo $x; x=1",
        "set -u; trap 'echo ${nope-unset}; echo $nope' EXIT; x=1",
        "set -x; trap 'echo traced' EXIT; x=1",
        "f() { trap 'echo from f' EXIT; }; f; x=1",
        "eval \"trap 'echo evaled' EXIT\"; x=1",
        "trap 'x=2' EXIT NOSUCH 2>/dev/null; echo $?; x=1",
        "set -e; trap 'echo bye $?' EXIT; x=1; false",
        "trap 'echo $BASH_COMMAND >/dev/null' EXIT; x=1; nope-nope",
        "trap -l | head -1; x=1",
    ],
)
def test_traps_of_the_command_do_what_they_do_alone(sh: veil.Shell, text: str) -> None:
    alone = veil.run(text, cwd=sh.cwd, effects=False)
    mine = sh.run(text)
    assert (mine.exit, mine.stdout, mine.stderr) == (alone.exit, alone.stdout, alone.stderr)
    assert "session_state" not in mine.to_dict()
    sh.run("set +xue")
    assert out(sh, "echo $x; trap -p") == "1\n"


def test_exit_within_functions_leaves_no_locals(sh: veil.Shell) -> None:
    sh.run("A=global; declare -A map=([k]=v); readonly ro=1; export B=global")
    sh.run(
        "set -- p q; g() { local A=hidden only=1 B=hidden; h a; }\n"
        "h() { local deep=2 arr=3 A=more; z=set; exit 4; }; g z"
    )
    assert out(
        sh, "declare -p A map ro B z; declare -p only deep arr 2>/dev/null; env | grep ^B=; true"
    ).splitlines() == [
        'declare -- A="global"',
        'declare -A map=([k]="v" )',
        'declare -r ro="1"',
        'declare -x B="global"',
        'declare -- z="set"',
        "B=global",
    ]
