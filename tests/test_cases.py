"""Faults that people met in tools of this kind, each by its id, through the public API with the right value.

The commands are those that showed the fault. Where more than one answer would be right, the test says which one holds
here. The last test tells when a case has none.
"""

# over 300 lines because: it is one list of cases, and its last test looks here for each of them

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest
from marked import Marker

import veil

CASES = """
bg-01 bg-03 bg-04 bg-06 exp-01 exp-03 exp-04 exp-06 exp-07 fx-01 fx-03 fx-04 fx-05 fx-06 fx-07 fx-09 fx-10 kill-01
out-01 out-03 out-04 out-05 out-08 out-09 ret-01 run-01 run-03 run-04 scrub-01 scrub-03 scrub-04 scrub-06 ses-01
store-01 store-03 timeout-01 timeout-03 timeout-04 timeout-06 timeout-07 timeout-09
""".split()  # noqa: SIM905 (forty words that are read, not forty quotes)
NEEDS_GIT = pytest.mark.needs("git")
#: Far more than anything here takes: it is there to tell a hang from a slow machine.
LONG = 60.0


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def repo(here: Path) -> Path:
    git("init", "-q")
    git("config", "user.name", "t")
    git("config", "user.email", "t@example.org")
    (here / "f").write_text("1\n")
    (here / "src").mkdir()
    (here / "src" / "a.py").write_text("a = 1\n")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    return here


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


# -- run and timeout


def test_run_01_shown_command_splits_back_and_any_folder_name_works(here: Path) -> None:
    folder = here / "dir 'q; touch pwn"
    folder.mkdir()
    argv = [sys.executable, "-c", "import os, sys, json; print(json.dumps([os.getcwd(), sys.argv[1:]]))"]
    argv += ["file with spaces", "$HOME", "a;b", "", "-x"]
    result = veil.run(argv, cwd=folder)
    assert shlex.split(result.command) == argv
    assert json.loads(result.stdout) == [str(folder.resolve()), argv[3:]]
    assert not list(here.rglob("pwn"))


@pytest.mark.parametrize("contain", [False, True])
def test_run_03_input_that_nobody_reads(contain: bool) -> None:
    result = veil.run("echo hi; exit 4", stdin="y" * 5_000_000, contain=contain)
    assert (result.exit, result.ended, result.stdout) == (4, "exited", "hi\n")


@pytest.mark.linux
@pytest.mark.parametrize("contain", [False, True])
def test_run_04_a_command_that_kills_by_its_own_text(contain: bool, marker: Marker) -> None:
    # what `pkill -f TEXT` does, limited to a text that is unique on this machine
    search = (
        f"for p in /proc/[0-9]*; do grep -qa zz{marker} $p/cmdline 2>/dev/null && kill ${{p#/proc/}}; done; echo no"
    )
    result = veil.run(search, contain=contain)
    assert (result.ended, result.signal, result.exit) == ("signaled", "SIGTERM", 143)
    assert veil.run("echo still here").stdout == "still here\n"


def test_ses_01_long_scripts_and_unfinished_ones(here: Path) -> None:
    body = "".join(f"{n} $HOME `x` \\ 'q' \"é\"\n" for n in range(9_000))
    assert len(body) > 200_000
    assert veil.run(f"cat > out <<'EOF'\n{body}EOF\n").ok
    assert (here / "out").read_text() == body
    warned = veil.run("cat <<'EOF'\nbody")
    assert (warned.exit, warned.stdout) == (0, "body\n")
    assert "EOF" in warned.stderr
    broken = veil.run('echo "unterminated')
    assert broken.ended == "exited"
    assert broken.exit in (1, 2), "which of the two depends on the release of bash"
    assert broken.stderr


def test_timeout_01_a_writer_in_the_background_of_a_fifo(marker: Marker) -> None:
    command = "mkfifo p; (while true; do echo child; sleep 1; done) > p & cat p"
    began = time.monotonic()
    result = veil.run(command, timeout=2, env={"MARK": marker.text})
    assert (result.timed_out, result.exit, result.ended) == (True, 124, "timed_out")
    assert "child\n" in result.stdout
    assert marker.alive() == {}
    assert time.monotonic() - began < LONG


