"""``veil init``: a block in files of somebody else's, and nothing but the block."""

from __future__ import annotations

import importlib
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from command_line import veil, veil_json
from hypothesis import example, given
from hypothesis import strategies as st

from veil import Refused
from veil.cli import marked
from veil.cli.clients import CLIENTS

HINT = "## Running commands\n\nuse veil\n"
_texts = st.lists(
    st.sampled_from(
        [
            b"# Rules\n",
            b"a\r\n",
            b"\n",
            b"\r\n",
            b"last",
            b"\xff\xfe\n",
            b"\xef\xbb\xbf",
            b"  \n",
            b"\r",
            b"<!-- x -->\n",
        ]
    )
).map(b"".join)


@given(_texts)
@example(b"")
@example(b"\n")
@example(b"no newline")
@example(b"a\r\nno newline")
@example(b"a\r")
def test_what_is_put_and_taken_leaves_what_was_there(text: bytes) -> None:
    with_block = marked.put(text, HINT, "f")
    assert with_block.startswith(text)
    assert marked.put(with_block, HINT, "f") == with_block
    other = marked.put(with_block, "another hint", "f")
    assert marked.put(other, HINT, "f") == with_block
    assert marked.taken(with_block, "f") == text
    assert marked.taken(other, "f") == text
    assert marked.taken(text, "f") == text


@given(_texts, _texts)
def test_text_around_the_block_stays(before: bytes, after: bytes) -> None:
    """Written in front of it and behind it, later on."""
    with_block = before + marked.put(b"middle\n", HINT, "f") + after
    changed = marked.put(with_block, "another hint", "f")
    assert changed.startswith(before + b"middle\n")
    assert changed.endswith(b"<!-- veil:end -->" + (b"\r\n" if b"hint\r\n" in changed else b"\n") + after) or not after
    left = marked.taken(with_block, "f")
    assert left is not None
    assert left.replace(b"\n", b"") == (before + b"middle\n" + after).replace(b"\n", b"")


def test_windows_lines_stay_windows_lines() -> None:
    text = marked.put(b"one\r\ntwo", HINT, "f")
    assert text.count(b"\n") == text.count(b"\r\n") > 5
    assert marked.taken(text, "f") == b"one\r\ntwo"


BEGIN, END = b"<!-- veil:begin -->\n", b"<!-- veil:end -->\n"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (b"one\n" + BEGIN + b"two\n", 2, "a beginning without an end"),
        (b"one\n" + END, 2, "an end without a beginning"),
        (BEGIN + BEGIN + END, 2, "a second beginning"),
        (BEGIN + END + b"x\n" + BEGIN + END, 4, "a second beginning"),
        (BEGIN + END + END, 3, "an end without a beginning"),
        (b"<!-- veil:begin who knows 1.0 -->\n" + END, 1, "a beginning that is not ours"),
        (b"<!-- veil:begin\n-->\n" + END, 1, "a beginning that is not ours"),
    ],
)
def test_a_damaged_block_is_an_error(tmp_path: Path, text: bytes, line: int, what: str) -> None:
    with pytest.raises(Refused, match=what) as refused:
        marked.find(text, "AGENTS.md")
    assert refused.value.facts == {"file": "AGENTS.md", "line": line}
    (tmp_path / "AGENTS.md").write_bytes(b"fine\n")
    (tmp_path / "CLAUDE.md").write_bytes(text)
    for words in (("init",), ("init", "--remove")):
        told = veil_json(*words, cwd=tmp_path, code=125)
        assert told["error"] == "block_damaged"
        assert f"CLAUDE.md:{line}" in told["message"]
        # nothing is written before everything has been judged
        assert (tmp_path / "AGENTS.md").read_bytes() == b"fine\n"
        assert (tmp_path / "CLAUDE.md").read_bytes() == text


def test_a_new_project(tmp_path: Path) -> None:
    done = veil("init", cwd=tmp_path)
    assert done.returncode == 0, done
    assert done.stderr == b""
    assert os.listdir(tmp_path) == ["AGENTS.md"]
    text = (tmp_path / "AGENTS.md").read_text()
    assert text.startswith("<!-- veil:begin created -->\n## Running commands\n")
    assert text.endswith("<!-- veil:end -->\n")
    assert "AGENTS.md: created" in done.stdout.decode()
    assert all(client.title in done.stdout.decode() for client in CLIENTS)
    written = (tmp_path / "AGENTS.md").stat().st_mtime_ns
    assert veil_json("init", cwd=tmp_path)["files"] == [{"file": "AGENTS.md", "change": "unchanged"}]
    assert (tmp_path / "AGENTS.md").stat().st_mtime_ns == written
    assert veil_json("init", "--remove", cwd=tmp_path) == {"files": [{"file": "AGENTS.md", "change": "removed"}]}
    assert os.listdir(tmp_path) == []
    assert veil("init", "--remove", cwd=tmp_path).stdout == b"there is no hint in this project\n"


