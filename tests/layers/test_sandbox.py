"""What the result of a sandboxed run tells, what it advises, and what the run leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sandboxes import home, tree

import veil
from veil.host.confine.backends import BACKENDS, backend

__all__ = ["home", "tree"]

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash", "an interpreter outside /tmp")]
NEEDS_BWRAP = pytest.mark.needs("bubblewrap")
NEEDS_GIT = pytest.mark.needs("git")


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
    own = f"veil-tmp-*-{os.getpid()}-*"  # other runs on this machine have theirs
    temporary = set(Path("/tmp").glob(own))
    for number in range(10):
        veil.run(["true", "nosuch"][number % 2 :], cwd=tree, sandbox={"max_cpu": 60, "network": number % 3 == 0})
        with pytest.raises(veil.Refused):
            veil.run("true", cwd=tree, sandbox={"writable": ["gone"]})
    deadline = time.monotonic() + 10
    while (after := now())[1] > before[1] and time.monotonic() < deadline:
        time.sleep(0.01)  # a thread that has said its last is not yet gone
    assert after[0] <= before[0]  # fewer: rubbish of earlier tests went meanwhile
    assert after[1] <= before[1]
    made = set(Path("/tmp").glob(own)) - temporary
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
