"""One builder for every door: whatever is given, a request or an error that names the argument."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from veil import builtin
from veil.asking import UnknownOption, build
from veil.asking.options import BACKGROUND_INCOMPATIBLE, JSON_NAMES, NAMES, RunOptions
from veil.model.command import Effects, Request, ScrubEnv
from veil.model.errors import BadInput, Refused
from veil.settings import Settings

CHECKS = {check.name: check for check in builtin.veil_checks()}
SETTINGS = Settings()
KEYS = st.one_of(st.text(max_size=4), st.integers(), st.sampled_from(sorted(CHECKS)))
GARBAGE: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.text(st.characters(categories=["Cs"]), max_size=3),
        st.binary(max_size=5),
        st.sampled_from(["kill", "all", "\0", "/", "bash", math.inf, 10**400, -0.0, Path("/"), object(), len, int]),
        st.complex_numbers(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.sets(st.integers(), max_size=2),
        st.dictionaries(
            st.one_of(st.text(max_size=4), st.integers(), st.sampled_from(sorted(CHECKS))), inner, max_size=2
        ),
    ),
    max_leaves=4,
)


def ask(command: Any, background: bool = False, **options: Any) -> Request:
    return build(command, options, SETTINGS, CHECKS, background=background)


def understood(command: Any, background: bool, options: dict[str, Any]) -> Request | None:
    """The request, or ``None`` when it was refused in the right way. Whatever else is raised fails the test."""
    try:
        return ask(command, background, **options)
    except BadInput as caught:
        error: BadInput | Refused = caught
    except Refused as caught:
        error = caught
    if isinstance(error, BadInput):
        assert error.facts["argument"] in str(error)
        assert error.code in ("bad_input", "unknown_option")
    else:
        assert (error.code, background) == ("background_incompatible", True)
    return None


@given(GARBAGE, st.dictionaries(st.sampled_from(NAMES), GARBAGE, max_size=3), st.booleans())
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@example("true", {"timeout": 10**400}, False)
@example("echo \ud800", {}, False)
@example(["echo", "\ud800"], {}, False)
@example("true", {"stdin": "\ud800"}, False)
@example("true", {"env": {"\ud800": "x"}}, False)
@example("true", {"env": {"X": "\ud800"}}, False)
@example("true", {"cwd": "\ud800"}, False)
@example("true", {"expect": {1: 2}}, False)
def test_garbage_is_understood_or_refused_by_name(command: Any, options: dict[str, Any], background: bool) -> None:
    request = understood(command, background, options)
    if request is None:
        return
    for word in request.command.argv:
        assert "\0" not in word
        os.fsencode(word)
    assert request.limits.timeout is None or 0 < request.limits.timeout < math.inf


@given(st.sampled_from(NAMES), GARBAGE)
@settings(max_examples=300, deadline=None)
def test_an_error_is_about_the_option_that_was_given(name: str, value: Any) -> None:
    try:
        ask("true", **{name: value})
    except BadInput as error:
        argument = error.facts["argument"]
        # retry_on_exit and backoff mean nothing without retries, which is then the one to give
        assert argument.startswith(name) or (argument == "retries" and name in ("retry_on_exit", "backoff"))


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": math.nan}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"timeout": "5"}, "timeout"),
        ({"max_output": -1}, "max_output"),
        ({"max_output": 500_000_001}, "max_output"),
        ({"max_output": 1.0}, "max_output"),
        ({"retries": 101}, "retries"),
        ({"retries": True}, "retries"),
        ({"retry_on_exit": 1}, "retries"),
        ({"backoff": 1}, "retries"),
        ({"retries": 1, "retry_on_exit": 256}, "retry_on_exit"),
        ({"retries": 1, "retry_on_exit": "1"}, "retry_on_exit"),
        ({"retries": 1, "backoff": math.inf}, "backoff"),
        ({"env": {"A=B": "x"}}, "env"),
        ({"env": {"": "x"}}, "env"),
        ({"env": {"A": 1}}, "env['A']"),
        ({"env": [("A", "b")]}, "env"),
        ({"stdin": 5}, "stdin"),
        ({"cwd": "/is/not/there"}, "cwd"),
        ({"cwd": 5}, "cwd"),
        ({"shell": "/is/not/there"}, "shell"),
        ({"effects": "some"}, "effects"),
        ({"effects": 1}, "effects"),
        ({"effects": False, "expect": {"changed": True}}, "effects"),
        ({"left_running": "maybe"}, "left_running"),
        ({"full": 1}, "full"),
        ({"secrets": "one"}, "secrets"),
        ({"secrets": [b"one"]}, "secrets[0]"),
        ({"expect": {"exit_code": 0}}, "expect.exit_code"),
        ({"expect": [("exit", 0)]}, "expect"),
        ({"expect": {"exit": "0"}}, "expect.exit"),
    ],
)
def test_bad_values_are_named(options: dict[str, Any], argument: str) -> None:
    with pytest.raises(BadInput) as caught:
        ask("true", **options)
    assert caught.value.facts["argument"] == argument


@pytest.mark.parametrize("command", ["", "  \n", "a\0b", [], [""], [" "], ["a", "b\0"], ["a", 5], 5, None, b"true", {}])
def test_a_command_that_cannot_be_one(command: Any) -> None:
    with pytest.raises(BadInput) as caught:
        ask(command)
    assert caught.value.facts["argument"].startswith("command")


def test_an_unknown_option_names_its_neighbour() -> None:
    with pytest.raises(UnknownOption, match="did you mean 'timeout'"):
        ask("true", timout=5)
    with pytest.raises(TypeError):
        ask("true", pipefail=True)


def test_a_secret_is_in_no_error() -> None:
    for options in (
        {"secrets": [5, "hunter2hunter2"]},
        {"env": {"A": b"hunter2hunter2"}},
        {"secrets": "hunter2hunter2"},
    ):
        with pytest.raises(BadInput) as caught:
            ask("true", **options)
        assert "hunter2" not in str(caught.value)


def test_the_extremes_of_every_limit() -> None:
    assert ask("true", timeout=math.inf).limits.timeout is None
    assert ask("true", timeout=10**400).limits.timeout is None
    assert ask("true", timeout=1e-9).limits.timeout == 1e-9
    assert ask("true", max_output=0).limits.stream_bytes == 0
    assert ask("true", max_output=500_000_000).limits.stream_bytes == 500_000_000
    assert ask("true", retries=100, retry_on_exit=[0, 255], backoff=86_400).retry.times == 100
    assert ask("true").limits.timeout == 120.0


def test_defaults_and_settings_and_what_is_said() -> None:
    request = ask("true")
    assert request.wishes == (Effects(),)
    assert request.command.text == "true"
    assert ask("true", effects="all").wishes == (Effects(ignored=True),)
    assert ask("true", effects=False).wishes == ()
    assert ask("true", scrub_env=True, effects=False).wishes == (ScrubEnv(),)
    quiet = Settings(effects=False, no_store=True, redact=True, stream_bytes=7, timeout=None)
    told = build("true", {}, quiet, CHECKS)
    assert (told.wishes, told.no_store, told.redact) == ((), True, True)
    assert (told.limits.stream_bytes, told.limits.timeout) == (7, None)
    with pytest.raises(BadInput, match=r"VEIL_SHELL.*'no-such-shell'"):
        build("true", {}, Settings(shell="no-such-shell"), CHECKS)
    louder = build("true", {"no_store": False, "max_output": 8, "timeout": 3}, quiet, CHECKS)
    assert (louder.no_store, louder.limits.stream_bytes, louder.limits.timeout) == (False, 8, 3.0)
    assert ask("true", **dict.fromkeys(NAMES)) == request, "None is the same as not said"


def test_words_of_subprocess_are_told_what_they_are_called_here() -> None:
    for name, told in {"input": "stdin", "capture_output": "always kept", "background": "veil.start"}.items():
        with pytest.raises(UnknownOption, match=told):
            build("true", {name: True}, SETTINGS, CHECKS)
    with pytest.raises(BadInput, match="always read by one"):
        ask("true", shell=True)


def test_an_argv_is_never_a_text(tmp_path: Path) -> None:
    request = ask(["echo", "a b", b"\xff", tmp_path], cwd=tmp_path)
    assert request.command.argv == ("echo", "a b", "\udcff", str(tmp_path))
    assert (request.command.text, request.command.cwd) == (None, str(tmp_path))
    with pytest.raises(BadInput, match="shell"):
        ask(["true"], shell="sh")


def test_a_vanished_working_directory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(BadInput, match="cwd"):
        ask("true")
    assert ask("true", cwd=tmp_path).command.cwd == str(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", BACKGROUND_INCOMPATIBLE)
def test_what_a_background_run_refuses(name: str) -> None:
    values: dict[str, Any] = {"expect": {"exit": 0}, "retry_on_exit": 1, "backoff": 0.5, "timeout": 5, "retries": 1}
    with pytest.raises(Refused) as caught:
        ask("true", background=True, **{name: values.get(name, True)})
    assert (caught.value.code, caught.value.facts["options"]) == ("background_incompatible", [name])
    assert ask("true", background=True).contain


def test_one_name_for_each_option_in_every_door() -> None:
    assert set(NAMES) == set(RunOptions.__annotations__)
    assert all(name in NAMES for name, _ in JSON_NAMES.values())
    assert set(BACKGROUND_INCOMPATIBLE) <= set(NAMES)
    explained = {line.split(":")[0].strip() for line in (RunOptions.__doc__ or "").splitlines() if ": " in line}
    assert set(NAMES) <= explained
