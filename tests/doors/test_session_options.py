"""Options of a session and of one command in it: each does what it does of a run, and the state goes on."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from shell_sessions import out, sh

import veil
from veil.model.errors import BadInput, Refused

__all__ = ["sh"]

pytestmark = pytest.mark.needs("bash")


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
    assert len(os.listdir("/dev/fd")) <= before  # fewer: rubbish of earlier tests went meanwhile
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
