"""What a failed expectation says: golden texts, bounds, nothing that a terminal obeys."""

# over 300 lines because: it is one subject, and whole messages stand in it as they are shown

from __future__ import annotations

import pickle
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import veil
from pytest_veil import Expectation, ExpectationError, expect
from pytest_veil.expecting import explain, told, using
from pytest_veil.expecting.differences import diff
from pytest_veil.expecting.fitting import Part, cut, fit
from pytest_veil.expecting.plain import plain


def failing(check: object, *, folder: Path | None = None) -> str:
    """The message, with what differs from run to run taken out."""
    with pytest.raises(ExpectationError) as error:
        check()  # type: ignore[operator]
    text = re.sub(r"took [\d.]+ ms", "took N ms", re.sub(r"\bmem\d+", "memN", str(error.value)))
    text = re.sub(r" at test_\w+\.py:\d+", " at FILE:N", text)
    text = re.sub(r"\S*/(?:bash|sh) -c", "SHELL -c", text)
    return text.replace(str(folder), "DIR") if folder is not None else text


def run(command: str | list[str], folder: Path, **options: object) -> veil.Result:
    return veil.run(command, cwd=folder, no_store=True, **options)  # type: ignore[arg-type]


def test_the_whole_story(tmp_path: Path) -> None:
    result = run("echo built; echo a.c:3: error: odd >&2; mkdir d; echo x > d/f; exit 2", tmp_path)
    assert failing(lambda: expect(result).exit(0), folder=tmp_path) == (
        """\
exit is 2, expected 0 (echo built; echo a.c:3: error: odd >&2; mkdir d; echo x >...)
  check: exit(0)
    expected: 0
    got: 2
  $ cd DIR && SHELL -c 'echo built; echo a.c:3: error: odd >&2; mkdir d; echo x > d/f; exit 2'
  ended: exit 2
  stdout (1 line):
    | built
  stderr (1 line):
    | a.c:3: error: odd
  files changed (1, by scan):
    created d/f
  record: memN (memory-only); cwd: DIR; took N ms"""
    )


def test_a_text_that_is_not_equal_comes_with_a_diff(tmp_path: Path) -> None:
    result = run(["printf", "one\ntwo  \nthree"], tmp_path, effects=False)
    assert failing(lambda: expect(result).stdout.equals("one\ntwo\nthree\n"), folder=tmp_path) == (
        r"""stdout differs at line 2: expected 'two\n', got 'two  \n' (printf 'one\ntwo  \nthree')
  check: stdout.equals('one\ntwo\nthree\n')
    expected: 'one\ntwo\nthree\n'
    --- expected
    +++ stdout
    %% -1,3 +1,3 %%
     one
    -two
    +two\x20\x20
     three
    \ stdout has no newline at its end
  $ cd DIR && printf 'one
two@@
three'
  ended: exit 0
  stdout (3 lines):
    | one
    | two@@
    | three
  stderr: empty
  files changed: not known: nobody looked (effects are off for this run)
  record: memN (memory-only); cwd: DIR; took N ms""".replace("@@", "  ").replace("%%", "@@")
    )


def test_a_long_line_shows_the_place_where_it_goes_wrong(tmp_path: Path) -> None:
    text = failing(lambda: expect(run(["printf", "x" * 500 + "a b"], tmp_path)).stdout.equals("x" * 500 + "a c"))
    first = f"expected '{'x' * 18}a c', got '{'x' * 18}a b'"
    assert text.startswith(f"stdout differs at line 1, from character 503 on: {first} (")


def test_several_failures_of_one_run_share_its_description(tmp_path: Path) -> None:
    result = run("exit 1", tmp_path)

    def several() -> None:
        with expect.all():
            expect(result).ok().stdout.contains("done").not_.changed_nothing()

    assert failing(several, folder=tmp_path) == (
        """\
3 checks failed: exit is 1, expected 0 (exit 1)
  check: ok() at FILE:N
    exit is 1, expected 0
    expected: 0
    got: 1
  check: stdout.contains('done') at FILE:N
    stdout does not contain 'done'; stdout is empty
    expected: 'done'
    got: ''
  check: not_.changed_nothing() at FILE:N
    expected not_.changed_nothing(), but nothing changed
    expected: not false
    got: []
  $ cd DIR && exit 1
  ended: exit 1
  stdout: empty
  stderr: empty
  files changed: none
  record: memN (memory-only); cwd: DIR; took N ms"""
    )


