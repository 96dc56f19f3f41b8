"""``with expect.all():``."""

from __future__ import annotations

# ruff: noqa: PT012, PT017 - what happens within and at the end of a block is what is tested
import asyncio
import threading
import unittest
from pathlib import Path

import pytest

import veil
from pytest_veil import ExpectationError, expect


@pytest.fixture
def failed_run(tmp_path: Path) -> veil.Result:
    return veil.run("exit 4", cwd=tmp_path, no_store=True)


def calls(error: ExpectationError) -> list[str]:
    return [failure.call for failure in error.failures]


def test_it_collects_all_and_raises_once_at_its_end(failed_run: veil.Result) -> None:
    reached = False
    with pytest.raises(ExpectationError) as error, expect.all() as soft:
        expect(failed_run).ok().exit(4).stdout.contains("x")
        expect(failed_run).not_.failed()
        reached = True
        assert len(soft.failures) == 3
    assert reached
    assert calls(error.value) == ["ok()", "stdout.contains('x')", "not_.failed()"]
    assert str(error.value).startswith("3 checks failed: exit is 4, expected 0 (exit 4)\n")
    lines = [failure.where for failure in error.value.failures]
    first = test_it_collects_all_and_raises_once_at_its_end.__code__.co_firstlineno + 3
    assert lines == [f"test_expect_soft.py:{line}" for line in (first, first, first + 1)]


def test_nothing_failed_nothing_raised(failed_run: veil.Result) -> None:
    with expect.all() as soft:
        expect(failed_run).failed()
    assert soft.failures == []


def test_a_block_in_a_block_hands_its_failures_on(failed_run: veil.Result) -> None:
    after_inner = False
    with pytest.raises(ExpectationError) as error, expect.all():
        expect(failed_run).exit(0)
        with expect.all() as inner:
            expect(failed_run).exit(1)
        after_inner = True
        expect(failed_run).exit(2)
    assert after_inner
    assert calls(error.value) == ["exit(0)", "exit(1)", "exit(2)"]
    assert [failure.call for failure in inner.failures] == ["exit(1)"]


def test_an_exception_wins_and_the_failures_are_noted(failed_run: veil.Result) -> None:
    with pytest.raises(ZeroDivisionError) as error, expect.all():
        expect(failed_run).ok()
        with expect.all():
            expect(failed_run).exit(1)
            raise ZeroDivisionError
    notes = error.value.__notes__  # type: ignore[attr-defined, unused-ignore]
    assert len(notes) == 1
    assert notes[0].startswith("before this, in expect.all(): 2 checks failed: exit is 4")


def test_what_was_collected_outlives_an_exception_that_was_caught(failed_run: veil.Result) -> None:
    with pytest.raises(ExpectationError) as error, expect.all():
        with pytest.raises(ZeroDivisionError), expect.all():
            expect(failed_run).ok()
            raise ZeroDivisionError
        expect(failed_run).exit(4)
    assert calls(error.value) == ["ok()"]


def test_a_skip_hides_no_failure(failed_run: veil.Result) -> None:
    for skip in (pytest.skip.Exception("later"), unittest.SkipTest("later")):
        with pytest.raises(ExpectationError) as error, expect.all():
            expect(failed_run).ok()
            raise skip
        assert error.value.__cause__ is skip
    with pytest.raises(pytest.skip.Exception), expect.all():
        pytest.skip("nothing failed before")


def test_after_the_block_a_failure_is_at_once_again(failed_run: veil.Result) -> None:
    with pytest.raises(ZeroDivisionError), expect.all():
        raise ZeroDivisionError
    with pytest.raises(ExpectationError):
        expect(failed_run).ok()


def test_a_block_is_entered_once(failed_run: veil.Result) -> None:
    block = expect.all()
    with block:
        pass
    with pytest.raises(RuntimeError, match="anew"), block:
        pass


def test_bad_input_is_not_collected(failed_run: veil.Result) -> None:
    with pytest.raises(veil.BadInput), expect.all():
        expect(failed_run).exit(999)


def test_a_thread_does_not_write_into_the_block_of_another(failed_run: veil.Result) -> None:
    seen: list[BaseException] = []

    def work() -> None:
        try:
            expect(failed_run).ok()
        except ExpectationError as error:
            seen.append(error)

    with expect.all() as soft:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert soft.failures == []
    assert len(seen) == 1


def test_tasks_have_blocks_of_their_own(failed_run: veil.Result) -> None:
    async def one(code: int) -> list[str]:
        try:
            with expect.all():
                expect(failed_run).exit(code)
                await asyncio.sleep(0)
                expect(failed_run).exit(code + 1)
        except ExpectationError as error:
            return calls(error)
        return []

    async def both() -> list[list[str]]:
        return list(await asyncio.gather(one(10), one(20)))

    assert asyncio.run(both()) == [["exit(10)", "exit(11)"], ["exit(20)", "exit(21)"]]


def test_python_shows_the_note(failed_run: veil.Result) -> None:
    import traceback

    try:
        with expect.all():
            expect(failed_run).ok()
            raise ZeroDivisionError
    except ZeroDivisionError as error:
        assert "before this, in expect.all(): exit is 4" in "".join(traceback.format_exception(error))
