"""Shell sessions: what a command leaves is what a real bash would have carried, and nothing of the way shows."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import veil
from veil import stateful
from veil.model.errors import BadInput, NotFound, Refused

pytestmark = pytest.mark.needs("bash")

Open = Callable[..., veil.Shell]


@pytest.fixture
def sh(tmp_path: Path) -> Iterator[veil.Shell]:
    (tmp_path / "w").mkdir()
    with veil.shell(cwd=tmp_path / "w", effects=False) as session:
        yield session


def out(session: veil.Shell, command: str, **options: Any) -> str:
    """What it wrote to stdout; it must succeed and be silent on stderr."""
    result = session.run(command, **options)
    assert (result.exit, result.stderr) == (0, ""), result
    return result.stdout


# What a real bash would have carried -------------------------------------------------------------------------------

#: Everything that can be asked of a shell; the functions of a session may not show.
_PROBE = """pwd; dirs -l; umask; echo "$#:$*"; alias -p; set +o; shopt; declare -f; declare -F
for name in A B C x y z arr map num low ro ref IFS PS4 OLDPWD BASH_ENV BASH_COMPAT TERM lost
do declare -p $name; done 2>/dev/null
env -0 | sort -z | grep -zv '^_=' | grep -zv VEIL | tr '\\0' '\\n'"""


def _same_as_bash(folder: Path, commands: list[str]) -> None:
    """Run them in a session and in one bash that reads them as a script, and compare everything after each."""
    for name in ("session", "real"):
        (folder / name / "sub" / "deep").mkdir(parents=True)
        (folder / name / "link").symlink_to("sub")
    told: list[str] = []
    here = folder / "session"
    with veil.shell(cwd=here, effects=False, no_store=True, env={"BASE": "1"}) as session:
        for command in commands:
            result = session.run(command)
            assert result.ended == "exited", result
            assert "session_state" not in result.to_dict(), result
            told.append(session.run(_PROBE).stdout.replace(str(here), "<here>"))
    here = folder / "real"
    script = folder / "script"
    parts = "".join(f"{command}\n{{ {_PROBE}; echo '<<<>>>'; }} >&9\n" for command in commands)
    script.write_bytes(os.fsencode("shopt -s expand_aliases\n" + parts))
    environment = {k: v for k, v in os.environ.items() if k not in ("BASH_ENV", "ENV")} | {"BASE": "1"}
    with (folder / "told").open("wb") as file:
        subprocess.run(
            ["bash", "-c", 'exec 9>&1 >/dev/null 2>&1; . "$0"', script],
            cwd=here,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
    real = (folder / "told").read_text(errors="replace").replace(str(here), "<here>").split("<<<>>>\n")[:-1]
    assert len(real) == len(commands)
    for at, (mine, theirs) in enumerate(zip(told, real, strict=True)):
        # an alias is expanded from the command after it on, as it is where lines are typed
        differs = [
            (one, two)
            for one, two in zip(mine.split("\n"), theirs.split("\n"), strict=False)
            if one != two and "expand_aliases" not in one
        ]
        assert not differs, (at, commands[at], differs[:4])
        assert mine.count("\n") == theirs.count("\n"), (at, mine, theirs)


CARRIED = {
    "folder": ["cd sub", "cd deep", "cd -", "cd ../.."],
    "folder through a link": ["cd link", "cd deep", "cd ..", "cd -P ."],
    "exported": [
        "export A=1 B='it'\\''s $x `y` \"z\"'",
        "export C=$'a\\nb\\t\\001\\377 \\\\'",
        "unset A",
        "A=2",
        "export A",
    ],
    "not exported": ["x=1; y='a b'", "x+=2", "export x", "declare +x x", "unset x"],
    "exported, without a value": ["export lost", "lost=1", "declare +x lost"],
    "empty values": ["export A= x=", "A=; y=''"],
    "arrays": ["arr=(1 'x y' $'n\\nl' '')", "arr[7]=seven", "unset 'arr[1]'", "arr+=(end)"],
    "maps": ["declare -A map", "map[k]=v; map['a b']=\"q'q\"", "map[$'n\\nl']='$(no)'", "unset 'map[k]'"],
    "integer and lower case": ["declare -i num=5; declare -l low=ABC", "num+=2; low=DEF", "export num low"],
    "read only": ["readonly ro='stays'", "ro=other", "declare -p ro"],
    "read only and exported": ["declare -rx A=1", "A=2"],
    "reference": ["declare -n ref=x; x=1", "ref=2", "unset -n ref"],
    "functions": ["f() { echo hi $1; }", 'g() { f "$@" | cat; }', "f() { echo other; }", "unset -f g"],
    "function with a here document": ["f() { cat <<E\none $1 'two'\nE\necho after; }", "f x"],
    "function that needs extglob": [
        "shopt -s extglob",
        "f() { [[ $1 == +(a|b) ]] && case $1 in !(a)) echo b;; esac; }",
        "f b",
    ],
    "function from a time with extglob": [
        "shopt -s extglob",
        "f() { case $1 in !(a)) echo b;; esac; }",
        "shopt -u extglob",
        "f b",
    ],
    "exported function": ["f() { echo inner; }; export -f f", "bash -c f", "export -nf f"],
    "function with an odd name": ["my-f.x() { echo odd; }", "my-f.x"],
    "aliases": ["alias q='echo q' 'r=ls | cat'", "q more", "unalias q"],
    "alias named like a word of a function": ["f() { ls; }", "alias ls='echo aliased'", "declare -f"],
    "options": ["set -u -o pipefail", "set -f", "set +u", "set -C"],
    "tracing": ["set -x", "echo traced", "set +x"],
    "showing what is read": ["set -v", "true", "set +v"],
    "posix": ["set -o posix", "f() { :; }", "set +o posix"],
    "no braces": ["set +B", "echo {a,b}", "set -B"],
    "switches": ["shopt -s extglob nullglob globstar", "shopt -u globstar sourcepath", "shopt -s nocasematch"],
    "old manners": ["shopt -s compat44", "true"],
    "umask": ["umask 077", "umask u=rwx,g=rx,o="],
    "arguments": ["set -- one 'two three' ''", "shift", "set -- -x", "set --"],
    "stack of folders": ["pushd sub", "pushd deep", "popd", "dirs -c"],
    "separator": ["IFS=:", "x=a:b; set -- $x", "unset IFS"],
    "prompt of the trace": ["PS4='> '", "set -x", "set +x"],
    "own BASH_ENV": ["export BASH_ENV=/nowhere/at/all", "true", "unset BASH_ENV"],
    "PATH": ["PATH=$PWD/sub:$PATH", "hash -r", "cd sub"],
    "home": ["HOME=$PWD/sub", "cd", "cd ~/deep"],
    "read": ["read x y <<< 'one two three'", "mapfile -t arr < <(printf '%s\\n' a b)", "printf -v z '%s-' 1 2"],
    "getopts": ["set -- -a -b v; getopts ab: x", "echo $OPTIND"],
    "sourcing": ["echo 'x=sourced; f() { :; }; cd sub' > s.sh", ". ./s.sh", "source ../s.sh; true"],
    "eval": ["eval 'x=1; export A=$x'", 'eval "f() { echo $A; }"'],
    "subshells keep theirs": [
        "(cd sub; x=inner; export A=inner)",
        "x=$(cd sub; y=inner; echo 1)",
        "cd sub | cat; true",
    ],
    "locale": ["export LC_ALL=C", "x=$'\\303\\251'", "unset LC_ALL", "y=$'\\303\\251'"],
    "without HOME and TERM": ["unset HOME TERM", "true"],
    "nothing at all": ["true", ":", "# only a comment"],
    "expressions": ["((x = 3, y = x * 2))", "let z=y+1", "for x in 1 2 3; do :; done"],
    "many": [f"v{n}=$(({n}*{n})); export E{n}=$v{n}" for n in range(6)],
}


@pytest.mark.parametrize("on", ["set -o posix", "POSIXLY_CORRECT=1", "export POSIXLY_CORRECT=1"])
def test_posix_mode_goes_with_functions_that_it_would_not_take(sh: veil.Shell, on: str) -> None:
    assert out(sh, f"m.n() {{ echo mn; }}; source() {{ echo so; }}; V=1; {on}") == ""
    assert out(sh, "m.n; echo $V; set -o | grep posix") == "mn\n1\nposix          \ton\n"
    assert out(sh, "set +o posix; source x") == "so\n"
    assert out(sh, "m.n; set -o | grep posix") == "mn\nposix          \toff\n"


@pytest.mark.parametrize("commands", CARRIED.values(), ids=list(CARRIED))
def test_carried_as_by_one_bash(tmp_path: Path, commands: list[str]) -> None:
    _same_as_bash(tmp_path, commands)


_values = st.text(st.sampled_from("ab \t\n'\"\\$`!*~é€\x01\x7f[]=;#\udcff"), max_size=12).map(shlex.quote)
_names = st.sampled_from(["A", "B", "x", "y"])
_commands = st.one_of(
    st.builds("export {}={}".format, _names, _values),
    st.builds("{}={}".format, _names, _values),
    st.builds("unset {}".format, _names),
    st.builds("arr=({} {})".format, _values, _values),
    st.builds("declare -A map; map[{}]={}".format, _values.filter(lambda v: v != "''"), _values),
    st.builds('f() {{ echo {} "$1"; }}'.format, _values),
    st.builds("alias q={}".format, _values.filter(lambda v: "\n" not in v)),
    st.builds("set -- {} {}".format, _values, _values),
    st.sampled_from(
        ["cd sub", "cd link", "cd ..", "cd - >/dev/null", "pushd sub", "popd", "umask 027", "set -u", "set +u"]
    ),
    st.sampled_from(
        ["shopt -s nullglob", "shopt -u nullglob", "set -f", "set +f", "false", "declare -i num=3", "num+=1"]
    ),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_commands, min_size=1, max_size=5))
def test_carried_as_by_one_bash_whatever_is_done(tmp_path_factory: pytest.TempPathFactory, commands: list[str]) -> None:
    _same_as_bash(tmp_path_factory.mktemp("session"), commands)


def test_a_virtual_environment(sh: veil.Shell) -> None:
    """What most agents do first."""
    assert sh.run([sys.executable, "-m", "venv", "--without-pip", "v"]).ok
    before = out(sh, "command -v python3; echo $PATH")
    out(sh, "source v/bin/activate")
    assert out(sh, "command -v python3; echo $VIRTUAL_ENV") == f"{sh.cwd}/v/bin/python3\n{sh.cwd}/v\n"
    assert out(sh, "python3 -c 'import sys; print(sys.prefix)'") == f"{sh.cwd}/v\n"
    out(sh, "deactivate")
    assert out(sh, "command -v python3; echo $PATH") == before
    assert out(sh, "declare -F deactivate; echo ${VIRTUAL_ENV-none}") == "none\n"


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


# When the state cannot be set up -----------------------------------------------------------------------------------


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[veil.Shell]:
    """A session whose bash does to itself what stands in the file ``first``, before it reads anything."""
    import shutil

    real = shutil.which("bash")
    wrapper = tmp_path / "bash"
    wrapper.write_text(f'#!{real} -p\n[[ ! -e {tmp_path}/first ]] || . {tmp_path}/first\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    (tmp_path / "w").mkdir()
    with veil.shell("fragile", cwd=tmp_path / "w", shell=wrapper, effects=False) as session:
        yield session


#: The file of the set-up is seen by the wrapper as well; it hands on a copy, spoilt.
_COPY = "copy={folder}/copy; {spoil} <$BASH_ENV >$copy; export BASH_ENV=$copy\n"


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (
            _COPY.format(folder="{folder}", spoil="sed 's/declare -- x=/declare -- 1x=/'"),
            "variables), and the command was",
        ),
        (_COPY.format(folder="{folder}", spoil="sed 's/f () /f (/'"), "functions), and the command was not run"),
        (
            _COPY.format(folder="{folder}", spoil="sed 's/builtin umask 0/builtin umask 9/'"),
            "umask), and the command was",
        ),
        (
            _COPY.format(folder="{folder}", spoil="sed 's/^builtin umask.*/kill -9 $$/'"),
            "its shell ended meanwhile), and the command was not run",
        ),
        (
            _COPY.format(folder="{folder}", spoil="sed 's/^builtin umask.*/exit 0/'"),
            "its shell ended meanwhile), and the command was not run",
        ),
        ("unset BASH_ENV\n", "did not tell that it read it), and the command may have run"),
    ],
)
def test_a_state_that_cannot_be_restored_is_an_error(fragile: veil.Shell, tmp_path: Path, first: str, why: str) -> None:
    fragile.run("x=1; f() { echo $x; }; umask 027; cd ..")
    (tmp_path / "first").write_text(first.replace("{folder}", str(tmp_path)))
    with pytest.raises(veil.VeilError) as broken:
        fragile.run("touch ran; echo half")
    assert (broken.value.code, why in str(broken.value)) == ("session_broken", True), broken.value
    assert (tmp_path / "ran").exists() is ("may have run" in why)
    with pytest.raises(veil.VeilError, match="could not be restored"):
        asyncio.run(fragile.arun("touch ran"))
    (tmp_path / "first").unlink()
    assert out(fragile, "f; umask; pwd") == f"1\n0027\n{tmp_path}\n", "nothing of it is lost"


def test_a_background_run_whose_state_cannot_be_restored_says_so(fragile: veil.Shell, tmp_path: Path) -> None:
    fragile.run("x=1; f() { :; }")
    (tmp_path / "first").write_text(
        _COPY.format(folder="{folder}", spoil="sed 's/f () /f (/'").replace("{folder}", str(tmp_path))
    )
    handle = fragile.start("touch ran; sleep 60")
    with pytest.raises(veil.VeilError, match="could not be restored"):
        handle.wait(60)
    assert not (tmp_path / "ran").exists()
    assert handle.status == "exited"
    record = veil.detail(handle.id).record
    assert record.status == "exited"
    assert record.observation.outcome.ended == "spawn_failed"
    assert "could not be restored" in (record.observation.outcome.spawn_error or "")


def test_a_background_run_that_is_killed_while_it_is_set_up_was_killed(fragile: veil.Shell, tmp_path: Path) -> None:
    fragile.run("x=1")
    (tmp_path / "first").write_text("echo up; sleep 60\n")
    handle = fragile.start("touch ran")
    handle.wait_for(pattern="up")
    assert handle.kill().status == "killed"
    assert handle.wait(60).signal == "SIGTERM"
    assert not (tmp_path / "ran").exists()


def test_a_shell_that_ends_while_it_is_set_up_at_its_time_limit_is_a_timeout(
    fragile: veil.Shell, tmp_path: Path
) -> None:
    fragile.run("x=1")
    (tmp_path / "first").write_text("sleep 60\n")
    result = fragile.run("x=2", timeout=0.5)
    assert result.timed_out
    assert result.to_dict()["session_state"] == "as before: the command was ended at its time limit"


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


# What goes in, and what does not come out ----------------------------------------------------------------------------


def test_large_variables_are_carried(sh: veil.Shell) -> None:
    """Larger than what a program can be given (128 KiB each, some 2 MiB in all): bash keeps them, and so does this."""
    sh.run(
        "x=$(head -c 3000000 /dev/zero | tr '\\0' x); export A=${x:0:200000}\n"
        "for n in {1..20}; do export E$n=${x:0:90000}; done"
    )
    assert out(sh, "echo ${#x} ${#A} ${#E20} ${A@a}") == "3000000 200000 90000 x\n"
    assert out(sh, "unset A x E{1..20}; env | wc -l") != ""


def test_long_commands_go_through_a_file(sh: veil.Shell) -> None:
    long = "# " + "x" * 200_000 + "\n"
    assert out(sh, long + "y=1; echo $LINENO") == "2\n"
    assert out(sh, "echo $y") == "1\n"


def test_a_secret_of_the_session_is_known_to_redaction(sh: veil.Shell) -> None:
    sh.run("export API_TOKEN=s3cr3t-value-of-mine")
    assert "s3cr3t" not in out(sh, "echo $API_TOKEN", redact=True)
    assert out(sh, "echo ${API_TOKEN-none}", scrub_env=True) == "none\n"
    assert out(sh, "echo $API_TOKEN") == "s3cr3t-value-of-mine\n"


def test_no_file_holds_the_state(sh: veil.Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    sh.run("export A=kept-in-no-file")
    sh.run("echo $A")
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before and "veil-" in path.name] == []


def test_what_a_run_says_of_itself_does_not_pile_up(sh: veil.Shell) -> None:
    first = out(sh, "env | sort")
    for _ in range(3):
        sh.run("true")
    again = out(sh, "env | sort")

    def named(text: str) -> list[str]:
        return [line.split("=")[0] + str(line.count(":")) for line in text.splitlines() if not line.startswith("_=")]

    assert named(again) == named(first)


# Options -----------------------------------------------------------------------------------------------------------


def test_cwd_and_env_of_one_command_are_carried(sh: veil.Shell, tmp_path: Path) -> None:
    (tmp_path / "w" / "a").mkdir()
    assert out(sh, "pwd; echo $A", cwd="a", env={"A": "1"}) == f"{tmp_path}/w/a\n1\n"
    assert out(sh, "pwd; echo $A; cd -", env={"B": "2"}) == f"{tmp_path}/w/a\n1\n{tmp_path}/w\n"
    assert out(sh, "echo ${A-none} $B", env={"A": None}) == "none 2\n"
    assert out(sh, "echo ${A-none} $B") == "none 2\n"
    with pytest.raises(BadInput, match="cwd: expected a folder that exists"):
        sh.run("true", cwd="not there")


def test_options_of_the_session_are_those_of_each_command(tmp_path: Path) -> None:
    with veil.shell(cwd=tmp_path, timeout=0.3, merge_stderr=True, expect={"exit": 0}) as sh:
        assert sh.run("sleep 20").timed_out
        result = sh.run("echo a; echo b >&2", timeout=math.inf)
        assert (result.stdout, result.assert_ok) == ("a\nb\n", True)
        assert sh.run("false", expect={"exit": 1}).assert_ok
        with pytest.raises(veil.CommandFailed):
            sh.run("x=5; exit 2", check=True)
        assert out(sh, "echo $x") == "5\n"


def test_every_command_is_a_run_of_its_own(sh: veil.Shell) -> None:
    one = sh.run("echo a > f; cd ..", effects=True, no_store=False)
    two = sh.run("touch w/g", effects=True, expect={"file_exists": "w/g", "changed": ["w/g"]})
    assert one.created == ["f"]
    assert two.created == ["w/g"]
    assert two.assert_ok is True
    assert two.cwd == os.path.dirname(one.cwd) == one.cwd_after
    assert (one.session, two.session) == (sh.name, sh.name)
    assert veil.detail(one.id, selector="meta").to_dict() is not None


def test_retries_begin_where_the_first_attempt_began(sh: veil.Shell) -> None:
    sh.run("n=0")
    result = sh.run("n=$((n+1)); echo $n >> tries; [ $(wc -l < tries) = 3 ]", retries=5)
    assert result.attempts == 3
    assert out(sh, "cat tries; echo n=$n") == "1\n1\n1\nn=1\n"


def test_an_argv_gets_the_state_and_leaves_it(sh: veil.Shell) -> None:
    sh.run("export A=1; cd ..")
    result = sh.run(["sh", "-c", "echo $A; pwd; cd /; A=2"])
    assert result.stdout == f"1\n{sh.cwd}\n"
    assert out(sh, "echo $A; pwd") == result.stdout


def test_background_runs_begin_in_the_state(sh: veil.Shell) -> None:
    sh.run("export A=1; f() { echo f $A; }; mkdir d; cd d")
    with sh.start("f; A=2; cd /; pwd; sleep 100") as handle:
        handle.wait_for(pattern="/")
        assert handle.logs().stdout == "f 1\n/\n"
        assert out(sh, "echo $A; pwd") == f"1\n{sh.cwd}\n"


def test_background_jobs_of_a_command_end_with_it(sh: veil.Shell) -> None:
    result = sh.run("sleep 100 & x=1")
    assert result.left_running == 1
    assert out(sh, "echo $x; jobs") == "1\n"


def test_stdin_is_the_commands_own(sh: veil.Shell) -> None:
    assert out(sh, "read x; cat", stdin="one\ntwo\n") == "two\n"
    assert out(sh, "echo $x") == "one\n"


def test_a_folder_that_is_gone(sh: veil.Shell, tmp_path: Path) -> None:
    sh.run("mkdir -p a/b; cd a/b")
    result = sh.run("rm -r ../../a; x=1")
    assert result.ok
    gone = sh.run("pwd; echo $x")
    assert gone.stdout == f"{tmp_path}/w\n1\n"
    assert gone.to_dict()["session_cwd_gone"] == f"{tmp_path}/w/a/b"
    assert "session_cwd_gone" not in sh.run("pwd").to_dict()


@pytest.mark.parametrize("name", ["a b", "it's", "tail\n", "\udcff\udcfe", "-n", "$(x)"])
def test_folders_of_any_name(sh: veil.Shell, tmp_path: Path, name: str) -> None:
    (tmp_path / "w" / name / "in").mkdir(parents=True)
    assert sh.run(["true"], cwd=name).ok
    result = sh.run('cd "$N"; cd ./in', env={"N": f"./{name}"})
    assert result.ok, result
    assert sh.cwd == f"{tmp_path}/w/{name}/in"
    assert sh.run("pwd").stdout_bytes == os.fsencode(sh.cwd) + b"\n"
    assert (
        out(sh, "cd ..; [[ $OLDPWD == */in ]] && cd - > /dev/null && pwd | wc -c")
        == f"{len(os.fsencode(sh.cwd)) + 1}\n"
    )


def test_a_secret_in_the_name_of_a_folder(sh: veil.Shell) -> None:
    secret = "hunter2-hunter2"
    result = sh.run(f"mkdir {secret}; cd {secret}", secrets=[secret])
    assert secret not in json.dumps(result.to_dict())
    assert os.path.basename(sh.cwd) == secret
    assert out(sh, "basename $PWD") == secret + "\n"


def test_names_in_the_environment_that_no_shell_has(tmp_path: Path) -> None:
    env = {"a.b": "dot", "BASH_FUNC_theirs%%": "() { echo theirs; }", "1x": "digit"}
    with veil.shell(cwd=tmp_path, env=env, effects=False) as sh:
        for _ in range(3):
            assert out(sh, "theirs; env | grep -E '^(a.b|1x)=' | sort") == "theirs\n1x=digit\na.b=dot\n"
        sh.run("unset -f theirs")
        assert sh.run("theirs").exit == 127


def test_many_commands_leave_nothing_open(sh: veil.Shell) -> None:
    sh.run("true")
    before = len(os.listdir("/dev/fd"))
    for n in range(60):
        sh.run(f"export V{n}={n}")
    assert len(os.listdir("/dev/fd")) == before
    assert out(sh, "echo $V0 $V59") == "0 59\n"


def test_contained(sh: veil.Shell) -> None:
    sh.run("x=1; export A=2; f() { echo f; }", contain=True)
    assert out(sh, "f; echo $x $A; cd ..", contain=True) == "f\n1 2\n"
    assert out(sh, "pwd") == f"{sh.cwd}\n"


@pytest.mark.needs("strace")
def test_traced(sh: veil.Shell) -> None:
    sh.run("x=1; touch made", trace=True)
    result = sh.run("echo $x", trace=True)
    assert result.stdout == "1\n"
    assert "session_state" not in result.to_dict()


def test_a_preview_keeps_the_state_as_it_was(sh: veil.Shell) -> None:
    sh.run("x=1")
    try:
        result = sh.run("mkdir d; cd d; x=2; echo $x", preview=True)
    except Refused as refused:  # no way to make a view on this machine
        pytest.skip(str(refused))
    assert result.stdout == "2\n"
    assert result.to_dict()["session_state"] == "as before: a preview changes nothing"
    assert out(sh, "ls; echo $x; pwd") == f"1\n{sh.cwd}\n"


def test_nothing_of_the_session_shows_in_the_view(sh: veil.Shell) -> None:
    assert set(sh.run("true").to_dict()) == {"id", "exit", "ok", "ms", "session", "effects"}
    assert sh.run("cd ..").to_dict()["cwd"] == sh.cwd


# Sessions themselves -----------------------------------------------------------------------------------------------


def test_sessions_do_not_meet(tmp_path: Path) -> None:
    with veil.shell(cwd=tmp_path) as one, veil.shell(cwd=tmp_path) as two:
        one.run("x=1; cd /")
        assert out(two, "echo ${x-none}; pwd") == f"none\n{tmp_path}\n"
        assert one.name != two.name
        assert {one.name, two.name} <= set(stateful.shells())


def test_a_second_command_meanwhile_is_refused(sh: veil.Shell) -> None:
    seen: list[BaseException] = []

    def meanwhile(stream: str, data: bytes) -> None:
        with pytest.raises(Refused, match="is running another command") as refused:
            sh.run("true")
        seen.append(refused.value)

    assert sh.run("echo up; x=1", on_output=meanwhile).ok
    assert isinstance(seen[0], Refused)
    assert seen[0].code == "session_busy"
    assert out(sh, "echo $x") == "1\n"


def test_sessions_of_many_threads(tmp_path: Path) -> None:
    wrong: list[str] = []

    def work(n: int) -> None:
        with veil.shell(cwd=tmp_path, effects=False, no_store=True) as sh:
            sh.run(f"x={n}; f() {{ echo f$x; }}")
            wrong.extend(text for _ in range(5) if (text := sh.run("f").stdout) != f"f{n}\n")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_names_and_closing(tmp_path: Path) -> None:
    with veil.shell("build", cwd=tmp_path) as sh:
        sh.run("x=1")
        assert stateful.shell_named("build") is sh
        assert stateful.shell_named("build", {"cwd": "/"}) is sh
        with pytest.raises(BadInput, match="a name that no open session has"):
            veil.shell("build")
    with pytest.raises(Refused) as refused:
        sh.run("true")
    assert refused.value.code == "session_closed"
    with pytest.raises(NotFound, match="session 'build' is not known here"):
        stateful.shell_named("build")
    again = stateful.shell_named("build", {"cwd": tmp_path})
    try:
        assert out(again, "echo ${x-none}") == "none\n"
    finally:
        again.close()
    for name in ("", " ", "a\nb", 5, "x" * 81):
        with pytest.raises(BadInput, match="name: expected"):
            veil.shell(name)  # type: ignore[arg-type]


def test_so_many_sessions_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    monkeypatch.setenv("VEIL_MAX_SESSIONS", str(len(stateful.shells()) + 2))
    with veil.shell("one", cwd=tmp_path) as one, veil.shell("two", cwd=tmp_path):
        with pytest.raises(Refused, match=r"VEIL_MAX_SESSIONS.*two, one.*close\(\)") as refused:
            veil.shell(cwd=tmp_path)
        assert refused.value.code == "too_many_sessions"
        assert refused.value.facts["sessions"][:2] == ["two", "one"]
        with pytest.raises(Refused):
            stateful.shell_named("three", {})
        assert stateful.shell_named("one", {}) is one, "one that is open can go on"
    for _ in range(5):
        veil.shell(cwd=tmp_path)  # nobody holds it: it is no longer open
    stateful.shell_named("three", {})
    stateful.shell_named("four", {})
    assert {"three", "four"} <= set(stateful.shells()), "these are held by their names"
    stateful.shell_named("three").close()
    stateful.shell_named("four").close()
    monkeypatch.setenv("VEIL_MAX_SESSIONS", "0")
    with pytest.raises(Refused, match="limit"):
        veil.shell(cwd=tmp_path)


def test_options_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cwd: expected a folder that exists"):
        veil.shell(cwd=tmp_path / "nowhere")
    with pytest.raises(BadInput, match="retires"):
        veil.shell(retires=1)  # type: ignore[call-arg]
    with veil.shell(cwd=tmp_path) as sh, pytest.raises(BadInput, match="the session's shell is"):
        sh.run("true", shell="sh")
    fish = tmp_path / "fish"
    fish.write_text("#!/bin/sh\n")
    fish.chmod(0o755)
    with pytest.raises(BadInput, match="others cannot tell their state"):
        veil.shell(shell=fish)


def test_a_failure_to_ask_leaves_the_session_usable(sh: veil.Shell) -> None:
    with pytest.raises(BadInput):
        sh.run("true", timeout=-1)
    with pytest.raises(BadInput):
        sh.run("")
    assert out(sh, "echo on") == "on\n"


# A shell that is no bash -------------------------------------------------------------------------------------------


@pytest.fixture(params=["sh", "dash"])
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[veil.Shell]:
    import shutil

    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param} here")
    with veil.shell(cwd=tmp_path, shell=request.param, effects=False) as session:
        yield session


def test_what_a_posix_shell_carries(plain: veil.Shell, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    plain.run("cd sub; export A=\"it's\"; x='a  b\nc'; umask 027; set -u; alias q='echo alias'; set -- one 'two three'")
    assert out(plain, 'pwd; echo "$A" "$x"; umask; echo "$#" "$2"; env | grep ^A=') == (
        f"{tmp_path}/sub\nit's a  b\nc\n0027\n2 two three\nA=it's\n"
    )
    assert out(plain, ":\nq on the second line") == "alias on the second line\n"
    assert plain.run("echo $nope").exit != 0
    assert plain.run("A=2; exit 3").exit == 3
    assert out(plain, "echo $A; cat <<E\n$x\nE") == "2\na  b\nc\n"
    assert plain.run("A=5; kill -9 $$").signal == "SIGKILL"
    assert out(plain, "echo $A") == "2\n"


def test_a_trap_in_a_posix_shell_takes_the_place_of_ours(plain: veil.Shell) -> None:
    result = plain.run("A=1; trap 'echo bye' EXIT")
    assert result.stdout == "bye\n"
    assert result.to_dict()["session_state"].startswith("as before: the shell did not come to its end")


def test_a_posix_shell_reads_as_it_does_alone(plain: veil.Shell) -> None:
    for text in (
        "echo $0\nnope-nope",
        "if true\nthen fi",
        "cat <<E\nx\nE",
        "# c\necho y",
        "x" * 10 + "=1\n" + "#" * 150_000,
    ):
        alone = veil.run(text, cwd=plain.cwd, shell=plain.run("true").argv[0], effects=False)
        for _ in range(2):
            mine = plain.run(text)
            if len(text) < 100_000:
                assert (mine.exit, mine.stdout, mine.stderr) == (alone.exit, alone.stdout, alone.stderr)
            assert mine.exit == alone.exit


# Confined ----------------------------------------------------------------------------------------------------------


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
def test_a_session_in_a_sandbox(tmp_path: Path, backend: str) -> None:
    (tmp_path / "w").mkdir()
    with veil.shell(cwd=tmp_path / "w", sandbox={"backend": backend}, effects=False) as sh:
        sh.run("export A=1; f() { echo f $A; }; touch in")
        result = sh.run(f"f; pwd; touch {tmp_path}/out")
        assert result.stdout == f"f 1\n{tmp_path}/w\n"
        assert not (tmp_path / "out").exists()
        assert "session_state" not in result.to_dict()
        sh.run("set -v")
        assert sh.run("true").stderr == "true\n", "what the trap shows is taken out behind the sandbox as well"


def test_the_callers_width_of_a_line_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    monkeypatch.setenv("LINES", "33")
    _same_as_bash(tmp_path, ["true", "COLUMNS=66", "unset LINES"])
