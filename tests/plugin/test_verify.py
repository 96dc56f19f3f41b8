"""Verify mode in real sessions: recorded once, run again, one word a step, and pytest hears of each test once."""

from __future__ import annotations

from pathlib import Path

import pytest
from eval_projects import Project, Ran

SUITE = """
import os
import pytest

def test_exact(veil_run):
    assert veil_run("echo hi; echo err >&2").ok
    veil_run("mkdir d; echo x > d/made")

def test_output(veil_run):
    veil_run("echo fine")
    veil_run("cat $WORLD/text")
    veil_run("echo later")

def test_exit(veil_run):
    veil_run("exit $(cat $WORLD/number)")

def test_effect(veil_run):
    veil_run("cp $WORLD/text made")

def test_random(veil_run):
    veil_run("od -An -N8 -tx1 /dev/urandom")

def test_once(veil_run):  # another one only the first time that it runs after recording
    veil_run("cat $WORLD/first; echo 1 > $WORLD/first")

def test_uuid(veil_run):
    veil_run("cat /proc/sys/kernel/random/uuid")

def test_duration(veil_run):
    veil_run("echo took $(cat $WORLD/number).25 seconds")

def test_unordered(veil_run):
    veil_run("cat $WORLD/lines")

def test_tool(veil_run):
    veil_run("PATH=$WORLD:$PATH; mytool; true")

def test_nothing(veil_run):
    pass

def test_without():
    pass

def test_early(veil_run):
    if veil_run("cat $WORLD/text").stdout != "one\\n":
        pytest.fail("it is another one")
    veil_run("echo second")

def test_leaves(veil_run):
    if os.environ.get("ASK_LESS") != "1":
        veil_run("echo asked")
    veil_run("echo always")

def test_says_no(veil_run):
    veil_run("echo a")
    if os.environ.get("ASK_LESS") == "1":
        with pytest.raises(Exception, match="background"):
            veil_run.start("echo b", expect={"exit": 0})
    else:
        veil_run("echo b")

def test_skips(veil_run):
    veil_run("cat $WORLD/text")
    if os.environ.get("ASK_LESS") == "1":
        pytest.skip("not today")

@pytest.mark.xfail(strict=True)
def test_xfail(veil_run):
    veil_run("cat $WORLD/text")
    assert False
"""


def change(project: Project) -> None:
    """The world is another one."""
    project.given("text", "two\n")
    project.given("number", "7")
    project.given("lines", "b\na\n")
    project.given("first", "0\n")
    (project.world / "mytool").unlink()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("verify"))
    made.tests(SUITE)
    for name, content in {"text": "one\n", "number": "4", "lines": "a\nb\n", "first": "1\n"}.items():
        made.given(name, content)
    made.given("mytool", "#!/bin/sh\necho tool\n")
    (made.world / "mytool").chmod(0o755)
    made.recorded("--veil-keep-failed")
    return made


@pytest.fixture(scope="module")
def same(project: Project) -> Ran:
    return project.pytest("verify", "--deselect=test_it.py::test_random")


@pytest.fixture(scope="module")
def other(project: Project, same: Ran) -> Ran:
    """The world changed, and the tests ask for less."""
    change(project)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASK_LESS", "1")
        return project.pytest("verify", f"--junitxml={project.root.parent / 'junit.xml'}")


def test_the_same_world_is_verified(same: Ran) -> None:
    assert same.status == 0, same.text
    weak_or_better = {"test_uuid": "normalised", "test_nothing": "none", "test_without": "none"}
    for item in same.report["items"]:
        name = item["nodeid"].rpartition("::")[2]
        assert item["verdict"] == weak_or_better.get(name, "exact"), item
    assert {row["runs"]["of"] for item in same.report["items"] for row in item["steps"]} == {1}


@pytest.mark.parametrize(
    ("name", "words", "verdict"),
    [
        ("test_exact", ["exact", "exact"], "exact"),
        ("test_output", ["exact", "output-drift", "exact"], "output-drift"),
        ("test_exit", ["exit-drift"], "exit-drift"),
        ("test_effect", ["effect-drift"], "effect-drift"),
        ("test_random", ["unstable"], "unstable"),
        ("test_once", ["unstable"], "unstable"),
        ("test_uuid", ["normalised"], "normalised"),
        ("test_duration", ["weak"], "weak"),
        ("test_unordered", ["unordered"], "unordered"),
        ("test_tool", ["missing-tool"], "missing-tool"),
        ("test_nothing", [], "none"),
        ("test_without", [], "none"),
        ("test_early", ["output-drift", "skipped"], "output-drift"),
        ("test_leaves", ["skipped", "exact"], "skipped"),
        ("test_says_no", ["exact", "refused"], "refused"),
        ("test_skips", ["output-drift"], "output-drift"),
        ("test_xfail", ["output-drift"], "output-drift"),
    ],
)
def test_another_world_has_one_word_for_each_step(other: Ran, name: str, words: list[str], verdict: str) -> None:
    assert other.words(name) == words
    item = other.item(name)
    assert item["verdict"] == verdict
    same = verdict in ("exact", "normalised", "unordered", "weak", "none")
    # pytest's own words stay: a test that skipped itself or that was meant to fail is not made to fail
    assert item["outcome"] == ("skipped" if name in ("test_skips", "test_xfail") else "passed" if same else "failed")


