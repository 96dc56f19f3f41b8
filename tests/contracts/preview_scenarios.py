"""What every way of making a preview has to keep, one function each.

Run by the contract test, in its own process or, as ``python preview_scenarios.py SCENARIO METHOD FOLDER``, in one of
another user.
"""

# over 300 lines because: it is one contract, and one file that another user can be given to run

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import veil
from veil import pipeline, wiring
from veil.builtin import kept_previews
from veil.host.orders import Controls, Listener
from veil.host.views import Method
from veil.layers.preview import PreviewLayer
from veil.model.command import Preview

SCENARIOS: dict[str, Callable[[Desk], None]] = {}


def scenario(function: Callable[[Desk], None]) -> Callable[[Desk], None]:
    SCENARIOS[function.__name__] = function
    return function


class Desk:
    """A folder of its own for one scenario: ``root`` is the tree, ``base`` what is around it."""

    def __init__(self, base: Path, way: str) -> None:
        """``way``: a method, or ``bare copy``: one that is run in as what it is."""
        self.base, self.cover = base, way != "bare copy"
        self.method: Method = way.removeprefix("bare ")  # type: ignore[assignment]  # one of three words
        self.root = base / 'it\'s a "tree",\n: \\ \u00e9'
        self.root.mkdir()
        self.outside = base / "outside"
        self.outside.mkdir()
        (self.outside / "precious").write_text("precious")

    def preview(self, command: Any, listener: Listener | None = None, **options: Any) -> veil.Result:
        """One previewed run, by this method alone."""
        session = wiring.session(dict(os.environ))
        assert session.state is not None
        state = session.state
        layer = PreviewLayer(
            state / "previews" / "rooms",
            partial(kept_previews, session.settings, state),
            own=(str(state),),
            methods=[self.method],
            cover=self.cover,
        )
        others = tuple(each for each in session.kit.layers if each.name != "preview")
        kit = dataclasses.replace(session.kit, layers=(*others, layer), wishes={**session.kit.wishes, Preview: layer})
        check = options.pop("check", False)
        request = session.request(command, {"cwd": self.root, **options, "preview": True})
        result = veil.Result(pipeline.run(kit, request, dict(os.environ), Controls(listener=listener)))
        assert result.previewed
        assert not check or result.ok, result.stderr
        assert result.preview_method == result.effects_source == self.method
        return result

    def seen(self, root: Path | None = None) -> dict[str, Any]:
        """Bytes and metadata of the tree, all but the time of last reading."""
        found: dict[str, Any] = {}
        top = root or self.root
        for folder, names, files in os.walk(top):
            for path in (Path(folder), *(Path(folder, name) for name in (*names, *files))):
                s = os.lstat(path)
                content: Any = None
                if path.is_symlink():
                    content = os.readlink(path)
                elif path.is_file():
                    content = path.read_bytes()
                facts = (s.st_mode, s.st_ino, s.st_nlink, s.st_uid, s.st_gid, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
                found[str(path.relative_to(top))] = (*facts, content)
        return found


def rows(result: veil.Result) -> list[tuple[str, str, str]]:
    return [(change.path, change.change, change.kind) for change in result.files_changed]


def refused(code: str, id: str) -> veil.Refused:
    """The refusal to apply the preview ``id``."""
    try:
        veil.apply(id)
    except veil.Refused as refusal:
        if refusal.code != code:
            raise
        return refusal
    raise AssertionError(f"it was not refused ({code})")


@scenario
def tells_exactly_and_leaves_the_tree_alone(desk: Desk) -> None:
    root = desk.root
    for name in ("appended", "mode", "opened", "touched", "moved", "gone", "turned", "put back"):
        (root / name).write_text(name)
    for name in ("emptied", "replaced", "full"):
        (root / name).mkdir()
        (root / name / "inner").write_text("inner")
    (root / "empty").mkdir()
    (root / "link").symlink_to("gone")
    os.utime(root / "moved", ns=(1, 1_600_000_000_123_456_789))
    os.chmod(root / "full" / "inner", 0o400)
    before = desk.seen()
    text = """
        echo more >> appended; chmod 600 mode; : >> opened; touch touched; mv moved 'new name'; rm gone
        rm turned; mkdir turned; echo x > turned/x; cp -p 'put back' t; echo other > 'put back'; mv t 'put back'
        rm emptied/inner; rm -r replaced; echo file > replaced; rm -r full; mkdir full; echo new > full/other
        rmdir empty; ln -sfn appended link; mkdir fresh; mkfifo fifo; touch -- -dash; echo 1 > "$(printf 'a\\nb')"
    """
    result = desk.preview(text, check=True)
    assert desk.seen() == before
    assert rows(result) == [
        ("-dash", "created", "file"),
        ("a\nb", "created", "file"),
        ("appended", "modified", "file"),
        ("emptied/inner", "deleted", "file"),
        ("empty", "deleted", "dir"),
        ("fifo", "created", "fifo"),
        ("fresh", "created", "dir"),
        ("full/inner", "deleted", "file"),
        ("full/other", "created", "file"),
        ("gone", "deleted", "file"),
        ("link", "modified", "symlink"),
        ("mode", "mode", "file"),
        ("new name", "renamed", "file"),
        ("replaced", "created", "file"),
        ("replaced/inner", "deleted", "file"),
        ("turned", "deleted", "file"),
        ("turned/x", "created", "file"),
    ]
    assert next(change.old for change in result.files_changed if change.change == "renamed") == "moved"


@scenario
def changes_nothing_when_the_command_changes_nothing(desk: Desk) -> None:
    (desk.root / "a").write_text("a")
    before = desk.seen()
    result = desk.preview("cat a; : >> a; chmod 600 a; chmod 644 a; mkdir x; rmdir x")
    assert result.stdout == "a"
    assert rows(result) == []
    assert desk.seen() == before
    assert veil.apply(result.id).paths == 0
    assert desk.seen() == before


@scenario
def judges_by_what_stands_in_the_view(desk: Desk) -> None:
    root = desk.root
    (root / "old").write_text("old")
    (root / "sub").mkdir()
    (root / "way").symlink_to("sub")
    (root / "way out").symlink_to(desk.outside)
    result = desk.preview(
        "rm old; echo new > new; echo in > way/in; ln -s nowhere dangling; chmod 700 sub",
        expect={
            "file_exists": ["new", str(root / "new"), "way/in", "sub/../sub/in", "dangling", "way out/precious"],
            "file_absent": ["old", str(root / "old"), "in"],
            "changed": ["new", "old", "sub/in", "dangling", "sub"],
        },
    )
    assert result.assert_ok is True, result.assertions_failed + result.assertions_inconclusive
    facts = result.record.observation.findings.files
    assert (facts["new"].kind, facts["new"].size) == ("file", 4)
    failed = desk.preview("rm old", expect={"file_exists": "old"})
    assert failed.assert_ok is False
    assert (root / "old").exists()


@scenario
def runs_as_it_would_without(desk: Desk) -> None:
    """Words, environment, streams, ends, signals, limits."""
    script = 'printf "%s|" "$@"; env | grep -c "^LC_CTYPE="; umask; cat; echo err >&2; pwd; exit 7'
    words = ["sh", "-c", script, "it's", "", "a\nb", os.fsdecode(b"\xff"), "--", "*"]
    env: dict[str, str | None] = {"LC_ALL": None, "LC_CTYPE": None, "LANG": "C", "ODD": os.fsdecode(b"\xfe\n")}
    real = veil.run(words, cwd=desk.root, stdin=b"in\0put", env=env)
    seen = desk.preview(words, stdin=b"in\0put", env=env)
    assert (seen.exit, seen.stderr_bytes) == (real.exit, real.stderr_bytes) == (7, b"err\n")
    if desk.cover:
        assert seen.stdout_bytes == real.stdout_bytes
    else:  # its last line is where it ran
        assert seen.stdout_bytes.startswith(real.stdout_bytes.removesuffix(os.fsencode(f"{desk.root}\n")))
        assert "paths in what it wrote differ" in "".join(seen.to_dict()["preview_gaps"])
    assert desk.preview("kill -SEGV $$").signal == "SIGSEGV"
    assert desk.preview("yes | head -1; echo ${PIPESTATUS[0]}").stdout == "y\n141\n"
    ended = desk.preview("echo x > x; sleep 30", timeout=1)
    assert (ended.ended, ended.exit, rows(ended)) == ("timed_out", 124, [("x", "created", "file")])
    missing = desk.preview(["no-such-program-anywhere"])
    same = veil.run(["no-such-program-anywhere"], cwd=desk.root)
    # 127, or 126 where a folder of PATH is closed to this user
    assert (missing.ended, missing.exit) == (same.ended, same.exit)
    assert missing.ended == "spawn_failed"
    (desk.root / "no program").write_text("x")
    assert desk.preview(["./no program"]).exit == 126
    contained = desk.preview("echo hi > x; (setsid sleep 30 &) ; exit 3", contain=True)
    assert (contained.exit, contained.survivors, rows(contained)) == (3, "none", [("x", "created", "file")])
    assert os.listdir(desk.root) == ["no program"]


@scenario
def retries_find_what_came_before(desk: Desk) -> None:
    result = desk.preview("echo x >> log; [ $(wc -l < log) = 3 ]", retries=5)
    assert (result.exit, result.attempts, rows(result)) == (0, 3, [("log", "created", "file")])
    veil.apply(result.id)
    assert (desk.root / "log").read_text() == "x\n" * 3


@scenario
def a_repository_in_it_is_part_of_it(desk: Desk) -> None:
    root = desk.root
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]
    (root / ".gitignore").write_text("*.log\n")
    (root / "a").write_text("a")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=root, check=True)
    first = subprocess.run([*git, "log", "--format=%s"], cwd=root, check=True, capture_output=True).stdout
    before = desk.seen()
    text = "echo b > b; echo x > x.log; git add . && git -c user.name=n -c user.email=e@example.org commit -qm second"
    result = desk.preview(text + "; git log --format=%s")
    assert result.stdout == "second\nfirst\n", result.stderr
    assert desk.seen() == before
    assert rows(result) == [("b", "created", "file")]
    more = result.to_dict()["preview_more"]
    assert more["ignored"] == 1
    assert more["git"] > 3
    assert [row[0] for row in rows(desk.preview("echo x > x.log", effects="all"))] == ["x.log"]
    veil.apply(result.id)
    after = subprocess.run([*git, "log", "--format=%s"], cwd=root, check=True, capture_output=True).stdout
    assert (first, after) == (b"first\n", b"second\nfirst\n")
    assert subprocess.run([*git, "status", "--porcelain"], cwd=root, check=True, capture_output=True).stdout == b""
    assert subprocess.run([*git, "fsck", "--strict"], cwd=root, capture_output=True).returncode == 0
    assert (root / "x.log").read_text() == "x\n"


