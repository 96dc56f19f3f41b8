"""The fixture ``checkpoint``: rolling back, labels, its short name, and the same verdicts in every mode."""

# over 300 lines because: half of it is the bodies of tests that are run in every mode

from __future__ import annotations

import re

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

MODES = ("record", "replay", "verify", "live")

#: Every body holds live, recorded, replayed and verified.
BODIES = """
    import os
    import socket

    import pytest

    import veil


    def tree(root):
        found = {}
        for folder, names, files in os.walk(root):
            for name in (*names, *files):
                path = os.path.join(folder, name)
                if ".git" not in path.split(os.sep):
                    what = os.readlink(path) if os.path.islink(path) else None
                    if what is None and os.path.isfile(path):
                        what = open(path, "rb").read()
                    found[os.path.relpath(path, root)] = (os.lstat(path).st_mode, what)
        return found


    def test_a_block_is_rolled_back(veil_run, checkpoint):
        veil_run("mkdir d empty; echo a > a; echo b > d/b; ln -s a link; chmod 640 a")
        before = tree(veil_run.root)
        with checkpoint() as kept:
            veil_run("rm -r a d; mkdir -p late/er; echo x > late/er/x; chmod 700 empty; ln -snf late link; : > d")
            assert [change.path for change in kept.diff()] == [
                "a", "d", "d/b", "empty", "late", "late/er", "late/er/x", "link"
            ] or [change.path for change in kept.diff()] == [
                "a", "d", "empty", "late", "late/er", "late/er/x", "link"
            ]
            assert veil_run("cat late/er/x").stdout == "x\\n"
        assert kept.diff() == []
        assert tree(veil_run.root) == before
        assert veil_run("cat a d/b").stdout == "a\\nb\\n"


    def test_the_same_command_again(veil_run, checkpoint):
        veil_run("echo one > log")
        for _ in range(3):
            with checkpoint():
                result = veil_run("echo more >> log; cat log")
                assert result.stdout == "one\\nmore\\n"
                assert [change.path for change in result.files_changed] == ["log"]
        assert veil_run("cat log").stdout == "one\\n"


    def test_labels(veil_run, checkpoint):
        (veil_run.root / "f").write_text("0")
        zero = checkpoint("zero")
        veil_run("echo 1 > f")
        checkpoint("../one")
        veil_run("echo 2 > f; touch g")
        assert [(c.path, c.change) for c in zero.diff()] == [("f", "modified"), ("g", "created")]
        assert [c.path for c in checkpoint.diff("../one")] == ["f", "g"]
        done = checkpoint.restore("../one")
        assert (done.counts["replaced"], done.counts["deleted"], dict(done.left)) == (1, 1, {})
        assert veil_run("cat f").stdout == "1\\n"
        zero.restore()
        assert (veil_run.root / "f").read_text() == "0"
        checkpoint.restore("before-restore")
        assert veil_run("cat f").stdout == "1\\n"
        assert {kept.label for kept in checkpoint.list()} == {"before-restore", "../one", "zero"}
        with pytest.raises(veil.NotFound):
            checkpoint.restore("two")
        with pytest.raises(veil.BadInput):
            checkpoint("")


    def test_blocks_in_blocks(veil_run, checkpoint):
        with checkpoint():
            veil_run("echo outer > f")
            with checkpoint():
                veil_run("echo inner > f")
            assert veil_run("cat f").stdout == "outer\\n"
        assert os.listdir(veil_run.root) == []


    def test_what_the_block_raised_goes_on(veil_run, checkpoint):
        with pytest.raises(ZeroDivisionError), checkpoint():
            veil_run("touch f")
            1 / 0
        assert os.listdir(veil_run.root) == []


    def test_each_test_has_its_own(veil_run, checkpoint):
        assert checkpoint.list() == []
        with pytest.raises(veil.NotFound):
            checkpoint.restore()


    def test_a_repository(veil_run, checkpoint):
        git = "git -c user.name=t -c user.email=t@example.org"
        veil_run(f"git init -q; echo 1 > f; git add f; {git} commit -q -m one")
        with checkpoint() as kept:
            veil_run(f"echo 2 > f; {git} commit -q -a -m two")
            assert [change.path for change in kept.diff()] == ["f"]
        assert veil_run("git log --format=%s; git status --porcelain").stdout == "one\\n"


    def test_files_of_the_test_itself(veil_run, checkpoint):
        with checkpoint():
            (veil_run.root / "given").write_text("given")
            assert veil_run("cat given; rm given").stdout == "given"
        with checkpoint():
            (veil_run.root / "given").write_text("again")
            assert veil_run("cat given").stdout == "again"
        assert os.listdir(veil_run.root) == []


    def test_background(veil_run, checkpoint):
        with checkpoint():
            server = veil_run.start("echo x > f; echo up; sleep 100")
            server.wait_for(pattern="up")
            server.kill()
        assert os.listdir(veil_run.root) == []
        assert veil_run("ls").stdout == ""


    def test_the_long_name(veil_run, checkpoint, veil_checkpoint):
        assert checkpoint is veil_checkpoint
        with veil_checkpoint("a") as kept:
            veil_run("touch f")
        assert kept.checkpoint.label == "a"


    def test_before_any_command(veil_checkpoint):
        with veil_checkpoint():
            pass
"""

