"""What a trace tells of real commands, and the changes that come from it."""

# over 300 lines because: it is one subject, read from traces of real commands by the same three short functions

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import veil
from veil.host import strace
from veil.layers.trace import TraceLayer
from veil.layers.tracing.attempt import unavailable
from veil.model.command import Command, Request, Trace
from veil.model.outcome import Findings, Outcome
from veil.model.plan import Launch, Plan, Touched

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash", "strace")]


def traced(command: Any, cwd: Path, **options: Any) -> veil.Result:
    result = veil.run(command, cwd=cwd, trace=True, **options)
    assert result.trace_unavailable is None
    return result


def events(result: veil.Result) -> dict[str, Any]:
    found: dict[str, Any] = result.record.observation.findings.notes["trace"]["events"]
    return found


def changes(result: veil.Result) -> set[tuple[str, str]]:
    assert result.effects_source == "trace", result.to_dict()
    return {(change.path, change.change) for change in result.files_changed}


def test_forks_links_renames_and_names(tmp_path: Path) -> None:
    """trc-01, word for word."""
    text = (
        "mkdir d; cd d; (echo 1 > a & echo 2 > 'b \"q\" é' ; wait); mv a c; ln c e; rm e; truncate -s0 c; "
        "exec 3>d2; echo x >&3"
    )
    result = traced(text, tmp_path)
    assert changes(result) == {("d/c", "created"), ('d/b "q" é', "created"), ("d/d2", "created")}
    found = events(result)
    assert found["renamed"] == [["d/a", "d/c"]]
    assert found["created"] == ["d", "d/e"]
    assert found["deleted"] == ["d/e"]
    assert set(found["written"]) == {"d/a", 'd/b "q" é', "d/c", "d/d2"}


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """trc-01: a thousand names of random bytes, each told as it is."""
    program = (
        "import os, random; r = random.Random(7)\n"
        "for n in range(1000):\n"
        "    name = bytes(r.choice([b for b in range(1, 256) if b != 47]) for _ in range(r.randint(1, 60)))\n"
        "    if name not in (b'.', b'..'): os.close(os.open(name, os.O_WRONLY | os.O_CREAT))\n"
    )
    result = traced([sys.executable, "-I", "-c", program], tmp_path)
    assert result.ok, result.stderr
    names = {os.fsencode(name) for name in os.listdir(tmp_path)}
    assert len(names) > 900
    told = {os.fsencode(name) for name in events(result)["written"] if not name.startswith("/")}
    assert names <= told
    assert {os.fsencode(path) for path, _ in changes(result)} == names


def test_in_a_folder_of_any_name(tmp_path: Path) -> None:
    """trc-01: also where every path has quotes, newlines and angle brackets in it."""
    cwd = tmp_path / 'a "b"\n<c>\\ é'
    cwd.mkdir()
    result = traced("mkdir 'd>'; cd d*; echo 1 > a; mv a b; (cd ..; rm -f x; : > x)", cwd)
    assert changes(result) == {("d>/b", "created"), ("x", "created")}
    assert events(result)["renamed"] == [["d>/a", "d>/b"]]
    assert events(result)["written"] == ["d>/a", "x"]


def test_a_command_that_kills_its_tracer_is_not_believed(tmp_path: Path) -> None:
    """Its system calls fail from then on; what it changed is found out by looking."""
    text = "tracer=$(sed -n 's/^TracerPid:\\t*//p' /proc/self/status); echo x > f; kill -9 $tracer; kill -9 $$"
    result = veil.run(text, cwd=tmp_path, trace=True)
    assert result.signal == "SIGKILL"
    assert result.to_dict()["trace_truncated"] is True
    assert result.created == ["f"]
    assert result.effects_source == "scan"


def test_the_whole_record_survives_the_store(tmp_path: Path) -> None:
    result = traced(b"echo x > $'a\\377\\nb'".decode(), tmp_path)
    again = veil.detail(result.id, selector="trace")
    assert again.record.observation.findings == result.record.observation.findings
    assert "written   a\\udcff\\nb" in again.text.split("\n"), "one line that drives no terminal"


