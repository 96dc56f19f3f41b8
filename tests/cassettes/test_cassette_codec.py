"""A cassette comes back from its file as it was, and a file that was edited says where."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.cassettes.codec import decode, encode
from veil.cassettes.errors import CassetteDamaged
from veil.cassettes.steps import (
    Cassette,
    Ending,
    Header,
    KeptStream,
    Step,
    TreeChange,
    Workspace,
    digest,
    entry_id,
    state_id,
)
from veil.model.outcome import Fact, Stream
from veil.model.verdict import Judgement

OS_TEXT = st.binary(max_size=12).map(lambda raw: raw.replace(b"\0", b"0").decode("utf-8", "surrogateescape"))
PATH = st.sampled_from(["a", "b/c d", "../up", "-- x --", "é", "\udcff", "%41", "end", "x\ny"])
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), OS_TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(OS_TEXT, inner, max_size=3)),
    max_leaves=5,
)
STREAMS = st.one_of(
    st.binary(max_size=60).map(lambda data: KeptStream.of(Stream(data, b"", len(data), data.count(b"\n") + 1))),
    st.builds(
        lambda head, tail, gap, lines, whole: KeptStream(head, tail, len(head) + len(tail) + gap, lines, whole),
        st.binary(max_size=20),
        st.binary(max_size=20),
        st.integers(1, 10**9),
        st.integers(0, 10**6),
        st.one_of(st.none(), st.just(digest(b"whole"))),
    ),
)
ENDINGS = st.builds(
    Ending,
    ended=st.sampled_from(["exited", "signaled", "timed_out", "spawn_failed"]),
    exit=st.integers(0, 255),
    signal=st.sampled_from([None, "SIGSEGV"]),
    spawn_error=st.one_of(st.none(), OS_TEXT),
    cancelled=st.booleans(),
    left_running=st.integers(0, 3),
    survivors=st.sampled_from(["none", "kept", "unknown"]),
    stdout=STREAMS,
    stderr=STREAMS,
)


@st.composite
def tree_changes(draw: st.DrawFn) -> tuple[TreeChange, ...]:
    found = []
    for path in sorted(draw(st.sets(PATH, max_size=4))):
        what = draw(st.sampled_from(["created", "modified", "deleted", "renamed", "mode", "symlink", "dir", "large"]))
        mode = draw(st.sampled_from([0o644, 0o755, 0o4755, 0o600]))
        content = draw(st.binary(max_size=30))
        before, after = entry_id("file", 0o644, b"old"), entry_id("file", mode, content)
        found.append(
            {
                "created": TreeChange(path, "created", mode=mode, after=after, content=content),
                "modified": TreeChange(path, "modified", mode=mode, before=before, after=after, content=content),
                "deleted": TreeChange(path, "deleted", before=before),
                "renamed": TreeChange(path, "renamed", old=path + ".old", mode=0o644, before=before, after=before),
                "mode": TreeChange(path, "mode", mode=mode, before=before, after=entry_id("file", mode, b"old")),
                "symlink": TreeChange(path, "created", "symlink", after=entry_id("symlink", 0, b"t"), target="t"),
                "dir": TreeChange(path, "created", "dir", mode=0o755, after="dir:755"),
                "large": TreeChange(path, "modified", mode=mode, before=before, after=after, omitted=10**9),
            }[what]
        )
    return tuple(found)


STEPS = st.builds(
    Step,
    argv=st.lists(OS_TEXT, min_size=1, max_size=3).map(tuple),
    cwd=st.sampled_from(["<root>", "<root>/sub", "/"]),
    text=st.one_of(st.none(), OS_TEXT),
    env=st.dictionaries(OS_TEXT, st.one_of(st.none(), OS_TEXT), max_size=3).map(lambda d: tuple(sorted(d.items()))),
    stdin=st.one_of(st.none(), st.binary(max_size=20)),
    timeout=st.sampled_from([None, 0.5, 120.0, 3]),
    stream_bytes=st.integers(0, 10**7),
    wishes=st.lists(st.tuples(OS_TEXT, st.dictionaries(OS_TEXT, JSON, max_size=2)), max_size=2).map(tuple),
    expect=st.lists(st.tuples(OS_TEXT, JSON), max_size=2).map(tuple),
    judged=st.lists(
        st.builds(
            Judgement,
            check=OS_TEXT,
            status=st.sampled_from(["passed", "failed", "inconclusive"]),
            expected=JSON,
            got=JSON,
            message=OS_TEXT,
        ),
        max_size=2,
    ).map(tuple),
    merged=st.booleans(),
    background=st.booleans(),
    status=st.sampled_from(["exited", "killed", "running"]),
    ending=ENDINGS,
    earlier=st.lists(ENDINGS, max_size=2).map(tuple),
    changes=st.one_of(st.none(), tree_changes()),
    quiet=tree_changes().map(lambda rows: tuple(dataclasses.replace(row, path="q/" + row.path) for row in rows)),
    source=st.sampled_from([None, "git", "scan"]),
    read=st.dictionaries(st.sampled_from(["r", "s/t"]), st.just("dir:755"), max_size=2),
    files=st.dictionaries(PATH, st.sampled_from([Fact(None), Fact("file", 3, 0o644), Fact("file", 0, 0)]), max_size=2),
    notes=st.dictionaries(OS_TEXT, JSON, max_size=2),
)
HEADERS = st.builds(
    Header,
    profile=st.sampled_from(["inherit", "deterministic"]),
    profile_version=st.integers(0, 9),
    workspace=st.one_of(
        st.just(Workspace()),
        st.just(Workspace("git", "..", "0" * 40)),
        st.just(Workspace("folder", "fixtures/x")),
        st.dictionaries(PATH, st.tuples(st.binary(max_size=9), st.sampled_from([0o644, 0o755])), max_size=2).map(
            lambda files: Workspace("inline", files=files)
        ),
    ),
)


@settings(deadline=None)
@given(st.builds(Cassette, HEADERS, st.lists(STEPS, max_size=3).map(tuple)))
def test_every_cassette_comes_back(cassette: Cassette) -> None:
    blob = encode(cassette)
    assert decode(blob, "f") == cassette
    assert encode(decode(blob, "f")) == blob
    blob.decode("utf-8")


GREP = Step(
    argv=("/bin/bash", "-c", "grep -n b a.txt | tee out\n"),
    text="grep -n b a.txt | tee out\n",
    ending=Ending(stdout=KeptStream.of(Stream(b"2:b\n", b"", 4, 1))),
    timeout=120.0,
    stream_bytes=5_000_000,
    changes=(TreeChange("out", "created", mode=0o644, after=entry_id("file", 0o644, b"2:b\n"), content=b"2:b\n"),),
    source="scan",
    judged=(Judgement("exit", "passed", 0, 0, "exit is 0"),),
    expect=(("exit", 0),),
)


def test_what_a_reviewer_reads() -> None:
    assert encode(Cassette(Header("deterministic", 1), (GREP,))).decode() == (
        "veil cassette 1\n"
        "-- header --\n"
        '{\n  "profile": "deterministic",\n  "profile_version": 1,\n  "steps": 1\n}\n'
        "-- 1/command --\n"
        "grep -n b a.txt | tee out\n"
        "-- 1/step --\n"
        "{\n"
        '  "changes": [\n'
        '    {"after": "file:644:3f3b4c70b7f5ed2f2a4ff8ad0c5dbbd9", "change": "created", "content": true,'
        ' "mode": "644", "path": "out"}\n'
        "  ],\n"
        '  "cwd": "<root>",\n'
        '  "ended": "exited",\n'
        '  "exit": 0,\n'
        '  "expect": [["exit", 0]],\n'
        '  "judged": [\n'
        '    {"check": "exit", "expected": 0, "got": 0, "message": "exit is 0", "status": "passed"}\n'
        "  ],\n"
        '  "shell": ["/bin/bash", "-c"],\n'
        '  "source": "scan",\n'
        '  "stdout": "3f3b4c70b7f5ed2f2a4ff8ad0c5dbbd9",\n'
        '  "stream_bytes": 5000000,\n'
        '  "timeout": 120.0,\n'
        '  "tree": {"after": "0", "before": "0"}\n'
        "}\n"
        "-- 1/stdout --\n2:b\n"
        "-- 1/files/out --\n2:b\n"
        "-- end --\n"
    ).replace("3f3b4c70b7f5ed2f2a4ff8ad0c5dbbd9", digest(b"2:b\n")).replace(
        '"after": "0", "before": "0"',
        f'"after": "{state_id({"out": entry_id("file", 0o644, b"2:b" + bytes([10]))})}",'
        f' "before": "{state_id({"out": "absent"})}"',
    )


def edits() -> list[tuple[str, str, str]]:
    return [
        ("-- 1/stdout --\n2:b", "-- 1/stdout --\n2:c", "'1/stdout' is not what its digest says"),
        ("-- 1/files/out --\n2:b", "-- 1/files/out --\n2:c", "edited by hand"),
        ("-- 1/stdout --\n2:b\n", "", "'1/stdout' is missing"),
        ("-- 1/step --", "-- 2/step --", "step 1 of 1 is missing"),
        ("-- header --", "-- footer --", "header section is missing"),
        ("-- end --", "-- 9/stdout --\n-- end --", "belongs to no step"),
        ('"steps": 1', '"steps": 2', "step 2 of 2 is missing"),
        ('"steps": 1', '"steps": "1"', "must be int"),
        ('"steps": 1', '"steps": true', "must be int"),
        ('"exit": 0,\n', '"exit": 0,\n  "exit": 1,\n', "stands twice"),
        ('"exit": 0,\n', '"exit": 0,\n  "extra": 1,\n', "unknown member 'extra'"),
        ('"exit": 0,\n', "", "'exit' is missing"),
        ('"exit": 0,\n', '"exit": NaN,\n', "NaN"),
        ('"exit": 0,\n', '"exit": 0\n', "not JSON"),
        ('"ended": "exited"', '"ended": "finished"', "expected one of exited"),
        ('"change": "created"', '"change": "born"', "expected one of created"),
        ('"path": "out"', '"path": "other"', "'1/files/other' is missing"),
        ('"mode": "644"', '"mode": "9"', "not octal"),
        ('"tree": {"after": "', '"tree": {"after": "0', "does not agree"),
        ('"shell": ["/bin/bash", "-c"],\n', "", "either 'argv'"),
        ('"timeout": 120.0', '"timeout": "2 min"', "number of seconds"),
        ('"timeout": 120.0', '"timeout": 1e999', "1e999"),
    ]


@pytest.mark.parametrize(("old", "new", "says"), edits())
def test_rr_06_hand_edits_are_named(old: str, new: str, says: str) -> None:
    blob = encode(Cassette(Header(), (GREP,))).decode()
    assert old in blob
    with pytest.raises(CassetteDamaged) as caught:
        decode(blob.replace(old, new, 1).encode(), "t.veil.txtar")
    assert says in str(caught.value)
    assert str(caught.value).startswith("t.veil.txtar:")


def test_json_errors_name_the_line_in_the_file() -> None:
    blob = encode(Cassette(Header(), (GREP,))).decode()
    broken = blob.replace('"exit": 0,', '"exit": 0 0,')
    with pytest.raises(CassetteDamaged) as caught:
        decode(broken.encode(), "t")
    assert broken.split("\n")[caught.value.facts["line"] - 1].strip() == '"exit": 0 0,'
