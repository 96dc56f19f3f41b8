"""The digest of a stream of which only a part was kept: what differs in the part that was not kept is a difference."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.cassettes.steps import Cassette, digest
from veil.model.outcome import Outcome, Stream
from veil.taping import DETERMINISTIC, Header, Recorder, Stage, compare, decode, encode
from veil.taping.wholes import Wholes

SCRIPT = "seq 1 9000; {middle}; seq 1 9000"


def recorded(base: Path, command: str, **options: object) -> Cassette:
    stage = Stage.make(base, DETERMINISTIC, {"PATH": "/usr/bin:/bin"})
    recorder = Recorder(stage, base.parent / "records")
    if options.pop("background", False):
        recorder.start(command, {"max_output": 4000, **options}).wait()
    else:
        recorder.run(command, {"max_output": 4000, **options})
    return recorder.cassette(Header(DETERMINISTIC.name, DETERMINISTIC.version))


@pytest.mark.parametrize("background", [False, True])
def test_what_was_not_kept_is_compared_by_its_digest(tmp_path: Path, background: bool) -> None:
    one, two = (
        recorded(tmp_path / name, SCRIPT.format(middle="cat f 2>&1 || echo " + name), background=background)
        for name in ("a", "b")
    )
    again = recorded(tmp_path / "again", SCRIPT.format(middle="cat f 2>&1 || echo a"), background=background)
    assert one.steps[0].ending.stdout.stream().truncated
    assert decode(encode(one), "x") == one
    verdict = compare(one.steps[0], two.steps[0])
    assert (verdict.word, verdict.where) == ("output-drift", "stdout")
    assert "not kept" in verdict.detail
    assert compare(one.steps[0], again.steps[0]).word == "exact"


def test_the_digest_is_the_same_wherever_the_workspace_is(tmp_path: Path) -> None:
    command = SCRIPT.format(middle="for n in $(seq 2000); do pwd; done")
    one, two = (recorded(tmp_path / name, command).steps[0] for name in ("a", "b"))
    assert one.ending.stdout.whole is not None
    assert one.ending.stdout.whole == two.ending.stdout.whole
    assert compare(one, two).word == "exact"


def test_a_stream_that_nobody_looked_at_is_never_exact(tmp_path: Path) -> None:
    """Of a command that was tried again the pieces of all attempts come in one row."""
    one, two = (
        recorded(tmp_path / name, SCRIPT.format(middle="true") + "; exit 1", retries=1, backoff=0.0).steps[0]
        for name in ("a", "b")
    )
    assert len(one.earlier) == 1
    assert one.ending.stdout.whole is None
    verdict = compare(one, two)
    assert (verdict.word, verdict.masked) == ("weak", ())
    assert "nobody looked" in verdict.detail


def test_a_changed_file_is_named_also_when_it_was_not_told_of(tmp_path: Path) -> None:
    one, two = (recorded(tmp_path / name, f"echo {name} > 'new file'", effects=False).steps[0] for name in ("a", "b"))
    assert one.quiet
    assert compare(one, two).where == "files/new file"


@given(st.binary(max_size=400), st.lists(st.integers(1, 60), max_size=20))
@settings(max_examples=60)
def test_the_digest_does_not_depend_on_how_the_stream_was_read(data: bytes, sizes: list[int]) -> None:
    text = data.replace(b"n", b"\n") * 9000
    heard = Wholes(lambda block: block.replace(b"a\n", b"b"), 10, None)
    at = 0
    for size in itertools.chain(sizes, [len(text)]):
        heard("stdout", text[at : at + size * 997])
        at += size * 997
    once = Wholes(lambda block: block.replace(b"a\n", b"b"), 10, None)
    once("stdout", text)
    outcome = Outcome("exited", 0, 0.0, Stream(text[:2], text[-3:], len(text), 1), Stream())
    if len(text) > 5:
        assert heard.of(outcome) == once.of(outcome) != {}
        assert "stdout" not in heard.of(dataclasses.replace(outcome, stdout=Stream(b"", b"", len(text) + 1, 1)))


def test_short_streams_need_no_digest_of_their_own(tmp_path: Path) -> None:
    step = recorded(tmp_path / "a", "echo a").steps[0]
    assert step.ending.stdout.whole == digest(b"a\n")