def test_every_call_with_folders_and_descriptors(tmp_path: Path) -> None:
    """trc-01: dirfds, chdir and fchdir, threads, openat of a folder, utimes, links by descriptor."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    program = (
        "import os, threading\n"
        "d = os.open('one', os.O_RDONLY)\n"
        "os.mkdir('sub', dir_fd=d); os.symlink('x', 'link', dir_fd=d)\n"
        "os.close(os.open('f', os.O_WRONLY | os.O_CREAT, dir_fd=d))\n"
        "os.rename('f', 'g', src_dir_fd=d, dst_dir_fd=d)\n"
        "os.chdir('two'); open('here', 'w').close(); os.utime('here', (1, 1)); os.chmod('here', 0o600)\n"
        "if os.fork() == 0:\n"
        "    os.chdir('..'); os.mkdir('above'); os._exit(0)\n"
        "os.wait(); os.mkdir('still'); os.fchdir(d); os.mkdir('fd')\n"
        "t = threading.Thread(target=lambda: os.chdir('fd')); t.start(); t.join(); os.mkdir('thread')\n"
        "f = open('gone', 'w'); os.unlink('gone'); os.fchmod(f.fileno(), 0o600)\n"
    )
    result = traced([sys.executable, "-I", "-c", program], tmp_path)
    assert result.ok, result.stderr
    found = events(result)
    assert found["created"] == ["one/sub", "one/link", "above", "two/still", "one/fd", "one/fd/thread"]
    assert found["renamed"] == [["one/f", "one/g"]]
    assert found["metadata"] == ["two/here"]
    assert found["deleted"] == ["one/fd/gone"]
    assert changes(result) >= {("one/link", "created"), ("one/g", "created"), ("two/here", "created")}


def test_a_file_that_came_and_went_is_no_change(tmp_path: Path) -> None:
    result = traced("echo x > t; mv t u; rm u; echo y > s; cat s; : > kept", tmp_path)
    assert changes(result) == {("kept", "created"), ("s", "created")}
    assert set(events(result)["written"]) == {"t", "s", "kept"}


def test_what_is_opened_for_writing_and_left_alone_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    result = traced("exec 3<>f; exec 3>&-", tmp_path)
    assert events(result)["written"] == ["f"]
    assert result.files_changed == []


def test_only_what_the_command_did_is_its_change(tmp_path: Path) -> None:
    """A neighbour writes while it runs: that is named, and is not a change of this run."""
    ready, done = tmp_path.parent / "ready", tmp_path.parent / "done"

    def neighbour() -> None:
        while not ready.exists():
            pass
        (tmp_path / "theirs").write_text("x")
        done.touch()

    thread = threading.Thread(target=neighbour)
    thread.start()
    result = traced(f"touch {ready}; while [ ! -e {done} ]; do sleep 0.02; done; echo x > mine", tmp_path)
    thread.join()
    assert changes(result) == {("mine", "created")}
    assert result.to_dict()["effects_untraced"] == {"total": 1, "first": ["theirs"]}


def test_changes_by_another_name(tmp_path: Path) -> None:
    """Through a link on the way, and of a file with two names."""
    (tmp_path / "real").mkdir()
    (tmp_path / "way").symlink_to("real")
    (tmp_path / "one").write_text("1")
    os.link(tmp_path / "one", tmp_path / "two")
    (tmp_path / "target").write_text("1")
    (tmp_path / "pointer").symlink_to("target")
    result = traced("mkdir way/d; ln -s x way/l; mv way/l way/m; echo 22 > one; truncate -s 9 pointer", tmp_path)
    assert changes(result) == {
        ("real/d", "created"),
        ("real/m", "created"),
        ("one", "modified"),
        ("two", "modified"),
        ("target", "modified"),
    }
    assert "effects_untraced" not in result.to_dict()


def test_a_folder_that_moves_takes_all_along(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_text("x")
    result = traced("mv a z", tmp_path)
    assert changes(result) == {("z/b/f", "renamed")}
    assert events(result)["renamed"] == [["a", "z"]]


@pytest.mark.needs("git")
def test_in_a_repository_it_tells_what_the_other_ways_tell(tmp_path: Path) -> None:
    """Nothing of ``.git``, nothing that is ignored, and what lies above the working directory in the same tree."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    (tmp_path / "sub").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "sub" / "f").write_text("1\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    text = "echo 2 > f; echo x > a.log; echo y > ../top; git add f"
    result = traced(text, tmp_path / "sub")
    assert changes(result) == {("f", "modified"), ("../top", "created")}
    assert result.record.observation.findings.notes["ignored_changed"]["first"] == ["a.log"]
    everything = traced("echo z > b.log", tmp_path / "sub", effects="all")
    assert changes(everything) == {("b.log", "created")}


def test_retries_are_told_together_by_change_and_the_last_by_event(tmp_path: Path) -> None:
    result = traced("if [ -e one ]; then echo 2 > two; else echo 1 > one; exit 1; fi", tmp_path, retries=1)
    assert result.attempts == 2
    assert changes(result) == {("one", "created"), ("two", "created")}
    assert events(result)["written"] == ["two"]


def test_effects_that_are_off_stay_off(tmp_path: Path) -> None:
    result = traced("echo x > f", tmp_path, effects=False)
    assert result.files_changed == []
    assert result.effects_source is None
    assert result.to_dict()["effects"] == "off"
    assert events(result)["written"] == ["f"]