ENDS = {
    "sleep 60": ({"timeout": 0.2}, "timed out (exit 124)"),
    "kill -KILL $$": ({}, "ended by SIGKILL (exit 137)"),
    "exit 7": ({"retries": 1}, "exit 7, attempt 2"),
}


@pytest.mark.parametrize("command", ENDS)
def test_how_it_ended_is_told(command: str, tmp_path: Path) -> None:
    options, words = ENDS[command]
    text = failing(lambda: expect(run(command, tmp_path, **options)).ok())  # type: ignore[arg-type]
    assert f"\n  ended: {words}\n" in text


ODD_FOLDER = 'it\'s "q" $x\n\ttab \x1b[31m \u202e'
COMMANDS: dict[str, str | list[str]] = {
    "plain words": "printf %s pasted",
    "an exit": "printf pasted; exit 3",
    "either or": "false || printf pasted",
    "quotes": """printf '%s' "it's" pasted""",
    "an argv": ["printf", "%s|", "it's", 'a "b"', "$x", "a\nb", "\x1b[31m", "\u202e", "é", "a\\n", "\x7f1"],
    "many lines": "\n".join(["printf pasted"] + [f"printf '%s\\n' {n}" for n in range(30)]),
    "a byte that is not text": ["printf", "%s", "a\udcffb"],
    "a tab": "printf '%s'\t'a\tb'",
}


@pytest.mark.needs("bash")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_can_be_pasted(name: str, tmp_path: Path) -> None:
    """Pasted into a shell that stands elsewhere, it does again what the run did, and the shell goes on."""
    folder = tmp_path / ODD_FOLDER
    folder.mkdir()
    result = run(COMMANDS[name], folder)
    with pytest.raises(ExpectationError) as error:
        expect(result).exit(99)
    text = str(error.value)
    pasted = text[text.index("\n  $ ") + 5 : text.index("\n  ended: ")]
    script = f"( {pasted}\n pwd >&2 )\nexit 0"
    done = subprocess.run(["bash", "-c", script], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert done.stdout == result.stdout_bytes
    assert done.stderr == f"{folder}\n".encode()


def test_a_very_long_command_is_cut_and_says_so(tmp_path: Path) -> None:
    text = failing(lambda: expect(run(": " + "x" * 50_000, tmp_path)).exit(1))
    assert len(text) < 10_000
    assert re.search(r"xxx \[\.\.\. [\d,]+ more characters; the whole is in record memN\]\n", text)


def test_surfaced_lines_stay_when_the_message_must_be_short(tmp_path: Path) -> None:
    script = "for i in $(seq 400); do echo line $i; [ $i = 200 ] && echo 'main.c:3: error: boom'; done; exit 1"
    result = run(script + "; for i in $(seq 300); do echo err $i >&2; done", tmp_path)
    for lines in (60, 30, 25):
        with using(failure_lines=lines):
            text = failing(lambda: expect(result).ok())
        assert text.count("\n") < lines
        assert "    | 201: main.c:3: error: boom" in text
        assert "    | line 1\n" in text
        assert "    | line 400\n" in text
        assert re.search(r"\n    \[\.\.\. \d+ lines cut \.\.\.\]\n", text) or lines == 60


def test_the_end_of_what_went_wrong_stays(tmp_path: Path) -> None:
    """Streams give way before the rest does."""
    result = run("seq 1000; seq 1000 >&2; for i in $(seq 50); do echo > f$i; done; exit 1", tmp_path)
    text = failing(lambda: expect(result).ok())
    lines = text.split("\n")
    assert len(lines) == 60
    assert lines[0].startswith("exit is 1")
    assert lines[-1].startswith("  record: memN")
    assert "    | 1000" in lines
    assert [line for line in lines if line.startswith("  files changed (50, by scan)")]


texts = st.text(st.characters(), max_size=60)


@given(
    st.lists(texts, min_size=1, max_size=8),
    st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 4, None]), st.integers(0, 200)), max_size=8),
    st.integers(5, 80),
)
def test_whatever_the_parts_the_message_keeps_its_bound(
    first: list[str], shape: list[tuple[int | None, int]], most: int
) -> None:
    parts = [Part([plain(line) for line in first])]
    parts += [Part(["title"], [f"    | {n}" for n in range(size)], rank) for rank, size in shape]
    total = sum(part.lines for part in parts)
    whole = [line for part in parts for line in (*part.title, *part.body)]
    lines = fit(parts, most)
    assert len(lines) <= most
    if total <= most:
        assert lines == whole
    else:
        assert any("cut ...]" in line for line in lines)
    assert lines[0] == plain(first[0])