FAILING = """
    import os

    def test_wrong_diff(veil_run, checkpoint):
        with checkpoint() as kept:
            veil_run("touch f g")
            assert [change.path for change in kept.diff()] == ["f"]

    def test_not_rolled_back(veil_run, checkpoint):
        veil_run("echo a > f")
        checkpoint("a")
        veil_run("echo b > f")
        assert veil_run("cat f").stdout == "b\\n"
        assert (veil_run.root / "f").read_text() == "a\\n"

    def test_gone_with_it(veil_run, checkpoint):
        with checkpoint():
            veil_run("touch f")
        assert os.listdir(veil_run.root) == ["f"]
"""


def test_one_body_passes_in_every_mode(suite: Suite) -> None:
    suite.write("test_it.py", BODIES)
    suite.run().assert_outcomes(passed=11)
    for mode in MODES:
        suite.run(f"--veil-mode={mode}").assert_outcomes(passed=11)
    recorded = suite.cassettes()
    suite.run("--veil-mode=record").assert_outcomes(passed=11)
    assert suite.cassettes() == recorded  # the same behaviour is the same bytes
    assert "test_it.test_before_any_command.veil.txtar" not in recorded


def test_a_replay_starts_no_process(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write("test_it.py", BODIES)
    suite.run("--veil-mode=record").assert_outcomes(passed=11)
    monkeypatch.setenv("PATH", "/nowhere")
    suite.run("--veil", "--veil-unused=error").assert_outcomes(passed=11)


def test_what_fails_fails_in_every_mode_and_says_the_same(suite: Suite) -> None:
    suite.write("test_it.py", FAILING)
    told = {}
    for mode in ("live", "record", "replay"):
        more = ["--veil-keep-failed"] if mode == "record" else []
        result = suite.run(f"--veil-mode={mode}", *more)
        result.assert_outcomes(failed=3)
        told[mode] = re.findall(r"^E +(.*)", result.stdout.str(), re.MULTILINE)
    assert told["live"] == told["record"] == told["replay"]
    assert len(told["live"]) >= 3


def test_a_workspace_that_is_not_as_it_was_fails_the_test(suite: Suite) -> None:
    """A program goes on writing while the block is rolled back; its end is waited for by nobody."""
    suite.write(
        "test_it.py",
        """
        import threading

        def test_it(veil_run, checkpoint):
            stop = threading.Event()

            def write():
                while not stop.is_set():
                    (veil_run.root / "restless").write_text("x")

            writer = threading.Thread(target=write)
            try:
                with checkpoint():
                    writer.start()
                    while not (veil_run.root / "restless").exists():
                        pass
                    raise LookupError("of the block")
            finally:
                stop.set()
                writer.join()
        """,
    )
    result = suite.run()
    result.assert_outcomes(failed=1)
    told = result.stdout.str()
    assert re.search(r"^E .*the workspace (is not what it was|was not rolled back)", told, re.MULTILINE)
    assert "restless" in told
    assert "LookupError: of the block" in told  # what went wrong first is told as well


def test_used_after_its_end_it_fails(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        KEPT = []

        def test_one(checkpoint):
            KEPT.append(checkpoint("a"))

        def test_two():
            KEPT[0].restore()
        """,
    )
    result = suite.run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*used after its end*"])


def test_nothing_of_it_stays(suite: Suite) -> None:
    suite.write("test_it.py", BODIES)
    suite.run("--basetemp=temp").assert_outcomes(passed=11)
    assert not list((suite.path / "temp").rglob("checkpoints*"))


# -- the short name

PLAIN = """
    def test_it(checkpoint, sandbox):
        print("got", type(checkpoint).__name__, type(sandbox).__name__)
"""
OWN = """
    import pytest

    @pytest.fixture
    def checkpoint():
        return 1

    @pytest.fixture(name="sandbox")
    def of_the_project():
        return "s"
"""


@pytest.mark.parametrize("where", ["conftest.py", "test_it.py", "plugin.py"])
def test_a_fixture_of_the_project_comes_first(suite: Suite, where: str) -> None:
    """Of its module, of its conftest file, or of another plugin that it loads."""
    suite.write("test_it.py", PLAIN if where != "test_it.py" else OWN + PLAIN)
    if where != "test_it.py":
        suite.write(where, OWN)
    more = ["-p", "plugin"] if where == "plugin.py" else []
    result = suite.run("-s", *more)
    result.assert_outcomes(passed=1)
    # the attribute of that plugin has another name than its fixture, which nobody can see from outside
    result.stdout.fnmatch_lines(["*got int *" if where == "plugin.py" else "*got int str*"])


def test_the_short_names_can_be_left_out(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        def test_long(veil_checkpoint, veil_sandbox):
            pass

        def test_short(checkpoint):
            pass

        def test_box(sandbox):
            pass
        """,
    )
    suite.run().assert_outcomes(passed=3)
    suite.write("pytest.ini", "[pytest]\nveil_short_fixtures = false\n")
    result = suite.run()
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["*fixture 'checkpoint' not found*", "*fixture 'sandbox' not found*"])
    suite.run("-o", "veil_short_fixtures=true").assert_outcomes(passed=3)
    wrong = suite.run("-o", "veil_short_fixtures=perhaps")
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(["ERROR: *veil_short_fixtures*perhaps*"])


