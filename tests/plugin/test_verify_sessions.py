"""Verify mode beside what else a session may have: fixtures, markers, shared runners, hooks, other versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from eval_projects import Project


def test_every_run_has_fresh_fixtures_and_neighbours_keep_theirs(tmp_path: Path) -> None:
    """Function fixtures are made for each run; those of class, module and session once, however often a test runs."""
    project = Project(tmp_path)
    project.tests("""
import pathlib, os, pytest
LOG = pathlib.Path(os.environ["WORLD"]) / "log"

def say(text):
    with LOG.open("a") as log:
        log.write(text + "\\n")

def fixture(scope):
    @pytest.fixture(scope=scope)
    def made(request):
        say(f"+{scope}")
        yield
        say(f"-{scope}")
    return made

session, module, klass, function = map(fixture, ["session", "module", "class", "function"])

class TestOne:
    def test_shaky(self, session, module, klass, function, veil_run, tmp_path):
        assert not list(veil_run.root.iterdir())
        veil_run("od -An -N8 -tx1 /dev/urandom; touch left")
        say("shaky")

    def test_calm(self, session, module, klass, function, veil_run):
        veil_run("echo calm")
        say("calm")

def test_last(session, module, function, veil_run):
    veil_run("od -An -N8 -tx1 /dev/urandom")
    say("last")
""")
    project.recorded()
    (project.world / "log").unlink()
    done = project.pytest("verify", "--setup-show")
    assert "2 failed, 1 passed" in done.text
    assert (project.world / "log").read_text().split() == [
        *("+session", "+module", "+class"),
        *("+function", "shaky", "-function", "+function", "shaky", "-function"),
        *("+function", "calm", "-function", "-class"),
        *("+function", "last", "-function", "+function", "last", "-function"),
        *("-module", "-session"),
    ]


def test_without_a_recording_there_is_no_verdict_but_a_failure(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("def test_it(veil_run):\n    veil_run('echo a')\n")
    done = project.pytest("verify")
    assert done.status == 1
    assert done.item("test_it")["verdict"] == "missing-cassette"
    assert "pytest test_it.py::test_it --veil-mode=record-missing" in done.text


def test_teardown_errors_of_both_the_test_and_its_neighbourhood_are_told(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("""
import pytest
@pytest.fixture(scope="module")
def wide():
    yield
    raise RuntimeError("wide end")

@pytest.fixture
def narrow():
    yield
    raise RuntimeError("narrow end")

def test_it(wide, narrow, veil_run):
    veil_run("echo a")
""")
    project.pytest("record", "--veil-keep-failed")
    done = project.pytest("verify")
    assert "1 passed, 1 error" in done.text
    assert "narrow end" in done.text
    assert "wide end" in done.text
    assert done.item("test_it")["verdict"] == "exact"


def test_commands_of_fixtures_and_background_runs_are_part_of_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("""
import pytest
@pytest.fixture
def server(veil_run):
    handle = veil_run.start("cat $WORLD/text; exec sleep 300")
    handle.wait_for(pattern=".")
    yield handle
    veil_run("cat $WORLD/text")

def test_it(server, veil_run):
    veil_run("echo inner")
""")
    project.given("text", "one\n")
    project.recorded()
    assert project.pytest("verify").words("test_it") == ["exact", "exact", "exact"]
    project.given("text", "two\n")
    assert project.pytest("verify").words("test_it") == ["output-drift", "exact", "output-drift"]


def test_a_marker_alone_can_ask_for_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("""
import pytest
@pytest.mark.veil(mode="verify", runs=2)
def test_real(veil_run):
    veil_run("cat $WORLD/text")

def test_replayed(veil_run):
    veil_run("cat $WORLD/text")
""")
    (project.root / "pytest.ini").write_text("[pytest]\nveil_pass_env = WORLD\nveil = true\nveil_mode = replay\n")
    project.given("text", "one\n")
    project.recorded()
    project.given("text", "two\n")
    report = project.root.parent / "mine.json"
    done = project.pytest(None, f"--veil-report={report}")
    assert done.status == 1
    assert "1 failed, 1 passed" in done.text
    assert "output-drift at step 1 of 1" in done.text


def test_shared_runners_are_judged_at_their_end(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("""
import pytest
@pytest.fixture(scope="module")
def db(veil_run_factory, request):
    run = veil_run_factory.make("db", request)
    run("cat $WORLD/text")
    return run

