"""A session that does not use veil pays next to nothing."""

from __future__ import annotations

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

CONFTEST = """
    import sys

    def pytest_unconfigure(config):
        with open("modules.txt", "w") as file:
            file.write("\\n".join(sorted(sys.modules)))
"""


def _modules(suite: Suite, *options: str) -> set[str]:
    suite.run(*options).assert_outcomes(passed=2)
    return set((suite.path / "modules.txt").read_text().split("\n"))


def test_few_modules_and_none_of_veil(suite: Suite) -> None:
    suite.write("conftest.py", CONFTEST)
    suite.write("test_it.py", "def test_a(tmp_path): pass\ndef test_b(): pass\n")
    more = _modules(suite) - _modules(suite, "-p", "no:veil")
    assert 0 < len(more) <= 12
    assert not [name for name in more if name == "veil" or name.startswith("veil.")]
    assert {name.partition(".")[0] for name in more} == {"pytest_veil"}


def test_no_fixture_that_nobody_asked_for(suite: Suite) -> None:
    suite.write("test_it.py", "def test_a(request):\n    assert request.fixturenames == ['request']\n")
    suite.run().assert_outcomes(passed=1)


def test_without_the_option_only_python_is_collected(suite: Suite) -> None:
    suite.write("test_it.py", "def test_a(): pass\n")
    suite.write("case.veil.txtar", "veil cassette 1\n")
    result = suite.run("--collect-only", "-q")
    assert "1 test collected" in result.stdout.str()
    assert "case" not in result.stdout.str().replace("test_it.py::test_a", "")


@pytest.mark.parametrize(
    "options",
    [
        ("-p", "no:terminal"),
        ("-p", "no:tmpdir", "-p", "no:legacypath"),
        ("-p", "no:capture"),
        ("-p", "no:assertion"),
        ("-p", "no:junitxml"),
        ("-W", "error"),
    ],
)
def test_it_works_without_parts_of_pytest(suite: Suite, options: tuple[str, ...]) -> None:
    suite.write("test_it.py", 'def test_it(veil_run):\n    assert veil_run("echo 1").stdout == "1\\n"\n')
    for mode in ("off", "record", "replay", "verify"):
        chosen = [] if mode == "off" else [f"--veil-mode={mode}"]
        assert suite.run(*options, *chosen).ret == 0