def test_a_difference_ran_once_more_and_nothing_else_did(other: Ran) -> None:
    rows = {item["nodeid"].rpartition("::")[2]: item["steps"] for item in other.report["items"]}
    assert rows["test_output"][1]["runs"] == {"as_recorded": 0, "of": 2}
    assert rows["test_once"][0]["runs"] == {"as_recorded": 1, "of": 2}
    assert rows["test_duration"][0]["runs"] == {"as_recorded": 1, "of": 1}
    assert rows["test_skips"][0]["runs"]["of"] == 1  # it skipped itself: it is not asked twice


def test_each_test_is_told_once(other: Ran) -> None:
    assert other.status == 1
    assert "9 failed, 6 passed, 1 skipped, 1 xfailed" in other.text


def test_the_message(other: Ran) -> None:
    first = "output-drift at step 2 of 3: stdout line 1: recorded 'one\\n', now 'two\\n'"
    for line in (first, "$ cat $WORLD/text", "-one", "+two", "as recorded in 0 of 2 runs"):
        assert line in other.text
    assert "pytest test_it.py::test_output --veil-mode=refresh" in other.text
    assert f"FAILED test_it.py::test_output - {first}" in other.text


def test_a_test_that_failed_by_itself_keeps_its_failure(other: Ran) -> None:
    assert "it is another one" in other.text  # its own failure
    assert "- veil verify -" in other.text  # and what verify has to say
    assert "output-drift at step 1 of 2" in other.text


def test_the_tool_is_named(other: Ran) -> None:
    assert "missing-tool at step 1 of 1: mytool not found; " in other.text


def test_the_summary_counts(other: Ran) -> None:
    tail = other.text.split("veil: verify =")[1]
    assert "15 recordings: " in tail
    assert "first differences:" in tail
    assert "test_it.py::test_output step 2: output-drift" in tail
    assert "unused steps:" in tail
    assert "test_it.py::test_leaves: 1" in tail
    assert "masked:" in tail


def test_junit_has_plain_properties(project: Project, other: Ran) -> None:
    told = project.junit(project.root.parent / "junit.xml")
    assert told["test_output"] == {
        "veil_mode": "verify",
        "veil_verdict": "output-drift",
        "veil_steps": "3",
        "veil_cassette": "cassettes/test_it.test_output.veil.txtar",
        "veil_first_divergence": "2",
    }
    assert told["test_without"] == {}


def test_verify_writes_no_recording(project: Project, same: Ran, other: Ran) -> None:
    names = sorted(path.name for path in (project.root / "cassettes").iterdir())
    before = {path: path.read_bytes() for path in (project.root / "cassettes").iterdir()}
    project.pytest("verify", "-k", "test_output or test_exact")
    assert names == sorted(path.name for path in (project.root / "cassettes").iterdir())
    assert before == {path: path.read_bytes() for path in before}


def test_runs_give_n_of_n_and_a_proposal(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("""
def test_uuid(veil_run):
    veil_run("echo fine")
    veil_run("cat /proc/sys/kernel/random/uuid")

def test_random(veil_run):
    veil_run("od -An -N8 -tx1 /dev/urandom")
""")
    project.recorded()
    bare = project.pytest("verify", "--veil-runs=3", "--veil-normalise=none")
    assert bare.words("test_uuid") == ["exact", "unstable"]
    fine, wild = bare.item("test_uuid")["steps"]
    assert fine["runs"] == {"as_recorded": 3, "of": 3}
    assert wild["runs"] == {"as_recorded": 0, "of": 3}
    assert wild["proposal"] == ["uuids"]
    assert bare.item("test_random")["steps"][0]["proposal"] == []
    assert "it would be the same with the normalisers uuids" in bare.text
    assert "veil: verify x3" in bare.text
    full = project.pytest("verify", "--veil-runs=3", "-k", "uuid")
    assert full.status == 0, full.text
    assert full.words("test_uuid") == ["exact", "normalised"]
    assert full.item("test_uuid")["steps"][1]["runs"] == {"as_recorded": 3, "of": 3}
    assert full.item("test_uuid")["steps"][1]["needed"] == ["uuids"]


def test_a_test_that_itself_is_shaky_fails_with_its_own_words(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.tests("""
import pathlib, os
def test_it(veil_run):
    veil_run("echo same")
    marks = pathlib.Path(os.environ["WORLD"]) / "marks"
    marks.write_text(marks.read_text() + "x")
    assert marks.read_text() != "xxx", "not three"
""")
    project.given("marks", "")
    project.recorded()
    done = project.pytest("verify", "--veil-runs=3")
    assert done.status == 1
    assert "the test itself failed in 1 of 3 runs" in done.text
    assert "not three" in done.text
    assert (done.item("test_it")["verdict"], done.item("test_it")["outcome"]) == ("exact", "failed")


def test_workers_give_the_same_verdicts(project: Project, other: Ran) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASK_LESS", "1")
        done = project.pytest("verify", "-n2", "-k", "not test_once and not test_random")
    assert done.status == 1, done.text

    def told(ran: Ran) -> dict[str, tuple[str, str, list[str]]]:
        left_out = ("test_once", "test_random")
        return {
            item["nodeid"]: (item["outcome"], item["verdict"], [step["word"] for step in item["steps"]])
            for item in ran.report["items"]
            if not item["nodeid"].endswith(left_out)
        }

    assert told(done) == told(other)
    assert "output-drift at step 2 of 3: stdout line 1: recorded 'one\\n', now 'two\\n'" in done.text