def test_a(db):
    db("echo a")

def test_b(db):
    db("echo b")
""")
    project.given("text", "one\n")
    project.recorded()
    same = project.pytest("verify")
    assert same.status == 0, same.text
    assert [item["verdict"] for item in same.report["shared"]] == ["exact"]
    project.given("text", "two\n")
    other = project.pytest("verify")
    assert other.status == 1
    assert [item["verdict"] for item in other.report["shared"]] == ["output-drift"]
    assert "output-drift at step 1 of 3" in other.text
    assert "2 passed, 1 error" in other.text


def test_maxfail_ends_what_neighbours_share_with_the_failure(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("""
import pytest
@pytest.fixture(scope="module")
def wide():
    yield
    raise RuntimeError("wide end")

def test_a(wide, veil_run):
    veil_run("cat $WORLD/text")

def test_b(wide, veil_run):
    veil_run("echo b")
""")
    project.given("text", "one\n")
    project.pytest("record", "--veil-keep-failed")
    project.given("text", "two\n")
    done = project.pytest("verify", "-x")
    assert "1 failed, 1 error" in done.text
    assert "wide end" in done.text
    assert done.item("test_b")["verdict"] == "not-run"


def test_a_normaliser_that_fails_is_an_error_of_the_test_and_of_nothing_else(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / "conftest.py").write_text("""
def pytest_veil_normalisers(config):
    from veil.taping import Normaliser
    def fail(text, context):
        if b"bad" in text:
            raise RuntimeError("my own fault")
        return text
    return [Normaliser("mine", 1, "fails", False, ("mine",), fail)]
""")
    project.tests("""
import pytest
@pytest.fixture(scope="module")
def wide():
    yield
    print("wide ended")

def test_bad(wide, veil_run):
    veil_run("cat $WORLD/text")

def test_good(wide, veil_run):
    veil_run("echo good")
""")
    project.given("text", "good")
    project.recorded()
    project.given("text", "bad")
    done = project.pytest("verify", "-s")
    assert done.status == 1
    assert "2 passed, 1 error" in done.text
    assert "my own fault" in done.text
    assert done.text.count("wide ended") == 1
    assert (done.item("test_bad")["verdict"], done.item("test_good")["verdict"]) == ("error", "exact")
    assert "RuntimeError: my own fault" in done.item("test_bad")["why"]


def test_hooks_change_keys_and_steps_for_verify_as_for_a_recording(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / "conftest.py").write_text("""
import dataclasses

def pytest_veil_key(config, nodeid, key):
    return dataclasses.replace(key, command=key.command.split(" #")[0])

def pytest_veil_record(config, nodeid, step):
    return dataclasses.replace(step, files={}, notes={"by": "a hook"})
""")
    project.tests("""
import os
def test_it(veil_run):
    veil_run("cat $WORLD/text # " + os.environ.get("WHICH", "one"))
""")
    project.given("text", "one\n")
    project.recorded()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHICH", "another")
        assert project.pytest("replay").status == 0
        assert project.pytest("verify").words("test_it") == ["exact"]


def test_another_version_of_a_tool_is_the_environment(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("""
def test_uses(veil_run):
    veil_run("mytool")

def test_other(veil_run):
    veil_run("cat $WORLD/text")
""")

    def install(version: int) -> None:
        project.given("mytool", f"#!/bin/sh\necho version {version}\n")
        (project.world / "mytool").chmod(0o755)
        project.given("text", f"{version}\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(project.world), prepend=":")
        install(1)
        project.recorded("--veil-facts")
        install(2)
        done = project.pytest("verify")
    assert done.words("test_uses") == ["environment"]
    assert "mytool was mytool " in done.text
    assert "recorded 'version 1\\n', now 'version 2\\n'" in done.text
    assert done.words("test_other") == ["output-drift"]  # its own tools are what they were
