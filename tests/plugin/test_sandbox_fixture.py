"""The fixture ``sandbox``: commands of a workspace run confined, and files are put there from three kinds of source."""

from __future__ import annotations

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

#: What has a user namespace to confine in; the tests of the layer ask every backend there is.
CONFINED = pytest.mark.needs("bubblewrap")

BODIES = """
    import os

    import pytest

    import veil


    def test_it_writes_only_here(sandbox):
        box = sandbox()
        result = box.run("echo in > made; echo out > ../outside")
        assert result.created == ["made"]
        assert (box.root / "made").read_text() == "in\\n"
        assert not (box.root.parent / "outside").exists()
        assert result.to_dict()["sandboxed"] is True


    def test_without_network(sandbox, veil_run):
        code = "import socket; socket.create_connection((\\"127.0.0.1\\", 9), 5)"
        assert not sandbox(network=False).run(["python3", "-c", code]).ok
        box = sandbox(network=False)
        assert box.root == veil_run.root
        assert box.run("echo x", expect={"stdout_contains": "x"}).assert_ok


    def test_further_folders(sandbox, veil_run):
        veil_run("mkdir one two three")
        box = sandbox(writable=[veil_run.root / "two"])
        assert box.run("touch f ../two/f", cwd="one").ok
        assert not box.run("touch ../three/f", cwd="one").ok
        assert [(veil_run.root / name / "f").exists() for name in ("one", "two", "three")] == [True, True, False]


    def test_it_meets_checkpoints(sandbox, checkpoint):
        box = sandbox().populate({"f": "first"})
        with checkpoint() as kept:
            box.run("echo second > f; touch g")
            assert [change.path for change in kept.diff()] == ["f", "g"]
        assert box.run("ls; cat f").stdout == "f\\nfirst"


    def test_background(sandbox):
        box = sandbox()
        handle = box.start("touch ../outside; touch made; echo up; sleep 100")
        handle.wait_for(pattern="up")
        handle.kill()
        assert os.listdir(box.root) == ["made"]
        assert not (box.root.parent / "outside").exists()


    def test_what_is_wrong_is_told(sandbox):
        with pytest.raises(veil.BadInput, match="sandbox.netwrok"):
            sandbox(netwrok=False).run("true")
        with pytest.raises(veil.BadInput, match="^sandbox"):
            sandbox().run("true", sandbox=False)
"""


@CONFINED
def test_one_body_passes_in_every_mode(suite: Suite) -> None:
    suite.write("test_it.py", BODIES)
    suite.run().assert_outcomes(passed=6)
    for mode in ("record", "replay", "verify", "live"):
        suite.run(f"--veil-mode={mode}").assert_outcomes(passed=6)


@CONFINED
def test_a_replay_needs_nothing_to_confine_with(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine of a replay cannot grant what was asked: it is told that this backend is not there."""
    body = """
        def test_it(sandbox):
            assert sandbox(backend={!r}).run("echo x; touch f").created == ["f"]
    """
    suite.write("test_it.py", body.format("bubblewrap"))
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    suite.write("test_it.py", body.format("no-such-backend"))
    suite.run("--veil-mode=live").assert_outcomes(failed=1)
    monkeypatch.setenv("PATH", "/nowhere")
    suite.run("--veil").assert_outcomes(passed=1)


@CONFINED
def test_a_recording_answers_only_what_is_confined_as_it_was(suite: Suite) -> None:
    body = """
        def test_it(sandbox, veil_run):
            veil_run("mkdir d")
            assert {}.ok
    """
    asked = ("sandbox(deny_read=[veil_run.root / 'd']).run('echo x')", "sandbox().run('echo x')", "veil_run('echo x')")
    for recorded in asked:
        suite.write("test_it.py", body.format(recorded))
        suite.run("--veil-mode=record").assert_outcomes(passed=1)
        for other in asked:
            suite.write("test_it.py", body.format(other))
            done = suite.run("--veil")
            if other == recorded:
                done.assert_outcomes(passed=1)
            else:
                done.assert_outcomes(failed=1)
                done.stdout.fnmatch_lines(["*never recorded: echo x*", "*confined: asked *, recorded *"])


@CONFINED
def test_folders_of_this_machine_are_not_in_the_recording(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
        def test_it(sandbox, veil_run):
            veil_run("mkdir d")
            assert sandbox(deny_read=[veil_run.root / "d"]).run("echo x").ok
            print("root", veil_run.root)
        """,
    )
    done = suite.run("--veil-mode=record", "-s")
    done.assert_outcomes(passed=1)
    root = next(line.split()[-1] for line in done.outlines if "root /" in line)
    (recorded,) = suite.cassettes().values()
    assert b"<root>/d" in recorded
    assert root.encode() not in recorded


# -- populate needs no sandbox

