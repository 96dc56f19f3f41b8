"""What a command of a session leaves is what one real bash would have carried, and nothing else shows."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shell_sessions import out, sh

import veil

__all__ = ["sh"]

pytestmark = pytest.mark.needs("bash")


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


def test_the_callers_width_of_a_line_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    monkeypatch.setenv("LINES", "33")
    _same_as_bash(tmp_path, ["true", "COLUMNS=66", "unset LINES"])
