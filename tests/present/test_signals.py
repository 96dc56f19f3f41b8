"""Recall and precision of ``find_signals`` on the labelled corpus (see ``corpus/README.md``).

First tries, before anything was changed for them: a quarter of the buried failures was held out while the grammar was
written against the rest: 74 of 79 failures were found whole (123 of 128 lines), 23 of 25 clean logs were silent. A
later set, from tools that the grammar had not been written for: 50 of 69 failures (65 of 84 lines), 24 of 30 clean.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.model.outcome import Stream
from veil.present import idioms, sieve
from veil.present.condense import condense
from veil.present.signals import find_signals, is_trouble

CORPUS = Path(__file__).parent / "corpus"
BURIED_UNDER = 150  # clean lines of the same tool before and after


@dataclass(frozen=True)
class Entry:
    name: str
    lines: tuple[str, ...]

    @property
    def tool(self) -> str:
        return self.name.partition(":")[0]


def entries(folder: str) -> list[Entry]:
    found: list[tuple[str, list[str]]] = []
    for file in sorted((CORPUS / folder).glob("*.txt")):
        for line in file.read_text("utf-8").removesuffix("\n").split("\n"):
            if line.startswith("== ") and ": " in line:
                found.append((line[3:], []))
            else:
                found[-1][1].append(line)
    return [Entry(name, tuple(lines)) for name, lines in found]


FAILURES = entries("buried")
CLEAN = entries("clean")


def clean_logs() -> dict[str, list[str]]:
    """The silent clean lines of each tool, long enough to bury something under."""
    by_tool: dict[str, list[str]] = defaultdict(list)
    for entry in CLEAN:
        if not find_signals(entry.lines):
            by_tool[entry.tool].extend(entry.lines)
    return {tool: list(islice(cycle(lines), BURIED_UNDER)) for tool, lines in by_tool.items()}


@pytest.fixture(scope="module")
def buried() -> list[tuple[Entry, list[str]]]:
    """Every failure in the middle of a long clean log, of the same tool where the corpus has one."""
    logs = []
    by_tool = clean_logs()
    for number, entry in enumerate(FAILURES):
        clean = by_tool.get(entry.tool) or list(by_tool.values())[number % len(by_tool)]
        logs.append((entry, [*clean, *(line[1:] for line in entry.lines), *clean]))
    return logs


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    assert len(FAILURES) >= 150
    assert len({entry.tool for entry in FAILURES}) >= 25
    assert len(CLEAN) >= 60
    assert all(line[:1] in ("!", "?", "|") for entry in FAILURES for line in entry.lines)
    assert all(any(line.startswith("!") for line in entry.lines) for entry in FAILURES)


def test_every_line_of_every_buried_failure_is_found(buried: list[tuple[Entry, list[str]]]) -> None:
    missed = []
    for entry, log in buried:
        wanted = {BURIED_UNDER + at for at, line in enumerate(entry.lines) if line.startswith("!")}
        missed += [(entry.name, log[at]) for at in sorted(wanted - set(find_signals(log)))]
    assert missed == []


def test_nothing_around_a_buried_failure_is_found(buried: list[tuple[Entry, list[str]]]) -> None:
    extra = []
    for entry, log in buried:
        allowed = {BURIED_UNDER + at for at, line in enumerate(entry.lines) if line[0] in "!?"}
        extra += [(entry.name, log[at]) for at in find_signals(log) if at not in allowed]
    assert extra == []


def test_every_buried_failure_is_visible_in_the_view(buried: list[tuple[Entry, list[str]]]) -> None:
    for entry, log in buried:
        data = ("\n".join(log) + "\n").encode()
        view = condense(Stream(data, b"", len(data), len(log)), failed=False, name="stdout", id="cmd1")
        at = next(at for at, line in enumerate(entry.lines) if line.startswith("!"))
        assert f"\n{BURIED_UNDER + at + 1}: {entry.lines[at][1:][:200]}" in view.text, entry.name


def test_at_least_95_of_100_clean_logs_are_silent() -> None:
    loud = [(entry.name, [entry.lines[at] for at in find_signals(entry.lines)]) for entry in CLEAN]
    loud = [(name, lines) for name, lines in loud if lines]
    assert len(loud) <= len(CLEAN) * 0.05, loud


@pytest.mark.parametrize(
    "line",
    [
        "0 errors", "0 failed", "errors: 0", "no errors found", "error_utils.py", "src/error_utils.py", "failover",
        "gcc -Wall -Werror -c a.c -o a.o", "test_error_handling PASSED", "   Compiling thiserror v1.0.58",
        "installing error-ex", "found 0 vulnerabilities", "Downloading failure-0.1", "4e1f2aa fix error in parser",
        "Found 0 errors. Watching for file changes.", "0 errors, 0 warnings", "", " ", "no failures",
        "errors=0 failed=0",
        "epoch 3 loss: 0.31 error: 0.021 accuracy: 0.98",
        "relative error = 1.2e-05",
    ],
)  # fmt: skip
def test_names_of_trouble_are_not_trouble(line: str) -> None:
    assert not is_trouble(line)


@pytest.mark.parametrize(
    "line",
    [
        "FAILED", "Traceback (most recent call last):", "fatal: bad ref", "E   assert 1 == 2", "make: *** [x] Error 2",
        "Segmentation fault", "Killed", "CONFLICT (content): Merge conflict in a.py",
        " ! [rejected]  main -> main (fetch first)",
        "a.c:(.text+0x5): undefined reference to `f'", "the request timed out", "not ok 3", "--- FAIL: TestX (0.00s)",
        "Bus error (core dumped)", "panic: oh dear", "cat: x: No such file or directory", "x: Permission denied",
        "bash: foo: command not found", "12 errors", "1 failed, 2 passed", "Out of memory: Killed process 7 (x)",
        'go: module example.org/x: no matching versions for query "latest"',
        "packaging.version.InvalidVersion: Invalid version: 'x'",
        "Your local changes to the following files would be overwritten by checkout:",
        "The job running on runner 7 has exceeded the maximum execution time of 60 minutes.",
        "    Process exited with code: ExitFailure 1",
        "error: 3.10 is not an interpreter",
    ],
)  # fmt: skip
def test_idioms_that_were_missed_elsewhere(line: str) -> None:
    """Case out-09."""
    assert is_trouble(line)


def test_numbers_do_not_blur_what_counts() -> None:
    """Lines that differ only in their numbers are judged once: nothing, states of HTTP and codes keep theirs."""
    lines = [
        "0 errors",
        "7 errors",
        "0 errors",
        "12 errors",
        "exit code 0",
        "exit code 3",
        "GET 404 Not Found",
        "200 Not Found",
    ]
    assert find_signals(lines) == [1, 3, 5, 6, 7]
    assert find_signals(lines[::-1]) == [0, 1, 2, 4, 6]
    assert find_signals(["HTTP/1.1 200 error", "HTTP/1.1 200", "HTTP/1.1 404"]) == [0, 2]


def test_every_wording_of_the_tables_passes_the_sieve() -> None:
    """The sieve is there for speed: an entry of a table that it held back could never be found."""
    import regex

    for entry in idioms.entries(idioms.ERRNO, idioms.SIGNALS, idioms.PLAIN, idioms.WORDS):
        for text in spelt_out(entry):
            assert regex.fullmatch(entry, text), (entry, text)
            assert sieve.GATE.search(text), text


def spelt_out(pattern: str) -> list[str]:
    """Texts that a table entry matches, one for each way through its groups."""
    import re

    group = re.search(r"(?<!\\)\((?:\?:)([^()]*)\)(\?|\{0,2\})?|(?<!\\)\(\?:([^()]*\([^()]*\)[^()]*)\)", pattern)
    if group:
        ways = (group.group(1) or group.group(3)).split("|") + ([""] if group.group(2) else [])
        return [text for way in ways for text in spelt_out(pattern[: group.start()] + way + pattern[group.end() :])]
    plain = re.sub(r"\\w\+|\\w", "x", pattern)
    plain = re.sub(r"\\d\+|\\d", "1", plain)
    plain = plain.replace(r"\S{1,10}", "x").replace(r"\S", "x").replace(r"\b", "").replace('`?"?', "")
    plain = re.sub(r"\.\{0,\d+\}|\.\*", "", plain)
    plain = re.sub(r"(?<!\\)(.)\?", r"\1", plain)
    return [re.sub(r"\\(.)", r"\1", plain)]


@given(st.text(alphabet=st.sampled_from("eEfF rRoOx:0-1/.\"'[]()*=\t"), max_size=80))
def test_any_line_is_judged_and_the_sieve_only_holds_back(line: str) -> None:
    if is_trouble(line):
        assert sieve.GATE.search(line.lower()) or sieve.STARTS.match(line.lower())
    assert (find_signals([line]) == [0]) == is_trouble(line)


@pytest.mark.parametrize(
    "unit",
    ["0 no ", "a.", '"a', "a-1 ", " ", "error ", "\\", "[(", "x/", "....", "E", "failed:", "err=", "return a ",
     "a::", "1", "-- ", "`", "'", "assertion ", "F.", "exit ", "aaaa  ", "#1 ", "[1] ", ":1", "expect(", ": got "],
)  # fmt: skip
def test_no_line_takes_long(unit: str) -> None:
    """Long runs of one thing are what makes a backtracking expression explode: this bound is far below that."""
    line = (unit * 1_000)[:990] + " error"
    started = time.perf_counter()
    is_trouble(line)
    is_trouble(line[:-6])
    assert time.perf_counter() - started < 2
