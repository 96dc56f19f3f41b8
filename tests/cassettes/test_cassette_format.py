"""The documented format is enough to read a cassette, and no damage to a file is ever anything but a named error."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.cassettes.archive import Section, pack
from veil.cassettes.codec import decode, encode
from veil.cassettes.errors import CassetteDamaged, CassetteVersion
from veil.cassettes.steps import Cassette, Ending, Header, KeptStream, Step, TreeChange, Workspace, entry_id
from veil.model.outcome import Fact, Stream
from veil.model.verdict import Judgement


def by_the_book(blob: bytes) -> dict[str, bytes]:
    """The archive read by docs/cassettes.md alone, line by line."""
    lines = blob.split(b"\n")
    assert lines[0] == b"veil cassette 1"
    assert lines[-2:] == [b"-- end --", b""]
    found: dict[str, bytes] = {}
    words: list[bytes] = []
    name, body = "", b""

    def close() -> None:
        data = body
        if b"base64" in words:
            data = base64.b64decode(body)
        if b"no-newline" in words:
            data = data[:-1]
        if b"escaped" in words:
            out, at = bytearray(), 0
            while at < len(data):
                if data[at : at + 1] != b"\\":
                    out.append(data[at])
                    at += 1
                elif data[at + 1 : at + 2] == b"x":
                    out.append(int(data[at + 2 : at + 4], 16))
                    at += 4
                else:
                    out += {b"\\": b"\\", b"r": b"\r"}[data[at + 1 : at + 2]]
                    at += 2
            data = bytes(out)
        if name:
            found[name] = data

    for line in lines[1:-1]:
        if line.startswith(b"-- ") and line.endswith(b" --") and len(line) > 6:
            close()
            quoted, *words = line[3:-3].split(b" ")
            raw = re.sub(rb"%(..)", lambda m: bytes([int(m[1], 16)]), quoted)
            name, body = raw.decode("utf-8", "surrogateescape"), b""
        else:
            body += line + b"\n"
    return found


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.binary(max_size=80), st.sampled_from([b"-- a --", b"\\\r\n", b"\xff" * 9, b"-- a --\nx"])),
        max_size=4,
    )
)
def test_the_page_is_enough_to_read_an_archive(contents: list[bytes]) -> None:
    sections = [Section(f"{n}/a b%\udcff", data) for n, data in enumerate(contents)]
    assert by_the_book(pack(sections)) == {section.name: section.data for section in sections}


def stream(data: bytes) -> KeptStream:
    return KeptStream.of(Stream(data, b"", len(data), 0))


FULL = Cassette(
    Header("deterministic", 1, Workspace("inline", files={"a": (b"1\n", 0o644)})),
    (
        Step(
            ("/bin/sh", "-c", "run"),
            text="run",
            env=(("A", "1"), ("B", None)),
            stdin=b"in\0",
            timeout=1.5,
            wishes=(("Effects", {"ignored": False}),),
            expect=(("exit", 3),),
            judged=(Judgement("exit", "failed", 0, 3, "exit is 3"),),
            ending=Ending("signaled", 139, "SIGSEGV", stdout=stream(b"out\r\n"), stderr=KeptStream(b"a", b"z", 50, 3)),
            earlier=(Ending("timed_out", 124, stdout=stream(b"early\n")),),
            changes=(
                TreeChange("d\udcff", "deleted", before="dir:755", kind="dir"),
                TreeChange("l", "created", "symlink", after=entry_id("symlink", 0, b"a"), target="a"),
                TreeChange("new", "renamed", old="old", mode=0o644, before="file:644:00", after="file:644:00"),
                TreeChange("x", "created", mode=0o755, after=entry_id("file", 0o755, b"\xff"), content=b"\xff"),
            ),
            read={"r": "dir:755"},
            files={"x": Fact("file", 1, 0o755)},
            notes={"n": [1, None, "\u202e"]},
        ),
        Step(("true",)),
    ),
)


def test_the_page_tells_the_digests() -> None:
    found = by_the_book(encode(FULL))
    step: dict[str, Any] = json.loads(found["1/step"])

    def digest(data: bytes) -> str:
        return hashlib.blake2b(data, digest_size=16).hexdigest()

    assert step["stdout"] == digest(found["1/stdout"])
    assert step["stdin"] == digest(found["1/stdin"])
    assert step["stderr"] == {"blake2b": None, "bytes": 50, "dropped": 48, "lines": 3}
    assert found["1/stderr/head"] + found["1/stderr/tail"] == b"az"
    before, after = {"r": "dir:755"}, {"r": "dir:755"}
    for change in step["changes"]:
        after[change["path"]] = change.get("after", "absent")
        before[change.get("old", change["path"])] = change.get("before", "absent")
        if "old" in change:
            before[change["path"]] = after[change["old"]] = "absent"
        if change.get("content"):
            data = found["1/files/" + change["path"]]
            assert change["after"] == f"file:{change['mode']}:{digest(data)}"
    for when, state in (("before", before), ("after", after)):
        rows = sorted(f"{path}\0{entry}\0".encode("utf-8", "surrogateescape") for path, entry in state.items())
        assert step["tree"][when] == digest(b"".join(rows))


def damage(blob: bytes) -> CassetteDamaged | CassetteVersion | None:
    """The error that a changed file gives; None when it still is a cassette, which can then be written again."""
    try:
        encode(decode(blob, "t.veil.txtar"))
    except (CassetteDamaged, CassetteVersion) as error:
        return error
    return None


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_rr_06_any_damage_is_a_named_error_or_harmless(data: st.DataObject) -> None:
    blob = encode(FULL)
    at = data.draw(st.integers(0, len(blob)))
    gone = data.draw(st.integers(0, 12))
    put = data.draw(st.sampled_from([b"", b"0", b"-1", b"null", b'"', b"{}", b"[]", b"\n", b"\r", b"\\ud800", b"\xff",
                                     b"true",
                                     b"-- x --\n", b"1e999", b"\0", b"\\", b",", b"}"]))  # fmt: skip
    changed = blob[:at] + put + blob[at + gone :]
    error = damage(changed)
    if error is not None:
        assert error.facts["file"] == "t.veil.txtar"
        assert 1 <= error.facts["line"] <= changed.count(b"\n") + 1


@pytest.mark.parametrize(
    "value", [b"null", b"1", b'"x"', b"[]", b"{}", b"true", b"-1.5", b'"\\ud800"', b"[[]]", b'{"a": 1}']
)
def test_rr_06_no_value_of_a_wrong_type_gets_through(value: bytes) -> None:
    blob = encode(FULL)
    for found in re.finditer(rb'^  "(?P<name>[a-z_]+)": (?P<value>[^\n]*?),?$', blob, re.MULTILINE):
        changed = blob[: found.start("value")] + value + blob[found.end("value") :]
        error = damage(changed)
        if error is not None:
            assert str(error).startswith("t.veil.txtar:")