@given(st.lists(texts.map(plain), max_size=150), st.integers(1, 80), st.integers(0, 150))
def test_a_cut_says_exactly_how_much_it_took(lines: list[str], most: int, pointer: int) -> None:
    body = [f"    | {line}" for line in lines]
    if pointer < len(body):
        body[pointer:pointer] = ["    | [... 7 lines hidden, see there ...]", "    | 9: error", "    | [...]"]
    kept = cut(body, most)
    taken = [
        int(found.group(1)) for line in kept if (found := re.fullmatch(r"    \[\.\.\. (\d+) lines? cut \.\.\.\]", line))
    ]
    assert len(kept) <= most
    assert len(kept) - len(taken) + sum(taken) == len(body)


@given(st.lists(st.binary(max_size=200), min_size=2, max_size=2), st.integers(5, 70), st.booleans())
def test_no_output_makes_a_message_long_or_dangerous(data: list[bytes], most: int, negated: bool) -> None:
    result = _stand_in(data[0] * 40, data[1])
    e: Expectation = expect(result)
    with using(failure_lines=most), pytest.raises(ExpectationError) as error, expect.all():  # noqa: PT012
        for each in (e.not_, e) if negated else (e, e.not_):
            each.stdout.contains("x\x1b[0m\u202e").stderr.equals(data[0]).json({"\x1b": 1}).exit(0)
            each.stdout.matches("a\\x1b").created("\x9b31m").file("/no\x1b").exists()
    text = str(error.value)
    assert text.count("\n") < most
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    text.encode("utf-8")


_base: list[veil.Result] = []


def _stand_in(stdout: bytes, stderr: bytes) -> veil.Result:
    """A real run whose streams are these bytes: hypothesis asks too often to start a process each time."""
    from dataclasses import replace

    from pytest_veil.expecting.contents import as_stdout

    if not _base:
        _base.append(veil.run(["true"], no_store=True, cwd="/", effects=False))
    swapped = as_stdout(_base[0], stderr).record
    outcome = swapped.observation.outcome
    streams = replace(outcome, stderr=outcome.stdout)
    moved = veil.Result(replace(swapped, observation=replace(swapped.observation, outcome=streams)))
    return as_stdout(moved, stdout)


@given(st.text("ab \n\t\r\u0301e", max_size=40), st.text("ab \n\t\r\u0301e", max_size=40))
def test_a_diff_is_empty_only_for_equal_texts_and_shows_both(expected: str, got: str) -> None:
    lines = diff(expected, got, "stdout")
    assert bool(lines) is (expected != got)
    if [line[0] for line in lines[3:]] == ["-", "+"]:  # one line against one: they never look the same
        assert lines[3][1:] != lines[4][1:]
    assert all(line.isprintable() for line in lines)


def test_a_huge_difference_is_found_soon(tmp_path: Path) -> None:
    text = "".join(f"{number}\n" for number in range(100_000))
    lines = diff(text, text[::-1], "stdout")
    assert len(lines) < 1000
    assert lines[-1].endswith("has no newline at its end")
    assert "further down not compared" in lines[-2]


