"""A cassette comes back from its file as it was, and a file that was edited says where."""

from __future__ import annotations

import dataclasses
import marshal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.cassettes.codec import decode, encode
from veil.cassettes.errors import CassetteDamaged
from veil.cassettes.recording import Facts, StepFacts, decode_facts, encode_facts, observation_of, step_of
from veil.cassettes.roots import Roots
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
from veil.model.command import Command, Effects, Limits, Look, Request
from veil.model.errors import BadInput
from veil.model.outcome import Change, Fact, Findings, Observation, Outcome, Stream
from veil.model.record import Record
from veil.model.verdict import Judgement, Verdict

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


ROOTS = Roots((("root", "/w/of/today"), ("home", "/h/of/today")))


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from([b"/w/of/today", b"<root>", b"<", b"=", b">", b"<=root>", b"<=", b"root>", b"2", b"/", b".",
                         b"a", b"/h/of/today", b"<home>", b"\xff", b"\0", b"\1"]),
        max_size=12,
    ).map(b"".join)
)  # fmt: skip
def test_tokens_for_folders_are_reversible(data: bytes) -> None:
    assert ROOTS.show(ROOTS.hide(data)) == data


def test_tokens_stand_only_where_a_path_ends() -> None:
    roots = Roots((("root", "/w/of/today"), ("tmp", "/tmp")))
    assert roots.hide(b"cd /w/of/today/x; ls /w/of/today2 /w/of/today.bak /w/of/today.") == (
        b"cd <root>/x; ls /w/of/today2 /w/of/today.bak <root>."
    )
    assert roots.hide(b"/tmp/x /var/tmp/x -I/w/of/today file:///tmp/y") == b"<tmp>/x /var/tmp/x -I<root> file://<tmp>/y"
    other = Roots((("root", "/elsewhere"), ("tmp", "/t")))
    assert other.show(roots.hide(b"see /w/of/today/x and <root>")) == b"see /elsewhere/x and <root>"


def test_binary_content_keeps_its_lengths() -> None:
    other = Roots((("root", "/x"),))
    compiled = compile("f = 1", "/w/of/today/m.py", "exec")
    data = marshal.dumps(compiled)
    assert b"/w/of/today" in data
    assert marshal.loads(other.show(ROOTS.hide(data))) == compiled
    assert ROOTS.hide(b"/w/of/today/a\0/w/of/today/b\0") == b"<root>/a\0<root>/b\0"
    assert other.show(b"<root>\0\1") == b"<root>\0\1"


@pytest.mark.parametrize("folders", [(("root", "relative"),), (("root", "/"),), (("<x>", "/a"),)])
def test_roots_that_mean_nothing_are_refused(folders: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(BadInput):
        Roots(folders)


def a_run(**changed: Any) -> tuple[Record, Request]:
    request = Request(
        Command(
            ("/bin/sh", "-c", "cat /w/of/today/n"), "/w/of/today/sub", "cat /w/of/today/n", (("A", "/h/of/today/b"),)
        ),
        Limits(5.0, 100),
        (Effects(), Look(("n",))),
        (("exit", 3), ("stdout_contains", ["x"])),
    )
    outcome = Outcome(
        "exited", 3, 1.25, Stream(b"in /w/of/today/n\n", b"", 17, 1), Stream(b"ab", b"yz", 104, 7), left_running=1
    )
    seen = Observation(
        dataclasses.replace(outcome, **changed),
        (Outcome("timed_out", 124, 5.0),),
        Findings((Change("n", "created"),), "scan", {"n": Fact("file", 2, 0o644)}, {"shared": True}),
    )
    record = Record(
        "cmd7", 1e9, "cat", ("/bin/sh", "-c", "cat /w/of/today/n"), "/w/of/today/sub", seen, "cat /w/of/today/n",
        Verdict((Judgement("exit", "passed", 3, 3, "exit is 3"),)),
    )  # fmt: skip
    return record, request


def test_a_run_becomes_a_step_and_an_observation_elsewhere() -> None:
    record, request = a_run()
    change = TreeChange("n", "created", mode=0o644, after=entry_id("file", 0o644, b"2\n"), content=b"2\n")
    step = step_of(record, request, ROOTS, changes=[change], wholes={"stderr": digest(b"all")})
    assert step.text == "cat <root>/n"
    assert step.cwd == "<root>/sub"
    assert step.env == (("A", "<home>/b"),)
    assert step.ending.stdout.head == b"in <root>/n\n"
    assert (step.ending.stderr.whole, step.ending.stderr.stream().dropped) == (digest(b"all"), 100)
    cassette = Cassette(Header(), (step,))
    assert decode(encode(cassette), "f") == cassette
    assert b"cmd7" not in encode(cassette)
    assert b"shared" not in encode(cassette)

    here = observation_of(step, ROOTS, StepFacts(1e9, (5.0, 1.25)))
    assert here.outcome == record.observation.outcome
    assert here.earlier == record.observation.earlier
    assert here.findings == dataclasses.replace(record.observation.findings, notes={})
    there = observation_of(step, Roots((("root", "/x/y"), ("home", "/z/h"))))
    assert there.outcome.stdout == Stream(b"in /x/y/n\n", b"", 10, 1)
    assert there.outcome.seconds == 0.0


def test_two_recordings_of_one_behaviour_give_the_same_bytes() -> None:
    first, request = a_run()
    second, _ = a_run(seconds=9.75)
    second = dataclasses.replace(second, id="mem3", started=2e9)
    blobs = {encode(Cassette(Header(), (step_of(record, request, ROOTS),))) for record in (first, second)}
    assert len(blobs) == 1


@pytest.mark.parametrize("ended", ["exited", "signaled", "timed_out", "spawn_failed"])
def test_rr_04_ways_to_end_are_kept_apart(ended: Any) -> None:
    record, request = a_run(ended=ended, exit=139, signal="SIGSEGV" if ended == "signaled" else None)
    back = decode(encode(Cassette(Header(), (step_of(record, request, ROOTS),))), "f").steps[0]
    assert observation_of(back, ROOTS).outcome.ended == ended


def test_wishes_must_be_data() -> None:
    record, request = a_run()
    with pytest.raises(BadInput, match="wishes"):
        step_of(record, dataclasses.replace(request, wishes=("sandbox",)), ROOTS)


def test_the_state_of_touched_paths() -> None:
    renamed = TreeChange("b", "renamed", old="a", mode=0o644, before="file:644:x", after="file:644:x")
    step = Step(("mv", "a", "b"), changes=(renamed,), read={"c": "dir:755"})
    assert step.before == {"a": "file:644:x", "b": "absent", "c": "dir:755"}
    assert step.after == {"a": "absent", "b": "file:644:x", "c": "dir:755"}
    assert step.touched == ("a", "b", "c")
    assert state_id(step.before) != state_id(step.after)
    assert state_id({"a": "x", "b": "y"}) == state_id({"b": "y", "a": "x"})
    assert state_id({"a": "x"}) != state_id({"ax": ""})


def test_facts_come_back_and_foreign_ones_do_not() -> None:
    facts = Facts({"git": "2.39", "kernel": "6.1"}, (StepFacts(1e9, (0.5, 2.0)),))
    assert decode_facts(encode_facts(facts), "f") == facts
    for foreign in (b"", b"null", b"{}", b'{"format": 2}', b'{"format": 1, "steps": [{"started": 1.0}]}'):
        with pytest.raises(CassetteDamaged, match=r"^x\.json:"):
            decode_facts(foreign, "x.json")