def test_timeout_03_a_child_that_holds_the_pipe_is_not_waited_for(marker: Marker) -> None:
    began = time.monotonic()
    result = veil.run(f"echo child-done; (sleep {marker}) & exit 3", timeout=LONG * 2)
    assert time.monotonic() - began < LONG
    assert (result.exit, result.stdout, result.timed_out) == (3, "child-done\n", False)
    assert result.left_running >= 1
    assert "background" in (result.advice or "")
    assert marker.alive() == {}


def test_timeout_04_a_child_in_a_session_of_its_own(marker: Marker, here: Path) -> None:
    inner = f'setsid sh -c "sleep {marker}; echo alive > escaped" >/dev/null 2>&1 &'
    result = veil.run(f"({inner}) ; sleep {marker}", timeout=1)
    assert result.timed_out
    if result.survivors == "none":
        assert marker.alive() == {}
    else:
        assert result.survivors == "unknown"
        assert sys.platform != "linux"


def test_timeout_06_a_grandchild_that_holds_the_pipe_at_the_limit(marker: Marker) -> None:
    began = time.monotonic()
    result = veil.run(f"sleep {marker} & wait", timeout=1)
    assert result.timed_out
    assert marker.alive() == {}
    assert time.monotonic() - began < LONG


def test_timeout_07_what_was_written_before_the_limit_is_kept(marker: Marker) -> None:
    result = veil.run(f"echo partial; echo perr >&2; sleep {marker}", timeout=1)
    assert (result.stdout, result.stderr) == ("partial\n", "perr\n")
    assert (result.timed_out, result.exit, result.ok) == (True, 124, False)


@pytest.mark.linux
@pytest.mark.parametrize("contain", [False, True])
def test_timeout_09_no_descriptor_is_inherited(contain: bool) -> None:
    read, write = os.pipe()
    try:
        os.set_inheritable(read, True)
        os.set_inheritable(write, True)
        # 3 is the folder that ls itself reads
        assert veil.run("ls /proc/self/fd", contain=contain).stdout.split() == ["0", "1", "2", "3"]
    finally:
        os.close(read)
        os.close(write)


# -- output


def test_out_01_true_totals_and_the_last_line() -> None:
    result = veil.run("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo LAST_LINE", max_output=1 << 20)
    assert result.stdout_truncated
    assert result.stdout_total_bytes == 5_000_011
    assert result.stdout_lines == 2
    assert len(result.stdout_bytes) == 1 << 20
    assert result.stdout.endswith("x\nLAST_LINE\n")
    assert "LAST_LINE" in result.view
    assert result.to_dict()["stdout_dropped_bytes"] == 5_000_011 - (1 << 20)
    assert veil.detail(result.id, "stdout").bytes == result.stdout_bytes


def test_out_03_a_notice_only_where_lines_are_hidden() -> None:
    view = veil.run("seq 1 5000").view
    lines = view.splitlines()
    assert (lines[0], lines[-1]) == ("1", "5000")
    assert any("hidden" in line and "veil detail" in line for line in lines)
    assert len(lines) < 100
    assert veil.run("seq 1 5").view == "1\n2\n3\n4\n5"


def test_out_04_too_much_output_is_no_failure() -> None:
    result = veil.run("head -c 12000000 /dev/zero | tr '\\0' y; exit 0")
    assert (result.ok, result.stdout_truncated, result.stdout_total_bytes) == (True, True, 12_000_000)
    assert len(result.stdout_bytes) == 5_000_000


def test_out_05_nothing_is_cut_below_the_limit() -> None:
    command = """for i in $(seq 1 200); do printf 'Line %03d: %-200s\\n' $i ''; done"""
    for limit, cut in ((50_000, False), (42_200, False), (42_199, True)):
        result = veil.run(command, max_output=limit)
        assert (result.stdout_total_bytes, result.stdout_lines) == (42_200, 200)
        assert result.stdout_truncated is cut
        assert len(result.stdout_bytes) == min(limit, 42_200)