def test_with_a_fake_disk_it_keeps_the_real_one(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        import os

        def test_it(veil_run, checkpoint, fs):
            fs.create_file("/f", contents="fake")
            veil_run("echo real > f")
            with checkpoint() as kept:
                veil_run("echo other > f; touch g")
                assert [change.path for change in kept.diff()] == ["f", "g"]
            assert veil_run("ls; cat f").stdout == "f\\nreal\\n"
            assert open("/f").read() == "fake"
        """,
    )
    suite.run().assert_outcomes(passed=1)
    for mode in ("record", "replay"):
        suite.run(f"--veil-mode={mode}").assert_outcomes(passed=1)


HISTORIES = """
    import hashlib
    import os
    import random

    import pytest

    STEPS = [
        "echo {n} > f{a}", "echo {n} >> f{b}; true", "rm -rf d{a}", "mkdir -p d{a}/e; echo {n} > d{a}/e/f",
        "mv f{a} f{b} || true", "ln -sfn f{a} l{b}", "chmod 7{a}{b} f{a} || true", "rm -f f{a}; mkdir f{a} || true",
        "rm -rf f{a} l{b}", "cat f{a} d{b}/e/f", "cp -r d{a} d{b} || true", "printf '\\\\0\\\\377' > f{b} || true",
        "find . -type f | LC_ALL=C sort", "true",
    ]


    def state(root):
        found = []
        for folder, names, files in os.walk(root):
            for name in (*names, *files):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                what = os.readlink(path) if os.path.islink(path) else ""
                if os.path.isfile(path) and not os.path.islink(path):
                    what = open(path, "rb").read().hex()
                mode = 0 if os.path.islink(path) else status.st_mode
                found.append((os.path.relpath(path, root), mode, what))
        return sorted(found)


    @pytest.mark.parametrize("seed", range(8))
    def test_it(veil_run, checkpoint, seed, request):
        chance = random.Random(seed)
        told, kept = [], []

        def some(depth):
            for _ in range(chance.randint(1, 4)):
                what = chance.random()
                if what < 0.2 and depth < 3:
                    before = state(veil_run.root)
                    with checkpoint() as inner:
                        some(depth + 1)
                        told.append([(c.path, c.change, c.kind) for c in inner.diff()])
                    assert state(veil_run.root) == before
                elif what < 0.3:
                    kept.append((checkpoint(f"n{len(kept)}"), state(veil_run.root)))
                elif what < 0.4 and kept:
                    handle, then = chance.choice(kept)
                    told.append(sorted(handle.restore().counts.items()))
                    assert state(veil_run.root) == then
                else:
                    a, b, n = (chance.randint(0, most) for most in (3, 3, 9))
                    result = veil_run(chance.choice(STEPS).format(a=a, b=b, n=n))
                    told.append((result.exit, result.stdout, [c.path for c in result.files_changed]))
                told.append(state(veil_run.root))

        for _ in range(4):
            some(0)
        print("told", seed, hashlib.sha256(repr(told).encode()).hexdigest())
"""


def test_any_history_is_the_same_in_every_mode(suite: Suite) -> None:
    """Commands, blocks and restores at random: what they told and what was there, by one hash for each history."""
    suite.write("test_it.py", HISTORIES)
    told = {}
    for mode in ("live", "record", "replay", "verify"):
        result = suite.run(f"--veil-mode={mode}", "-s")
        result.assert_outcomes(passed=8)
        told[mode] = sorted(set(re.findall(r"told \d+ [0-9a-f]{64}", result.stdout.str())))
        assert len(told[mode]) == 8
    assert told["live"] == told["record"] == told["replay"] == told["verify"]