def test_files_that_are_there(tmp_path: Path) -> None:
    was = {
        "AGENTS.md": b"# Rules\r\nno newline",
        "CLAUDE.md": b"# For Claude\n",
        "GEMINI.md": b"",
        ".github/copilot-instructions.md": b"x\n\n\n",
    }
    (tmp_path / ".github").mkdir()
    for name, text in was.items():
        (tmp_path / name).write_bytes(text)
        (tmp_path / name).chmod(0o640)
    done = veil_json("init", "--dir", str(tmp_path), cwd=tmp_path.parent)
    assert done["files"] == [{"file": name, "change": "updated"} for name in was]
    for name, text in was.items():
        assert (tmp_path / name).read_bytes().startswith(text)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o640
    veil_json("init", "--remove", cwd=tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in was} == was
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == sorted(
        Path(name).name for name in was
    )


def test_links(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "rules.md").write_text("rules\n")
    (tmp_path / "AGENTS.md").symlink_to("docs/rules.md")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert veil_json("init", cwd=tmp_path)["files"] == [{"file": "AGENTS.md", "change": "updated"}]
    assert (tmp_path / "AGENTS.md").is_symlink()
    assert (tmp_path / "docs" / "rules.md").read_text().count("veil:begin") == 1
    (tmp_path / "GEMINI.md").symlink_to("nowhere.md")
    assert veil_json("init", cwd=tmp_path)["files"][1] == {"file": "GEMINI.md", "change": "created"}
    assert (tmp_path / "nowhere.md").is_file()
    veil_json("init", "--remove", cwd=tmp_path)
    assert (tmp_path / "docs" / "rules.md").read_text() == "rules\n"


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs.md").write_text("theirs\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "CLAUDE.md").symlink_to(tmp_path / "theirs.md")
    assert veil_json("init", cwd=project, code=125)["error"] == "leads_outside"
    assert (tmp_path / "theirs.md").read_text() == "theirs\n"
    assert os.listdir(project) == ["CLAUDE.md"]


def test_a_file_that_imports_the_shared_one(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("@AGENTS.md\n\nmore\n")
    assert [row["file"] for row in veil_json("init", cwd=tmp_path)["files"]] == ["AGENTS.md"]
    assert (tmp_path / "CLAUDE.md").read_text() == "@AGENTS.md\n\nmore\n"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda path: path.mkdir(), "no_file"),
        (lambda path: os.mkfifo(path), "no_file"),
        (lambda path: path.write_bytes("# Rules\n".encode("utf-16")), "no_text"),
        (lambda path: (path.write_text("x\n"), path.chmod(0o444)), "read_only"),
    ],
    ids=["folder", "fifo", "utf-16", "read-only"],
)
def test_what_is_no_file_to_write_in(tmp_path: Path, make: object, code: str) -> None:
    path = tmp_path / "AGENTS.md"
    make(path)  # type: ignore[operator]
    before = path.read_bytes() if path.is_file() else None
    assert veil_json("init", cwd=tmp_path, code=125)["error"] == code
    assert (path.read_bytes() if path.is_file() else None) == before
    assert os.listdir(tmp_path) == ["AGENTS.md"]


def test_one_client(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("rules\n")
    done = veil_json("init", "--client", "claude-code", cwd=tmp_path)
    assert done["files"] == [{"file": "CLAUDE.md", "change": "created"}]
    (client,) = done["clients"]
    assert client["file"] == ".mcp.json"
    assert (tmp_path / "AGENTS.md").read_text() == "rules\n"
    done = veil_json("init", "--client", "claude-desktop", cwd=tmp_path)
    assert done["files"] == []
    refused = veil_json("init", "--client", "claude", cwd=tmp_path, code=125)
    assert refused["error"] == "bad_input"
    assert "claude-code, claude-desktop" in refused["message"]
    assert veil_json("init", "--dir", "nowhere", cwd=tmp_path, code=125)["error"] == "bad_input"


def test_the_configurations_are_what_they_say(tmp_path: Path) -> None:
    """Each can be read by its program's kind of reader, and starts this very veil."""
    told = {row["name"]: row["config"] for row in veil_json("init", cwd=tmp_path)["clients"]}
    assert list(told) == [client.name for client in CLIENTS]
    for name, text in told.items():
        if name == "codex":
            if sys.version_info < (3, 11):
                continue
            toml = importlib.import_module("tomllib")
            server = toml.loads(text)["mcp_servers"]["veil"]
        else:
            server = json.loads(text)["servers" if name == "vscode" else "mcpServers"]["veil"]
        assert server["args"][-1] == "mcp"
        assert os.access(server["command"], os.X_OK)
        assert (server.get("type") == "stdio") == (name == "vscode")


def test_a_hint_names_tools_that_there_are() -> None:
    import re

    from veil.cli.hinting import HINT as SAID
    from veil.tools import catalogue

    named = set(re.findall(r"`(sh_\w+)`", SAID))
    assert named <= {tool.name for tool in catalogue()}
    assert {"sh_run", "sh_detail", "sh_logs", "sh_kill", "sh_plan"} <= named