def test_out_08_one_very_long_line() -> None:
    result = veil.run(f"{shlex.quote(sys.executable)} -c 'print(\"z\" * 300000)'; echo after")
    assert (result.exit, result.stdout) == (0, "z" * 300_000 + "\nafter\n")


def test_out_09_real_trouble_is_surfaced_and_good_news_is_not() -> None:
    lines = [f"step {n}" for n in range(1, 3001)]
    lines[100:2600:5] = ["0 errors"] * 500
    lines[1499] = "fatal: bad ref"
    Path("log").write_text("\n".join(lines) + "\n")
    view = veil.run("cat log").view
    assert "1500: fatal: bad ref" in view
    assert view.count("0 errors") <= 1


# -- expectations


@pytest.mark.parametrize(
    ("command", "exit", "signal"),
    [
        ("A=(); false", 1, None),
        ("if [", 2, None),
        ("exit 300", 44, None),
        ("kill -9 $$", 137, "SIGKILL"),
        ("nosuchcmd", 127, None),
        ("./notexec", 126, None),
    ],
)
def test_exp_01_every_failure_has_its_code(command: str, exit: int, signal: str | None) -> None:
    Path("notexec").write_text("#!/bin/sh\n")
    Path("notexec").chmod(0o644)
    result = veil.run(command)
    assert (result.exit, result.signal, result.ok) == (exit, signal, False)


def test_exp_03_a_word_in_the_output_makes_no_success() -> None:
    result = veil.run('echo "3 failed, 1 passed"; exit 1', expect={"stdout_contains": "passed"})
    assert (result.assert_ok, result.ok) == (True, False), "the post-condition holds; the command failed all the same"
    with pytest.raises(veil.CommandFailed):
        veil.run('echo "3 failed, 1 passed"; exit 1', expect={"stdout_contains": "passed"}, check=True)
    assert veil.run("true # passed", expect={"stdout_contains": "passed"}).assert_ok is False
    assert veil.run("echo passed >&2", expect={"stdout_contains": "passed"}).assert_ok is False


def test_exp_04_a_marker_in_what_was_dropped_is_never_judged_by_luck() -> None:
    command = "seq 1 400000; echo MARK; seq 1 400000"
    unknown = veil.run(command, max_output=65_536, expect={"stdout_contains": "MARK"})
    assert unknown.stdout_truncated
    assert unknown.assert_ok is None
    assert [row["check"] for row in unknown.assertions_inconclusive] == ["stdout_contains"]
    assert veil.run(command, expect={"stdout_contains": "MARK"}, max_output=20_000_000).assert_ok is True
    assert veil.run("seq 1 400000; echo MARK", max_output=65_536, expect={"stdout_contains": "MARK"}).assert_ok is True


def test_exp_06_paths_below_the_cwd_of_the_run_and_links_that_point_nowhere(here: Path) -> None:
    (here / "sub").mkdir()
    assert veil.run("cd sub && touch out", expect={"file_exists": "sub/out"}).assert_ok is True
    assert veil.run("cd sub && touch more", expect={"file_exists": "more"}).assert_ok is False
    dangling = veil.run("ln -s none l", expect={"file_absent": "l"})
    assert dangling.assert_ok is False, "a link is there, wherever it points"
    (here / "out").write_text("before")
    assert veil.run("true", expect={"changed": ["out"]}).assert_ok is False
    assert veil.run("echo > out", expect={"changed": ["out"]}).assert_ok is True


def test_exp_07_a_reader_that_leaves_early_is_no_failure() -> None:
    plain = veil.run("seq 1 1000000 | head -1")
    assert (plain.exit, plain.stdout, plain.advice) == (0, "1\n", None)
    strict = veil.run("set -o pipefail; seq 1 1000000 | head -1")
    assert (strict.exit, strict.stdout) == (141, "1\n")
    assert "SIGPIPE" in (strict.advice or "")
    died = veil.run("kill -PIPE $$")
    assert (died.ended, died.signal) == ("signaled", "SIGPIPE"), "Python ignores it, its children must not"


# -- changed files


@NEEDS_GIT
def test_fx_01_names_as_they_are(repo: Path) -> None:
    assert veil.run('echo x > café.txt; echo y > "a b.txt"').created == ["a b.txt", "café.txt"]


