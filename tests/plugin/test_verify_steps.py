"""Verdicts from runs that really took place: two stages, one recording, one word for each step."""

# over 300 lines because: it is one subject: a test for each word of a verdict, from runs by the same few functions

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_veil.outcomes import SAME, ItemOutcome, StepRow, Take
from pytest_veil.telling import told
from pytest_veil.verifying import Verified, verify_steps
from veil import Refused
from veil.taping import PROFILES, Cassette, Header, Key, Recorder, Rules, Stage, numbered, standard
from veil.taping import SAME as STRONGEST_FIRST

Body = Callable[[Recorder], None]
NODE = "test_it.py::test_one"


def recorded(tmp_path: Path, body: Body, profile: str = "deterministic") -> tuple[Cassette, Recorder]:
    """The same body on a fresh stage at the same place."""
    recorder = Recorder(Stage.make(tmp_path / "stage", PROFILES[profile], os.environ))
    body(recorder)
    return recorder.cassette(Header(profile, 1)), recorder


def verified(tmp_path: Path, before: Body, *bodies: Body, rules: Rules | None = None, **more: Any) -> Verified:
    return verify_steps(takes_of(tmp_path, before, *bodies, rules=rules, **more))


def takes_of(tmp_path: Path, before: Body, *bodies: Body, rules: Rules | None = None, **more: Any) -> list[Take]:
    then, _ = recorded(tmp_path, before)
    takes = []
    for body in bodies:
        now, recorder = recorded(tmp_path, body)
        takes.append(Take("c/x.veil.txtar", then, now, rules or Rules(), NODE, refused=tuple(recorder.refused), **more))
    return takes


def commands(*texts: str, **options: Any) -> Body:
    def body(run: Recorder) -> None:
        for text in texts:
            run.run(text, options)

    return body


def with_file(content: str, *texts: str) -> Body:
    """Commands that read a file which is not what they are: the same commands, another world."""

    def body(run: Recorder) -> None:
        (run.stage.root / "given").write_text(content)
        commands(*texts)(run)

    return body


def words(found: Verified) -> list[str]:
    return [row.word for row in found.rows]


def test_the_words_of_sameness_are_those_of_the_comparison() -> None:
    assert SAME == STRONGEST_FIRST


def test_exact(tmp_path: Path) -> None:
    body = commands("echo a", "mkdir d; echo b > d/f", "exit 3")
    found = verified(tmp_path, body, body)
    assert words(found) == ["exact", "exact", "exact"]
    assert (found.word, found.first, found.same) == ("exact", None, True)
    assert [row.runs for row in found.rows] == [(1, 1)] * 3


@pytest.mark.parametrize(
    ("text", "word", "where"),
    [
        ("cat given", "output-drift", "stdout"),
        ("cat given >&2", "output-drift", "stderr"),
        ("exit $(wc -c < given)", "exit-drift", "exit"),
        ("cp given made", "effect-drift", "files/made"),
        ('test "$(cat given)" = one && touch made', "exit-drift", "exit"),
        ('test "$(cat given)" = one && touch made; true', "effect-drift", "tree"),
        ('test "$(cat given)" = one || kill -9 $$', "exit-drift", "ended"),
    ],
)
def test_drift(tmp_path: Path, text: str, word: str, where: str) -> None:
    one, two = with_file("one", "echo before", text, "echo after"), with_file("two!", "echo before", text, "echo after")
    found = verified(tmp_path, one, two, two)
    assert words(found) == ["exact", word, "exact"]
    assert found.word == word
    assert found.first is not None
    assert (found.first.number, found.first.where, found.first.runs) == (2, where, (0, 2))


def test_the_first_difference_names_the_test(tmp_path: Path) -> None:
    texts = ("echo fine", "cat given", "exit $(wc -c < given)")
    found = verified(tmp_path, with_file("one", *texts), with_file("four", *texts))
    assert words(found) == ["exact", "output-drift", "exit-drift"]
    assert (found.word, found.first and found.first.number) == ("output-drift", 2)


