"""A tape answers by equality, in order, once; a miss tells why and what is nearest."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.cassettes.errors import CassetteMiss
from veil.cassettes.matching import Tape, key_of
from veil.cassettes.steps import Cassette, Ending, Header, KeptStream, Step, TreeChange, entry_id
from veil.model.errors import VeilError
from veil.model.outcome import Stream


def sh(text: str, out: bytes = b"", **more: Any) -> Step:
    ending = Ending(stdout=KeptStream.of(Stream(out, b"", len(out), out.count(b"\n"))))
    return Step(("/bin/sh", "-c", text), text=text, ending=ending, **more)


def tape(*steps: Step, **more: Any) -> Tape:
    return Tape(Cassette(Header("deterministic", 2), steps), "cassettes/t.veil.txtar", **more)


def counted(before: str, after: str) -> tuple[TreeChange, ...]:
    ids = [entry_id("file", 0o644, text.encode()) for text in (before, after)]
    return (TreeChange("n", "modified", mode=0o644, before=ids[0], after=ids[1], content=after.encode()),)


def test_rr_01_equal_commands_replay_in_order_and_a_third_call_is_an_error() -> None:
    text = "cat n; echo $(( $(cat n)+1 )) > n"
    steps = (sh(text, b"0\n", changes=counted("0", "1")), sh(text, b"1\n", changes=counted("1", "2")))
    played = tape(*steps)
    now = {"n": entry_id("file", 0o644, b"0")}

    def state(paths: Any) -> dict[str, str]:
        return {path: now[path] for path in paths}

    outs = []
    for _ in range(2):
        _, step = played.take(key_of(steps[0]), state)
        outs.append(step.ending.stdout.head)
        now.update(step.after)
    assert outs == [b"0\n", b"1\n"]
    with pytest.raises(CassetteMiss) as caught:
        played.take(key_of(steps[0]), state)
    assert caught.value.code == "cassette_miss"
    assert caught.value.facts["reason"] == "already_used"
    assert "recorded 2x and asked for once more" in str(caught.value)
    assert played.unused == ()


def test_without_touched_files_occurrences_are_handed_out_in_order() -> None:
    played = tape(sh("date", b"1"), sh("id", b"x"), sh("date", b"2"))
    key = key_of(sh("date"))
    assert [played.take(key)[0] for _ in range(2)] == [1, 3]
    assert played.unused == (2,)


def test_files_that_are_not_as_recorded_are_a_miss_and_use_nothing_up() -> None:
    played = tape(sh("bump", changes=counted("0", "1")))
    with pytest.raises(CassetteMiss) as caught:
        played.take(key_of(sh("bump")), lambda paths: {"n": "absent"})
    assert caught.value.facts["reason"] == "never_recorded"
    assert caught.value.facts["differs"][0]["field"] == "state of n"
    assert played.unused == (1,)


def test_state_chooses_among_equal_commands() -> None:
    played = tape(sh("bump", b"a", changes=counted("0", "1")), sh("bump", b"b", changes=counted("5", "6")))
    five = {"n": entry_id("file", 0o644, b"5")}
    assert played.take(key_of(sh("bump")), lambda paths: five)[1].ending.stdout.head == b"b"


@pytest.mark.parametrize(
    ("change", "field", "asked", "recorded"),
    [
        ({"argv": ("/bin/sh", "-c", "make tesd"), "text": "make tesd"}, "command", "make tesd", "make test"),
        ({"cwd": "<root>/sub"}, "cwd", "<root>/sub", "<root>"),
        ({"stdin": b"in"}, "stdin", None, "null"),
        ({"env": (("A", "2"),)}, "env A", "2", "1"),
        ({"env": ()}, "env A", "(not set)", "1"),
        ({"env": (("A", "1"), ("B", None))}, "env B", None, "(not set)"),
        ({"argv": ("/bin/bash", "-c", "make test")}, "shell", ["bash", "-c"], ["sh", "-c"]),
        ({"merged": True}, "mode", ["merged"], []),
        ({"background": True}, "mode", ["background"], []),
        ({"wishes": (("Sandbox", {"network": True}),)}, "confined", ["sandbox"], []),
        ({"wishes": (("Sandbox", {"network": False}),)}, "confined", ["sandbox network=false"], []),
        ({"wishes": (("Preview", {}),)}, "confined", ["preview"], []),
    ],
)
def test_rr_03_a_miss_shows_the_differing_field(change: dict[str, Any], field: str, asked: Any, recorded: Any) -> None:
    step = sh("make test", env=(("A", "1"),))
    played = tape(sh("rm -rf build"), step)
    with pytest.raises(CassetteMiss) as caught:
        played.take(key_of(dataclasses.replace(step, **change)))
    facts = caught.value.facts
    assert (facts["reason"], facts["nearest"], facts["unused"]) == ("never_recorded", 2, [1, 2])
    (row,) = facts["differs"]
    assert (row["field"], row["recorded"]) == (field, recorded)
    if field != "stdin":
        assert row["asked"] == asked
        assert repr(asked) in str(caught.value)
    assert "nothing was run" in str(caught.value)


def test_a_step_answers_only_what_is_confined_alike() -> None:
    open_, closed = {"network": True, "writable": []}, {"network": False, "writable": ["<root>/b", "<root>/a"]}
    played = tape(sh("make"), sh("make", wishes=(("Sandbox", closed),)), sh("make", wishes=(("Sandbox", open_),)))
    # what is left as it is, the order of paths and who confines it (a matter of the machine) make no other question
    same = {"network": False, "writable": ["<root>/a", "<root>/b"], "max_cpu": None, "backend": "landlock"}
    assert played.take(key_of(sh("make", wishes=(("Sandbox", same),))))[0] == 2
    assert played.take(key_of(sh("make", wishes=(("Sandbox", {}), ("Effects", {"ignored": False})))))[0] == 3
    with pytest.raises(CassetteMiss, match="already used"):
        played.take(key_of(sh("make", wishes=(("Sandbox", open_),))))
    # an option that this version does not know is never taken for nothing
    with pytest.raises(CassetteMiss, match="never recorded"):
        played.take(key_of(sh("make", wishes=(("Sandbox", {"no_clock": False}),))))
    assert played.unused == (1,)


def test_where_the_shell_lives_does_not_matter() -> None:
    elsewhere = dataclasses.replace(sh("make"), argv=("/opt/local/bin/sh", "-c", "make"))
    assert tape(sh("make")).take(key_of(elsewhere))[0] == 1


def test_an_argv_is_not_a_text() -> None:
    played = tape(Step(("echo", "a b")), sh("echo a b"))
    assert played.take(key_of(sh("echo a b")))[0] == 2
    with pytest.raises(CassetteMiss):
        played.take(key_of(Step(("echo", "a", "b"))))


@pytest.mark.parametrize(
    ("played", "reason", "says"),
    [
        (Tape(None, "cassettes/t.veil.txtar"), "no_cassette_file", "cassettes/t.veil.txtar: no cassette file"),
        (tape(), "never_recorded", "never recorded: touch REAL"),
        (tape(sh("touch REEL")), "never_recorded", "asked 'touch REAL', recorded 'touch REEL'"),
        (
            tape(sh("touch REEL"), header=Header("deterministic", 3)),
            "other_version",
            "recorded under another version: profile deterministic 2, now deterministic 3",
        ),
        (tape(sh("touch REEL"), header=Header("deterministic", 2)), "never_recorded", "never recorded"),
    ],
)
def test_rr_03_each_miss_says_which_kind_it_is(played: Tape, reason: str, says: str) -> None:
    with pytest.raises(VeilError) as caught:
        played.take(key_of(sh("touch REAL")))
    assert caught.value.facts["reason"] == reason
    assert says in str(caught.value)
    assert caught.value.to_dict()["error"] == "cassette_miss"


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=16))
def test_each_step_is_handed_out_once_and_in_order(recorded: list[str], asked: list[str]) -> None:
    played = tape(*(sh(word, str(n).encode()) for n, word in enumerate(recorded, 1)))
    got: dict[str, list[int]] = {}
    for word in asked:
        if len(got.get(word, [])) < recorded.count(word):
            number, step = played.take(key_of(sh(word)))
            assert step.text == word
            got.setdefault(word, []).append(number)
        else:
            with pytest.raises(CassetteMiss) as caught:
                played.take(key_of(sh(word)))
            assert caught.value.facts["reason"] == ("already_used" if word in recorded else "never_recorded")
    assert all(numbers == sorted(set(numbers)) for numbers in got.values())
    assert len(played.unused) == len(recorded) - sum(map(len, got.values()))


def test_threads_never_get_the_same_step() -> None:
    played = tape(*(sh("x", str(n).encode()) for n in range(200)))
    numbers: list[int] = []

    def many() -> None:
        numbers.extend(played.take(key_of(sh("x")))[0] for _ in range(50))

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 201))