@NEEDS_GIT
def test_fx_03_no_first_letter_is_lost(repo: Path) -> None:
    assert veil.run("echo 1 >> src/a.py").modified == ["src/a.py"]


@NEEDS_GIT
def test_fx_04_a_file_in_a_folder_that_is_new_to_git(repo: Path) -> None:
    (repo / "new").mkdir()
    (repo / "new" / "a").write_text("1\n")
    result = veil.run("echo 2 > new/b")
    assert result.created == ["new/b"]
    assert [change.path for change in result.files_changed if change.kind == "file"] == ["new/b"]


@NEEDS_GIT
def test_fx_05_a_second_edit_of_what_was_already_dirty(repo: Path) -> None:
    (repo / "f").write_text("1\na\n")
    (repo / "u").write_text("u\n")
    assert veil.run("echo b >> f; echo v >> u").modified == ["f", "u"]


@NEEDS_GIT
def test_fx_06_an_ignored_file_is_never_denied(repo: Path) -> None:
    (repo / ".gitignore").write_text("*.log\n")
    asked = veil.run("echo x > out.log", expect={"changed": ["out.log"]})
    assert asked.assert_ok is not False
    everything = veil.run("echo y > two.log", effects="all", expect={"changed": ["two.log"]})
    assert (everything.created, everything.assert_ok) == (["two.log"], True)


@NEEDS_GIT
def test_fx_07_a_commit_does_not_hide_the_change(repo: Path) -> None:
    result = veil.run("echo 2 > f && git commit -qam two")
    assert result.ok, result.stderr
    assert result.modified == ["f"]
    moved = result.to_dict()["head"]
    assert moved["before"] != moved["after"]


@NEEDS_GIT
@pytest.mark.parametrize("contain", [False, True])
def test_fx_09_nothing_of_veil_itself_is_an_effect(repo: Path, monkeypatch: pytest.MonkeyPatch, contain: bool) -> None:
    monkeypatch.setenv("VEIL_STATE_DIR", str(repo / "state"))
    for _ in range(2):
        result = veil.run("true", project=repo, contain=contain)
        assert (result.files_changed, result.stored, result.effects_unavailable) == ([], "disk", None)
    assert (repo / "state").is_dir()


@NEEDS_GIT
def test_fx_10_paths_in_a_sub_folder_nested_repositories_and_a_broken_one(repo: Path) -> None:
    (repo / "sub").mkdir()
    assert veil.run("echo 1 > x; echo 2 > ../y", cwd=repo / "sub").created == ["../y", "x"]
    git("init", "-q", "inner")
    nested = veil.run("echo 3 > inner/z")
    assert "inner/z" in nested.created or "inner" in str(nested.to_dict().get("effects_gaps"))
    (repo / ".git" / "index").write_bytes(b"no index at all")
    broken = veil.run("echo 4 > seen")
    assert "seen" in broken.created or broken.effects_unavailable


# -- retries and records


def test_ret_01_the_tree_of_an_attempt_is_gone_before_the_next(here: Path) -> None:
    # an attempt that met the one before it could not take the lock and would write no line
    program = "import fcntl, time; f = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)"
    program += "; print('x', file=open('log', 'a')); print('said', flush=True); time.sleep(600)"
    argv = [sys.executable, "-c", program]
    once = veil.run(argv, timeout=3, retries=2)
    assert (once.attempts, once.timed_out) == (1, True), "a time limit is only tried again when 124 is asked for"
    (here / "log").write_text("")
    thrice = veil.run(argv, timeout=3, retries=2, retry_on_exit=124)
    assert (thrice.attempts, thrice.timed_out) == (3, True)
    assert (here / "log").read_text() == "x\nx\nx\n"
    stored = veil.detail(thrice.id).record.observation
    assert [outcome.stdout.text for outcome in (*stored.earlier, stored.outcome)] == ["said\n"] * 3
    assert veil.run(["./is-not-there"], retries=3).attempts == 1