def test_wrong_now_is_told_from_unstable_here(tmp_path: Path) -> None:
    text = "cat given"
    wrong = verified(tmp_path, with_file("1", text), with_file("2", text), with_file("2", text))
    assert wrong.word == "output-drift"
    shaky = verified(tmp_path, with_file("1", text), with_file("2", text), with_file("3", text))
    assert shaky.word == "unstable"
    once = verified(tmp_path, with_file("1", text), *(with_file(c, text) for c in "1121"))
    assert once.word == "unstable"
    assert once.rows[0].runs == (3, 4)


def test_normalised_weak_and_unordered(tmp_path: Path) -> None:
    one = "5a8a7a4c-7f0e-4a52-9a3b-2f4d3f1f2a11 then 5a8a7a4c-7f0e-4a52-9a3b-2f4d3f1f2a11"
    two = one.replace("5a8a7a4c", "77777777")
    mixed = two.replace("then 77777777", "then 88888888")
    assert verified(tmp_path, with_file(one, "cat given"), with_file(two, "cat given")).word == "normalised"
    # a wrong value in the second place is a difference
    assert verified(tmp_path, with_file(one, "cat given"), with_file(mixed, "cat given")).word == "output-drift"
    slow, fast = with_file("took 1.25 seconds\n", "cat given"), with_file("took 3.5 seconds\n", "cat given")
    weak = verified(tmp_path, slow, fast)
    assert (weak.word, weak.same) == ("weak", True)
    assert weak.rows[0].masked
    assert set(weak.rows[0].masked) <= set(weak.fired)
    turned = verified(tmp_path, with_file("a\nb\n", "cat given"), with_file("b\na\n", "cat given"))
    assert (turned.word, turned.same) == ("unordered", True)


def test_a_normaliser_that_was_left_out_is_proposed(tmp_path: Path) -> None:
    one, two = (with_file(f"{c * 8}-7f0e-4a52-9a3b-2f4d3f1f2a11", "cat given") for c in "56")
    found = verified(tmp_path, one, two, one, rules=Rules(names=()))
    assert found.word == "unstable"
    assert found.rows[0].proposal == ("uuids",)
    assert found.rows[0].runs == (1, 2)
    named = verified(tmp_path, one, two, rules=Rules(names=("uuids",)))
    assert (named.word, named.rows[0].proposal) == ("normalised", ())


@pytest.mark.parametrize("text", ["{}", "{} | cat", "echo x; {}; true", "env {}"])
def test_a_tool_that_is_gone(tmp_path: Path, text: str) -> None:
    def body(there: bool) -> Body:
        def inner(run: Recorder) -> None:
            tool = run.stage.home / "mytool"  # outside the workspace: a tool is no file of the test
            if there:
                tool.write_text("#!/bin/sh\necho tool\n")
                tool.chmod(0o755)
            run.run(text.format("mytool"), {"env": {"PATH": f"{run.stage.home}:/usr/bin:/bin"}})

        return inner

    found = verified(tmp_path, body(True), body(False), body(False))
    assert found.word == "missing-tool", found.first
    assert verified(tmp_path, body(False), body(False)).word == "exact"
    # it was missing then: to have it now is a difference of another kind
    assert verified(tmp_path, body(False), body(True)).word in ("exit-drift", "output-drift")


def test_a_program_that_cannot_start(tmp_path: Path) -> None:
    def body(there: bool) -> Body:
        def inner(run: Recorder) -> None:
            if there:
                (run.stage.home / "mytool").symlink_to("/bin/true")
            run.run([str(run.stage.home / "mytool")], {})

        return inner

    found = verified(tmp_path, body(True), body(False))
    assert found.word == "missing-tool"
    assert "could not start" in found.rows[0].detail