FROM_A_MAPPING = """
    import os

    import pytest

    import veil


    def test_a_mapping(sandbox, veil_run):
        box = sandbox()
        files = {"a": "text\\n", "b/c": b"\\x00\\xff", "d": {"e": {"f": "deep"}, "empty": {}}, "né w": ""}
        assert box.populate(files) is box
        assert (box.root / "a").read_text() == "text\\n"
        assert (box.root / "b" / "c").read_bytes() == b"\\x00\\xff"
        assert (box.root / "d" / "e" / "f").read_text() == "deep"
        assert os.listdir(box.root / "d" / "empty") == []
        assert veil_run("cat a d/e/f").stdout == "text\\ndeep"
        box.populate({"f": "other"}, into="d/e").populate({"a": "new"})
        assert veil_run("cat a d/e/f").stdout == "newother"


    @pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "", ".", "a\\0b", 7])
    def test_names_that_lead_out(sandbox, veil_run, name):
        for files in ({name: "x"}, {"d": {name: "x"}}):
            with pytest.raises(veil.BadInput):
                sandbox().populate({"first": "x", **files})
        if name != ".":
            with pytest.raises(veil.BadInput):
                sandbox().populate({"f": "x"}, into=name)
        assert os.listdir(veil_run.root) == []


    def test_links_that_lead_out(sandbox, veil_run, tmp_path):
        (tmp_path / "victim").write_text("precious")
        (veil_run.root / "d").symlink_to(tmp_path)
        (veil_run.root / "f").symlink_to(tmp_path / "victim")
        with pytest.raises(veil.Refused) as caught:
            sandbox().populate({"first": "x", "d/victim": "lost"})
        assert caught.value.code == "not_applied"
        assert not (veil_run.root / "first").exists()
        sandbox().populate({"f": "mine"})
        assert (veil_run.root / "f").read_text() == "mine"
        assert not (veil_run.root / "f").is_symlink()
        assert (tmp_path / "victim").read_text() == "precious"


    @pytest.mark.parametrize("source", [7, None, ["a"], {"a": 7}, {"a": None}])
    def test_no_source(sandbox, source):
        with pytest.raises(veil.BadInput):
            sandbox().populate(source)


    def test_a_folder_and_a_file(sandbox, veil_run, tmp_path):
        (tmp_path / "src" / "sub").mkdir(parents=True)
        (tmp_path / "src" / "tool").write_text("#!/bin/sh\\necho ran\\n")
        (tmp_path / "src" / "tool").chmod(0o755)
        (tmp_path / "src" / "sub" / "link").symlink_to("../tool")
        sandbox().populate(tmp_path / "src")
        assert veil_run("./tool; sub/link").stdout == "ran\\nran\\n"
        sandbox().populate(str(tmp_path / "src" / "tool"), into="copy")
        assert sorted(os.listdir(veil_run.root)) == ["copy", "sub", "tool"]
        with pytest.raises(veil.BadInput):
            sandbox().populate(tmp_path / "none")
"""

FROM_A_FAKE = """
    import os

    import pytest
    from pyfakefs.fake_filesystem import FakeFilesystem

    import veil


    def filled(fs):
        fs.create_file("/project/a", contents="fake a", st_mode=0o100640)
        fs.create_file("/project/sub/b", contents=b"\\x00\\xff")
        fs.create_dir("/project/empty")
        fs.create_symlink("/project/link", "a")
        return fs


    def check(veil_run):
        assert veil_run("find . | LC_ALL=C sort").stdout.split() == [
            ".", "./project", "./project/a", "./project/empty", "./project/link", "./project/sub", "./project/sub/b"
        ]
        assert veil_run("cat project/link").stdout == "fake a"
        assert veil_run("od -An -tx1 project/sub/b").stdout.split() == ["00", "ff"]
        assert veil_run("stat -c %a project/a").stdout == "640\\n"


    def test_in_place_of_the_real_one(sandbox, veil_run, fs):
        sandbox().populate(filled(fs))
        check(veil_run)
        assert os.path.exists("/project/a")  # the fake one is still there
        assert not os.path.exists(veil_run.root / "project")


    def test_relative_names_of_the_test(sandbox, veil_run, fs):
        with open("rel", "w") as file:
            file.write("relative")
        sandbox().populate(fs)
        assert veil_run("ls; cat rel").stdout == "rel\\nrelative"


    def test_beside_the_real_one(sandbox, veil_run):
        sandbox().populate(filled(FakeFilesystem()))
        check(veil_run)


    def test_a_folder_of_it(sandbox, veil_run, fs):
        box = sandbox().populate(filled(fs), below="/project/sub")
        assert veil_run("ls").stdout == "b\\n"
        box.populate("/project/sub", into="by-path")
        assert veil_run("ls by-path").stdout == "b\\n"
        with pytest.raises(veil.BadInput, match="^below"):
            box.populate(fs, below="/none")
        with pytest.raises(veil.BadInput, match="^below"):
            box.populate(fs, below="/project/a")


    def test_what_it_lends_from_the_real_one(sandbox, veil_run, fs):
        fs.add_real_file(__file__, target_path="/lent/test.py")
        sandbox().populate(fs, below="/lent")
        assert "def test_what_it_lends" in veil_run("cat test.py").stdout
"""


@pytest.mark.parametrize("body", [FROM_A_MAPPING, FROM_A_FAKE], ids=["mapping", "fake"])
def test_populate_in_every_mode(suite: Suite, body: str) -> None:
    suite.write("test_it.py", body)
    many = 15 if body is FROM_A_MAPPING else 5
    suite.run().assert_outcomes(passed=many)
    for mode in ("record", "replay", "verify"):
        suite.run(f"--veil-mode={mode}").assert_outcomes(passed=many)