def test_store_01_many_processes_open_a_new_store_at_once(here: Path, own_state: Path) -> None:
    program = "import sys, veil; sys.stdin.read(1)\n"
    program += "for _ in range(20): print(veil.run('true', effects=False, project='.').id, flush=True)"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    argv = [sys.executable, "-c", program]
    many = [
        subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(20)
    ]
    for process in many:
        assert process.stdin is not None
        process.stdin.write(b"g")
        process.stdin.flush()
    said = [process.communicate(timeout=240) for process in many]
    assert [err for _, err in said] == [b""] * 20
    ids = [name for out, _ in said for name in out.decode().split()]
    assert sorted(ids, key=lambda name: int(name[3:])) == [f"cmd{n}" for n in range(1, 401)]
    assert {found.id for found in veil.runs(400, project=here)} == set(ids)
    assert all(found.command == "true" and found.ok for found in veil.runs(400, project=here))


def test_store_03_ids_are_exact_and_files_are_private(own_state: Path) -> None:
    before = os.umask(0o022)
    try:
        ids = [veil.run(f"echo {n}").id for n in range(1, 11)]
    finally:
        os.umask(before)
    assert ids == [f"cmd{n}" for n in range(1, 11)]
    assert veil.detail("cmd1").result.stdout == "1\n"
    for wrong in ("../../etc/hostname", "cmd", "cmd1 ", "/etc/hostname", "cmd01", "CMD1"):
        with pytest.raises(veil.BadInput):
            veil.detail(wrong)
    with pytest.raises(veil.NotFound):
        veil.detail("cmd11")
    modes = {path: path.stat().st_mode & 0o777 for path in own_state.rglob("*")}
    assert any(path.is_file() for path in modes)
    assert [path for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)] == []


# -- background


def test_bg_01_a_server_outlives_other_runs_until_it_is_killed(marker: Marker) -> None:
    argv = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    handle = veil.start(argv, env={"MARK": marker.text})
    port = re.search(r"port (\d+)", handle.wait_for(pattern=r"port \d+", timeout=LONG).stdout)
    assert port is not None
    handle.wait_for(port=int(port[1]), timeout=LONG)
    assert veil.run("true").ok
    assert handle.running()
    assert handle.kill().status == "killed"
    assert marker.alive() == {}


def test_bg_03_a_character_that_comes_in_two_halves(here: Path) -> None:
    handle = veil.start("printf 'a\\303'; while [ ! -e go ]; do sleep 0.02; done; printf '\\251b\\n'")
    until(lambda: handle.logs().stdout_bytes)
    pieces, cursor = [], 0
    for turn in range(3):
        logs = handle.logs(stdout_cursor=cursor)
        assert logs.stdout_cursor == cursor + len(logs.stdout_bytes)
        assert not logs.gap
        pieces.append(logs.stdout)
        cursor = logs.stdout_cursor
        if turn == 0:
            assert pieces == ["a"]
            (here / "go").touch()
            handle.wait(LONG)
    assert "".join(pieces) == "aéb\n"
    assert cursor == 5


