"""One word per step, from how it ended to its last byte, and the reason."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.cassettes.steps import Ending, KeptStream, Step, TreeChange, entry_id
from veil.cassettes.verdicts import SAME, WORDS, Rules, StepVerdict, compare, fired, propose, settle, trajectory
from veil.model.errors import BadInput
from veil.model.outcome import Stream

A, B, C = (f"0b0a51c1-6a4b-4ba1-9d2a-0ff6b9b65d{n}" for n in ("1f", "2e", "3d"))


def kept(text: str | bytes) -> KeptStream:
    data = text.encode() if isinstance(text, str) else text
    return KeptStream.of(Stream(data, b"", len(data), 0))


def step(out: str | bytes = "", err: str = "", changes: Any = (), **ending: Any) -> Step:
    return Step(("x",), ending=Ending(stdout=kept(out), stderr=kept(err), **ending), changes=changes)


def file(path: str, text: str, change: Any = "created", mode: int = 0o644) -> TreeChange:
    data = text.encode()
    return TreeChange(path, change, mode=mode, after=entry_id("file", mode, data), content=data)


@pytest.mark.parametrize(
    ("recorded", "fresh", "word", "where"),
    [
        (step("a\n"), step("a\n"), "exact", None),
        (step(f"{A} {A}\n"), step(f"{B} {B}\n"), "normalised", None),
        (step(f"{A}\n", f"{A}\n"), step(f"{B}\n", f"{B}\n"), "normalised", None),
        (step("took 0.1s\n"), step("took 0.2s\n"), "weak", None),
        (step("a\nb\n"), step("b\na\n"), "unordered", "stdout"),
        (step("a 0.1s\nb\n"), step("b\na 0.2s\n"), "unordered", "stdout"),
        (step("a\n"), step("b\n"), "output-drift", "stdout"),
        (step("", "a\n"), step("", "b\n"), "output-drift", "stderr"),
        (step("a\na\n"), step("a\n"), "output-drift", "stdout"),
        (step(f"{A} {A}\n"), step(f"{B} {C}\n"), "output-drift", "stdout"),
        (step(f"{A}\n", f"{A}\n"), step(f"{B}\n", f"{C}\n"), "output-drift", "stderr"),
        (step("a\0" + A), step("a\0" + B), "output-drift", "stdout"),
        (step("a"), step("a\n"), "output-drift", "stdout"),
        (step(exit=0), step(exit=1), "exit-drift", "exit"),
        (step(ended="exited", exit=124), step(ended="timed_out", exit=124), "exit-drift", "ended"),
        (step(ended="exited", exit=139), step(ended="signaled", exit=139), "exit-drift", "ended"),
        (step(ended="exited", exit=127), step(ended="spawn_failed", exit=127), "exit-drift", "ended"),
        (step(ended="signaled", exit=139, signal="SIGSEGV"), step(ended="signaled", exit=139), "exact", None),
        (
            step(ended="signaled", exit=139, signal="SIGSEGV"),
            step(ended="signaled", exit=139, signal="SIGBUS"),
            "exit-drift",
            "signal",
        ),
        (step(left_running=0), step(left_running=2), "effect-drift", "left_running"),
        (step(changes=(file("a", "1"),)), step(changes=()), "effect-drift", "tree"),
        (step(changes=(file("a", "1"),)), step(changes=(file("b", "1"),)), "effect-drift", "tree"),
        (step(changes=(file("a", "1"),)), step(changes=(file("a", "1", mode=0o755),)), "effect-drift", "tree"),
        (step(changes=(file("a", "1"),)), step(changes=(file("a", "2"),)), "effect-drift", "files/a"),
        (step(changes=(file("a", "1"), file("b c", "1"))), step(changes=(file("a", "1"), file("b c", "2"))),
         "effect-drift", "files/b c"),
        (step(changes=(file("a", A),)), step(changes=(file("a", B),)), "normalised", None),
        (step(A, changes=(file("a", A),)), step(B, changes=(file("a", C),)), "output-drift", "stdout"),
        (step(changes=(file("a", "x\ny\n"),)), step(changes=(file("a", "y\nx\n"),)), "effect-drift", "files/a"),
        (step(changes=None), step(changes=()), "effect-drift", "tree"),
        (step("b", changes=(file("a", "1"),)), step("c", changes=(file("a", "2"),)), "effect-drift", "files/a"),
        (step("b", changes=(file("a", "1"),), exit=1), step("c", changes=(file("a", "2"),)), "exit-drift", "exit"),
    ],
)  # fmt: skip
def test_the_word_and_the_place(recorded: Step, fresh: Step, word: str, where: str | None) -> None:
    found = compare(recorded, fresh)
    assert (found.word, found.where) == (word, where)
    assert found.same == (word in SAME)
    assert found.word in WORDS
    if not found.same:
        assert found.detail.startswith(f"{where}") or word == "effect-drift"


def test_what_masked_is_said_and_only_that() -> None:
    found = compare(step(f"{A} in 0.1s at 12:00:00\n"), step(f"{B} in 0.2s at 12:00:00\n"))
    assert (found.word, found.needed, found.masked) == ("weak", ("uuids", "durations"), ("durations",))
    assert found.detail == "the same with uuids, durations; masked by durations"


def test_what_fired_is_known_also_when_nothing_differs() -> None:
    assert fired(step(f"{A} in 0.1s\n", changes=(file("a", "0x7ffff7665d80"),))) == ("uuids", "addresses", "durations")
    assert fired(step(f"{A} in 0.1s\n"), Rules(names=("durations", "ports"))) == ("durations",)
    assert fired(step("plain\n")) == ()


def test_normalisers_can_be_chosen_and_none_is_none() -> None:
    one, two = step(f"{A}\n"), step(f"{B}\n")
    assert compare(one, two, Rules(names=())).word == "output-drift"
    assert compare(one, two, Rules(names=("durations",))).word == "output-drift"
    assert compare(one, two, Rules(names=("uuids",))).word == "normalised"
    with pytest.raises(BadInput):
        compare(one, two, Rules(names=("nope",)))


def test_known_process_ids_are_used() -> None:
    rules = Rules(known_recorded={"pid": ("4711",)}, known_fresh={"pid": ("8822",)})
    assert compare(step("4711\n"), step("8822\n"), rules).word == "normalised"
    assert compare(step("4711\n"), step("8823\n"), rules).word == "output-drift"


def test_drift_shows_the_first_line_that_differs() -> None:
    found = compare(step("a\nb\nc\n"), step("a\nB\n"))
    assert found.detail == "stdout line 2: recorded 'b\\n', now 'B\\n'"
    assert compare(step("a\n"), step("a\nb\n")).detail == "stdout line 2: recorded (nothing), now 'b\\n'"
    assert len(compare(step("a" * 9000), step("b" * 9000)).detail) < 500


def test_a_hash_id_of_content_that_was_left_out_is_never_normalised() -> None:
    large = TreeChange("a", "created", mode=0o644, after=entry_id("file", 0o644, b"1"), omitted=10**9)
    other = dataclasses.replace(large, after=entry_id("file", 0o644, b"2"))
    assert compare(step(changes=(large,)), step(changes=(other,))).word == "effect-drift"
    assert compare(step(changes=(large,)), step(changes=(large,))).word == "exact"


def test_truncated_streams_compare_what_was_kept_and_how_much_was_not() -> None:
    cut = KeptStream(b"a", b"z", 100, 3, "the digest")
    one = Step(("x",), ending=Ending(stdout=cut))
    longer = Step(("x",), ending=Ending(stdout=dataclasses.replace(cut, total_bytes=101)))
    assert compare(one, one).word == "exact"
    assert compare(one, longer).word == "output-drift"
    other = Step(("x",), ending=Ending(stdout=dataclasses.replace(cut, whole="another")))
    assert compare(one, other).word == "output-drift"
    unknown = Step(("x",), ending=Ending(stdout=dataclasses.replace(cut, whole=None)))
    assert compare(unknown, unknown).word == compare(one, unknown).word == "weak"


def test_attempts_count() -> None:
    one = dataclasses.replace(step("x"), earlier=(Ending(exit=1),))
    assert compare(one, step("x")).where == "attempts"
    other = dataclasses.replace(one, earlier=(Ending(exit=1, stdout=kept("y")),))
    assert compare(one, other).where == "attempt1 stdout"


def test_wrong_now_and_unstable_here_are_told_apart() -> None:
    recorded = step("a\n")
    assert settle(recorded, [step("b\n"), step("b\n")]).word == "output-drift"
    assert settle(recorded, [step("b 0.1s\n"), step("b 0.2s\n")]).word == "output-drift"
    unstable = settle(recorded, [step("b\n"), step("a\n")])
    assert unstable.word == "unstable"
    assert unstable.detail.startswith("as recorded in 1 of 2 runs; stdout line 1")
    assert settle(recorded, [step("b\n"), step("c\n")]).word == "unstable"
    assert settle(recorded, [step("a\n"), step("a\n"), step("b\n")]).word == "unstable"
    assert settle(recorded, [step("a\n")]).word == "exact"
    assert settle(step("0.1s\n"), [step("0.1s\n"), step("0.2s\n")]).word == "weak"


def test_a_trajectory_names_the_first_step_that_differs() -> None:
    words: list[Any] = ["exact", "weak", "effect-drift", "skipped", "normalised"]
    found = trajectory([StepVerdict(word) for word in words])
    assert (found.word, found.step) == ("effect-drift", 3)
    assert found.counts == dict.fromkeys(words, 1)
    assert trajectory([StepVerdict("exact"), StepVerdict("weak"), StepVerdict("normalised")]).word == "weak"
    assert (trajectory([]).word, trajectory([]).step) == ("exact", None)


def test_proposals() -> None:
    runs = [step(f"{uuid} took 0.{n}s\n") for n, uuid in enumerate([A, B, C])]
    found = propose(runs)
    assert (found.agree, found.runs, found.needed, found.masked) == (1, 3, ("uuids", "durations"), ("durations",))
    assert propose([step("a"), step("a"), step("b")]).needed is None
    assert propose([step("a"), step("a"), step("b")]).agree == 2
    assert propose([step("a"), step("a")]).needed == ()
    assert propose([step("Mon Nov 30 12:24:17 2026"), step("Mon Nov 30 12:24:18 2026")]).needed == ("human_times",)
    assert propose([step("1"), step("1", exit=1)]).needed is None
    pids: list[dict[str, tuple[str, ...]]] = [{"pid": ("4711",)}, {"pid": ("4712",)}]
    assert propose([step("4711"), step("4712")], known=pids).needed == ("pids",)


TEXTS = st.lists(st.sampled_from(["a\n", "b\n", f"{A}\n", f"{B}\n", "0.1s\n", "0.2s\n", "c"]), max_size=5).map("".join)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_the_words_keep_their_promises(one: str, two: str) -> None:
    found = compare(step(one), step(two))
    back = compare(step(two), step(one))
    assert (found.word == "exact") == (one == two)
    assert found.word == back.word
    if found.word == "weak":
        assert found.masked
    if found.word == "normalised":
        assert found.needed
        assert not found.masked
    if found.word == "unordered":
        assert len(one.splitlines()) == len(two.splitlines())
    if found.same and found.word != "unordered":
        assert compare(step(one), step(two), Rules(names=found.needed)).word == found.word
