"""A task that waits for a run is cancelled: in a replay as when it was recorded."""

from __future__ import annotations

from sessions import Suite, suite

__all__ = ["suite"]

CANCELLED = """
    import asyncio
    import pytest

    def test_cancelled(veil_arun, veil_run):
        async def main():
            task = asyncio.create_task(veil_arun("echo x > f; exec sleep 300"))
            while not (veil_run.root / "f").exists():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        asyncio.run(main())
        assert veil_run("cat f").stdout == "x\\n"

    def test_too_slow(veil_arun):
        async def main():
            await asyncio.wait_for(veil_arun("exec sleep 300"), 0.5)
        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(main())
"""


def test_a_cancelled_run_is_cancelled_in_every_mode(suite: Suite) -> None:
    suite.write("test_it.py", CANCELLED)
    for mode in ("live", "record", "replay", "verify"):
        suite.run(f"--veil-mode={mode}", "--veil-unused=error").assert_outcomes(passed=2)
