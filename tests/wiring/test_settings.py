"""Settings at their edges. The table of the code is walked, so a new setting is tested without a new line here."""

# over 300 lines because: it is one subject: one table of settings, walked by every test

from __future__ import annotations

import math
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.model.errors import BadInput, Refused
from veil.settings import TABLE, Settings
from veil.settings.kinds import Number, Switch

ROOT = Path(__file__).parents[2]
NUMBERS = {name: line.kind for name, line in TABLE.items() if isinstance(line.kind, Number)}
NO_NUMBERS = ["-1", "+1", "1.5", "1e3", "nan", "inf", "-inf", "true", "False", "0x10", "1_000", "١٢", "²"]
NO_NUMBERS += ["ms", "1 2", "1\0"]
SWITCHES = [name for name, line in TABLE.items() if isinstance(line.kind, Switch)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that is its own top: nothing above it is read."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


def load(project: Path, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    return Settings.load(project=project, environ=environ or {}, **overrides)


def write(project: Path, text: str) -> Path:
    file = project / "pyproject.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_defaults_stand_when_nobody_says_anything(project: Path) -> None:
    assert load(project) == Settings()
    seen = Settings()
    assert (seen.timeout, seen.stream_bytes, seen.effects, seen.effects_wait) == (120.0, 5_000_000, True, 2.0)
    assert (seen.max_records, seen.record_ttl, seen.max_background) == (500, 86_400.0, 16)
    assert (seen.state_dir, seen.shell, seen.no_store, seen.redact, seen.scrub_env) == (None, None, False, False, False)


def test_every_default_is_a_value_that_its_own_variable_could_say(project: Path) -> None:
    for name, line in TABLE.items():
        default = getattr(Settings(), name)
        text = line.kind.to_text(default)
        assert getattr(load(project, {line.variable: text}), name) == default, name
        assert line.kind.from_python(default) == default, name


def test_later_sources_win(project: Path) -> None:
    write(project, "[tool.veil]\ntimeout_ms = 1000\nmax_records = 7\n")
    environ = {"VEIL_TIMEOUT_MS": "2000"}
    assert load(project).timeout == 1.0
    assert load(project, environ).timeout == 2.0
    assert load(project, environ, timeout=3.5) == Settings(timeout=3.5, max_records=7)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "text",
    [*NO_NUMBERS, "9" * 30, "9" * 5000, *" \t\n"],
)
def test_a_variable_that_is_no_whole_number_is_refused(project: Path, name: str, text: str) -> None:
    line = TABLE[name]
    with pytest.raises(BadInput) as error:
        load(project, {line.variable: text})
    assert error.value.facts["argument"] == line.variable
    assert error.value.facts["expected"] == line.kind.range
    assert repr(text)[:50] in str(error.value)


@pytest.mark.parametrize("name", NUMBERS)
def test_both_ends_of_a_range_are_in_it_and_their_neighbours_are_not(project: Path, name: str) -> None:
    line, kind = TABLE[name], NUMBERS[name]
    for end in (kind.low, kind.high):
        for found in (
            load(project, {line.variable: f"  {end}\n"}),
            load(project, {}, **{name: end / kind.scale if kind.scale > 1 else end}),
        ):
            assert getattr(found, name) == end / kind.scale
    for outside in (kind.low - 1, kind.high + 1):
        with pytest.raises(BadInput, match=line.variable):
            load(project, {line.variable: str(outside)})
        with pytest.raises(BadInput, match=name):
            load(project, {}, **{name: outside / kind.scale if kind.scale > 1 else outside})
        write(project, f"[tool.veil]\n{line.key} = {outside}\n")
        with pytest.raises(BadInput, match=line.key):
            load(project)
        (project / "pyproject.toml").unlink()


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [True, False, math.nan, math.inf, -math.inf, 10**400, -(10**400), "5", b"5", [], 5j])
def test_an_argument_that_is_no_number_in_range_is_refused(project: Path, name: str, value: object) -> None:
    with pytest.raises(BadInput) as error:
        load(project, {}, **{name: value})
    assert error.value.facts["argument"] == name
    assert error.value.facts["expected"] == TABLE[name].kind.python_range


def test_none_lifts_a_limit_only_where_the_range_says_so(project: Path) -> None:
    assert load(project, {"VEIL_TIMEOUT_MS": "None"}).timeout is None
    assert load(project, {"VEIL_TIMEOUT_MS": "5"}, timeout=None).timeout is None
    write(project, '[tool.veil]\ntimeout_ms = "none"\n')
    assert load(project).timeout is None
    for name, kind in NUMBERS.items():
        if not kind.none:
            with pytest.raises(BadInput, match=name):
                load(project, {}, **{name: None})
            with pytest.raises(BadInput, match=TABLE[name].variable):
                load(project, {TABLE[name].variable: "none"})


