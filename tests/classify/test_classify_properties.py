"""What holds for every text: no error, spans inside, no wrapper that hides anything, no file that bash makes unseen."""

# over 300 lines because: half of it is tables of what commands are made of

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from labelled import RANK, labelled

from veil.classify import CATEGORIES, assess

ATOMS = [
    *(
        "touch pwn",
        "\n\\touch pwn",
        ">&-",
        "2>& -",
        " 2>/dev/null ",
        " <f ",
        "echo a",
        "cat f",
        "x=1",
        "$x",
        "${x}",
        "$(touch pwn)",
        "`touch pwn`",
        "'",
        '"',
        "'a'",
        '"b"',
        "#",
        "\\",
    ),
    *(
        "\n",
        " ",
        "  ",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "(",
        ")",
        "{ ",
        "; }",
        "{",
        "}",
        ",",
        "$",
        "$'",
        '$"',
        "$((",
        "))",
        "((",
    ),
    *(
        "[[ ",
        " ]]",
        "[ ",
        " ]",
        "<",
        "<<E\n",
        "\nE\n",
        "<<'E'\n",
        "<<-E\n",
        "<<<",
        ">pwn",
        "> pwn",
        ">>pwn",
        "2>pwn",
        "&>pwn",
    ),
    *(
        ">&pwn",
        "<>pwn",
        ">|pwn",
        "<(touch pwn)",
        ">(touch pwn)",
        "2>&1",
        ">/dev/null",
        "if ",
        "then ",
        "fi",
        "else ",
        "do ",
    ),
    *(
        "while ",
        "done",
        "for i in a",
        "case a in ",
        "a) ",
        ";;",
        "esac",
        "f() ",
        "f",
        "function g ",
        "!",
        "\\\n",
        "${x:-",
        "*",
    ),
    *(
        "${x#",
        "?",
        "[a]",
        "~",
        "=",
        "a=(",
        "+=",
        "-n",
        "eval ",
        "command ",
        "env ",
        "bash -c ",
        "coproc ",
        "time ",
        "\t",
        "\r",
    ),
    *(
        "@(",
        "E",
        "pwn",
        "true",
        "read x",
        "a[",
        "]",
        "i++",
        '"$(',
        "`",
        "${",
        "test ",
        "-f",
        "1",
        "\0",
        "​",
        "é",
        "x@P}",
        "\\ ",
    ),
]
SHELLISH = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=10).map("".join)
COMMANDS = [command for name in ("hostile", "everyday") for _, command in labelled(name)]
#: Commands that stay one command behind ``env``: no assignment, keyword, group or list in front.
SIMPLE = [c for c in COMMANDS if c.split(" ")[0].isalpha() and c.split(" ")[0].islower() and c.split(" ")[0] not in
          {"if", "for", "while", "until", "case", "select", "function", "coproc", "time", "bomb", "local"}
          and "(" not in c.split(" ")[0]]  # fmt: skip
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(st.one_of(SHELLISH, st.text()))
def test_any_text_has_an_answer_with_spans_inside(text: str) -> None:
    found = assess(text)
    assert found.category in CATEGORIES
    assert max([RANK[s.category] for s in found.segments], default=0) == RANK[found.category]
    assert all(0 <= s.span[0] <= s.span[1] <= len(text) for s in found.segments)
    assert bool(found.warning) == (found.category == "destructive")


@SLOW
@given(st.lists(st.one_of(st.sampled_from(ATOMS), st.text()), min_size=1))
def test_any_argument_list_has_an_answer(words: list[str]) -> None:
    assert assess(words).category in CATEGORIES


@SLOW
@given(st.sampled_from(COMMANDS), st.sampled_from(COMMANDS), st.sampled_from([" && ", " || ", "; ", " & ", "\n"]))
def test_a_list_is_as_bad_as_its_worst_part(first: str, second: str, operator: str) -> None:
    # the end of a quote that the first part leaves open may stand in the second
    assume(all(first.count(quote) % 2 == 0 for quote in "\"'`"))
    if "<<" in first or "#" in first:
        operator = "\n"
    worst = max(RANK[assess(first).category], RANK[assess(second).category])
    assert RANK[assess(first + operator + second).category] >= worst


#: What may stand in front of a line, and what closes it behind that.
BEFORE = {
    "": [
        "ls",
        "ls\t",
        "ls a ",
        "ls 2>&1",
        "A=1",
        "A=(1 2)",
        "export A=1",
        "unset A",
        "[ a ]",
        "[[ a ]]",
        "((1))",
        "! ls",
    ],
    " ": [
        "time ls",
        "ls # c",
        "cat <<< a",
        "cat <<E\nE",
        "cat <<E\n\\rm\nE",
        "ls ${x}",
        "ls\n",
        "ls &",
        "ls |",
    ],
    "\nfi": ["if ls; then ls"],
    "\n}": ["{ ls", "f() { ls"],
    "\n)": ["( ls", ": $(ls"],
    "\n;; esac": ["case a in a) ls"],
}


