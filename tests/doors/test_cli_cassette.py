"""``veil cassette``: recordings are made, shown, compared and checked as a user does it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import two_commits
from command_line import veil, veil_json

from veil.taping import decode

NAME = "fix.veil.txtar"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A recording of three commands in a workspace of two files."""
    ws = tmp_path / "ws"
    (ws / "bin").mkdir(parents=True)
    (ws / "a.txt").write_text("one\ntwo\n")
    (ws / "bin/go").write_text("#!/bin/sh\necho gone\n")
    (ws / "bin/go").chmod(0o755)
    done = veil("cassette", "record", NAME, "--workspace", "ws", "--", "bin/go", "echo x > n", "exit 3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path / NAME


def test_a_recording_holds_its_workspace_and_what_was_run(made: Path) -> None:
    tape = decode(made.read_bytes(), NAME)
    assert [step.text for step in tape.steps] == ["bin/go", "echo x > n", "exit 3"]
    assert [step.ending.exit for step in tape.steps] == [0, 0, 3]
    assert tape.steps[0].ending.stdout.head == b"gone\n"
    assert tape.header.workspace.files == {
        "a.txt": (b"one\ntwo\n", 0o644),
        "bin/go": (b"#!/bin/sh\necho gone\n", 0o755),
    }
    assert (tape.header.profile, made.stat().st_mode & 0o777) == ("deterministic", 0o666 & ~_umask())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_workspace_itself_is_left_alone(made: Path) -> None:
    assert sorted(path.name for path in (made.parent / "ws").iterdir()) == ["a.txt", "bin"]


def test_recording_twice_gives_the_same_bytes(made: Path) -> None:
    first = made.read_bytes()
    words = ("cassette", "record", NAME, "--force", "--workspace", "ws", "--", "bin/go", "echo x > n", "exit 3")
    assert veil(*words, cwd=made.parent).returncode == 0
    assert made.read_bytes() == first


def test_a_script_with_expectations(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(
        "# first\n\necho hello\n? exit=0\n? stdout_contains=hell\n  touch f\n? changed=f\n"
    )
    found = veil_json("cassette", "record", NAME, "--script", "script", cwd=tmp_path)
    assert [(step["command"], step["expectations"]) for step in found["steps"]] == [
        ("echo hello", {"held": 2, "of": 2}),
        ("touch f", {"held": 1, "of": 1}),
    ]
    assert found["written"] is True
    tape = decode((tmp_path / NAME).read_bytes(), NAME)
    assert tape.steps[0].expect == (("exit", 0), ("stdout_contains", "hell"))


def test_an_expectation_that_does_not_hold_writes_nothing(tmp_path: Path) -> None:
    script = b"true\nexit 4\n? exit=0\n"
    done = veil("cassette", "record", NAME, "--script", "-", cwd=tmp_path, stdin=script)
    assert done.returncode == 1
    assert b"step 2: exit: exit is 4" in done.stdout
    assert list(tmp_path.iterdir()) == []
    kept = veil("cassette", "record", NAME, "--script", "-", "--keep-failed", cwd=tmp_path, stdin=script)
    assert kept.returncode == 1
    assert len(decode((tmp_path / NAME).read_bytes(), NAME).steps) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("x.txt", "--", "true"), "file"),
        (("no/x.veil.txtar", "--", "true"), "file"),
        ((NAME,), "commands"),
        ((NAME, "--as", "git", "--", "true"), "as"),
        ((NAME, "--revision", "HEAD", "--", "true"), "revision"),
        ((NAME, "--script", "missing"), "script"),
        ((NAME, "--timeout", "soon", "--", "true"), "timeout"),
        ((NAME, "--workspace", "missing", "--", "true"), "missing is no folder"),
    ],
)
def test_bad_input_is_named_and_leaves_no_file(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = veil("cassette", "record", *words, cwd=tmp_path)
    assert done.returncode == 125
    assert said in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_stays(made: Path) -> None:
    before = made.read_bytes()
    done = veil("cassette", "record", NAME, "--", "true", cwd=made.parent)
    assert (done.returncode, b"--force" in done.stderr, made.read_bytes() == before) == (125, True, True)


def test_a_link_cannot_stand_inline_but_a_folder_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/f").write_text("x\n")
    (tmp_path / "ws/l").symlink_to("f")
    words = ("cassette", "record", NAME, "--workspace", "ws")
    done = veil(*words, "--", "cat l", cwd=tmp_path)
    assert (done.returncode, b"a link" in done.stderr) == (125, True)
    assert veil(*words, "--as", "folder", "--", "cat l; ls -l l", cwd=tmp_path).returncode == 0
    tape = decode((tmp_path / NAME).read_bytes(), NAME)
    assert (tape.header.workspace.kind, tape.header.workspace.where) == ("folder", "ws")
    assert tape.steps[0].ending.stdout.head.startswith(b"x\n")
    assert b"l -> f" in tape.steps[0].ending.stdout.head


def test_a_git_revision_with_its_history(tmp_path: Path, commits: Path) -> None:
    words = ("--workspace", commits.name, "--as", "git", "--revision", "HEAD~1")
    done = veil("cassette", "record", NAME, *words, "--", "git log --format=%s; cat f; git status -s", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    tape = decode((tmp_path / NAME).read_bytes(), NAME)
    assert re.fullmatch("[0-9a-f]{40}", tape.header.workspace.revision or "")
    assert tape.steps[0].ending.stdout.head == b"one\n1\n"
    assert b"at " + (tape.header.workspace.revision or "")[:12].encode() in done.stdout


@pytest.fixture
def commits(tmp_path: Path) -> Path:
    """A repository of two commits."""
    return two_commits.repository(tmp_path / "repo")


def test_a_secret_of_the_environment_stands_nowhere_in_the_file(tmp_path: Path) -> None:
    secret = "hunter2-hunter2-Zq81"
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/conf").write_text(f"key = {secret}\n")
    words = ("cassette", "record", NAME, "--workspace", "ws", "--", f"cat conf; echo {secret} | tee out")
    done = veil(*words, cwd=tmp_path, env={"API_TOKEN": secret})
    assert done.returncode == 0, done.stderr
    assert secret.encode() not in (tmp_path / NAME).read_bytes()
    assert secret.encode() not in done.stdout


def test_show_names_every_step(made: Path) -> None:
    done = veil("cassette", "show", NAME, cwd=made.parent)
    text = done.stdout.decode()
    assert done.returncode == 0
    assert text.splitlines()[0].startswith(f"{NAME}: 3 steps, profile deterministic 1, workspace inline (2 files)")
    assert [line.split()[0] for line in text.splitlines()[1::2]] == ["1", "2", "3"]
    assert "A n" in text
    assert "exit 3" in text.splitlines()[-1]


def test_show_one_step_with_what_it_wrote(made: Path) -> None:
    done = veil("cassette", "show", NAME, "--step", "1", cwd=made.parent)
    assert done.stdout.decode().splitlines()[-2:] == ["--- stdout", "gone"]
    data = veil_json("cassette", "show", NAME, "--step", "1", cwd=made.parent)
    assert (data["command"], data["stdout"], data["exit"]) == ("bin/go", "gone\n", 0)
    missing = veil("cassette", "show", NAME, "--step", "4", cwd=made.parent)
    assert (missing.returncode, b"from 1 to 3" in missing.stderr) == (125, True)


def test_show_of_a_torn_file_is_an_error_that_names_the_line(made: Path) -> None:
    made.write_bytes(made.read_bytes()[:300])
    error = veil_json("cassette", "show", NAME, cwd=made.parent, code=125)
    assert error["error"] == "cassette_damaged"
    line = made.read_bytes().count(b"\n") + (not made.read_bytes().endswith(b"\n"))
    assert error["message"] == f"{NAME}:{line}: the file is torn: its last line must be '-- end --'"


def test_diff_of_two_recordings(made: Path) -> None:
    words = ("cassette", "record", "b.veil.txtar", "--workspace", "ws", "--")
    assert veil(*words, "bin/go; echo more", "echo y > n", "exit 3", cwd=made.parent).returncode == 0
    assert veil(*words[:2], "c.veil.txtar", *words[3:], "bin/go", "exit 3", cwd=made.parent).returncode == 0
    same = veil("cassette", "diff", NAME, NAME, cwd=made.parent)
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, b"the same in 3 steps")
    rows = veil_json("cassette", "diff", NAME, "c.veil.txtar", cwd=made.parent, code=1)["steps"]
    assert [(row["word"], row["old"], row["new"]) for row in rows] == [
        ("exact", 1, 1),
        ("removed", 2, None),
        ("exact", 3, 2),
    ]


def test_diff_says_what_differs_in_a_step(tmp_path: Path) -> None:
    for name, text in (("one", "1\n"), ("two", "2\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(text)
        words = ("cassette", "record", f"{name}.veil.txtar", "--workspace", name, "--", "cat f", "cp f g")
        assert veil(*words, cwd=tmp_path).returncode == 0
    rows = veil_json("cassette", "diff", "one.veil.txtar", "two.veil.txtar", cwd=tmp_path, code=1)["steps"]
    assert [row["word"] for row in rows] == ["output-drift", "effect-drift"]
    assert rows[0]["detail"] == r"stdout line 1: recorded '1\n', now '2\n'"


def test_diff_takes_times_out_unless_it_is_to_be_exact(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    for name in ("one", "two"):
        (tmp_path / "ws/log").write_text(f"done in {1 if name == 'one' else 2}.25s\n")
        words = ("cassette", "record", f"{name}.veil.txtar", "--workspace", "ws", "--", "cat log")
        assert veil(*words, cwd=tmp_path).returncode == 0
    files = ("one.veil.txtar", "two.veil.txtar")
    same = veil_json("cassette", "diff", *files, cwd=tmp_path)["steps"][0]
    assert (same["word"], same["masked"]) == ("weak", ["durations"])
    assert veil_json("cassette", "diff", "--exact", *files, cwd=tmp_path, code=1)["steps"][0]["word"] == "output-drift"


def test_check_looks_through_folders(made: Path) -> None:
    deep = made.parent / "deep/er"
    deep.mkdir(parents=True)
    (deep / "good.veil.txtar").write_bytes(made.read_bytes())
    assert veil("cassette", "check", ".", cwd=made.parent).returncode == 0
    (deep / "bad.veil.txtar").write_bytes(made.read_bytes().replace(b"gone\n", b"gone!\n"))
    (deep / "empty.veil.txtar").write_bytes(b"")
    (deep / "new.veil.txtar").write_bytes(made.read_bytes().replace(b"veil cassette 1", b"veil cassette 99", 1))
    found = veil_json("cassette", "check", ".", cwd=made.parent, code=1)
    errors = {Path(row["file"]).name: row.get("error") for row in found["files"]}
    assert errors == {
        "bad.veil.txtar": "cassette_damaged",
        "empty.veil.txtar": "cassette_damaged",
        "new.veil.txtar": "cassette_version",
        "good.veil.txtar": None,
        NAME: None,
    }
    text = veil("cassette", "check", ".", cwd=made.parent).stdout.decode()
    assert "2 of 5 recordings are whole" in text
    assert "edited by hand" in text


def test_check_says_when_a_whole_file_is_not_written_as_veil_writes_it(made: Path) -> None:
    made.write_bytes(made.read_bytes().replace(b'"profile": "deterministic"', b'"profile":    "deterministic"'))
    found = veil_json("cassette", "check", NAME, cwd=made.parent)
    assert "not written as veil writes it" in found["files"][0]["note"]


def test_check_of_nothing_is_not_good(tmp_path: Path) -> None:
    assert veil("cassette", "check", ".", cwd=tmp_path).returncode == 1
    assert veil_json("cassette", "check", "missing.veil.txtar", cwd=tmp_path, code=1)["ok"] is False
