"""The markers of ``tests/conftest.py``, run by a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import sys
import pytest

@pytest.mark.needs("bash")
def test_has(): pass

@pytest.mark.needs("never")
def test_lacks(): raise AssertionError("must not run")

def test_skips_itself(): pytest.skip("no reason of the machine")

@pytest.mark.xfail(strict=True)
def test_xfails(): assert 0

@pytest.mark.darwin
def test_mac(): assert sys.platform == "darwin"

@pytest.mark.linux
def test_linux(): assert sys.platform == "linux"
"""


def beside(pytester: pytest.Pytester) -> None:
    """What the conftest imports from its own folder."""
    pytester.makepyfile(marked=Path(__file__).with_name("marked.py").read_text(encoding="utf-8"))


def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, strict: bool, body: str = TESTS) -> list[str]:
    """The outcomes and messages of an inner run, its machine lacking the capability ``never``."""
    beside(pytester)
    conftest = Path(__file__).with_name("conftest.py").read_text(encoding="utf-8")
    pytester.makeconftest(conftest + '\nCAPABILITIES["never"] = (lambda: False, "wait for ever")\n')
    pytester.makepyfile(body)
    if strict:
        monkeypatch.setenv("VEIL_CI", "1")
    command = [sys.executable, "-m", "pytest", "-rA", "--strict-markers", "-p", "no:randomly", "-p", "no:asyncio"]
    done = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, timeout=120)
    return done.stdout.splitlines()


@pytest.mark.parametrize("strict", [False, True])
def test_a_skip_names_what_is_missing_and_fails_under_ci(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, strict: bool
) -> None:
    lines = inner(pytester, monkeypatch, strict)
    text = "\n".join(lines)
    assert "needs never: wait for ever" in text
    if strict:
        assert "1 failed, 2 passed, 1 deselected, 1 xfailed, 1 error" in lines[-1]
        assert "VEIL_CI=1 allows no skip: Skipped: no reason of the machine" in text
    else:
        assert "2 passed, 2 skipped, 1 deselected, 1 xfailed" in lines[-1]


@pytest.mark.parametrize("strict", [False, True])
def test_a_module_that_skips_itself_fails_under_ci(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, strict: bool
) -> None:
    body = "import pytest\npytest.importorskip('no_such_module_anywhere')\n"
    lines = inner(pytester, monkeypatch, strict, body)
    assert ("1 error" if strict else "1 skipped") in lines[-1]
    assert "no_such_module_anywhere" in "\n".join(lines)


@pytest.mark.parametrize("mark", ['needs("teleport")', "needs()", 'needs(what="git")'])
def test_an_unknown_capability_is_a_usage_error(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    body = f"import pytest\n@pytest.mark.{mark}\ndef test_x(): pass\n"
    beside(pytester)
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(body)
    command = [sys.executable, "-m", "pytest", "-p", "no:asyncio"]
    done = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, timeout=120)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert "known are bash" in done.stdout + done.stderr
