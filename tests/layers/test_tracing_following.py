"""From the lines of a log to what happened, without a process: who is where, and what is whose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.layers.tracing.account import Account
from veil.layers.tracing.following import Follower
from veil.layers.tracing.lines import Call, Lines
from veil.model.plan import Touched

START = '1 execve("/bin/sh", ["sh"], 0x1 /* 2 vars */) = 0\n'
END = "1 +++ exited with 0 +++\n"


def followed(log: str | bytes, *, wrapped: bool = False, size: int = 1 << 20) -> tuple[dict[str, Any], Touched]:
    """The account of a log that comes in pieces of ``size`` bytes."""
    account, marks = Account("/w"), Touched()
    follower = Follower(account, ("sh",), "/w", wrapped=wrapped, marks=marks)
    data = log if isinstance(log, bytes) else log.encode("utf-8", "surrogateescape")
    for start in range(0, len(data), size):
        follower.feed(data[start : start + size])
    follower.finish()
    return account.data(), marks


def events(log: str, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = followed(START + log + END, **options)[0]["events"]
    return {kind: rows for kind, rows in found.items() if kind != "executed"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('openat(AT_FDCWD</w>, "a", O_RDONLY|O_CLOEXEC) = 3</w/a>', {"read": ["a"]}),
        ('openat(AT_FDCWD</w>, "/etc/x", O_RDONLY) = 3</usr/etc/x>', {"read": ["/usr/etc/x"]}),
        ('openat(AT_FDCWD</w>, "a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</w/a>', {"written": ["a"]}),
        ('openat(AT_FDCWD</w>, "a", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3</w/a>', {"created": ["a"]}),
        ('openat(AT_FDCWD</w>, "a", O_RDONLY) = -1 ENOENT (No such file or directory)', {}),
        ('openat(AT_FDCWD</w>, "a", O_WRONLY|O_CREAT, 0666) = -1 EACCES (Permission denied)', {}),
        ('openat(AT_FDCWD</w>, ".", O_RDONLY|O_DIRECTORY) = 3</w>', {}),
        ('openat(AT_FDCWD</w>, ".", O_WRONLY|O_TMPFILE, 0600) = 3</w/#12>(deleted)', {}),
        ('openat(AT_FDCWD</w>, "/dev/null", O_WRONLY) = 3</dev/null>', {}),
        ('openat(5</w/sub>, "a", O_RDWR) = 6</w/sub/a>', {"written": ["sub/a"]}),
        ('openat2(5</w/sub>, "a", {flags=O_RDWR, resolve=0}, 24) = 6</w/sub/a>', {"written": ["sub/a"]}),
        ('open("a", O_RDONLY) = 3</w/a>', {"read": ["a"]}),
        ('creat("a", 0644) = 3</w/a>', {"written": ["a"]}),
        ('truncate("a", 0) = 0', {"written": ["a"]}),
        ('mkdir("a", 0777) = 0', {"created": ["a"]}),
        ('mkdirat(5</w/sub>, "a", 0777) = 0', {"created": ["sub/a"]}),
        ('mknod("a", S_IFIFO|0644) = 0', {"created": ["a"]}),
        ('symlink("x", "a") = 0', {"created": ["a"]}),
        ('symlinkat("x", 5</w/sub>, "a") = 0', {"created": ["sub/a"]}),
        ('link("x", "a") = 0', {"created": ["a"]}),
        ('linkat(AT_FDCWD</w>, "x", 5</w/sub>, "a", 0) = 0', {"created": ["sub/a"]}),
        ('unlink("a") = 0', {"deleted": ["a"]}),
        ('unlinkat(5</w/sub>, "a", AT_REMOVEDIR) = 0', {"deleted": ["sub/a"]}),
        ('rmdir("../w/a") = 0', {"deleted": ["a"]}),
        ('rename("a", "/tmp/b") = 0', {"renamed": [["a", "/tmp/b"]]}),
        ('renameat2(5</w/s>, "a", AT_FDCWD</w>, "b", RENAME_NOREPLACE) = 0', {"renamed": [["s/a", "b"]]}),
        (
            'renameat2(AT_FDCWD</w>, "a", AT_FDCWD</w>, "b", RENAME_EXCHANGE) = 0',
            {"renamed": [["a", "b"], ["b", "a"]]},
        ),
        ('chmod("a", 0600) = 0', {"metadata": ["a"]}),
        ("fchmod(3</w/a>, 0600) = 0", {"metadata": ["a"]}),
        ("fchmod(3</w/a>(deleted), 0600) = 0", {}),
        ("fchmod(3<socket:[12]>, 0600) = 0", {}),
        ('utimensat(AT_FDCWD</w>, "a", NULL, 0) = 0', {"metadata": ["a"]}),
        ("utimensat(3</w/a>, NULL, [{tv_sec=0, tv_nsec=0}, {tv_sec=0, tv_nsec=0}], 0) = 0", {"metadata": ["a"]}),
        ('setxattr("a", "user.x", "y", 1, 0) = 0', {"metadata": ["a"]}),
        ('fchownat(5</w/s>, "a", 0, 0, AT_SYMLINK_NOFOLLOW) = 0', {"metadata": ["s/a"]}),
        (
            'connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("10.0.0.1")}, 16) = -1 '
            "EINPROGRESS (Operation now in progress)",
            {"network": [["connect", "10.0.0.1:9", "EINPROGRESS"]]},
        ),
        ('connect(3, {sa_family=AF_UNIX, sun_path="/run/s"}, 9) = 0', {"network": [["connect", "unix:/run/s", "ok"]]}),
        (
            'bind(3, {sa_family=AF_UNIX, sun_path="s\\"\\\\"}, 9) = 0',
            {"created": ['s"\\'], "network": [["bind", 'unix:s"\\', "ok"]]},
        ),
        ('sendto(3, "hi", 2, 0, NULL, 0) = 2', {}),
        ("bind(3, {sa_family=AF_NETLINK, nl_pid=0, nl_groups=00000000}, 12) = 0", {}),
        ('mkdir("cut off"..., 0777) = 0', {}),
    ],
)
def test_what_a_call_means(line: str, expected: dict[str, Any]) -> None:
    assert events(f"1 {line}\n") == expected


def test_names_of_every_kind() -> None:
    """trc-01: quotes, newlines and bytes that are no UTF-8 in names."""
    found = events('1 mkdir("q\\"\\n\\303\\251\\377", 0777) = 0\n')
    assert found == {"created": ['q"\né\udcff']}
    assert events('1 openat(AT_FDCWD</w/\\74\\76>, "\\\\", O_RDWR) = 3</w/\\74\\76/\\\\>\n') == {"written": ["<>/\\"]}


def test_each_process_has_a_working_directory_of_its_own() -> None:
    """trc-01: chdir and fchdir hold for the one who did them, and for whoever comes of it."""
    log = (
        "1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n"
        '2 chdir("sub") = 0\n'
        '1 mkdir("a", 0777) = 0\n'
        '2 mkdir("b", 0777) = 0\n'
        "2 clone(child_stack=NULL, flags=SIGCHLD) = 3\n"
        "2 fchdir(4</elsewhere>) = 0\n"
        '3 mkdir("c", 0777) = 0\n'
        '2 mkdir("d", 0777) = 0\n'
        "3 +++ exited with 0 +++\n2 +++ exited with 0 +++\n"
    )
    assert events(log) == {"created": ["a", "sub/b", "sub/c", "/elsewhere/d"]}


def test_threads_share_theirs() -> None:
    log = (
        "1 clone3({flags=CLONE_VM|CLONE_FS|CLONE_THREAD, exit_signal=0} => {parent_tid=[2]}, 88) = 2\n"
        '2 chdir("/t") = 0\n'
        '1 mkdir("a", 0777) = 0\n'
        "2 +++ exited with 0 +++\n"
    )
    assert events(log) == {"created": ["/t/a"]}


def test_a_child_may_be_heard_before_its_parent_is_told_of_it() -> None:
    """trc-01: unfinished and resumed halves; a child under vfork runs and ends before the call returns."""
    log = (
        '1 chdir("p") = 0\n'
        "1 vfork( <unfinished ...>\n"
        '2 unlink("x" <unfinished ...>\n'
        "1 <... vfork resumed>) = 2\n"
        "2 <... unlink resumed>) = 0\n"
        "1 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n"
        "2 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n"
        '3 rmdir("y") = 0\n'
        "3 +++ exited with 0 +++\n"
        "2 <... clone resumed>) = 4\n"
        "1 <... clone resumed>) = 3\n"
        '4 mkdir("z", 0777) = 0\n'
        "4 +++ killed by SIGKILL (core dumped) +++\n"
        "2 +++ exited with 0 +++\n"
    )
    found, marks = followed(START + log + END)
    assert found["events"]["deleted"] == ["p/x", "p/y"]
    assert found["events"]["created"] == ["p/z"]
    assert "truncated" not in found
    assert marks.complete


def test_a_thread_that_executes_a_program_goes_on_as_the_process() -> None:
    log = (
        "1 clone3({flags=CLONE_VM|CLONE_FS|CLONE_THREAD, exit_signal=0}, 88) = 2\n"
        '2 execve("/bin/echo", ["echo", "hi"], 0x1 /* 2 vars */ <pid changed to 1 ...>\n'
        "1 +++ superseded by execve in pid 2 +++\n"
        "1 <... execve resumed>) = -1 (errno 18446744073709551359)\n"
    )
    found, marks = followed(START + log + END)
    assert found["events"]["executed"] == [["/bin/sh", "sh"], ["/bin/echo", "echo", "hi"]]
    assert marks.complete
    assert "truncated" not in found


def test_what_a_sandbox_does_is_left_out() -> None:
    """trc: from the start to the command's own execve, and what its helpers do beside it."""
    log = (
        '10 execve("/bin/bwrap", ["bwrap", "--", "sh"], 0x1 /* 2 vars */) = 0\n'
        '10 openat(AT_FDCWD</w>, "/etc/ld.so.cache", O_RDONLY) = 3</etc/ld.so.cache>\n'
        "10 clone(child_stack=NULL, flags=CLONE_NEWPID|SIGCHLD) = 11\n"
        '11 mount("/", "/newroot", NULL, MS_REC, NULL) = 0\n'
        '11 mkdir("/newroot/w", 0777) = 0\n'
        '11 chdir("/w") = 0\n'
        "11 clone(child_stack=NULL, flags=SIGCHLD) = 2 /* 12 in strace's PID NS */\n"
        '12 execve("/usr/local/bin/sh", ["sh"], 0x1 /* 2 vars */) = -1 ENOENT (No such file or directory)\n'
        '12 execve("/bin/sh", ["sh"], 0x1 /* 2 vars */) = 0\n'
        '11 openat(3</proc>, "self/fd", O_RDONLY) = 5</proc/11/fd>\n'
        '12 mkdir("mine", 0777) = 0\n'
        "12 clone(child_stack=NULL, flags=SIGCHLD) = 3 /* 13 in strace's PID NS */\n"
        '13 mkdir("too", 0777) = 0\n'
        "13 +++ exited with 0 +++\n12 +++ exited with 0 +++\n11 +++ exited with 0 +++\n10 +++ exited with 0 +++\n"
    )
    found, marks = followed(log, wrapped=True)
    assert found["events"] == {"executed": [["/bin/sh", "sh"]], "created": ["mine", "too"]}
    assert marks.complete
    assert marks.paths == {b"/w/mine", b"/w/too"}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("io_uring_setup(8, {flags=0}) = 3<anon_inode:[io_uring]>", "io_uring"),
        ('mount("a", "/w/m", "tmpfs", 0, NULL) = 0', "mounted"),
        ('chroot("/x") = 0', "root folder"),
    ],
)
def test_what_a_tracer_cannot_see_is_said(line: str, word: str) -> None:
    found, marks = followed(START + f"1 {line}\n" + END)
    assert word in found["gaps"][0]
    assert found["truncated"] is True
    assert not marks.complete