@scenario
def a_repository_above_it_is_named(desk: Desk) -> None:
    subprocess.run(["git", "init", "-q"], cwd=desk.root, check=True)
    below = desk.root / "below"
    below.mkdir()
    result = desk.preview("echo x > x; echo y > ../y", cwd=below)
    assert rows(result) == [("x", "created", "file")]
    assert any("repository is not in the folder" in gap for gap in result.to_dict()["preview_gaps"])
    # what is above is not held back; above a copy that is run in as what it is, there is something else
    assert sorted(os.listdir(desk.root)) == [".git", "below", *(["y"] if desk.cover else [])]
    assert os.listdir(below) == []


@scenario
def applies_everything(desk: Desk) -> None:
    root = desk.root
    for name in ("modified", "mode", "gone", "moved", "to folder", "touched"):
        (root / name).write_text(name)
    (root / "folder").mkdir()
    (root / "folder" / "inner").write_text("inner")
    (root / "to file").mkdir()
    (root / "to file" / "inner").write_text("inner")
    (root / "link").symlink_to("gone")
    (root / "quiet").mkdir()
    (root / "quiet" / "a").write_text("a")
    (root / "quiet" / "b").write_text("b")
    for folder in (root / "quiet", root):
        os.utime(folder, ns=(1, 1_600_000_000_000_000_001))
    text = """
        echo m > modified; touch -d @1500000000 modified; chmod 6751 mode; rm gone; mv moved elsewhere
        rm 'to folder'; mkdir -m 750 'to folder'; echo i > 'to folder/i'; chmod 400 'to folder/i'
        rm -r 'to file'; echo f > 'to file'; rm -r folder; ln -sfn elsewhere link; touch -d @1400000000 touched
        mkfifo -m 640 fifo; echo one > one; ln one two; mkdir -p deep/er/est; chmod 500 deep/er; echo b2 > quiet/b
        touch -d @1300000000 deep/er deep
    """
    result = desk.preview(text, check=True)
    done = veil.apply(result.id)
    assert done.left == {}
    assert (done.id, done.folder) == (result.id, os.path.realpath(root))
    assert list(done.files_changed) == result.files_changed
    assert {name: (root / name).read_text() for name in ("modified", "elsewhere", "to file", "to folder/i", "two")} == {
        "modified": "m\n",
        "elsewhere": "moved",
        "to file": "f\n",
        "to folder/i": "i\n",
        "two": "one\n",
    }
    modes = {path: oct(os.lstat(root / path).st_mode & 0o7777) for path in ("mode", "to folder", "to folder/i", "fifo")}
    assert modes == {"mode": "0o6751", "to folder": "0o750", "to folder/i": "0o400", "fifo": "0o640"}
    assert oct((root / "deep/er").stat().st_mode & 0o7777) == "0o500"
    assert os.readlink(root / "link") == "elsewhere"
    assert (root / "one").samefile(root / "two")
    times = {name: int((root / name).stat().st_mtime) for name in ("modified", "touched", "deep/er", "deep")}
    assert times == {"modified": 1500000000, "touched": 1400000000, "deep/er": 1300000000, "deep": 1300000000}
    # a file was replaced in it, no name came or went
    assert (root / "quiet").stat().st_mtime_ns == 1_600_000_000_000_000_001
    assert not (root / "folder").exists()
    assert not os.path.lexists(root / "gone")
    assert not [name for name in os.listdir(root) if name.startswith(".veil")]
    refused("already_applied", result.id)
    (root / "deep/er").chmod(0o700)