def test_bg_04_output_without_end_stays_within_its_cap(own_state: Path) -> None:
    cap = 1_000_000
    with veil.start("yes", max_output=cap) as handle:
        until(lambda: handle.logs(stdout_cursor=10**15).stdout_lines > 10 * cap)
        beyond = handle.logs(stdout_cursor=cap // 2)
        assert beyond.gap, "these bytes are gone, and the answer says so"
        assert set(beyond.stdout.split()) == {"y"}
        assert len(handle.logs().stdout_bytes) <= cap // 5, "a piece ends where bytes were dropped"
    result = handle.wait(LONG)
    assert result.stdout_truncated
    assert len(result.stdout_bytes) == cap
    assert result.stdout_total_bytes == 2 * result.stdout_lines > 20 * cap
    on_disk = sum(path.stat().st_size for path in own_state.rglob("*") if path.is_file())
    assert on_disk < 10 * cap


def test_bg_06_nothing_of_the_watching_is_left(marker: Marker) -> None:
    before = threading.active_count()
    handle = veil.start("true", env={"MARK": marker.text})
    assert handle.wait(LONG).exit == 0
    assert handle.status == "exited"
    assert marker.alive() == {}
    until(lambda: threading.active_count() <= before)
    piped = veil.run("cd . && printf '%s\\n' one two | head -1")
    assert (piped.exit, piped.stdout) == (0, "one\n")


def test_kill_01_children_born_while_it_is_killed(marker: Marker) -> None:
    handle = veil.start(f"(sleep {marker} &) ; while :; do sleep 0.01 & done", env={"MARK": marker.text})
    marker.until(5)
    assert handle.kill().status == "killed"
    assert marker.alive() == {}
    again = handle.kill()
    assert again.already_exited
    assert again.signal is None


# -- secrets


def test_scrub_01_a_secret_in_any_spelling(own_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "a?b>c~~tok/+x9"
    spelled = [
        secret,
        base64.b64encode(secret.encode()).decode(),
        base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
        urllib.parse.quote(secret, safe=""),
        secret.encode().hex(),
    ]
    monkeypatch.setenv("MY_API_TOKEN", secret)
    text = " ".join(shlex.quote(word) for word in spelled)
    result = veil.run(f"echo {text}; echo {text} >&2; exit 1", redact=True, expect={"stdout_contains": "nothing"})
    kept = [result.stdout, result.stderr, result.command, json.dumps(result.to_dict()), repr(result.record)]
    kept.append(veil.detail(result.id).text)
    kept += [path.read_bytes().decode("latin-1") for path in own_state.rglob("*") if path.is_file()]
    for word in spelled:
        assert [text for text in kept if word in text] == []
    assert "exit 1" in result.command


def test_scrub_03_a_secret_over_any_border(here: Path, own_state: Path) -> None:
    secret = "sk-live-AAAABBBBCCCC"
    parts = [secret[at : at + 6] for at in range(len(secret) - 5)]

    def leaks(text: str) -> list[str]:
        return [part for part in parts if part in text]

    (here / "one").write_text("sk-live-AAAA")
    (here / "two").write_text("BBBBCCCC\n")
    command = "cat one; touch half; while [ ! -e go ]; do sleep 0.02; done; cat two"
    handle = veil.start(command, secrets=[secret])
    until((here / "half").exists)
    first = handle.logs()
    (here / "go").touch()
    handle.wait(LONG)
    second = handle.logs(stdout_cursor=first.stdout_cursor)
    assert leaks(first.stdout + second.stdout) == []
    assert second.stdout.endswith("\n")
    for cut in range(0, 60, 3):
        result = veil.run(f"printf '%0{cut + 1}d'; printf {secret}; seq 100", secrets=[secret], max_output=100)
        assert leaks(result.stdout) == []
        assert leaks(result.command) == []
    for path in own_state.rglob("*"):
        if path.is_file():
            assert leaks(path.read_bytes().decode("latin-1")) == []


def test_scrub_04_an_empty_or_common_value_redacts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "")
    monkeypatch.setenv("OTHER_KEY", "1")
    monkeypatch.setenv("THIRD_SECRET", "true")
    assert veil.run("echo 101 true", redact=True).stdout == "101 true\n"


def test_scrub_06_only_credentials_leave_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"TOKENIZERS_PARALLELISM": "false", "KEYBOARD_LAYOUT": "us", "MONKEY": "banana", "LANG": "C.UTF-8"}
    gone = {
        "AWS_SECRET_ACCESS_KEY": "x" * 20,
        "GITHUB_PAT": "y" * 20,
        "DATABASE_URL": "postgres://u:pw123456@h/d",
        "npm_config__auth": "z" * 20,
    }
    for name, value in {**kept, **gone}.items():
        monkeypatch.setenv(name, value)
    result = veil.run("env", scrub_env=True)
    seen = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    assert kept.items() <= seen.items()
    assert {"PATH", "HOME"} <= seen.keys()
    assert not gone.keys() & seen.keys()
    told = result.to_dict()
    assert told["secrets_env_scrubbed"] >= len(gone)
    del told["stdout"]
    assert not any(name in json.dumps(told) for name in gone)


def test_every_case_has_a_test() -> None:
    there = {f"{found[1]}-{found[2]}" for name in globals() if (found := re.match(r"test_([a-z]+)_(\d+)_", name))}
    assert sorted(there) == sorted(CASES)
