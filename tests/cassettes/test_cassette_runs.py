"""What a run becomes in a cassette, and back: tokens for its folders, its step, and what it observed elsewhere."""

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
    Header,
    Step,
    TreeChange,
    digest,
    entry_id,
    state_id,
)
from veil.model.command import Command, Effects, Limits, Look, Request
from veil.model.errors import BadInput
from veil.model.outcome import Change, Fact, Findings, Observation, Outcome, Stream
from veil.model.record import Record
from veil.model.verdict import Judgement, Verdict

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
