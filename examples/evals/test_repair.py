"""An agent-eval suite in small: commands run in a real project, their results are asserted, and all of it is recorded.

`pytest --veil-mode=record examples/evals` runs the commands and writes one cassette a test; `pytest --veil
examples/evals` repeats them without starting a process; `--veil-mode=verify` runs them again and compares. What the
commands print does not depend on the version of Python, git or make: the recordings can be verified on other machines.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

PROJECT = Path(__file__).with_name("project")
#: The repair. No ``sed -i``: the one of macOS wants another argument.
FIX = "sed 's/a - b/a + b/' calc.py > fixed && mv fixed calc.py"


@pytest.fixture
def project(veil_run):
    """The workspace of the test, with the project in it."""
    shutil.copytree(PROJECT, veil_run.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return veil_run.root


def test_the_bug_is_seen(project, veil_run, expect):
    # as an agent would: the lines that matter, and yet the exit of the tests
    see = "set -o pipefail; python3 -m unittest -q 2>&1 | grep -E '^(AssertionError|FAILED)'"
    result = veil_run(see, expect={"exit": 1, "stdout_contains": "FAILED (failures=1)"})
    expect(result).assert_ok().failed().stdout.contains("AssertionError: -1 != 5").changed_nothing()


def test_a_fix_makes_the_tests_pass(project, veil_run, expect):
    expect(veil_run(FIX)).ok().modified("calc.py").changed_only("calc.py")
    expect(veil_run("set -o pipefail; make test 2>&1 | tail -n 1")).ok().stdout.equals("OK\n")
    assert "a + b" in (project / "calc.py").read_text()


def test_the_fix_is_committed(project, veil_run, expect):
    veil_run("git init -q && git add -A && git commit -qm 'as found'", check=True)
    veil_run(FIX, check=True)
    expect(veil_run("git diff --stat")).stdout.contains("calc.py | 2 +-")
    expect(veil_run("git commit -qam 'add adds' && git log --format=%s")).ok().stdout.equals("add adds\nas found\n")
    expect(veil_run("git status --porcelain")).stdout.is_empty().changed_nothing()


def test_an_artefact_is_built_once(project, veil_run, expect):
    expect(veil_run(["make", "dist"])).ok().created("build/calc.txt").file("build/calc.txt").contains("calc.py")
    expect(veil_run("make -s dist")).ok().stdout.is_empty().changed_nothing()


SERVE = """
import http.server, os
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
with open(os.environ["TMPDIR"] + "/port", "w") as file:
    file.write(str(server.server_port))
server.serve_forever()
"""


def test_a_server_is_asked(project, veil_run, expect):
    # the port is another one each time: it goes to the temporary folder, which is no part of what is compared
    fetch = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"
    wait, port = 'until [ -s "$TMPDIR/port" ]; do sleep 0.05; done', '$(cat "$TMPDIR/port")'
    ask = f"{wait}; python3 -c '{fetch}' http://127.0.0.1:{port}/calc.py"
    with veil_run.start(["python3", "-c", SERVE]) as server:
        expect(veil_run(ask)).ok().stdout.contains("def add")
    assert server.wait().signal == "SIGTERM"


def test_what_never_ends_is_ended(project, veil_run, expect):
    expect(veil_run("echo waiting; sleep 60", timeout=0.5)).timed_out().stdout.equals("waiting\n")