def test_another_profile_is_the_environment(tmp_path: Path) -> None:
    body = commands("echo ${TERM-none}", "echo same")
    takes = takes_of(tmp_path, body, body)
    other, _ = recorded(tmp_path, commands("echo ${TERM-none} of another", "echo same"))
    older = dataclasses.replace(
        takes[0].recorded or Cassette(),
        header=Header("inherit", 1),
        steps=tuple(
            dataclasses.replace(step, ending=was.ending)
            for step, was in zip(takes[0].fresh.steps, other.steps, strict=True)
        ),
    )
    found = verify_steps([dataclasses.replace(takes[0], recorded=older)])
    assert words(found) == ["environment", "exact"]
    assert "inherit 1, now deterministic 1" in found.rows[0].detail


def test_another_version_of_a_tool_is_the_environment(tmp_path: Path) -> None:
    texts = ("cat given", "wc -c given", "echo same")
    then = {"cat": "cat 1", "wc": "wc 1", "shell": "dash 1"}
    takes = takes_of(tmp_path, with_file("a", *texts), with_file("bc", *texts), machine_then=then)
    found = verify_steps([dataclasses.replace(takes[0], machine_now={**then, "cat": "cat 2"})])
    assert words(found) == ["environment", "output-drift", "exact"]
    assert "cat was cat 1, is cat 2" in found.rows[0].detail
    assert "recorded 'a', now 'bc'" in found.rows[0].detail  # the difference itself is told too


def test_what_was_not_asked_and_what_was_not_recorded(tmp_path: Path) -> None:
    found = verified(tmp_path, commands("echo a", "echo b", "echo c"), commands("echo a", "echo x", "echo c"))
    assert [(row.number, row.word, row.command) for row in found.rows] == [
        (1, "exact", "echo a"),
        (4, "unrecorded", "echo x"),
        (2, "skipped", "echo b"),
        (3, "exact", "echo c"),
    ]
    assert (found.word, found.skipped) == ("unrecorded", (2,))


def test_the_order_of_asking_is_free_and_repetitions_count(tmp_path: Path) -> None:
    then = commands("echo a >> f; cat f", "echo other", "echo a >> f; cat f")
    assert verified(tmp_path, then, then).word == "exact"
    turned = commands("echo other", "echo a >> f; cat f", "echo a >> f; cat f")
    assert words(verified(tmp_path, then, turned)) == ["exact"] * 3
    thrice = commands(*["echo a >> f; cat f"] * 3, "echo other")
    assert verified(tmp_path, then, thrice).rows[-1].word == "unrecorded"


def test_steps_after_an_early_end_were_skipped(tmp_path: Path) -> None:
    texts = ("echo a", "cat given", "echo c", "echo d")
    found = verified(tmp_path, with_file("1", *texts), with_file("2", *texts[:2]), with_file("2", *texts[:2]))
    assert words(found) == ["exact", "output-drift", "skipped", "skipped"]
    assert (found.word, found.skipped) == ("output-drift", (3, 4))


def test_a_step_that_only_some_runs_asked_for_is_unstable(tmp_path: Path) -> None:
    found = verified(tmp_path, commands("echo a", "echo b"), commands("echo a"), commands("echo a", "echo b"))
    assert words(found) == ["exact", "unstable"]
    assert found.rows[1].runs == (1, 2)
    assert found.rows[1].detail == "it was asked for in 1 of 2 runs"


def test_what_veil_refuses_is_refused(tmp_path: Path) -> None:
    def refusing(run: Recorder) -> None:
        run.run("echo a", {})
        with pytest.raises(Refused) as caught:
            run.start("echo b", {"expect": {"exit": 0}})
        assert caught.value.code == "background_incompatible"

    found = verified(tmp_path, commands("echo a", "echo b"), refusing)
    assert words(found) == ["exact", "refused"]
    assert found.word == "refused"
    assert found.rows[1].detail
    # a refusal leaves no step, so where none was recorded it may have been refused then as well
    assert words(verified(tmp_path, refusing, refusing)) == ["exact"]


def test_keys_may_be_changed_as_for_a_replay(tmp_path: Path) -> None:
    def rekey(key: Key) -> Key:
        assert isinstance(key.command, str)
        return dataclasses.replace(key, command=key.command.split("#")[0])

    before, after = commands("echo a # 1"), commands("echo a # 2")
    assert words(verified(tmp_path, before, after)) == ["unrecorded", "skipped"]
    assert words(verified(tmp_path, before, after, rekey=rekey)) == ["exact"]


