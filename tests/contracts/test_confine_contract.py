"""What every backend of the sandbox has to keep, asked through ``veil.run``: for each that works on this machine.

A backend may be unable to do some bounds; then it refuses, and the table here says which. bubblewrap does all of them.
"""

# over 300 lines because: it is one contract, asked of every backend with one table of what each may refuse

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shlex
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confining import HERE
from marked import Marker

import veil

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash", "an interpreter outside /tmp")]

#: What a backend may refuse, by name; anything else that it refuses is a failure.
MAY_REFUSE: dict[str, tuple[str, ...]] = {
    "landlock": ("hidden in cwd", "read-only in cwd", "limits"),
}
PYTHON = shlex.quote(sys.executable)


def able(kind: str) -> pytest.MarkDecorator:
    """Only the backends that can do bounds of this kind; that the others refuse them is a test of its own."""
    names = [name for name in HERE if kind not in MAY_REFUSE.get(name, ())]
    return pytest.mark.parametrize("name", names, indirect=True)


@pytest.fixture
def tree(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder beside a home with credentials."""
    home = elsewhere / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("TOP SECRET KEY")
    (home / ".netrc").write_text("TOP SECRET LOGIN")
    monkeypatch.setenv("HOME", str(home))
    work = elsewhere / "work"
    work.mkdir()
    return work


def run(name: str, command: Any, cwd: Path, **options: Any) -> veil.Result:
    """One confined run."""
    options["sandbox"] = {"backend": name, **options.get("sandbox", {})}
    result = veil.run(command, cwd=cwd, **options)
    shown = result.to_dict()
    assert shown["sandboxed"] is True
    assert shown["sandbox"]["backend"] == name
    assert all(isinstance(gap, str) and gap for gap in shown["sandbox"]["gaps"])
    return result


def kill_all(marker: Marker) -> None:
    for pid in marker.alive():
        with contextlib.suppress(ProcessLookupError):  # with the first process of a namespace the others are gone
            os.kill(pid, signal.SIGKILL)
    marker.until(0)


# --- the command is what it would be without -------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 125, 126, 127, 137, 139, 255])
def test_exit_codes_come_through(name: str, tree: Path, code: int) -> None:
    result = run(name, f"exit {code}", tree)
    assert (result.exit, result.ended) == (code, "exited")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1])
def test_a_death_by_signal_has_the_code_of_a_shell(name: str, tree: Path, number: signal.Signals) -> None:
    result = run(name, f"kill -{number.value} $$; sleep 60", tree)
    assert result.exit == 128 + number
    assert result.signal in (None, number.name)
    assert result.ended == ("exited" if result.signal is None else "signaled")
    assert not (tree / "core").exists()


@pytest.mark.parametrize(("program", "exit"), [("no-such-program", 127), ("./plain.txt", 126), ("./gone/x", 127)])
def test_what_cannot_start_is_told_as_without_a_sandbox(name: str, tree: Path, program: str, exit: int) -> None:
    (tree / "plain.txt").write_text("no program")
    bare = veil.run([program], cwd=tree)
    result = run(name, [program], tree)
    assert (result.ended, result.exit) == (bare.ended, bare.exit) == ("spawn_failed", exit)
    assert result.to_dict()["spawn_error"] == bare.to_dict()["spawn_error"]
    assert result.stdout == result.stderr == ""


def test_words_environment_and_input_arrive_as_they_are(name: str, tree: Path) -> None:
    words = ["", " ", "a b", "it's", 'q"q', "new\nline", "ü\N{SNOWMAN}", "--", "$HOME", "*"]
    code = "import sys, os; sys.stdout.write(repr((sys.argv[1:], os.environ['X'], sys.stdin.read())))"
    result = run(name, [sys.executable, "-c", code, *words], tree, env={"X": "a\nb"}, stdin="in\n")
    assert result.stdout == repr((words, "a\nb", "in\n"))


@pytest.mark.parametrize("folder", ["it's", 'q"q', "new\nline", "ü ☃", "-dash", "a b", "back\\slash", "$(touch x)"])
def test_a_folder_of_any_name_is_a_working_folder(name: str, tree: Path, folder: str) -> None:
    work = tree / folder
    work.mkdir()
    result = run(name, "touch made && ! touch ../outside", work)
    assert result.ok, result.stderr
    assert [change.path for change in result.files_changed] == ["made"]
    assert sorted(path.name for path in tree.iterdir()) == [folder]


def test_a_script_that_is_too_long_for_one_argument_runs(name: str, tree: Path) -> None:
    script = f"# {'x' * 200_000}\ntouch made; echo done"
    result = run(name, script, tree)
    assert (result.stdout, result.exit) == ("done\n", 0)


def test_one_stream_in_true_order(name: str, tree: Path) -> None:
    result = run(name, "echo a; echo b >&2; echo c; nosuch", tree, merge_stderr=True)
    assert result.stdout.startswith("a\nb\nc\n")
    assert result.exit == 127


@pytest.mark.needs("git")
def test_git_works(name: str, tree: Path) -> None:
    me = "-c user.name=t -c user.email=t@example.org"
    result = run(
        name, f"git init -q . && echo x >f && git add f && git {me} commit -q -m m && git status --short", tree
    )
    assert (result.exit, result.stdout, result.stderr) == (0, "", "")


# --- writing ----------------------------------------------------------------------------------------------------------


def test_only_the_working_folder_and_what_is_named_can_be_written(name: str, tree: Path, elsewhere: Path) -> None:
    further, outside = elsewhere / "further", elsewhere / "outside"
    further.mkdir()
    outside.mkdir()
    text = (
        f"touch here {further}/there; touch {outside}/no; mkdir {outside}/d; echo x >{elsewhere}/no; ln -s x {outside}"
    )
    result = run(name, text, tree, sandbox={"writable": [str(further)]})
    assert not result.ok
    assert (tree / "here").exists()
    assert (further / "there").exists()
    assert list(outside.iterdir()) == []
    assert not (elsewhere / "no").exists()


def test_a_link_as_a_writable_folder_grants_what_it_leads_to(name: str, tree: Path, elsewhere: Path) -> None:
    """sbx-11: only the real folder is writable, and the command has a session of its own."""
    (elsewhere / "real").mkdir()
    (elsewhere / "link").symlink_to("real")
    text = f"touch {elsewhere}/link/f && ! touch {elsewhere}/outside 2>/dev/null && echo $(ps -o sid= -p $$)"
    result = run(name, text, tree, sandbox={"writable": ["../link"]})
    assert result.ok, result.stderr
    assert (elsewhere / "real" / "f").exists()
    assert int(result.stdout) != os.getsid(0)


def test_a_temporary_folder_of_its_own(name: str, tree: Path) -> None:
    text = 'd=$(mktemp -d) && echo x >"$d/f" && touch "$TMPDIR/own" && echo "$TMPDIR"'
    result = run(name, text, tree)
    assert result.ok, result.stderr
    inside = Path(result.stdout.strip())
    assert not (inside / "own").exists()
    assert not list(Path(tempfile.gettempdir()).glob("veil-tmp-*/own"))


def test_the_next_run_finds_nothing_of_the_last(name: str, tree: Path) -> None:
    run(name, 'touch "$TMPDIR/left"; chmod 000 "$TMPDIR"', tree)
    for _ in range(2):
        result = run(name, 'ls -A "$TMPDIR"; stat -c %a "$TMPDIR"', tree)
        assert (result.stdout, result.exit) == ("700\n", 0)


def test_the_state_of_veil_is_out_of_reach(
    name: str, tree: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = elsewhere / "state"
    monkeypatch.setenv("VEIL_STATE_DIR", str(state))
    veil.run("echo kept", cwd=tree)
    before = sorted(state.rglob("*"))
    text = f"cd {state}/projects; ls -R {state}; cat {state}/projects/*/*; touch {state}/planted; rm -rf {state}"
    result = run(name, text, tree, no_store=True)
    assert not result.ok
    assert "kept" not in result.stdout
    told = result.to_dict()["sandbox"]["gaps"]
    assert result.stdout == "" or any("its names" in gap and "can be seen" in gap for gap in told)
    assert sorted(state.rglob("*")) == before != []


@able("hidden in cwd")
def test_a_record_store_in_the_working_folder_is_out_of_reach(
    name: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEIL_STATE_DIR", str(tree / "state"))
    result = run(name, "ls state; mkdir -p state/projects; mv state elsewhere", tree)
    assert not result.ok
    assert not (tree / "elsewhere").exists()


# --- reading ----------------------------------------------------------------------------------------------------------


def test_credentials_cannot_be_read(name: str, tree: Path) -> None:
    text = "cat ~/.ssh/id_ed25519; cat ~/.netrc; cat ~/.ssh/*; cp -r ~/.ssh x; ls /; tar cf - ~/.ssh ~/.netrc"
    result = run(name, text, tree, sandbox={"protect_secrets": True})
    assert "TOP SECRET" not in result.stdout + result.stderr
    assert result.to_dict()["secrets_protected"] >= 2
    assert not list(tree.rglob("id_ed25519"))
    assert "TOP SECRET" in run(name, "cat ~/.netrc", tree).stdout


def test_credentials_by_a_link_cannot_be_read(name: str, tree: Path, elsewhere: Path) -> None:
    kept = elsewhere / "kept"
    kept.mkdir()
    (kept / "config").write_text("TOP SECRET")
    (elsewhere / "home" / ".kube").symlink_to(kept)
    (tree / "link").symlink_to(kept / "config")
    text = f"cat ~/.kube/config; cat link; cat {kept}/config; cat /proc/self/root{kept}/config"
    assert "TOP" not in run(name, text, tree, sandbox={"protect_secrets": True}).stdout


@able("hidden in cwd")
def test_a_file_in_the_working_folder_cannot_be_read(name: str, tree: Path) -> None:
    """sbx-01: what may be written does not cover what may not be read."""
    (tree / ".env").write_text("TOP SECRET")
    (tree / "other").write_text("fine")
    text = "cat other; cat .env || cp .env copy || ln .env hard || mv .env moved"
    result = run(name, text, tree, sandbox={"deny_read": [".env"]})
    assert not result.ok
    assert result.stdout == "fine"
    assert (tree / ".env").read_text() == "TOP SECRET"
    assert sorted(path.name for path in tree.iterdir()) == [".env", "other"]


@able("hidden in cwd")
def test_moving_the_folder_above_a_hidden_file_shows_nothing(name: str, tree: Path) -> None:
    """sbx-05."""
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "key").write_text("TOP SECRET")
    text = "mv a moved; mv moved/b c; cat */key */*/key */*/*/key"
    result = run(name, text, tree, sandbox={"deny_read": ["a/b/key"]})
    assert "TOP" not in result.stdout


def test_what_is_not_there_leaves_no_ghost(name: str, tree: Path, elsewhere: Path) -> None:
    """sbx-02, sbx-03: a path that is not there is neither made nor a reason to fail, and it is named."""
    home = elsewhere / "home"
    before = sorted(home.rglob("*"))
    gone = [".env", "/usr/share/none/.env", "~/.bash_profile"]
    result = run(name, "echo hello; ls -A", tree, sandbox={"deny_read": gone, "protect_secrets": True})
    assert (result.stdout, result.exit) == ("hello\n", 0)
    assert list(tree.iterdir()) == []
    assert sorted(home.rglob("*")) == before
    told = result.to_dict()["sandbox"]["gaps"]
    assert all(any(path in gap for gap in told) for path in gone)


def test_no_ghost_either_when_the_runner_is_killed(name: str, tree: Path, marker: Marker) -> None:
    """sbx-02."""
    code = (
        f"import veil; veil.run('sleep {marker}', cwd={str(tree)!r}, effects=False, "
        f"sandbox={{'backend': {name!r}, 'deny_read': ['.env'], 'protect_secrets': True}})"
    )
    pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", code])
    marker.until(2)
    assert list(tree.iterdir()) == []
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert list(tree.iterdir()) == []
    kill_all(marker)


def test_the_environment_of_a_process_outside_cannot_be_read(name: str, tree: Path) -> None:
    """sbx-12."""
    code = "import veil, sys; print(veil.run('cat /proc/[0-9]*/environ; echo $SECRET_TOKEN', cwd=sys.argv[1], sandbox={"
    code += f"'backend': {name!r}, 'protect_secrets': True}}).stdout)"
    outer = veil.run([sys.executable, "-c", code, str(tree)], env={"SECRET_TOKEN": "abc-hidden-xyz"})
    assert outer.ok, outer.stderr
    assert "abc-hidden-xyz" not in outer.stdout


@able("read-only in cwd")
def test_hooks_and_configuration_can_be_kept(name: str, tree: Path) -> None:
    veil.run("git init -q .", cwd=tree, check=True)
    text = "git config a.b c; echo x >.git/config; echo x >.git/hooks/pre-commit; mv .git .old; rm -rf .git/hooks"
    text += "; git init -q x"
    result = run(name, text, tree, sandbox={"protect_git": True})
    assert "git_changed" not in result.to_dict()["sandbox"]
    assert not (tree / ".git" / "hooks" / "pre-commit").exists()
    assert "b = c" not in (tree / ".git" / "config").read_text()
    assert (tree / "x" / ".git").is_dir()
    # it would lead git to other ones, and cannot be kept from being made
    gaps = result.to_dict()["sandbox"]["gaps"]
    assert "protect_git: .git/commondir is not there, so it can be made" in gaps
    made = run(name, "echo elsewhere > .git/commondir", tree, sandbox={"protect_git": True})
    assert made.to_dict()["sandbox"]["git_changed"] == [".git/commondir"]


def test_a_second_name_of_a_file_is_warned_about(name: str, tree: Path, elsewhere: Path) -> None:
    """sbx-05: a hard link made beforehand is the same file; it is said."""
    (elsewhere / "secret").write_text("outside")
    os.link(elsewhere / "secret", tree / "copy")
    result = run(name, "true", tree)
    assert any("hard link" in gap and "copy" in gap for gap in result.to_dict()["sandbox"]["gaps"])
    (tree / "copy").unlink()
    assert not any("hard link" in gap for gap in run(name, "true", tree).to_dict()["sandbox"]["gaps"])


# --- the network ------------------------------------------------------------------------------------------------------

CONNECT = """
import socket, sys
for family, kind, address in {targets!r}:
    try:
        s = socket.socket(family, kind)
        s.settimeout(5)
        s.connect(tuple(address) if isinstance(address, (list, tuple)) else address)
        s.send(b"hello")
        print("REACHED", address)
    except OSError as error:
        print("no", address, error)
"""


class Listeners:
    """A TCP, a UDP, a pathname and an abstract unix socket outside, and what came to them."""

    def __init__(self, folder: Path) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.path = folder / "socket"
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(str(self.path))
        self.unix.listen()
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0{self.path}")
        self.abstract.listen()
        self.udp.setblocking(False)
        for each in (self.tcp, self.unix, self.abstract):
            each.setblocking(False)

    def code(self) -> str:
        targets = [
            (int(socket.AF_INET), int(socket.SOCK_STREAM), self.tcp.getsockname()),
            (int(socket.AF_INET), int(socket.SOCK_DGRAM), self.udp.getsockname()),
            (int(socket.AF_UNIX), int(socket.SOCK_STREAM), str(self.path)),
            (int(socket.AF_UNIX), int(socket.SOCK_STREAM), f"\0{self.path}"),
        ]
        return CONNECT.format(targets=targets)

    def reached(self) -> list[str]:
        found = []
        for name in ("tcp", "udp", "unix", "abstract"):
            with contextlib.suppress(BlockingIOError):
                each = getattr(self, name)
                each.recv(10) if name == "udp" else each.accept()[0].close()
                found.append(name)
        return found

    def close(self) -> None:
        for each in (self.tcp, self.udp, self.unix, self.abstract):
            each.close()


@pytest.fixture
def listeners(elsewhere: Path) -> Iterator[Listeners]:
    made = Listeners(elsewhere)
    yield made
    made.close()


def test_no_socket_leads_out_without_network(name: str, tree: Path, listeners: Listeners) -> None:
    """sbx-06, sbx-09: TCP, UDP, unix sockets by path and abstract ones."""
    result = run(name, [sys.executable, "-c", listeners.code()], tree, sandbox={"network": False})
    # a datagram may be sent into a loopback of the command's own
    assert result.stdout.count("no ") >= 3, result.stdout + result.stderr
    assert listeners.reached() == []


def test_with_network_it_is_as_it_is(name: str, tree: Path, listeners: Listeners) -> None:
    result = run(name, [sys.executable, "-c", listeners.code()], tree)
    assert {"tcp", "udp"} <= set(listeners.reached()), result.stdout + result.stderr


def test_a_granted_socket_can_be_reached(name: str, tree: Path, listeners: Listeners) -> None:
    confining = {"network": False, "unix_sockets": [str(listeners.path)]}
    result = run(name, [sys.executable, "-c", listeners.code()], tree, sandbox=confining)
    assert listeners.reached() == ["unix"], result.stdout + result.stderr


@pytest.mark.parametrize("network", [True, False])
def test_a_socket_in_a_folder_that_is_another_one_inside_can_be_granted(
    name: str, tree: Path, tmp_path: Path, network: bool
) -> None:
    there = Listeners(tmp_path)
    try:
        confining = {"network": network, "unix_sockets": [str(there.path)]}
        text = [sys.executable, "-c", there.code()]
        result = run(name, text, tree, sandbox=confining, env={"SSH_AUTH_SOCK": str(there.path)})
        assert "unix" in there.reached(), result.stdout + result.stderr
        assert there.path.is_socket()
    finally:
        there.close()


# --- ends -------------------------------------------------------------------------------------------------------------


def test_nobody_is_left_after_a_timeout(name: str, tree: Path, marker: Marker) -> None:
    result = run(name, f"trap '' TERM; setsid sleep {marker} & sleep {marker}", tree, timeout=1)
    assert (result.ended, result.exit) == ("timed_out", 124)
    assert marker.alive() == {}


def test_what_is_left_behind_is_ended_and_told(name: str, tree: Path, marker: Marker) -> None:
    result = run(name, f"(setsid sleep {marker} >/dev/null 2>&1 &) ; sleep 0.3; echo done", tree)
    assert (result.stdout, result.exit) == ("done\n", 0)
    assert result.left_running == 1
    assert marker.alive() == {}
    assert run(name, "true", tree).left_running == 0


def test_what_is_left_behind_may_stay(name: str, tree: Path, marker: Marker) -> None:
    result = run(name, f"sleep {marker} >/dev/null 2>&1 & sleep 0.3", tree, left_running="keep")
    assert (result.left_running, result.survivors) == (1, "kept")
    assert len([words for words in marker.alive().values() if words.startswith("sleep")]) == 1
    kill_all(marker)


@pytest.mark.parametrize("contain", [False, True])
def test_a_command_may_end_well_at_a_signal(name: str, tree: Path, contain: bool) -> None:
    """Whoever wraps the command must not die of the signal that is meant for it."""
    text = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    seen = threading.Event()
    results: list[veil.Result] = []

    async def both() -> None:
        task = asyncio.ensure_future(veil.arun(text, **options))
        while not seen.is_set():
            await asyncio.sleep(0.02)
        results.append(await task)

    options: dict[str, Any] = {"cwd": tree, "sandbox": {"backend": name}, "contain": contain, "timeout": 3.0}
    options["on_output"] = lambda stream, data: seen.set()
    asyncio.run(both())
    assert results[0].timed_out
    assert results[0].stdout.endswith("bye\n")


def test_in_the_background(name: str, tree: Path, marker: Marker) -> None:
    text = f"trap 'echo bye; exit 3' TERM; echo ready; sleep {marker} & wait"
    with veil.start(text, cwd=tree, sandbox={"backend": name, "network": False}) as handle:
        handle.wait_for(pattern="ready")
        told = handle.kill("SIGTERM")
        result = handle.wait()
    assert told
    assert result.exit == 3
    assert result.stdout == "ready\nbye\n"
    assert marker.alive() == {}
    assert result.to_dict()["sandbox"]["backend"] == name


def test_a_cancelled_task_leaves_nobody(name: str, tree: Path, marker: Marker) -> None:
    async def cancelled() -> None:
        task = asyncio.ensure_future(veil.arun(f"sleep {marker}", cwd=tree, sandbox={"backend": name}))
        while not any(words.startswith("sleep") for words in marker.alive().values()):
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert marker.alive() == {}


def test_started_from_a_thread_that_ends(name: str, tree: Path) -> None:
    """A command must not be tied to the thread that started it."""
    handles: list[veil.Handle] = []
    thread = threading.Thread(
        target=lambda: handles.append(veil.start("sleep 0.5; echo lived", cwd=tree, sandbox={"backend": name}))
    )
    thread.start()
    thread.join()
    assert handles[0].wait(60).stdout == "lived\n"


def test_each_attempt_is_confined(name: str, tree: Path, elsewhere: Path) -> None:
    result = run(name, f"echo x >>here; touch {elsewhere}/out", tree, retries=2)
    assert result.attempts == 3
    assert (tree / "here").read_text() == "x\n" * 3
    assert not (elsewhere / "out").exists()


REFUSED: dict[str, dict[str, Any]] = {
    "hidden in cwd": {"deny_read": ["kept"]},
    "read-only in cwd": {"protect_git": True},
    "limits": {"max_cpu": 100},
}


@pytest.mark.parametrize(("name", "kind"), [(n, k) for n in HERE for k in MAY_REFUSE.get(n, ())], indirect=["name"])
def test_what_a_backend_cannot_do_it_refuses(name: str, tree: Path, kind: str) -> None:
    """Never less than asked: nothing has run."""
    (tree / "kept").touch()
    veil.run("git init -q .", cwd=tree, check=True)
    with pytest.raises(veil.Refused) as refused:
        veil.run("touch ran", cwd=tree, sandbox={"backend": name, **REFUSED[kind]})
    assert refused.value.code == "sandbox_unavailable"
    assert refused.value.facts["reasons"][name]
    assert "leave out backend=" in str(refused.value)
    assert not (tree / "ran").exists()


# --- limits -----------------------------------------------------------------------------------------------------------

LIMITS: dict[str, tuple[Any, str, str]] = {
    # option: (limit, a command within it, a command beyond it)
    "max_file_size": (100_000, "head -c 90000 /dev/zero >f", "head -c 200000 /dev/zero >f; exit $?"),
    "max_cpu": (0.5, "sleep 1", f"{PYTHON} -c 'while 1: pass' & {PYTHON} -c 'while 1: pass'; wait"),
    "max_memory": (
        150_000_000,
        f"{PYTHON} -c 'bytearray(30_000_000)'",
        f"{PYTHON} -c 'import time; x = bytearray(100_000_000); time.sleep(60)' & "
        f"{PYTHON} -c 'import time; x = bytearray(100_000_000); time.sleep(60)'; wait",
    ),
    "max_disk": (
        20_000_000,
        "head -c 1000000 /dev/zero >f",
        "for i in $(seq 1000); do head -c 1000000 /dev/zero >f$i; sleep 0.01; done; sleep 60",
    ),
    "max_processes": (6, "sleep 0.2 & sleep 0.2 & wait", "for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait"),
}


@able("limits")
@pytest.mark.parametrize("option", list(LIMITS))
def test_a_limit_ends_the_run_and_is_named(name: str, tree: Path, option: str) -> None:
    most, _, beyond = LIMITS[option]
    result = run(name, beyond, tree, sandbox={option: most}, timeout=50)
    assert not result.ok
    assert result.to_dict().get("limit") == option, result.to_dict()
    assert not result.timed_out


@able("limits")
@pytest.mark.parametrize("option", list(LIMITS))
def test_within_a_limit_nothing_is_said(name: str, tree: Path, option: str) -> None:
    most, within, _ = LIMITS[option]
    result = run(name, within, tree, sandbox={option: most})
    assert result.ok, result.to_dict()
    assert "limit" not in result.to_dict()


def test_no_core_file_is_written(name: str, tree: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        result = run(name, "ulimit -Sc; sleep 0.2; ulimit -Hc", tree)
        told = result.to_dict()["sandbox"]["gaps"]
        assert result.stdout == "0\n0\n" or any("core files" in gap for gap in told)
        deadline = time.monotonic() + 5  # threads of other tests here may be starting something as well
        while resource.getrlimit(resource.RLIMIT_CORE) != (hard, hard) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert resource.getrlimit(resource.RLIMIT_CORE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