@pytest.mark.parametrize("name", SWITCHES)
def test_switches(project: Path, name: str) -> None:
    line = TABLE[name]
    for text, value in [("1", True), ("TRUE", True), (" yes ", True), ("On", True)]:
        assert getattr(load(project, {line.variable: text}), name) is value
    for text, value in [("0", False), ("false", False), ("no\n", False), ("OFF", False)]:
        assert getattr(load(project, {line.variable: text}), name) is value
    for text in ("2", "-1", "nan", "y", " ", "none", "true true"):
        with pytest.raises(BadInput, match=line.variable):
            load(project, {line.variable: text})
    for wrong in (0, 1, "1", None, math.nan):
        with pytest.raises(BadInput, match=name):
            load(project, {}, **{name: wrong})
    write(project, f"[tool.veil]\n{line.key} = 1\n")
    with pytest.raises(BadInput, match=line.key):
        load(project)


def test_only_effects_knows_all(project: Path) -> None:
    assert load(project, {"VEIL_EFFECTS": "ALL"}).effects == "all"
    assert load(project, {}, effects="all").effects == "all"
    for name in SWITCHES:
        if name != "effects":
            with pytest.raises(BadInput):
                load(project, {TABLE[name].variable: "all"})


def test_paths_and_programs(project: Path, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "VEIL_STATE_DIR": "~/state", "VEIL_SHELL": "zsh"}
    assert load(project, environ) == Settings(state_dir=tmp_path / "state", shell="zsh")
    assert load(project, {}, state_dir=tmp_path, shell="/bin/dash") == Settings(state_dir=tmp_path, shell="/bin/dash")
    assert load(project, environ, state_dir=None, shell=None) == Settings()
    for text in ("state", "./state", "../state", "~other/state", "~/x", " ", "/a\0b"):
        with pytest.raises(BadInput, match="VEIL_STATE_DIR"):
            load(project, {"VEIL_STATE_DIR": text})  # no HOME here, so ~/x has no meaning either
    for text in ("bin/sh", "./sh", "../sh", " ", "a\0"):
        with pytest.raises(BadInput, match="VEIL_SHELL"):
            load(project, {"VEIL_SHELL": text})
    for value in (3, b"/x", True, ["/bin/sh"]):
        with pytest.raises(BadInput):
            load(project, {}, shell=value)
        with pytest.raises(BadInput):
            load(project, {}, state_dir=value)


def test_an_empty_variable_is_not_set(project: Path) -> None:
    assert load(project, {line.variable: "" for line in TABLE.values()}) == Settings()


def test_a_near_miss_is_refused_and_a_foreign_name_is_not(project: Path) -> None:
    for variable, meant in [("VEIL_TIMEOUT", "VEIL_TIMEOUT_MS"), ("VEIL_MAX_RECORD", "VEIL_MAX_RECORDS")]:
        with pytest.raises(BadInput, match=meant) as error:
            load(project, {variable: "5"})
        assert error.value.facts["argument"] == variable
    foreign = {"VEIL_RUN": "tag", "VEIL_CI": "1", "VEIL_FUTURE_THING": "x", "SURVEIL_TIMEOUT": "1", "veil_timeout": "1"}
    assert load(project, foreign) == Settings()


