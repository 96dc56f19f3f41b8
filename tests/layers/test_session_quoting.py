"""What bash prints of a value is read as bash would read it."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.layers.session import bash, posix
from veil.layers.session.quoting import decoded, entries

_values = st.binary(max_size=20).map(lambda data: data.replace(b"\0", b"")) | st.text(
    "ab'\"\\$`\n\t =()[]{}!é€\x01\x7f\x85#~", max_size=20
).map(str.encode)


@pytest.mark.needs("bash")
@settings(max_examples=40, deadline=None)
@given(st.lists(_values, min_size=1, max_size=20), st.sampled_from(["C", "C.UTF-8"]))
def test_declarations_of_bash(values: list[bytes], locale: str) -> None:
    environment = {b"LC_ALL": locale.encode(), b"PATH": b"/usr/bin:/bin"}
    environment |= {b"V%d" % at: value for at, value in enumerate(values)}
    done = subprocess.run(
        ["bash", "-c", 'for n in ${!V*}; do declare "A$n=${!n}"; arr+=("${!n}"); done; declare -p'],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, bytes] = {}
    for entry in entries(os.fsdecode(done.stdout)):
        assert entry.startswith("declare -")
        name, equals, value = entry.split(" ", 2)[2].partition("=")
        if equals and re.fullmatch(r"A?V\d+", name):
            found[name] = os.fsencode(decoded(value))
    for at, wanted in enumerate(values):
        assert (found[f"V{at}"], found[f"AV{at}"]) == (wanted, wanted)


@pytest.mark.needs("bash")
@settings(max_examples=20, deadline=None)
@given(st.lists(_values, min_size=1, max_size=10))
def test_exports_of_a_posix_shell(values: list[bytes]) -> None:
    environment = {b"PATH": b"/usr/bin:/bin", **{b"V%d" % at: value for at, value in enumerate(values)}}
    for shell in (["sh"], ["bash", "--posix"]):
        done = subprocess.run([*shell, "-c", "export -p"], env=environment, stdout=subprocess.PIPE, check=True)
        found: dict[str, bytes] = {}
        for entry in entries(os.fsdecode(done.stdout)):
            name, equals, value = entry.removeprefix("export ").partition("=")
            if equals:
                found[name] = os.fsencode(decoded(value))
        assert {f"V{at}": value for at, value in enumerate(values)}.items() <= found.items()


@given(st.text())
def test_any_text_is_taken_apart_and_nothing_raised(text: str) -> None:
    for entry in entries(text):
        decoded(entry)


@given(st.binary() | st.lists(st.sampled_from(["", "1", "-1", "x"])).map("\0".join).map(str.encode))
def test_what_is_not_whole_is_no_state(data: bytes) -> None:
    """A file that a command scribbled on, or that was cut, tells nothing rather than something else."""
    for tell in (lambda data: bash.told(data, None), posix.told):
        assert tell(data) is None
        assert tell(b"begun\0\0veil\0" + data) is None
        assert tell(b"begun\0\0veil\0" + data + b"\0end\0") is None or b"/" in data
