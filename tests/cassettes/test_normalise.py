"""Identities are numbered, quantities erased, everything else stays; and no output can pass itself off as a token."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.cassettes.families import normalise, standard
from veil.cassettes.normalise import Context, Normaliser, Registry, erased, numbered
from veil.model.errors import BadInput

A, B = "0b0a51c1-6a4b-4ba1-9d2a-0ff6b9b65d1f", "7e57d004-2b97-4e7a-b45f-5387367791cd"
FULL = "9fceb02d0ae598e95dc970b74767f19372d61af8"


def only(name: str, text: str, **context: Any) -> str:
    return normalise(text.encode(), [name], Context(**context)).data.decode()


def test_the_same_value_has_the_same_number_in_every_stream_of_a_step() -> None:
    context = Context()
    out = normalise(f"made {A}\nmade {B}\n".encode(), ["uuids"], context)
    err = normalise(f"lost {B}\n".encode(), ["uuids"], context)
    assert out.data == b"made <uuid:1>\nmade <uuid:2>\n"
    assert err.data == b"lost <uuid:2>\n"
    assert (out.fired, out.erased) == (("uuids",), ())


def test_a_wrong_value_in_the_second_place_is_still_a_difference() -> None:
    right = normalise(f"id {A}; again {A}".encode(), None, Context())
    wrong = normalise(f"id {B}; again {A}".encode(), None, Context())
    assert right.data != wrong.data


@pytest.mark.parametrize(
    ("name", "text", "after"),
    [
        ("line_ends", "a\r\nb\rc\n", "a\nb\rc\n"),
        ("ansi", "\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b(B", "red x"),
        ("temp_names", "/tmp/tmpab12_x9z/f <tmp>/tmp.AbCdEf1234", "/tmp/<temp:1>/f <tmp>/<temp:2>"),
        ("temp_names", "'/tmp/pytest-of-me/pytest-12/test_x0'", "'/tmp/<temp:1>/test_x0'"),
        ("temp_names", "src/tmp_results tmp_results", "src/tmp_results tmp_results"),
        ("human_times", "Mon Nov 30 12:24:17 UTC 2026", "<time>"),
        ("human_times", "Date:   Mon Nov 30 12:24:17 2026 +0100\n", "Date:   <time>\n"),
        ("human_times", "Mon, 30 Nov 2026 12:24:17 GMT", "<time>"),
        ("human_times", "built Nov  3 2026 12:24:17.", "built <time>."),
        ("human_times", "- [30/Nov/2026 19:06:27] [10/Oct/2000:13:55:36 -0700]", "- [<time>] [<time>]"),
        ("human_times", "1/Nov/2026 a/30/Nov/2026 19:06:27", "1/Nov/2026 a/30/Nov/2026 19:06:27"),
        ("iso_times", "2026-11-30T12:24:17.123456Z 2026-11-30 12:24:17 +0100 x", "<time> <time> x"),
        ("iso_times", "1.2026-11-30", "1.2026-11-30"),
        ("iso_dates", "on 2026-11-30, v1.2026-11-30", "on <time>, v1.2026-11-30"),
        ("clock_times", "12:24:17 12:24:17.5 ::12:24:17 a:b:c", "<time> <time> ::12:24:17 a:b:c"),
        ("ls_times", "-rw-r--r-- 1 me me  6 Nov 30 12:24 a\n", "-rw-r--r-- 1 me me  6 <time> a\n"),
        ("ls_times", "-rw-r--r-- 1 me me  6 Nov  3  2025 a\n", "-rw-r--r-- 1 me me  6 <time> a\n"),
        ("epoch_times", "1764504000 1764504000.25 1764504000123 x", "<time> <time> <time> x"),
        ("epoch_times", "1000000000 11764504000 v1764504000 1764504000-1",
                        "1000000000 11764504000 v1764504000 1764504000-1"),
        ("durations", "in 0.02s, 12 ms, 3 seconds, 1.5 min", "in <duration>, <duration>, <duration>, <duration>"),
        ("durations", "real\t0m0.023s\n", "real\t<duration>\n"),
        ("durations", "3 sheep, 12 msgs, 5 m, v2s3", "3 sheep, 12 msgs, 5 m, v2s3"),
        ("speeds", "20 MB copied, 17.0 GB/s", "20 MB copied, <speed>"),
        ("hashes", f"{FULL} {'ab' * 32} {'cd' * 16}", "<hash:1> <hash:2> <hash:3>"),
        ("hashes", f"commit {FULL}\n9fceb02 again\n", "commit <hash:1>\n<hash:1> again\n"),
        ("hashes", "[main (root-commit) 9fceb02] m\n", "[main (root-commit) <hash:1>] m\n"),
        ("hashes", "index 9fceb02..72d61af 100644\n", "index <hash:1>..<hash:2> 100644\n"),
        ("hashes", "HEAD is now at 9fceb02 message\n", "HEAD is now at <hash:1> message\n"),
        ("hashes", "   9fceb02..72d61af  main -> main\n", "   <hash:1>..<hash:2>  main -> main\n"),
        ("hashes", "deadbeef facade 1234567 words\n", "deadbeef facade 1234567 words\n"),
        ("addresses", "<object object at 0x7ffff7665d80> 0x10", "<object object at <address:1>> 0x10"),
        ("pids", "pid 4711, PID: 4711, process 12\nsshd[99]: x\n==31== y\n", "pid <pid:1>, PID: <pid:1>, process 12\n"
                 "sshd[<pid:2>]: x\n==<pid:3>== y\n"),
        ("ports", "http://127.0.0.1:54321/ localhost:8080 port 45000",
                  "http://127.0.0.1:<port:1>/ localhost:8080 port <port:2>"),
        ("pytest_bar", "===== 1 passed in 0.01s =====\n", "=== 1 passed in <duration> ===\n"),
        ("pytest_hidden", "(3 durations < 0.005s hidden.)", "(<count> durations < 0.005s hidden.)"),
        ("jest_times", "  ok works (12 ms)\nTime:        0.5 s, estimated 1 s\n",
                       "  ok works<duration>\nTime:        <duration>\n"),
        ("tap_times", "# duration_ms 54.31\n", "# duration_ms <duration>\n"),
        ("go_times", "ok  \texample.com/a\t0.003s\n", "ok  \texample.com/a\t<duration>\n"),
        ("go_times", "ok  \texample.com/a\t(cached)\n", "ok  \texample.com/a\t<duration>\n"),
        ("dir_sizes", "total 8\ndrwxr-xr-x 3 me me 4096 Nov 30 12:24 .\n-rw-r--r-- 1 me me   83 Nov 30 12:24 M\n",
                      "total <size>\ndrwxr-xr-x 3 me me <size> Nov 30 12:24 .\n-rw-r--r-- 1 me me 83 Nov 30 12:24 M\n"),
    ],
)  # fmt: skip
def test_what_each_one_replaces_and_what_it_leaves(name: str, text: str, after: str) -> None:
    assert only(name, text) == after


def test_known_folders_and_process_ids() -> None:
    assert only("paths", "/w/x/a /w/xy /h", roots={"root": "/w/x", "home": "/h"}) == "<root>/a /w/xy <home>"
    assert only("pids", "29116\n", known={"pid": ["29116"]}) == "<pid:1>\n"
    assert only("pids", "x29116 29116.5 a/29116 29116", known={"pid": ["29116"]}) == "x29116 29116.5 a/29116 <pid:1>"
    assert only("pids", "481\n481 lines\n", known={"pid": ["481"]}) == "<pid:1>\n481 lines\n"
    assert only("pids", "12\n12 of 12", known={"pid": ["12"]}) == "12\n12 of 12"


def test_every_runner_s_usual_summary_is_the_same_twice() -> None:
    pairs = [
        ("============ 3 passed in 0.12s ============", "=========== 3 passed in 12.34s ============"),
        ("Ran 3 tests in 0.001s\n\nOK", "Ran 3 tests in 1.203s\n\nOK"),
        ("test result: ok. 1 passed; finished in 0.00s", "test result: ok. 1 passed; finished in 0.31s"),
        ("    Finished dev [unoptimized] target(s) in 0.53s", "    Finished dev [unoptimized] target(s) in 2m 03s"),
        ("--- PASS: TestX (0.00s)", "--- PASS: TestX (0.41s)"),
        ("Tests: 1 passed\nTime:        0.512 s", "Tests: 1 passed\nTime:        1.1 s, estimated 2 s"),
        ("BUILD SUCCESSFUL in 1s", "BUILD SUCCESSFUL in 12s"),
        ("1 passing (5ms)", "1 passing (17ms)"),
    ]
    for one, two in pairs:
        first, second = (normalise(text.encode(), None, Context()) for text in (one, two))
        assert first.data == second.data
        assert first.erased
    for one, two in [("3 passed in 0.12s", "2 passed in 0.12s"), ("Ran 3 tests in 1s", "Ran 4 tests in 1s")]:
        assert normalise(one.encode(), None, Context()).data != normalise(two.encode(), None, Context()).data


def test_output_that_looks_like_a_token_is_not_one() -> None:
    real = normalise(A.encode(), ["uuids"], Context()).data
    forged = normalise(b"<uuid:1>", ["uuids"], Context())
    assert real == b"<uuid:1>"
    assert forged.data == b"<=uuid:1>"
    assert (
        normalise(b"<=uuid:1> <duration> <b>", ["uuids", "durations"], Context()).data == b"<==uuid:1> <=duration> <b>"
    )


def test_names_are_checked_and_reported() -> None:
    with pytest.raises(BadInput, match="did you mean 'uuids'"):
        normalise(b"", ["uuid"], Context())
    found = normalise(f"{A} 0.5s".encode(), ["uuids", "durations", "ports"], Context())
    assert found.fired == ("uuids", "durations")
    assert found.erased == ("durations",)
    assert normalise(b"nothing here", None, Context()).fired == ()
    assert normalise(A.encode(), [], Context()).data == A.encode()


def test_outsiders_add_their_own() -> None:
    mine = numbered("tickets", 3, "ticket numbers", "ticket", rb"\bT-(?P<value>[0-9]+)")
    gone = erased("moods", 1, "moods", "mood", rb"happy|sad")
    registry = standard().adding(mine, gone)
    found = registry.normalise(b"T-12 T-13 T-12 happy <ticket:1>", None, Context())
    assert found.data == b"T-<ticket:1> T-<ticket:2> T-<ticket:1> <mood> <=ticket:1>"
    assert found.erased == ("moods",)
    assert "tickets" not in standard().names
    assert standard().adding(mine, first=True).names[0] == "tickets"
    with pytest.raises(BadInput, match="not taken"):
        registry.adding(mine)
    with pytest.raises(BadInput, match="lower-case"):
        Registry().adding(Normaliser("My Own", 1, "", False, (), lambda text, context: text))


def test_every_entry_can_be_listed() -> None:
    for entry in standard().entries.values():
        assert entry.version >= 1
        assert entry.about
    assert {"uuids", "hashes", "durations", "ports", "pids", "addresses", "paths"} <= set(standard().names)


NOISE = st.lists(
    st.sampled_from([A, B, FULL, "12:24:17", "0.5s", "/tmp/tmpabcd1234", "<uuid:1>", "<time>", "0x7ffff766", "pid=77",
                     " ",
                     "\n", "=", "x", "1764504000", "\x1b[0m", "\r\n", "-", "127.0.0.1:54321", "\udcff"]),
    max_size=15,
).map("".join)  # fmt: skip


@settings(deadline=None)
@given(NOISE)
def test_nothing_fires_without_saying_so(text: str) -> None:
    raw = text.encode("utf-8", "surrogateescape")
    found = normalise(raw, None, Context())
    assert set(found.erased) <= set(found.fired)
    assert found == normalise(raw, None, Context())
    if not found.fired and "<" not in text:
        assert found.data == raw


@settings(deadline=None)
@given(NOISE, NOISE)
def test_plain_words_are_never_swallowed(before: str, after: str) -> None:
    found = normalise(
        f"{before}\nthe quick brown fox failed\n{after}".encode("utf-8", "surrogateescape"), None, Context()
    )
    assert b"\nthe quick brown fox failed\n" in found.data.replace(b"\r\n", b"\n")


def test_large_output_takes_time_in_proportion() -> None:
    def seconds(lines: int) -> float:
        text = "".join(
            f"{A[:-6]}{n:06x} took {n}.5s at 12:24:17 [pid {n}] {'=' * 40} ab/cd {'a' * 80}\n" for n in range(lines)
        )
        start = time.process_time()
        normalise(text.encode(), None, Context())
        return time.process_time() - start

    assert seconds(20_000) < 40 * (seconds(2_000) + 0.02)


@pytest.mark.parametrize(
    "unit", ["a", "0", "=", " ", "-", "/tmp/", "[", "\x1b", "0x", "12:", "commit ", "drwx", "9f", "1 "]
)
def test_no_pattern_explodes_on_one_long_line(unit: str) -> None:
    start = time.process_time()
    normalise((unit * 200_000)[:200_000].encode(), None, Context())
    assert time.process_time() - start < 30