MOVES: dict[str, tuple[Callable[[Path], object], str | None]] = {
    # what somebody else does between the preview and the apply, and the path that must be named (None: it is no matter)
    "other bytes": (lambda root: (root / "file").write_text("other"), "file"),
    "other bytes of the same size and time": (lambda root: _rewrite(root / "file", "FILE"), "file"),
    "the same bytes anew": (lambda root: _replace(root / "file", "file"), None),
    "touched": (lambda root: os.utime(root / "file"), None),
    "mode": (lambda root: (root / "file").chmod(0o600), "file"),
    "gone": (lambda root: (root / "file").unlink(), "file"),
    "what was to go is other": (lambda root: (root / "to go").write_text("needed"), "to go"),
    "what was to go is gone": (lambda root: (root / "to go").unlink(), "to go"),
    "something where something comes": (lambda root: (root / "new").write_text("mine"), "new"),
    "a link where something comes": (lambda root: (root / "new").symlink_to("../outside/precious"), "new"),
    "a link in the place of a file": (lambda root: _link(root / "file", "../outside/precious"), "file"),
    "a link in the place of a folder": (lambda root: _swap(root / "folder", root.parent / "outside"), "folder/b"),
    "a folder in the place of a file": (lambda root: _folder(root / "file"), "file"),
    "a file in a folder that goes": (lambda root: (root / "leaving" / "new").write_text("x"), "leaving"),
    "another target": (lambda root: _link(root / "link", "other"), "link"),
    "something that nobody touches": (lambda root: (root / "bystander").write_text("x"), None),
    "a new file beside": (lambda root: (root / "folder" / "beside").write_text("x"), None),
}


