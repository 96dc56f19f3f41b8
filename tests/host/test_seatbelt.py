"""The sandbox of macOS: its profile as text, for every path there can be; and itself, where there is one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.host.confine.base import Allowance, Bounds
from veil.host.confine.seatbelt import Seatbelt, profile, words
from veil.model.errors import VeilError
from veil.model.outcome import Outcome, Stream

HOSTILE = [
    '/tmp/a" (allow network*) "b',
    "/tmp/back\\slash",
    "/tmp/new\nline",
    "/tmp/((((",
    "/tmp/)(allow default)(",
    "/tmp/;comment",
    "/tmp/$(id)",
    "/tmp/=equals=W0=",
    "/tmp/-D W0=/",
    "/tmp/üñí/🔒",
    "/tmp/ ",
]
names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12)
paths = st.sampled_from(HOSTILE) | st.lists(names, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
several = st.lists(paths, max_size=3, unique=True).map(tuple)
all_bounds = st.builds(
    Bounds,
    cwd=paths,
    temp=paths,
    writable=several,
    network=st.booleans(),
    sockets=several,
    masked_folders=several,
    masked_files=several,
    readonly=several,
    pinned=several,
    readable=several,
    own=several,
)


def rules(text: str) -> list[str]:
    """The expressions of a profile. Fails when a bracket is not closed, or a text not ended, where it should be."""
    found, depth, begun, quoted = [], 0, 0, False
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter == "(":
            begun = at if depth == 0 else begun
            depth += 1
        elif letter == ")":
            depth -= 1
            assert depth >= 0
            if depth == 0:
                found.append(text[begun : at + 1])
    assert depth == 0
    assert not quoted
    return found


@given(all_bounds)
def test_no_path_is_part_of_the_text(bounds: Bounds) -> None:
    """mac-03."""
    text, values = profile(bounds)
    assert re.fullmatch(r'[a-z0-9?#^$+*\[\]().\-/"\'\s_WRMSFAU]*', text)
    # what is quoted is a device, the mark of a terminal, or the name of a parameter
    assert not set(re.findall(r'"(/[^"]*)"', text)) - {
        *(f"/dev/{name}" for name in ["null", "zero", "tty", "stdout", "stderr", "dtracehelper", "ptmx", "fd"])
    }
    used = re.findall(r'\(param "([A-Z][0-9]+)"\)', text)
    assert set(used) == set(values)
    heads = {re.match(r"\(([a-z]+)", rule)[1] for rule in rules(text)}  # type: ignore[index]
    assert heads <= {"version", "allow", "deny", "if"}
    assert text.count("(allow default)") == 1
    assert "(allow network*" not in text


@given(all_bounds, st.lists(names, min_size=1, max_size=3))
def test_every_value_is_a_word_of_its_own(bounds: Bounds, argv: list[str]) -> None:
    text, values = profile(bounds)
    line = words(argv, bounds)
    assert line[:2] == ("-p", text)
    end = 2 + 2 * len(values)
    assert line[end:] == ("--", *argv)
    assert line[2:end:2] == ("-D",) * len(values)
    # sandbox-exec splits at the first equals sign, and no name has one
    assert dict(word.split("=", 1) for word in line[3:end:2]) == values


def given_by(text: str, values: dict[str, str], head: str) -> set[str]:
    found: set[str] = set()
    for rule in rules(text):
        if rule.startswith(head):
            found.update(values[name] for name in re.findall(r'\(param "([A-Z][0-9]+)"\)', rule))
    return found


@given(all_bounds)
def test_what_is_asked_is_what_the_rules_say(bounds: Bounds) -> None:
    text, values = profile(bounds)
    masked = {*bounds.masked_folders, *bounds.masked_files, *bounds.own}
    assert given_by(text, values, "(allow file-write* (sub") >= {bounds.cwd, bounds.temp, *bounds.writable}
    assert given_by(text, values, "(deny file-read* file-write*") >= masked
    assert given_by(text, values, "(deny file-write* (sub") >= set(bounds.readonly)
    held = {*masked, *bounds.readonly, *bounds.pinned}
    unlinked = given_by(text, values, "(deny file-write-unlink")
    for path in held:
        assert {path, *(str(folder) for folder in Path(path).parents if str(folder) != "/")} <= unlinked
    lines = text.splitlines()
    assert ("(deny network*)" in lines) is not bounds.network
    if bounds.sockets and not bounds.network:
        assert given_by(text, values, "(allow network-outbound") >= set(bounds.sockets)
        assert lines.index("(deny network*)") < next(n for n, line in enumerate(lines) if "network-outbound" in line)
    else:
        assert "network-outbound" not in text
    if masked:  # the last rule that fits decides
        granted = max(n for n, line in enumerate(lines) if line.startswith("(allow file-write*"))
        assert granted < next(n for n, line in enumerate(lines) if line.startswith("(deny file-read* file-write*"))


def test_both_spellings_of_what_lies_in_private() -> None:
    """mac-01."""
    bounds = Bounds("/private/tmp/work", "/private/var/folders/x", masked_files=("/private/etc/secret",))
    text, values = profile(bounds)
    assert given_by(text, values, "(allow file-write* (sub") == {
        "/private/tmp/work",
        "/tmp/work",
        "/private/var/folders/x",
        "/var/folders/x",
    }
    assert given_by(text, values, "(deny file-read*") == {"/private/etc/secret", "/etc/secret"}
    assert given_by(*profile(Bounds("/privateer/tmp", "/t")), "(allow file-write* (sub") == {"/privateer/tmp", "/t"}


def ended(code: int, said: bytes) -> Outcome:
    return Outcome("exited", code, stderr=Stream(said, b"", len(said), 1))


def settle() -> Callable[[Outcome], Outcome]:
    with Seatbelt().confine(("x",), Bounds("/a", "/b")) as wrapped:
        assert wrapped.settle is not None
        return wrapped.settle


def test_a_program_that_is_not_there_is_no_broken_sandbox() -> None:
    outcome = settle()(ended(71, b"sandbox-exec: execvp() of 'no such' failed: No such file or directory\n"))
    assert (outcome.ended, outcome.exit, outcome.spawn_error) == (
        "spawn_failed",
        127,
        "No such file or directory: no such",
    )
    assert outcome.stderr == Stream()
    assert settle()(ended(71, b"sandbox-exec: execvp() of 'x' failed: Permission denied")).exit == 126


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (71, b"sandbox-exec: sandbox_apply: Operation not permitted"),
        (65, b"sandbox-exec: <input string>:4:0: unbound variable"),
    ],
)
def test_a_sandbox_that_breaks_is_not_the_end_of_the_command(code: int, said: bytes) -> None:
    """mac-04: a profile that the kernel refuses looked like a command that failed with nothing to say."""
    with pytest.raises(VeilError) as caught:
        settle()(ended(code, said))
    assert caught.value.code == "sandbox_broken"
    assert caught.value.facts["reason"] == said.decode()


def test_a_command_that_ends_with_the_same_code_is_believed() -> None:
    outcome = ended(71, b"mine")
    assert settle()(outcome) is outcome


def test_limits_are_refused() -> None:
    assert Seatbelt().lacks(Bounds("/a", "/b")) is None
    assert Seatbelt().lacks(Bounds("/a", "/b", allowance=Allowance(cpu=1.0))) is not None


@pytest.mark.linux
def test_elsewhere_it_says_so() -> None:
    assert Seatbelt().unavailable() == "sandbox-exec is of macOS only"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "a write that had to be denied went through"),
        ("echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2; exit 71", "sandbox_apply: Operation not"),
        ("echo 'sandbox-exec: <input string>:9:0: unbound variable' >&2; exit 65", "unbound variable"),
        ("exit 1", "a trial command ended with 1"),
        ("exit 7", "a trial command ended with 7"),
    ],
)
def test_a_program_that_is_there_proves_nothing(tmp_path: Path, text: str, reason: str) -> None:
    """mac-04: it was believed because it was installed, and every command then failed without a word."""
    program = tmp_path / "sandbox-exec"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    assert reason in (Seatbelt(str(program)).unavailable() or "")


# -- the real thing: only macOS has it


@pytest.mark.darwin
def test_it_confines(tmp_path: Path) -> None:
    backend = Seatbelt()
    assert backend.unavailable() is None
    cwd, temp, secret = (tmp_path / name for name in ('c"w\\d (', "temp", "secret"))
    for folder in (cwd, temp, secret):
        folder.mkdir()
    (secret / "key").write_text("TOP")
    (tmp_path / "link").symlink_to(secret / "key")
    real = Path(os.path.realpath(tmp_path))
    bounds = Bounds(str(real / cwd.name), str(real / "temp"), network=False, masked_folders=(str(real / "secret"),))
    script = "echo x >in; echo x >../out; cat ../link ../secret/key; touch $TMPDIR/t; mv ../secret ../moved"
    with backend.confine(("/bin/sh", "-c", script), bounds) as wrapped:
        done = subprocess.run(
            wrapped.argv, cwd=cwd, env={**os.environ, "TMPDIR": str(temp)}, capture_output=True, timeout=60
        )
    assert (cwd / "in").exists()
    assert (temp / "t").exists()
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "moved").exists()
    assert b"TOP" not in done.stdout


@pytest.mark.darwin
def test_it_takes_the_network_away(tmp_path: Path) -> None:
    backend = Seatbelt()
    assert backend.unavailable() is None
    real = os.path.realpath(tmp_path)
    script = "import socket; socket.create_connection(('127.0.0.1', 9), 5)"
    with backend.confine((sys.executable, "-c", script), Bounds(real, real, network=False)) as wrapped:
        done = subprocess.run(wrapped.argv, cwd=real, capture_output=True, timeout=60)
    assert b"PermissionError" in done.stderr