def test_what_is_kept_running_is_not_traced(tmp_path: Path) -> None:
    result = veil.run("echo x > f", cwd=tmp_path, trace=True, left_running="keep")
    assert "as long as it lives" in (result.trace_unavailable or "")
    assert "skipped" not in result.to_dict(), "said once"
    assert result.effects_source == "scan"
    assert result.created == ["f"]


def test_connections_are_told_also_those_that_fail(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        port = server.getsockname()[1]
        closed.bind(("127.0.0.1", 0))
        nobody = closed.getsockname()[1]
        program = (
            "import socket\n"
            f"socket.create_connection(('127.0.0.1', {port})).close()\n"
            f"s = socket.socket(); print(s.connect_ex(('127.0.0.1', {nobody})))\n"
            f"s = socket.socket(); s.setblocking(False); print(s.connect_ex(('127.0.0.1', {port})))\n"
            "u = socket.socket(type=socket.SOCK_DGRAM); u.sendto(b'x', ('127.0.0.1', 9))\n"
            "s = socket.socket(socket.AF_UNIX); s.bind('by-path')\n"
            "s = socket.socket(socket.AF_UNIX); print(s.connect_ex('nobody'))\n"
        )
        result = traced([sys.executable, "-I", "-c", program], tmp_path)
    assert result.ok, result.stderr
    found = events(result)["network"]
    assert ["connect", f"127.0.0.1:{port}", "ok"] in found
    assert ["connect", f"127.0.0.1:{nobody}", "ECONNREFUSED"] in found
    assert ["connect", f"127.0.0.1:{port}", "EINPROGRESS"] in found
    assert ["send", "127.0.0.1:9", "ok"] in found
    assert ["bind", "unix:by-path", "ok"] in found
    assert ["connect", "unix:nobody", "ENOENT"] in found
    assert events(result)["created"] == ["by-path"]
    assert changes(result) == {("by-path", "created")}


def test_a_thread_that_becomes_another_program(tmp_path: Path) -> None:
    program = (
        "import os, threading, time\n"
        "threading.Thread(target=lambda: os.execv('/bin/sh', ['sh', '-c', 'echo x > f; exit 9'])).start()\n"
        "time.sleep(60)\n"
    )
    result = traced([sys.executable, "-I", "-c", program], tmp_path)
    assert result.exit == 9
    assert changes(result) == {("f", "created")}
    assert "trace_truncated" not in result.to_dict()


def test_a_long_text_and_a_long_run_of_lines(tmp_path: Path) -> None:
    result = traced(f": {'x' * 200_000}\necho y > f", tmp_path)
    assert changes(result) == {("f", "created")}
    many = traced("for i in $(seq 3000); do : > f$i; done", tmp_path)
    assert len(many.created) == 3000
    assert many.trace_summary["written"]["count"] == 3000


def test_the_summary_is_small_and_detail_has_it_all(tmp_path: Path) -> None:
    result = traced("for i in $(seq 400); do : > some-file-$i; done; cat /etc/passwd >/dev/null", tmp_path)
    shown = result.to_dict()
    assert shown["trace_summary"]["written"]["count"] == 400
    assert shown["trace_summary"]["written"]["first"] == [f"some-file-{n}" for n in range(1, 6)]
    assert len(json.dumps(shown["trace_summary"])) < 8000
    assert "trace" not in shown
    pages: list[str] = []
    at: int | None = 0
    while at is not None:
        page = veil.detail(result.id, selector="trace").to_dict(offset=at, limit=2000)
        assert len(json.dumps(page)) < 2600
        pages += page["trace"].get("written", [])
        at = page.get("next_offset")
    assert pages == [f"some-file-{n}" for n in range(1, 401)]
    assert "events" not in json.dumps(veil.detail(result.id, selector="meta").to_dict(limit=3000)["meta"]["notes"])
    assert "read      /etc/passwd" in veil.detail(result.id, selector="trace").text


def test_a_run_without_trace_says_so(tmp_path: Path) -> None:
    result = veil.run("true", cwd=tmp_path)
    assert result.trace_summary == {}
    assert veil.detail(result.id, selector="trace").text == "(this run was not traced)"
    assert veil.detail(result.id, selector="trace").to_dict()["trace_unavailable"] == "this run was not traced"


def test_secrets_are_replaced_in_it(tmp_path: Path) -> None:
    result = traced("echo x > file-hunter2hunter2; cat file-*", tmp_path, secrets=["hunter2hunter2"])
    assert "hunter2hunter2" not in json.dumps(veil.detail(result.id).meta)
    assert events(result)["written"] != []


def test_on_the_command_line(tmp_path: Path) -> None:
    def cli(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "veil", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    done = cli("run", "--trace", "--json", "echo x > f; rm f; (exec -a ls mkdir d); exit 4")
    assert done.returncode == 4
    shown = json.loads(done.stdout)
    assert shown["trace_summary"]["written"] == {"count": 1, "first": ["f"]}
    assert "left_running" not in shown
    lines = cli("detail", "--selector", "trace").stdout.split("\n")
    assert {"written   f", "deleted   f", "executed  rm f"} <= set(lines)
    assert any(line.startswith("executed  /") and line.endswith("/mkdir d") for line in lines), "no false name"
    page = json.loads(cli("detail", "--selector", "trace", "--limit", "300", "--json").stdout)
    assert page["events"] > page["next_offset"] > 0
    later = json.loads(cli("detail", "--selector", "trace", "--offset", str(page["next_offset"]), "--json").stdout)
    assert sum(map(len, later["trace"].values())) == page["events"] - page["next_offset"]


def drive(layer: TraceLayer, launch: Launch, run: Any = None) -> Findings:
    """One attempt of the layer around ``subprocess``."""
    command = Command(launch.argv, launch.cwd)
    entered = layer.enter(Trace(), launch, Plan(Request(command)))
    wrapped = next(entered)
    done = subprocess.run(wrapped.argv, cwd=wrapped.cwd, env=dict(wrapped.env), start_new_session=True, check=False)
    outcome = Outcome("exited" if done.returncode >= 0 else "signaled", done.returncode)
    if wrapped.settle is not None:
        outcome = wrapped.settle(outcome)
    with pytest.raises(StopIteration) as end:
        entered.send(outcome)
    found: Findings = end.value.value
    return found


def test_events_beyond_the_limit_are_dropped_and_said(tmp_path: Path) -> None:
    marks = Touched()
    launch = Launch(
        ("bash", "-c", "for i in $(seq 300); do : > f$i; done"),
        str(tmp_path),
        dict(os.environ),
        tag="t1",
        touched=marks,
    )
    note = drive(TraceLayer(most_bytes=2000), launch).notes["trace"]
    assert note["truncated"] is True
    assert note["counts"]["written"] == 300
    assert 10 < len(note["events"]["written"]) < 300
    assert marks.by == "trace"
    assert marks.complete, "what was changed is known all the same"
    assert len([path for path in marks.paths if path.startswith(os.fsencode(tmp_path))]) == 300


def test_the_environment_of_the_command_is_its_own(tmp_path: Path) -> None:
    """Also the variables that would have changed how strace itself is loaded, and a missing PATH."""
    env = {
        "LD_LIBRARY_PATH": "/nowhere",
        "MALLOC_ARENA_MAX": "1",
        "VEIL_TRACER": "mine",
        "ODD": "a=b\nc",
        "VEIL_RUN": "o:t2",
    }
    mine, back = strace.environments(env, "t2")
    assert mine == {"ODD": "a=b\nc", "VEIL_RUN": "o", "VEIL_TRACER": "t2", "PATH": os.defpath}
    launch = Launch(("/bin/sh", "-c", "env > out"), str(tmp_path), env, tag="t2")
    assert "counts" in drive(TraceLayer(), launch).notes["trace"]
    told = (tmp_path / "out").read_text()
    for name, value in env.items():
        assert f"{name}={value}\n" in told
    assert "PATH=/" not in told.replace("LD_LIBRARY_PATH=/", "")
    assert back.count("-E") == 5


def test_the_log_lies_outside_of_the_working_directory(tmp_path: Path) -> None:
    for cwd in (tmp_path, Path("/tmp"), Path(os.path.realpath(os.environ.get("TMPDIR", "/tmp")))):
        chosen = strace.place(str(cwd))
        assert chosen is not None
        assert os.path.commonpath((os.path.realpath(chosen), cwd)) != str(cwd)
    assert strace.place("/") is None


def test_the_probe_uses_the_real_words() -> None:
    assert unavailable() is None
    assert strace.unavailable(("no_such_call",)) is not None, "without execve in the log it proves nothing"


def test_a_log_that_cannot_be_read_stops_nobody(tmp_path: Path) -> None:
    """An error of ours in the middle of a log is told at the end; the command goes on."""

    def broken(data: bytes) -> None:
        raise ValueError("a bug")

    log = strace.Log(broken, str(tmp_path))
    try:
        with Path(log.path).open("wb") as file:
            for _ in range(100):
                file.write(b"x" * 65536)  # more than any pipe holds
        with pytest.raises(ValueError, match="a bug"):
            log.wait()
    finally:
        log.close()
    assert not os.path.exists(log.path)