def test_no_recording_is_no_verdict() -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        verify_steps([])
    with pytest.raises(ValueError, match="nothing to compare"):
        verify_steps([Take("x", None, Cassette(), Rules(), NODE)])


def test_nothing_recorded_and_nothing_run_is_exact() -> None:
    found = verify_steps([Take("x", Cassette(), Cassette(), Rules(), NODE)])
    assert (found.word, found.rows) == ("exact", ())


def test_the_message_shows_lines_and_the_way_out(tmp_path: Path) -> None:
    lines = "".join(f"line {n}\n" for n in range(40))
    one = with_file(lines, "echo fine", "cat given", "echo later")
    two = with_file(lines.replace("line 20", "line \x01twenty"), "echo fine", "cat given")
    takes = takes_of(tmp_path, one, two, two)
    message = told(takes[0], verify_steps(takes), 2)
    assert message.splitlines()[0] == (
        "output-drift at step 2 of 3: stdout line 21: recorded 'line 20\\n', now 'line \\x01twenty\\n'"
    )
    assert "  $ cat given\n" in message
    assert "  -line 20\n  +line \\x01twenty\n" in message
    assert "line 3\n" not in message
    assert "then: step 3 skipped" in message
    assert "as recorded in 0 of 2 runs" in message
    assert "recorded in c/x.veil.txtar" in message
    assert "pytest test_it.py::test_one --veil-mode=refresh" in message


def test_the_message_of_a_file_and_of_a_missing_newline(tmp_path: Path) -> None:
    takes = takes_of(tmp_path, with_file("a\nb\n", "cp given made"), with_file("a\nb", "cp given made"))
    message = told(takes[0], verify_steps(takes), 1)
    assert "  -b\n  +b  (no newline at the end)\n" in message


def test_a_long_difference_is_cut_and_says_so(tmp_path: Path) -> None:
    one, two = ("".join(f"{word} {n}\n" for n in range(300)) for word in ("old", "new"))
    takes = takes_of(tmp_path, with_file(one, "cat given"), with_file(two, "cat given"))
    message = told(takes[0], verify_steps(takes), 1)
    assert len(message.splitlines()) < 40
    assert "more lines of difference)" in message


def test_outcomes_cross_as_json() -> None:
    import json

    row = StepRow(1, "weak", "a \udcff", masked=("duration",), needed=("duration", "x"), runs=(2, 3), proposal=("x",))
    outcome = ItemOutcome("t.py::t", "verify", "passed", "weak", "c", (row,), 1, (2,), ("uuid",), ("pid",), "why")
    assert ItemOutcome.from_data(json.loads(json.dumps(outcome.to_data()))) == outcome


@pytest.mark.parametrize(
    ("text", "made", "pattern"),
    [
        ("request {} done", "numbered", "^request (?P<value>[0-9]+) done$"),
        ("{}", "numbered", "^(?P<value>[0-9]+)$"),
        ("x=0ab{}f; x=0ab{}f", "", ""),  # two places in one line are not one pattern
        ("id-{}z", "numbered", r"^id-(?P<value>\w+)$"),
    ],
)
def test_a_normaliser_that_nobody_has_is_suggested(tmp_path: Path, text: str, made: str, pattern: str) -> None:
    bodies = [with_file(f"{text.format(n, n)}\n", "cat given") for n in ("1234", "98", "777777")]
    row = verified(tmp_path, *bodies).rows[0]
    assert row.word == "unstable"
    assert row.suggestion == (f'{made}("mine", 1, "what varies", "mine", rb"{pattern}")' if made else "")
    if made:  # what is suggested holds
        normaliser = eval(row.suggestion, {"numbered": numbered})  # noqa: S307 - our own text
        rules = Rules(registry=standard().adding(normaliser, first=True))
        assert verified(tmp_path, *bodies, rules=rules).word == "normalised"
