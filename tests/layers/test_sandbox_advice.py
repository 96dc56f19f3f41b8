"""``advice`` after a denial names a grant only where that grant can be had and would help."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import veil

BACKENDS = [
    pytest.param(name, marks=pytest.mark.needs(need))
    for name, need in (("bubblewrap", "bubblewrap"), ("namespaces", "user namespaces"), ("landlock", "landlock"))
]


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("place", ["/proc/sys/kernel/core_pattern", "/sys/kernel/mm/ksm/run"])
def test_what_nothing_grants_is_not_to_be_named(ws: Path, backend: str, place: str) -> None:
    result = veil.run(f"echo > {place}", sandbox={"backend": backend})
    assert not result.ok
    assert result.advice is not None
    assert "no option grants it" in result.advice
    with pytest.raises(veil.Refused):
        veil.run("true", sandbox={"backend": backend, "writable": [str(Path(place).parent)]})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_folder_that_is_refused_as_writable_is_not_advised(ws: Path, backend: str) -> None:
    result = veil.run("echo x > /etc/veil-test-file", sandbox={"backend": backend})
    assert not result.ok
    assert result.advice is not None
    assert "/etc/veil-test-file" in result.advice
    assert "no option grants all of /etc" in result.advice
    with pytest.raises(veil.Refused):
        veil.run("true", sandbox={"backend": backend, "writable": ["/etc"]})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_folder_that_can_be_granted_is_advised_and_helps(ws: Path, backend: str) -> None:
    beside = ws.parent / "beside"
    beside.mkdir()
    result = veil.run(f"echo x > {beside}/made", sandbox={"backend": backend})
    assert result.advice is not None
    # a private /tmp shows nothing of the machine's, so there the folder is not in sight at all
    assert "writable" in result.advice
    assert veil.run(f"echo x > {beside}/made", sandbox={"backend": backend, "writable": [str(beside)]}).ok


@pytest.mark.needs("git")
@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_kept_hooks_are_told_by_their_own_option(ws: Path, backend: str) -> None:
    subprocess.run(["git", "init", "-q", "."], check=True)
    for command in ("echo x >> .git/config", f"echo x >> {ws}/.git/config"):
        result = veil.run(command, sandbox={"backend": backend, "protect_git": True})
        assert not result.ok
        assert result.advice is not None
        assert "protect_git" in result.advice
        assert "writable" not in result.advice


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_program_that_may_not_be_started_wants_nothing_to_write(ws: Path, backend: str) -> None:
    program = ws / "program"
    program.write_text("no mode to run it\n")
    program.chmod(0o600)
    outside = ws.parent / "outside"
    outside.write_text("")
    for path in (program, outside, Path("/etc/passwd")):
        result = veil.run([str(path)], sandbox={"backend": backend})
        assert result.exit in (126, 127)
        assert result.advice is None or "write" not in result.advice


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_what_lies_right_in_the_hidden_folder_is_named_itself(ws: Path, backend: str) -> None:
    result = veil.run("cat /tmp/veil-is-not-there", sandbox={"backend": backend})
    assert "name /tmp/veil-is-not-there in writable" in str(result.advice)
    result = veil.run("cat /tmp/veil/is-not-there", sandbox={"backend": backend})
    assert "name the folder of /tmp/veil/is-not-there in writable" in str(result.advice)
