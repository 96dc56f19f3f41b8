"""Whatever a tree is and whatever is done in a view of it: the tree stays, what is told is what a real run changes, and
what is kept makes the tree equal to one in which it was really done."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import deeds
import pytest
from deeds import Step, do, facts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veil.host.differing import Difference
from veil.host.rooms import Rooms
from veil.host.telling import in_git, told
from veil.host.views import Method, open_view
from veil.model.plan import Launch
from veil.previews import Previews

NAMES = st.sampled_from(["a", "b", "c", "A", "\u00e9", "x y", "new\nline", "-rf", "c,d:e\\f", os.fsdecode(b"\xff")])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENT = st.one_of(st.text(max_size=6), st.sampled_from(["same", "x" * 40]))
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o444, 0o700, 0o000])
TIMES = st.sampled_from([1, 1_600_000_000_000_000_001, 1_700_000_000_123_456_789])
MAKING = st.one_of(
    st.tuples(st.just("file"), PATHS, CONTENT),
    st.tuples(st.just("folder"), PATHS),
    st.tuples(st.just("link"), PATHS, st.sampled_from(["a", "..", "../../outside", "nowhere", "."])),
    st.tuples(st.just("fifo"), PATHS),
    st.tuples(st.just("mode"), PATHS, MODES),
    st.tuples(st.just("time"), PATHS, TIMES),
)
DOING = st.one_of(
    MAKING,
    st.tuples(st.just("remove"), PATHS),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("write"), PATHS, CONTENT, st.booleans()),
    st.tuples(st.just("open"), PATHS),
    st.tuples(st.just("hard"), PATHS, PATHS),
)
START = [("folder", "a"), ("folder", "b"), ("folder", "a/b"), ("file", "a/a", "same"), ("file", "c", "c")]


def expected(before: dict[str, tuple[object, ...]], after: dict[str, tuple[object, ...]]) -> set[tuple[str, str]]:
    """What has to be told of two trees, by the rules of the documentation, a rename as one deleted and one created."""

    def is_dir(row: tuple[object, ...] | None) -> bool:
        return row is not None and row[0] == stat.S_IFDIR

    came = [path for path in after if path not in before]
    went = [path for path in before if path not in after]
    turned = [path for path in before if path in after and is_dir(before[path]) is not is_dir(after[path])]
    # a folder with something in it is told by what is in it
    above = {False: {p.rpartition("/")[0] for p in came}, True: {p.rpartition("/")[0] for p in went}}
    found = {(path, "created") for path in came if not is_dir(after[path]) or path not in above[False]}
    found |= {(path, "deleted") for path in went if not is_dir(before[path]) or path not in above[True]}
    found |= {(path, "created" if is_dir(before[path]) else "deleted") for path in turned}
    for path in sorted(set(before) & set(after) - set(turned) - {""}):
        old, new = before[path], after[path]
        if (old[0], old[4]) != (new[0], new[4]):
            found.add((path, "modified"))
        elif old[:4] != new[:4] and old[0] != stat.S_IFLNK:
            found.add((path, "mode"))
    return found


def as_pairs(difference: Difference, root: Path) -> set[tuple[str, str]]:
    found = set()
    for change in told(difference, str(root)):
        if change.change == "renamed":
            assert change.old is not None
            found |= {(change.path, "created"), (change.old, "deleted")}
        else:
            found.add((change.path, change.change))
    return found


def run_in_view(
    root: Path, state: Path, method: Method, steps: list[Step]
) -> tuple[Difference, set[tuple[str, str]], str]:
    """The difference, what is told of it, and the name under which it is kept."""
    view = open_view(str(root), Rooms(state / "rooms"), most_bytes=10**9, methods=[method])
    try:
        words = (sys.executable, "-B", str(Path(deeds.__file__)), json.dumps(steps))
        launch = view.launch(Launch(words, str(root), dict(os.environ)))
        subprocess.run([*launch.outside, *launch.argv], cwd=launch.cwd, env=dict(launch.env), check=True)
        assert view.broken() is None
        difference = view.difference()
        pairs = as_pairs(difference, root)
        token, why = previews(state).keep(str(root), difference, view.opened_ns)
        assert token is not None, why
        return difference, pairs, token
    finally:
        view.close()


def previews(state: Path) -> Previews:
    return Previews(state / "kept", max_bytes=10**9, ttl_seconds=60, most=9)


@pytest.mark.parametrize(
    "method", [pytest.param("overlay", marks=[pytest.mark.linux, pytest.mark.needs("user namespaces")]), "copy"]
)
@settings(
    max_examples=int(os.environ.get("VEIL_TEST_EXAMPLES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(making=st.lists(MAKING, max_size=8), doing=st.lists(DOING, max_size=10))
def test_a_preview_is_what_a_real_run_does(method: Method, making: list[Step], doing: list[Step]) -> None:
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="veil-previews-")))
    try:
        root, twin, outside = base / "ws", base / "twin" / "ws", base / "outside"
        root.mkdir()
        outside.mkdir()
        (outside / "a").write_text("precious")
        for step in [*START, *making]:
            do(root, step)
        twin.parent.mkdir()
        subprocess.run(["cp", "-a", root, twin], check=True)
        before, untouched = facts(root, times=True), facts(outside, times=True)
        then = facts(root, times=False)
        difference, pairs, token = run_in_view(root, base / "state", method, doing)
        assert facts(root, times=True) == before
        for step in doing:
            do(twin, step)
        after = facts(twin, times=False)
        wanted = expected(then, after)
        assert pairs == {pair for pair in wanted if not in_git(pair[0])}
        previews(base / "state").apply(token, "cmd1")
        assert facts(root, times=False) == after
        for each in difference.touched:
            if each.after is not None and (each.after.is_file or each.before is None):
                assert os.lstat(root / each.path).st_mtime_ns == each.after.mtime_ns, each.path
        assert facts(outside, times=True) == untouched
        assert sorted(os.listdir(base / "state" / "rooms")) == [".veil-owned"]
    finally:
        shutil.rmtree(base)
