"""The end of a test: whether its recording is written, and what is said of it."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_veil.cassettes import read_cassette, write_whole
from pytest_veil.outcomes import ItemOutcome, StepRow

if TYPE_CHECKING:
    import pytest

    from pytest_veil.scenes import Scene
    from veil.taping import Cassette, Recorder, Rules, Step

Edit = Callable[["Step"], "Step"]


def conclude(
    scene: Scene, passed: bool, outcome: str, rules: Rules, edit: Edit, part: str | None = None
) -> tuple[ItemOutcome, str | None]:
    """What is said of a test that is over, and why it fails now when it does.

    Writes its cassette, when there is one to be written. Not for verify mode.

    Args:
        passed: nothing of the test failed. outcome: pytest's word.
        edit: last change of a step before it is written (hook ``pytest_veil_record``).
        part: why some of those that share it did not run to their end, in words; None when all of them did.
    """
    if scene.player is not None:
        return _replayed(scene, passed, outcome)
    if scene.recorder is not None:
        return _recorded(scene, passed, outcome, rules, edit, part), None
    return _said(scene, outcome, "live" if scene.ran else "none", _rows(scene.ran, "live")), None


def _said(scene: Scene, outcome: str, verdict: str, steps: tuple[StepRow, ...], **more: object) -> ItemOutcome:
    return ItemOutcome(
        nodeid=scene.nodeid,
        mode=scene.settings.mode,
        outcome=outcome,
        verdict=verdict,
        cassette=scene.shown if scene.path is not None else None,
        steps=steps,
        scope=scene.scope,
        **more,  # type: ignore[arg-type]
    )


def _rows(commands: list[str], word: str) -> tuple[StepRow, ...]:
    return tuple(StepRow(number, word, command) for number, command in enumerate(commands, 1))


def _shown(step: Step) -> str:
    import shlex

    return shlex.join(step.argv) if step.text is None else step.text


def _replayed(scene: Scene, passed: bool, outcome: str) -> tuple[ItemOutcome, str | None]:
    player, old = scene.player, scene.old
    assert player is not None
    unused = () if scene.elsewhere else player.tape.unused
    steps = old.steps if old is not None else ()
    rows = tuple(StepRow(number, "replayed", _shown(steps[number - 1])) for number in player.used)
    verdict = "missing-cassette" if old is None and scene.misses else "replayed" if rows else "none"
    wrong = None
    if passed and scene.misses:
        wrong = _unnoticed(scene)
    elif passed and unused and scene.settings.unused == "error":
        told = [f"  {number}: {_shown(steps[number - 1])}" for number in unused]
        many = "1 recorded step was" if len(unused) == 1 else f"{len(unused)} recorded steps were"
        wrong = "\n".join([f"{scene.shown}: {many} not asked for:", *told])
    said = _said(
        scene,
        "failed" if wrong else outcome,
        verdict,
        rows,
        unused=unused,
        why=scene.misses[0].split("\n", 1)[0] if scene.misses else "",
    )
    return said, wrong


def _recorded(scene: Scene, passed: bool, outcome: str, rules: Rules, edit: Edit, part: str | None) -> ItemOutcome:
    from dataclasses import replace

    from veil.taping import encode

    recorder, path = scene.recorder, scene.path
    assert recorder is not None
    assert path is not None
    cassette = recorder.cassette(scene.header)
    cassette = replace(cassette, steps=tuple(edit(step) for step in cassette.steps))
    if not passed and not scene.settings.keep_failed:
        rows = tuple(StepRow(number, "live", _shown(step)) for number, step in enumerate(cassette.steps, 1))
        return _said(scene, outcome, "not-written", rows, why=f"the test did not pass ({outcome})")
    old = scene.old if scene.settings.mode == "refresh" else None
    written = cassette if old is None else merged(old, cassette, rules)
    data = encode(written)
    if cassette.steps:
        scene.written = hashlib.sha256(data).hexdigest()
    if part is not None and (lost := _lost(path, scene.shown, cassette)):
        rows = tuple(StepRow(number, "live", _shown(step)) for number, step in enumerate(cassette.steps, 1))
        many = "1 step that it has was" if lost == 1 else f"{lost} steps that it has were"
        return _said(scene, outcome, "not-written", rows, why=f"{part}, and {many} not asked for")
    if not cassette.steps:
        if passed:  # its recording says that it runs something, and it does not any more
            path.unlink(missing_ok=True)
            facts_beside(path).unlink(missing_ok=True)
        return _said(scene, outcome, "none", ())
    another = write_whole(path, data)
    if scene.settings.facts:
        write_whole(facts_beside(path), facts_of(recorder, written.steps))
    elif another:  # what is told there is told of the recording before
        facts_beside(path).unlink(missing_ok=True)
    rows = tuple(
        StepRow(number, "recorded" if step is fresh else "kept", _shown(step))
        for number, (step, fresh) in enumerate(zip(written.steps, cassette.steps, strict=True), 1)
    )
    return _said(scene, outcome, "recorded" if scene.settings.mode != "refresh" else "refreshed", rows)


def _lost(path: Path, shown: str, new: Cassette) -> int:
    """How many steps of the recording that is there the new one does not have. One that cannot be read has none."""
    from veil import VeilError
    from veil.taping import key_of

    try:
        there = read_cassette(path, shown)
    except VeilError:
        return 0
    return (Counter(map(key_of, there.steps if there else ())) - Counter(map(key_of, new.steps))).total()


def claimed_twice(scene: Scene, common: Path) -> str | None:
    """Why the recording of a shared runner cannot stand: another worker of this run wrote other steps there.

    Args:
        common: a folder that all workers of this run see.
    """
    from veil.taping import file_stem

    if scene.written is None:
        return None
    # One file per content, made in one step: whichever worker comes later sees the other's, however close they are.
    claims = common / "shared" / file_stem(scene.shown)
    claims.mkdir(parents=True, exist_ok=True)
    (claims / scene.written).touch()
    if len(os.listdir(claims)) == 1:
        return None
    return (
        f"{scene.shown}: two workers recorded the runner that their tests share, and each only its own part;"
        f" record with {'--dist=loadfile' if scene.scope != 'session' else '-n0'}"
    )


def merged(old: Cassette, new: Cassette, rules: Rules) -> Cassette:
    """``new``, in which each step that repeats an old one keeps the old one's bytes.

    All of ``new`` when the mixture would not be true: a later step found other bytes than a kept one left.
    """
    from veil.taping import Cassette, compare, key_of

    free: dict[object, list[Step]] = {}
    for step in old.steps:
        free.setdefault(key_of(step), []).append(step)
    steps = []
    for step in new.steps:
        same = free.get(key_of(step))
        before = same.pop(0) if same else None
        steps.append(before if before is not None and compare(before, step, rules).same else step)
    return Cassette(new.header, tuple(steps)) if _holds_together(steps) else new


def _holds_together(steps: list[Step]) -> bool:
    """Whether each step begins where those before it ended."""
    now: dict[str, str] = {}
    for step in steps:
        for path, entry in step.before.items():
            if now.get(_place(step, path), entry) != entry:
                return False
        now.update((_place(step, path), entry) for path, entry in step.after.items())
    return True


def _place(step: Step, path: str) -> str:
    return posixpath.normpath(posixpath.join(step.cwd, path))


def facts_beside(path: Path) -> Path:
    """The sidecar of a cassette."""
    from veil.taping import FACTS_SUFFIX, SUFFIX

    return path.with_name(path.name.removesuffix(SUFFIX) + FACTS_SUFFIX)


def facts_of(recorder: Recorder, steps: Sequence[Step]) -> bytes:
    """When and where it was recorded, as a sidecar holds it."""
    from pytest_veil.excuses import tools_of
    from veil.taping import Facts, encode_facts, fingerprint

    tools = sorted({tool for step in steps for tool in tools_of(step)})
    return encode_facts(Facts(fingerprint(recorder.stage.environment, tools), recorder.facts()))


def machines(scene: Scene) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """What the recording was made on, and what this machine is in the same respects; None without a sidecar."""
    from veil.taping import decode_facts, fingerprint

    file = None if scene.path is None else facts_beside(scene.path)
    if file is None or not file.is_file():
        return None, None
    then = dict(decode_facts(file.read_bytes(), file.name).machine)
    return then, fingerprint(scene.stage.environment, then)


def hear(phases: dict[str, pytest.TestReport], report: pytest.TestReport, scene: Scene | None) -> None:
    """One more report of a test. A body that passed although nothing had answered it fails."""
    when = report.when or ""
    before = phases.get(when)
    if before is not None and before.failed:  # subtests say call again and again
        return
    if when == "call" and scene is not None and scene.misses and plainly_passed(report):
        report.outcome, report.longrepr = "failed", _unnoticed(scene)
    phases[when] = report


def plainly_passed(report: pytest.TestReport) -> bool:
    """It passed, and nobody had expected it to fail: pytest would not count that as a failure."""
    return report.passed and not hasattr(report, "wasxfail")


def _unnoticed(scene: Scene) -> str:
    return f"{scene.misses[0]}\n(the test went on and passed, but nothing had answered)"


def word_of(phases: dict[str, pytest.TestReport]) -> str:
    """pytest's word for the whole test."""
    if any(phase.failed for name, phase in phases.items() if name != "call"):
        return "error"
    call = phases.get("call") or phases.get("setup")
    return "passed" if call is None else call.outcome