@pytest.mark.parametrize("second", ["\\rm x", "\\\nrm x", " \\\nrm x", "\\\n \\rm x", "\\\\\nrm x"])
@pytest.mark.parametrize(("first", "end"), [(first, end) for end, some in BEFORE.items() for first in some])
def test_a_line_that_begins_with_a_backslash_is_a_command(first: str, end: str, second: str) -> None:
    assert assess(f"{first}\n{second}{end}").category == "destructive"


WRAPPERS = {
    "( )": lambda command: f"( {command}\n)",
    "if": lambda command: f"if true; then {command}\nfi",
    "{ }": lambda command: f"{{ {command}\n}}",
    "bash -c": lambda command: f"bash -c {shlex.quote(command)}",
    "bash -c twice": lambda command: f"sh -c {shlex.quote(f'bash -c {shlex.quote(command)}')}",
    "eval": lambda command: f"eval {shlex.quote(command)}",
    "argv": lambda command: ["bash", "-c", command],
    "ssh": lambda command: f"ssh h {shlex.quote(command)}",
    "find": lambda command: f"find . -exec sh -c {shlex.quote(command.replace('{}', 'x'))} \\;",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_never_makes_a_command_look_better(wrapper: str) -> None:
    hidden = []
    for command in COMMANDS:
        inner = command.replace("{}", "x") if wrapper == "find" else command
        before, after = assess(inner).category, assess(WRAPPERS[wrapper](command)).category
        if RANK[after] < RANK[before]:
            hidden.append(f"{command!r}: {before}, wrapped {after}")
    assert not hidden, "\n".join(hidden)


@pytest.mark.parametrize(
    "prefix", ["env ", "timeout 5 ", "nohup ", "nice -n 5 ", "sudo -u x ", "stdbuf -oL ", "command "]
)
def test_a_prefix_never_makes_a_command_look_better(prefix: str) -> None:
    hidden = [c for c in SIMPLE if RANK[assess(prefix + c).category] < RANK[assess(c).category]]
    assert len(SIMPLE) > 800
    assert not hidden, "\n".join(hidden)


@pytest.mark.needs("bash")
@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(parts=st.lists(st.sampled_from([a for a in ATOMS if "\0" not in a]), min_size=2, max_size=9))
def test_what_reads_only_makes_no_file_in_a_real_bash(parts: list[str], tmp_path: Path) -> None:
    """The grammar and bash must not read one text in two ways: bash itself is asked."""
    text = "".join([*parts[:1], "touch pwn", *parts[1:]])
    if assess(text).category != "read-only":
        return
    (tmp_path / "f").write_text("a\n")
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(["bash", "-c", text], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=20,
                       env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})  # fmt: skip
    made = sorted(path.name for path in tmp_path.iterdir())
    assert (made, (tmp_path / "f").read_text()) == (["f"], "a\n"), text


HUGE = {
    "words": "echo " + "a " * 50_000,
    "one word": "echo " + "a" * 100_000,
    "pipes": "a|" * 50_000,
    "parentheses": "(" * 100_000,
    "substitutions": "$(" * 50_000,
    "nested": "$(" * 2_000 + "rm a" + ")" * 2_000,
    "braces": "{" * 100_000,
    "brace alternatives": "echo " + "{a,b}" * 20_000,
    "quotes": '"' * 99_999,
    "backticks": "`" * 99_999,
    "here-documents": "<<a " * 2_000,
    "conditions": "if a; then " * 3_000,
    "lists": "rm a; " * 15_000,
    "backslashes": "\\" * 100_000,
    "sed": "sed '" + "s/[/" * 20_000 + "' f",
    "awk": "awk '" + "/(/" * 20_000 + "' f",
    "shells": "bash -c " * 5_000,
    "wrappers": "env " * 20_000 + "rm a",
}


@pytest.mark.parametrize("kind", HUGE)
def test_huge_and_deep_texts_end(kind: str) -> None:
    began = time.monotonic()
    found = assess(HUGE[kind])
    # far more than any of them takes: it tells a hang
    assert time.monotonic() - began < 60
    if "rm a" in HUGE[kind]:
        assert found.category == "destructive"


FAR = """
from veil.classify import assess
for first in range(0x80, 0x110000, 0x0801):
    character = chr(first)
    if character.isprintable() or 0xe000 <= first:
        for before in ("a{", "{1..", "{", "${", "$", "[", "<<", "echo "):
            assess(before + character + " x")
"""


def test_no_character_ends_the_process() -> None:
    """The grammar's scanner looks characters up beyond the end of a table of the C library, up to a crash."""
    done = subprocess.run([sys.executable, "-c", FAR], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("character", ["é", "한", "\U0001f600", "\U000fffff"])
@pytest.mark.parametrize("text", ["cat {0}", "cat a{{{0},b}}", "touch x{0}=1", "rm -rf {0}", "echo ${0}; cat '{0}'"])
def test_a_letter_is_a_letter_however_far_it_is(text: str, character: str) -> None:
    found, plain = assess(text.format(character)), assess(text.format("é"))
    assert found.category == plain.category
    assert [segment.text.replace(character, "é") for segment in found.segments] == [s.text for s in plain.segments]