def test_fewer_than_five_lines_are_refused_and_the_setting_goes_back() -> None:
    with pytest.raises(veil.BadInput, match="failure_lines"), using(failure_lines=4):
        pass
    from pytest_veil.expecting import seams

    with using(failure_lines=7):
        assert seams.failure_lines() == 7
    assert seams.failure_lines() == 60


def test_secrets_are_taken_out_of_every_text(tmp_path: Path) -> None:
    one, two = run("echo hunter2; exit 1", tmp_path), run("echo hunter2 >&2; exit 2", tmp_path)
    with using(scrub=lambda text: text.replace("hunter2", "<secret:1>")):
        text = failing(lambda: expect(one).stdout.equals("hunter2 "))
        lines = explain("==", one, two)
        assert lines is not None
        text += "\n".join(lines) + told(two)
        text += failing(lambda: expect(run(": " + "x" * 51 + "hunter2", tmp_path)).exit(1))
        text += failing(
            lambda: expect(run(": " + "x" * (3990 - len(f"cd {tmp_path} && ")) + "hunter2", tmp_path)).exit(1)
        )
    assert "hunter2" not in text
    assert "xh" not in text
    assert text.count("<secret:1>") > 6


def test_the_error_travels_between_processes(tmp_path: Path) -> None:
    with pytest.raises(ExpectationError) as error:
        expect(run("exit 1", tmp_path)).ok()
    back = pickle.loads(pickle.dumps(error.value))
    assert isinstance(back, ExpectationError)
    assert (str(back), back.failures) == (str(error.value), error.value.failures)


def test_a_result_tells_its_failure_in_its_repr(tmp_path: Path) -> None:
    shown = repr(run("echo first >&2; echo 'a.c:3: error: odd' >&2; exit 2", tmp_path))
    assert re.match(r"<veil\.Result mem\d+ exit 2: ", shown)
    assert "stderr ends 'first\\na.c:3: error: odd'" in shown
    assert "stderr" not in repr(run("echo warning >&2", tmp_path))
    assert "could not start" in repr(run(["no-such-program-here"], tmp_path))
    assert "No such file" in repr(run(["no-such-program-here"], tmp_path))
    assert "timed out" in repr(run("echo half; sleep 60", tmp_path, timeout=0.3))


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_the_repr_fits_what_pytest_shows_of_a_value(stdout: bytes, stderr: bytes) -> None:
    from dataclasses import replace

    seen = _stand_in(stdout, stderr).record
    failed = replace(seen.observation, outcome=replace(seen.observation.outcome, exit=1))
    command = stdout.decode("utf-8", "surrogateescape") or "x"
    shown = repr(veil.Result(replace(seen, observation=failed, command=command)))
    assert len(shown) <= 240
    assert shown.isprintable()


def test_two_runs_that_differ_are_explained(tmp_path: Path) -> None:
    one, two = run("echo a; exit 1", tmp_path), run("echo b > f; echo b", tmp_path)
    lines = explain("==", one, two)
    assert lines is not None
    assert lines[0] == f"runs {one.id} and {two.id} are not equal"
    assert "ended: exit 1 != exit 0" in lines
    assert "files changed: none != created f" in lines
    assert "  -b" in lines
    assert "  +a" in lines
    same = explain("==", one, run("echo a; exit 1", tmp_path))
    assert same is not None
    assert "they did the same" in same[1]


def test_a_run_compared_with_something_else_is_explained(tmp_path: Path) -> None:
    result = run("echo a; exit 1", tmp_path)
    for left, right in ((result, 0), (0, result)):
        lines = explain("==", left, right)
        assert lines is not None
        assert "result.exit is 1" in lines[-1]
    lines = explain("==", result, "a\n")
    assert lines is not None
    assert lines[-1] == r"its stdout is 'a\n'"
    assert explain("!=", result, result) is None
    assert explain("==", 1, 2) is None