def test_a_relative_path_of_nobody_knows_where_is_a_gap() -> None:
    """A process that nobody was seen to start, and that never named its folder."""
    found, marks = followed(START + '7 unlink("x") = 0\n7 +++ exited with 0 +++\n' + END)
    assert "gaps" in found
    assert not marks.complete


@pytest.mark.parametrize("log", [START, START + '1 mkdir("a', START + "nonsense\n" + END, START + "2 unlink(\n"])
def test_a_log_that_is_not_whole_is_known_for_it(log: str) -> None:
    found, marks = followed(log)
    assert found["truncated"] is True
    assert not marks.complete


def test_a_call_that_never_returned_was_tried() -> None:
    log = (
        '1 connect(3, {sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("10.0.0.1")}, 16 <unfinished ...>\n'
        "1 +++ killed by SIGKILL +++\n"
    )
    assert followed(START + log)[0]["events"]["network"] == [["connect", "10.0.0.1:9", "unfinished"]]
    _, marks = followed(START + '1 unlink("x" <unfinished ...>\n1 +++ killed by SIGKILL +++\n')
    assert marks.paths == {b"/w/x"}


def test_a_program_that_could_not_be_executed() -> None:
    follower = Follower(Account("/w"), ("x",), "/w", wrapped=False, marks=Touched())
    follower.feed(
        b'1 execve("./x", ["x"], 0x1 /* 2 vars */) = -1 ENOEXEC (Exec format error)\n1 +++ exited with 1 +++\n'
    )
    follower.finish()
    assert not follower.started
    assert follower.first_error == "ENOEXEC"


