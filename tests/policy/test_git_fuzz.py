"""Texts put together at random: whenever a real shell starts git by one, the guard has refused it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policies import judged

import veil

pytestmark = pytest.mark.needs("bash")


def _quoted(word: str, how: list[int]) -> str:
    """A word with each of its letters quoted in one of several ways."""
    out = []
    for letter, way in zip(word, how, strict=False):
        out.append(
            (letter, "\\" + letter, f"'{letter}'", f'"{letter}"', f"''{letter}", f"{letter}\\\n", f"$''{letter}")[way]
        )
    return "".join(out)


NAMES = st.builds(_quoted, st.just("git"), st.lists(st.integers(0, 6), min_size=3, max_size=3))
PARTS = st.one_of(
    NAMES,
    st.sampled_from(
        ["$g", "${g}", '"$g"', "$a$b", "${a}it", "g${e}it", "${n:-git}", "$(echo git)", "`echo git`", "./git", "gi[t]"]
    ),
)
COMMANDS = st.builds(
    lambda name, rest: f"{name}{rest}", PARTS, st.sampled_from(["", " push", ' "$x"', " push > out", " 2>&1"])
)
#: What may stand around a text.
AROUND = (
    "{}",
    "true; {}",
    "true && {} || :",
    "( {} )",
    "{{ {}; }}",
    "if :; then {}; fi",
    "for i in 1; do {}; done",
    "case x in *) {};; esac",
    "f() {{ {}; }}; f",
    "until {}; do break; done",
    ": $({})",
    ": `{}`",
    ': "$({})"',
    "x=$({}) :",
    "! {}",
    "{} | cat",
    "echo push | {}",
    "{} & wait",
    "exec {}",
    "command {}",
    "env A=1 {}",
    "nice {}",
    "echo push | xargs {}",
    "[ x ] && {}",
    "A=1 {}",
    ">out {}",
    "<in {}",
    "cat <<X\n$({})\nX",
    ": ${{u:=$({})}}",
    "set -- 1; {}",
    "\n{}\n",
    "{} # git",
    "echo 'a; b' \"c; d\"; {}",
)
#: What takes a text as one word.
TAKING = (
    "eval {}",
    "sh -c {}",
    "bash -c {}",
    "echo {} | sh",
    "trap {} EXIT",
    "nice sh -c {}",
    "find . -maxdepth 0 -exec sh -c {} ';'",
    "bash <<< {}",
    'v{n}={}; eval "$v{n}"',  # never a name twice: a text that evaluates itself never ends
    "printf %s {} | bash",
    "env bash -c {}",
    "timeout 9 sh -ec {}",
)
NEST = st.lists(
    st.one_of(
        st.sampled_from(AROUND).map(lambda form: lambda text: form.format(text)),
        st.sampled_from(TAKING).map(
            lambda form: lambda text: form.format(shlex.quote(text), n=len(text))  # texts grow, so it is a new number
        ),
    ),
    max_size=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=COMMANDS, nest=NEST, shell=st.sampled_from(["sh", "bash"]))
def test_a_text_by_which_a_shell_starts_git_is_refused(tmp_path: Path, command: str, nest: list, shell: str) -> None:  # type: ignore[type-arg]
    text = command
    for around in nest:
        text = around(text)
    fake = tmp_path / "bin" / "git"
    if not fake.exists():
        fake.parent.mkdir()
        fake.write_text('#!/bin/sh\n: > "$MARK"\n')
        fake.chmod(0o755)
        (tmp_path / "git").symlink_to(fake)
        (tmp_path / "in").write_text("")
    # one of its own, since something of the text before may still be running
    mark = tmp_path / f"mark-{os.urandom(8).hex()}"
    environment = {"PATH": f"{fake.parent}:{os.environ['PATH']}", "MARK": str(mark)}
    environment |= {"g": "git", "a": "g", "b": "it", "e": ""}
    # contained: whatever a random text starts is gone afterwards
    veil.run([shell, "-c", text], cwd=tmp_path, env=environment, timeout=60, contain=True, effects=False, no_store=True)
    if mark.exists():
        made = judged([shell, "-c", text], level="always_allow")
        assert made.decision.answer == "deny", text
        assert made.final