def _rewrite(file: Path, text: str) -> None:
    found = file.stat()
    file.write_text(text)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))


def _replace(file: Path, text: str) -> None:
    file.unlink()
    file.write_text(text)


def _link(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _swap(folder: Path, other: Path) -> None:
    folder.rename(folder.with_name("aside"))
    folder.symlink_to(other)


@scenario
def applies_only_to_what_it_saw(desk: Desk) -> None:
    text = """
        echo more >> file; rm 'to go'; echo new > new; echo b > folder/b; rm -r leaving; ln -sfn file link
        mkdir made; echo m > made/m
    """
    outside = desk.seen(desk.outside)
    for number, (name, (deed, named)) in enumerate(MOVES.items()):
        root = desk.base / f"case{number}"
        (root / "folder").mkdir(parents=True)
        (root / "leaving").mkdir()
        for path in ("file", "to go", "folder/a", "folder/b", "leaving/x", "bystander"):
            (root / path).write_text(Path(path).name)
        (root / "link").symlink_to("to go")
        result = desk.preview(text, cwd=root, check=True)
        deed(root)
        before = desk.seen(root)
        if named is None:
            veil.apply(result.id)
            assert (root / "file").read_text() == "filemore\n", name
            continue
        refusal = refused("moved", result.id)
        assert named in refusal.facts["paths"], (name, refusal.facts)
        assert desk.seen(root) == before, name
    assert desk.seen(desk.outside) == outside


@scenario
def what_moved_while_it_ran_is_seen(desk: Desk) -> None:
    root = desk.root
    (root / "file").write_text("file")
    real = Path(os.path.realpath(root)) / "file"

    def interfere(stream: str, data: bytes) -> None:
        real.write_text("theirs")

    time.sleep(0.05)  # what was written just now is older than the view
    result = desk.preview("echo mine > file; echo now; sleep 0.3", listener=interfere)
    refusal = refused("moved", result.id)
    assert list(refusal.facts["paths"]) == ["file"]
    assert real.read_text() == "theirs"


@scenario
def a_folder_that_may_not_be_written_stays_so(desk: Desk) -> None:
    (desk.root / "closed").mkdir()
    (desk.root / "closed" / "a").write_text("a")
    (desk.root / "closed").chmod(0o555)
    before = desk.seen()
    try:
        result = desk.preview("echo x > closed/x")
        assert desk.seen() == before
        if os.geteuid() != 0:
            assert (result.exit, rows(result)) == (1, [])
        opened = desk.preview("chmod 700 closed && echo x > closed/x && chmod 555 closed", check=True)
        assert rows(opened) == [("closed/x", "created", "file")]
        veil.apply(opened.id)
        assert (desk.root / "closed" / "x").read_text() == "x\n"
        assert oct((desk.root / "closed").stat().st_mode & 0o777) == "0o555"
    finally:
        (desk.root / "closed").chmod(0o755)


@scenario
def what_the_command_closed_can_be_read(desk: Desk) -> None:
    (desk.root / "a").write_text("a")
    result = desk.preview("chmod 000 a; mkdir -p d/e; echo x > d/e/x; chmod 000 d/e/x d/e d", check=True)
    assert rows(result) == [("a", "mode", "file"), ("d/e/x", "created", "file")]
    veil.apply(result.id)
    for path in ("a", "d", "d/e", "d/e/x"):
        assert os.lstat(desk.root / path).st_mode & 0o777 == 0, path
        os.chmod(desk.root / path, 0o700)
    assert (desk.root / "d/e/x").read_text() == "x\n"


@scenario
def a_sandbox_holds_back_the_rest(desk: Desk) -> None:
    (desk.root / "a").write_text("a")
    before, outside = desk.seen(), desk.seen(desk.outside)
    text = """
        echo x >> a; echo b > b; echo out > "$1/precious"; rm "$1/precious"; umount .; echo t > "$TMPDIR/t"; cat a
        python3 -c 'import socket; socket.create_connection(("127.0.0.1", 9), 1)' 2> /dev/null; exit 3
    """
    words = ["bash", "-c", text, "bash", str(desk.outside)]
    result = desk.preview(words, sandbox={"network": False, "backend": "bubblewrap"})
    assert (result.exit, result.stdout) == (3, "ax\n"), result.stderr
    assert rows(result) == [("a", "modified", "file"), ("b", "created", "file")]
    assert result.sandboxed
    assert (desk.seen(), desk.seen(desk.outside)) == (before, outside)
    assert not any("is real" in gap for gap in result.to_dict().get("preview_gaps", ()))
    veil.apply(result.id)
    assert (desk.root / "a").read_text() == "ax\n"


@scenario
def leaves_nothing_behind(desk: Desk) -> None:
    result = desk.preview("mkdir -p a/b; chmod 000 a/b a; echo x > x", no_store=True)
    assert result.ok
    refusal = refused("not_kept", result.id)
    assert "no_store" in str(refusal)
    redacted = desk.preview("echo x > x", redact=True)
    refused("not_kept", redacted.id)
    state = Path(os.environ["VEIL_STATE_DIR"])
    assert os.listdir(state / "previews" / "rooms") == [".veil-owned"]
    assert not (state / "previews" / "kept").exists()
    assert os.listdir(desk.root) == []


def main() -> None:
    name, method, base = sys.argv[1:]
    os.umask(0o022)
    SCENARIOS[name](Desk(Path(base), method))
    print("done", os.geteuid())


if __name__ == "__main__":
    main()