def test_unknown_names_are_refused_with_the_nearest(project: Path) -> None:
    with pytest.raises(BadInput, match="did you mean 'timeout'"):
        load(project, {}, timeot=3)
    file = write(project, "[tool.veil]\ntimeout = 3\n")
    with pytest.raises(BadInput, match="did you mean 'timeout_ms'") as error:
        load(project)
    assert str(file) in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "[tool.veil]\nmax_records = 9",
        "[ tool . veil ]\nmax_records = 9",
        '["tool"."veil"]\nmax_records = 9',
        "[tool]\nveil = {max_records = 9}",
        "[tool]\nveil.max_records = 9",
        "tool.veil.max_records = 9",
        "tool = {veil = {max_records = 9}}",
        "[project]\nname = 'é'\r\n[tool.veil]\r\nmax_records = 9\r\n",
    ],
)
def test_every_spelling_of_the_table_is_found(project: Path, text: str) -> None:
    write(project, text)
    assert load(project).max_records == 9


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b"[tool.veil]\nmax_records = ", "valid TOML"),
        (b"[tool.veil]\nmax_records = 9 # \xff\n", "valid TOML in UTF-8"),
        (b"tool.veil = 3\n", "tool.veil in"),
        (b"[tool.veil]\nmax_records = 9.0\n", "max_records"),
        (b"[tool.veil]\nmax_records = '9'\n", "max_records"),
        (b"[tool.veil]\nmax_records = true\n", "max_records"),
        (b"[tool.veil]\ntimeout_ms = inf\n", "timeout_ms"),
        (b"[tool.veil]\nshell = '/bin/evil'\n", "VEIL_SHELL"),
        (b"[tool.veil]\nstate_dir = '/tmp/x'\n", "VEIL_STATE_DIR"),
        (b"[tool.veil.more]\nx = 1\n", "more"),
    ],
)
def test_a_bad_file_is_named(project: Path, text: bytes, where: str) -> None:
    file = project / "pyproject.toml"
    file.write_bytes(text)
    with pytest.raises(BadInput, match=where) as error:
        load(project)
    assert str(file) in str(error.value)


def test_a_file_that_does_not_speak_of_veil_is_not_parsed(project: Path) -> None:
    write(project, "this is not TOML, but nobody asked it anything about veil")
    assert load(project) == Settings()
    write(project, "[project]\ndependencies = ['pytest-veil']\n[tool.other]\nveil = 1\n")
    assert load(project) == Settings()


def test_the_nearest_file_counts_up_to_the_top_of_the_work_tree(tmp_path: Path) -> None:
    above, top = tmp_path, tmp_path / "top"
    inner = top / "a" / "b"
    inner.mkdir(parents=True)
    write(above, "[tool.veil]\nmax_records = 1\n")
    assert load(inner).max_records == 1
    assert load(inner, {"HOME": str(top)}).max_records == 500
    (top / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")
    assert load(inner).max_records == 500
    write(top, "[tool.veil]\nmax_records = 2\n")
    assert load(inner).max_records == 2
    write(top / "a", "[project]\nname = 'nearer'\n")
    assert load(inner).max_records == 500


def test_what_is_no_plain_file_is_passed_over(project: Path) -> None:
    os.mkfifo(project / "pyproject.toml")
    assert load(project) == Settings()
    (project / "pyproject.toml").unlink()
    (project / "pyproject.toml").mkdir()
    assert load(project) == Settings()
    assert load(project / "not" / "there") == Settings()


@pytest.mark.needs("root")  # only root can give a file to somebody else
def test_above_the_project_a_file_of_another_owner_does_not_count(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    os.chown(write(tmp_path, "[tool.veil]\nmax_records = 1\n"), 12345, -1)
    assert load(inner).max_records == 500
    os.chown(write(inner, "[tool.veil]\nmax_records = 2\n"), 12345, -1)
    assert load(inner).max_records == 2


def test_a_file_that_cannot_be_read_refuses(project: Path) -> None:
    file = project / "pyproject.toml"
    if os.geteuid() == 0:  # root may read any file, but nobody can read the first bytes of this one
        file.symlink_to("/proc/self/mem")
    else:
        file.touch(mode=0)
    with pytest.raises(Refused) as error:
        load(project)
    assert error.value.code == "settings_unreadable"
    assert error.value.facts["file"] == str(file)


@given(st.sampled_from(sorted(NUMBERS)), st.text(max_size=25))
def test_any_text_gives_a_value_in_range_or_an_error_that_names_it(name: str, text: str) -> None:
    line, kind = TABLE[name], NUMBERS[name]
    try:
        value = getattr(Settings.load(project=Path("/nowhere"), environ={line.variable: text}), name)
    except BadInput as error:
        named = error.facts["argument"]
    else:
        named = line.variable
        assert value is None or kind.low <= value * kind.scale <= kind.high
    assert named == line.variable


def test_the_parser_of_toml_is_loaded_only_for_a_file_that_may_name_us(project: Path) -> None:
    code = (
        "import sys, pathlib; from veil.settings import Settings\n"
        "Settings.load(project=pathlib.Path(sys.argv[1]), environ={})\n"
        "print(sorted({'tomllib', 'tomli', 'difflib'} & set(sys.modules)))\n"
    )
    write(project, "[project]\nname = 'x'\ndependencies = ['pytest-veil']\n")
    done = subprocess.run([sys.executable, "-c", code, str(project)], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr


def test_the_page_of_settings_is_current() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_settings.py"))["render"]()
    current = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert current == made, "run: python docs/make_settings.py"
