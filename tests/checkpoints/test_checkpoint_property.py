"""Whatever a tree was and whatever happened to it: a restore makes it exactly what it was."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from ckpt_trees import snapshot
from deeds import do
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veil.snapshots import Checkpoints

NAMES = st.sampled_from(["a", "b", "c", "A", "\u00e9", "x y", "new\nline", "-rf", ".git", os.fsdecode(b"\xff")])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENT = st.one_of(st.binary(max_size=12), st.sampled_from([b"same", b"x" * 300_000, b"y" * 300_000]))
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o444, 0o700])
TIMES = st.sampled_from([1, 1_600_000_000_000_000_001, 1_700_000_000_123_456_789])
STEPS = st.one_of(
    st.tuples(st.just("file"), PATHS, CONTENT),
    st.tuples(st.just("folder"), PATHS),
    st.tuples(st.just("link"), PATHS, st.sampled_from(["a", "..", "../../outside", "nowhere", "."])),
    st.tuples(st.just("hard"), PATHS, PATHS),
    st.tuples(st.just("remove"), PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("write"), PATHS, CONTENT, st.just(True)),
    st.tuples(st.just("bits"), PATHS, MODES),
    st.tuples(st.just("time"), PATHS, TIMES),
    st.tuples(st.just("fifo"), PATHS),
)


START = [("folder", "a"), ("folder", "b"), ("folder", "a/b"), ("file", "a/a", b"same"), ("file", "c", b"c")]


@settings(
    max_examples=int(os.environ.get("VEIL_TEST_EXAMPLES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(STEPS, max_size=12), st.lists(STEPS, max_size=12), st.lists(STEPS, max_size=6))
def test_restore_equals_the_checkpoint(
    first: list[tuple[object, ...]], second: list[tuple[object, ...]], third: list[tuple[object, ...]]
) -> None:
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="veil-checkpoints-")))
    try:
        root, outside = base / "ws", base / "outside"
        root.mkdir()
        outside.mkdir()
        (outside / "a").write_text("precious")
        kept = Checkpoints(base / "state")
        states = []
        for number, steps in enumerate(([*START, *first], second, third)):
            for step in steps:
                do(root, step)
            states.append(snapshot(root))
            kept.take(root, str(number))
            assert snapshot(root) == states[-1]
        untouched = snapshot(outside)
        for number in (0, 2, 1):
            kept.restore(root, str(number))
            assert snapshot(root) == states[number]
            assert kept.diff(root, str(number)) == []
        kept.restore(root, "before-restore")
        assert snapshot(root) == states[2]
        assert snapshot(outside) == untouched
    finally:
        shutil.rmtree(base)
