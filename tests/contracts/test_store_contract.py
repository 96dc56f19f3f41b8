"""What every record store has to do, whatever it is made of."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.model.errors import BadInput, NotFound
from veil.model.outcome import Change, Fact, Findings, Observation, Outcome, Stream, Usage
from veil.model.record import Record
from veil.model.verdict import Judgement, Verdict
from veil.store.base import Store
from veil.store.disk import DiskStore
from veil.store.memory import MemoryStore

Maker = Callable[..., Store]


def on_disk(folder: Path) -> Maker:
    return lambda **limits: DiskStore(folder / "store", **limits)


def in_memory(_: Path) -> Maker:
    return MemoryStore


def on_a_disk_that_refuses(folder: Path) -> Maker:
    (folder / "occupied").write_text("a file where the folder should be")
    return lambda **limits: DiskStore(folder / "occupied" / "store", **limits)


@pytest.fixture(params=[on_disk, in_memory, on_a_disk_that_refuses])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    maker: Maker = request.param(tmp_path)
    return maker


def stream(data: bytes) -> Stream:
    return Stream(data, b"", len(data), data.count(b"\n"))


def record(out: bytes = b"", err: bytes = b"", **fields: object) -> Record:
    observation = Observation(Outcome("exited", 0, 0.25, stream(out), stream(err)))
    return replace(Record("", time.time(), "echo hi", ("echo", "hi"), "/", observation), **fields)  # type: ignore[arg-type]


def whole(id: str = "") -> Record:
    """A record in which every field says something."""
    cut = Stream(b"first", b"newest", 1000, 40)
    last = Outcome(
        "signaled", 139, 1.5, cut, stream(b"\xff\0"), "SIGSEGV", 2, "kept", usage=Usage(0.1, 0.2, 4096), cancelled=True
    )
    first = Outcome("spawn_failed", 127, 0.0, stream(b"one"), stream(b"two"), spawn_error="no such file")
    name = os.fsdecode(b"caf\xe9 \xff")
    findings = Findings(
        (Change(name, "renamed", "file", "a -> b\n\"c'"),), "git", {name: Fact("file", 3, 0o644)}, {"shared": True}
    )
    verdict = Verdict((Judgement("stdout_matches", "inconclusive", ["a", "b"], None, "the stream was cut"),))
    return Record(
        id,
        12.5,
        "x",
        ("bash", "-c", name),
        name,
        Observation(last, (first, first), findings),
        text=name,
        verdict=verdict,
        layers=("changes",),
        background=True,
        status="killed",
        full=True,
    )


def test_what_was_added_is_read_back_whole(make: Maker) -> None:
    store = make()
    kept = store.add(whole())
    assert kept == replace(whole(kept.id), stored=kept.stored, why_memory=kept.why_memory)
    assert store.get(kept.id) == kept
    assert (kept.stored == "disk") == kept.id.startswith("cmd")


@given(st.binary(max_size=6000), st.binary(max_size=6000), st.binary(max_size=50).map(os.fsdecode))
@settings(max_examples=60, deadline=None)
def test_every_byte_and_every_name_survives(
    tmp_path_factory: pytest.TempPathFactory, out: bytes, err: bytes, name: str
) -> None:
    for store in (DiskStore(tmp_path_factory.getbasetemp() / "bytes"), MemoryStore()):
        kept = store.add(record(out, err, command=name, cwd=name, argv=(name,)))
        seen = store.get(kept.id)
        assert seen == kept
        assert (seen.observation.outcome.stdout.data, seen.observation.outcome.stderr.data) == (out, err)
        store.close()


def test_no_id_means_the_newest_and_ids_are_newest_first(make: Maker) -> None:
    store = make()
    kept = [store.add(record(command=f"run {n}")).id for n in range(30)]
    assert store.get().id == kept[-1]
    assert store.ids() == kept[:-21:-1]
    assert store.ids(limit=3) == kept[:-4:-1]
    assert store.ids(limit=100) == kept[::-1]
    assert store.ids(limit=0) == []


def test_an_empty_store_says_so(make: Maker, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    store = make()
    if "refuses" in request.node.name:
        store.add(record())  # what cannot be read is another story, see the tests of the disk
        return
    assert store.ids() == []
    with pytest.raises(NotFound) as caught:
        store.get()
    assert caught.value.facts["known"] == []


def test_an_unknown_id_names_those_that_exist(make: Maker) -> None:
    store = make()
    kept = [store.add(record()).id for _ in range(25)]
    for unknown in ("cmd999999", "mem999999"):
        with pytest.raises(NotFound) as caught:
            store.get(unknown)
        assert caught.value.facts["known"] == kept[:-21:-1]
        assert unknown in str(caught.value)


NO_IDS = ["cmd", "1", "cmd0", "cmd01", "CMD1", "cmd1;", "../../etc/hostname", "cmd1/.", "cmd%", "cmd٣", "mem0"]


@pytest.mark.parametrize("text", ["", " cmd1", "cmd1 ", "cmd1\n", "cmd1\0", "cmd" + "9" * 19, 7, b"cmd1", *NO_IDS])
def test_text_that_is_no_id_is_refused_by_name(make: Maker, text: str) -> None:
    """store-03: an id never becomes a path or a pattern."""
    store = make()
    store.add(record())
    with pytest.raises(BadInput, match=r"^id: expected a record id"):
        store.get(text)


def test_ids_match_exactly(make: Maker) -> None:
    """store-03: one id is never taken for another that begins with it."""
    store = make()
    kept = [store.add(record(command=f"run {n}")) for n in range(12)]
    for one in kept:
        assert store.get(one.id) == one
    with pytest.raises(NotFound):
        store.get(kept[0].id + "0000")


def test_a_run_in_the_background_is_reserved_and_then_replaced(make: Maker) -> None:
    store = make()
    begun = store.reserve(record(status="running", background=True))
    assert store.get(begun.id).status == "running"
    later = store.add(record())
    ended = store.update(replace(begun, status="exited", observation=record(b"x" * 9000).observation))
    assert ended.id == begun.id
    assert store.get(begun.id) == ended
    assert store.get(begun.id).observation.outcome.stdout.data == b"x" * 9000
    assert store.ids() == [later.id, begun.id]
    shorter = store.update(replace(ended, observation=record(b"short").observation))
    assert store.get(begun.id).observation.outcome.stdout.data == b"short"
    assert shorter.id == begun.id


def test_only_so_many_records_are_kept(make: Maker) -> None:
    store = make(max_records=50)
    kept = [store.add(record()).id for _ in range(130)]
    assert store.ids(limit=1000) == kept[:-51:-1]
    with pytest.raises(NotFound):
        store.get(kept[-51])


def test_only_so_many_bytes_are_kept_and_the_newest_always(make: Maker) -> None:
    store = make(max_bytes=100_000)
    small = [store.add(record(b"x" * 20_000)).id for _ in range(10)]
    left = store.ids(limit=100)
    assert left == small[: -len(left) - 1 : -1]
    assert 3 <= len(left) <= 5
    giant = store.add(record(b"y" * 300_000))
    assert store.ids() == [giant.id]
    assert store.get() == giant
    after = store.add(record(b"small"))
    assert store.ids() == [after.id]


def test_records_expire(make: Maker) -> None:
    store = make(ttl_seconds=0.4)
    old = store.add(record())
    running = store.reserve(record(status="running"))
    assert store.ids() == [running.id, old.id]
    time.sleep(0.5)
    new = store.add(record())
    assert store.ids() == [new.id]
    for gone in (old, running):
        with pytest.raises(NotFound):
            store.get(gone.id)


def test_a_run_that_goes_on_is_not_evicted_while_it_is_fresh(make: Maker) -> None:
    store = make(max_records=10)
    running = store.reserve(record(status="running"))
    others = [store.add(record()).id for _ in range(40)]
    assert store.get(running.id) == running
    ended = store.update(replace(running, status="exited"))
    assert store.get(running.id) == ended, "the record just written is never evicted"
    more = [store.add(record()).id for _ in range(20)]
    assert running.id not in store.ids(limit=100)
    assert store.ids(limit=100) == more[:-11:-1]
    assert others


@pytest.mark.parametrize("limit", [{"max_records": 0}, {"max_bytes": -1}, {"ttl_seconds": float("nan")}])
def test_limits_that_mean_nothing_are_refused(make: Maker, limit: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=next(iter(limit))):
        make(**limit)


def test_threads_share_a_store(make: Maker) -> None:
    store = make()
    found: list[str] = []
    wrong: list[BaseException] = []

    def work(who: int) -> None:
        try:
            for turn in range(20):
                kept = store.add(record(b"%d %d" % (who, turn) * (1 + 1000 * (turn % 3))))
                found.append(kept.id)
                assert store.get(kept.id) == kept
                assert store.ids(limit=5)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(set(found)) == 160
    assert set(store.ids(limit=1000)) == set(found)


def test_closing_twice_is_fine_and_the_store_can_be_used_again(make: Maker) -> None:
    store = make()
    store.close()
    kept = store.add(record())
    store.close()
    store.close()
    assert store.get(kept.id) == kept