def test_a_cut_argument_keeps_no_half_word() -> None:
    """Half a secret is not known for one by what replaces secrets."""
    log = '1 execve("/bin/x", ["x", "-H Bearer abcdef"..., "abcdef"..., "whole one", ...], 0x1 /* 2 vars */) = 0\n'
    assert followed(START + log + END)[0]["events"]["executed"][1] == [
        *("/bin/x", "x", "-H Bearer ...", "...", "whole one", "...")
    ]


def test_what_is_kept_has_an_end() -> None:
    account = Account("/w", most_bytes=100, most_counted=50)
    for number in range(70):
        account.add("read", f"name-{number:02}")
        account.add("read", f"name-{number:02}")
    data = account.data()
    assert data["counts"] == {"read": 50}
    assert len(data["events"]["read"]) == 9
    assert data["truncated"] is True


@given(st.integers(1, 40))
def test_it_does_not_matter_how_the_log_is_cut(size: int) -> None:
    log = START + '1 mkdir("a", 0777) = 0\n1 openat(AT_FDCWD</w>, "b", O_RDWR) = 3</w/b>\n' + END
    assert followed(log, size=size)[0] == followed(log)[0]


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=30))
def test_halves_always_find_each_other(steps: list[tuple[int, bool]]) -> None:
    """Calls of three processes, each whole or interrupted by the next line: all come out, each with its own text."""
    lines = Lines()
    expected: list[tuple[int, bytes]] = []
    log = b""
    half: dict[int, bytes] = {}
    for number, (pid, whole) in enumerate(steps):
        text = b'"n%d") = 0' % number
        if pid in half:
            log += b"%d <... unlink resumed>) = 0\n" % pid
            expected.append((pid, half.pop(pid) + b") = 0"))
        if whole:
            log += b"%d unlink(%s\n" % (pid, text)
            expected.append((pid, text))
        else:
            half[pid] = b'"n%d"' % number
            log += b"%d unlink(%s <unfinished ...>\n" % (pid, half[pid])
    calls = [item for item in lines.feed(log) if isinstance(item, Call) and not item.begun]
    assert [(call.pid, call.text) for call in calls] == expected
    assert {(call.pid, call.text) for call in lines.finish()} == set(half.items())


@given(st.binary())
def test_nothing_breaks_the_follower(data: bytes) -> None:
    followed(START.encode() + data + b"\n" + END.encode())


@given(st.text(alphabet='12 execvunlink(")=<>.,\n[]+0-', max_size=200))
def test_nothing_that_looks_like_a_log_breaks_it(text: str) -> None:
    followed(START + text + "\n" + END)
