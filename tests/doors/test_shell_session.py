"""Shell sessions themselves: what is refused, their names and number, a state that is lost, a shell that is no bash."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell_sessions import out, sh

import veil
from veil import stateful
from veil.model.errors import BadInput, NotFound, Refused

__all__ = ["sh"]

pytestmark = pytest.mark.needs("bash")


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
    with veil.shell("limit-1", cwd=tmp_path) as one, veil.shell("limit-2", cwd=tmp_path):
        with pytest.raises(Refused, match=r"VEIL_MAX_SESSIONS.*limit-2, limit-1.*close\(\)") as refused:
            veil.shell(cwd=tmp_path)
        assert refused.value.code == "too_many_sessions"
        assert refused.value.facts["sessions"][:2] == ["limit-2", "limit-1"]
        with pytest.raises(Refused):
            stateful.shell_named("limit-3", {})
        assert stateful.shell_named("limit-1", {}) is one, "one that is open can go on"
    for _ in range(5):
        veil.shell(cwd=tmp_path)  # nobody holds it: it is no longer open
    stateful.shell_named("limit-3", {})
    stateful.shell_named("limit-4", {})
    assert {"limit-3", "limit-4"} <= set(stateful.shells()), "these are held by their names"
    stateful.shell_named("limit-3").close()
    stateful.shell_named("limit-4").close()
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
