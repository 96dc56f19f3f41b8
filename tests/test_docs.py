"""README and docs/ against the code: examples print what the pages show, links lead somewhere, tables are complete."""

# over 300 lines because: it is one subject: every page against the code, with one way of reading tables

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import veil
from veil.asking.options import BACKGROUND_INCOMPATIBLE, NAMES

ROOT = Path(__file__).parents[1]
MADE: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "make_outputs.py"))
PAGES: list[Path] = MADE["PAGES"]
LINKED = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
NEEDS_BASH = pytest.mark.needs("bash")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# --- examples -------------------------------------------------------------------------------------------------------


def examples(pattern: str) -> list[Any]:
    found = []
    for path in PAGES:
        for number, match in enumerate(MADE[pattern].finditer(read(path)), 1):
            # elsewhere it cannot be known whether what was left behind is gone, and the result says so
            marks = [pytest.mark.linux] if "left_running" in match["told"] or path.stem == "trace" else []
            marks += [pytest.mark.needs("strace")] if path.stem == "trace" else []
            found.append(pytest.param(match, id=f"{path.stem}-{number}", marks=marks))
    return found


@NEEDS_BASH
@pytest.mark.parametrize("example", examples("_PYTHON"))
def test_a_python_example_prints_what_the_page_shows(example: re.Match[str]) -> None:
    assert MADE["same"](MADE["python"](example["code"])) == MADE["same"](example["told"])


@NEEDS_BASH
@pytest.mark.parametrize("example", examples("_SHELL"))
def test_a_shell_example_prints_what_the_page_shows(example: re.Match[str]) -> None:
    assert MADE["same"](MADE["shell"](example["told"])) == MADE["same"](example["told"])


@NEEDS_BASH
def test_the_main_command_prints_what_the_readme_shows() -> None:
    (example,) = MADE["_MAIN"].finditer(read(ROOT / "README.md"))
    assert "\n" not in example["line"]
    assert example["line"].startswith("python3 -m venv .venv && ")
    told = MADE["main_command"](example["line"])
    assert MADE["same"](told) == MADE["same"](example["told"])
    # everything is replayed, and everything is verified
    assert re.findall(r"^(\d+) passed in", told, re.MULTILINE) == ["6", "6"]
    assert "6 recordings: 6 replayed" in told
    assert "veil: verify" in told


def test_every_block_that_says_it_is_run_is_run() -> None:
    for path in PAGES:
        text = read(path)
        assert text.count("<!-- run -->") == len(MADE["_PYTHON"].findall(text)), path.name
        assert text.count("<!-- shell -->") == len(MADE["_SHELL"].findall(text)), path.name


def test_what_varies_is_left_out_of_the_comparison_and_nothing_else() -> None:
    same = MADE["same"]
    assert same("exit 0 in 0.35 s [cmd1]") == same("exit 0 in 12.01 s [cmd1]") != same("exit 0 in 0.35 s [cmd2]")
    assert same('{"id": "cmd2", "pid": 12, "ms": 3}') == same('{"id": "cmd2", "pid": 9, "ms": 41}')
    assert same("seq 3") == "seq 3"


# --- links ----------------------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """The names that headings of a page can be linked by."""
    without_code = re.sub(r"^```.*?^```", "", read(path), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", without_code, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", LINKED, ids=lambda path: path.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", read(page), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(path), f"{page.name}: {target}; there are {sorted(anchors(path))}"


# --- tables ---------------------------------------------------------------------------------------------------------


def table(page: str, heading: str) -> list[str]:
    """Names in the first cells of the first table below a heading, in order."""
    text = read(ROOT / "docs" / page)
    _, found, rest = text.partition(f"\n{heading}\n")
    assert found, f"{page} has no heading {heading!r}"
    rows = re.search(r"^\|[^\n]*\n\|-[^\n]*\n((?:\|[^\n]*\n)+)", rest, re.MULTILINE)
    assert rows is not None, f"no table below {heading!r}"
    cells = [row.split("|")[1] for row in rows.group(1).splitlines()]
    return [name for cell in cells for name in re.findall(r"`(\w+)[^`]*`", cell)]


def function(path: str, name: str) -> ast.AST:
    for node in ast.walk(ast.parse(read(ROOT / path))):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise AssertionError(f"{path} has no function {name}")


def texts(node: ast.expr | None) -> Iterator[str]:
    """The keys that an expression can be: a text, or an f-string that begins with the name of a stream."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        end = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        yield from (stream + end for stream in ("stdout", "stderr"))
    elif isinstance(node, ast.Name) and node.id == "name":
        yield from ("stdout", "stderr")


def keys(tree: ast.AST, of: str = "data") -> set[str]:
    """Keys that code puts into the dict that it calls ``of``."""
    found: set[str] = set()

    def literal(value: ast.expr | None) -> None:
        if isinstance(value, ast.IfExp):
            literal(value.body)
        if isinstance(value, ast.Dict):
            for key in value.keys:
                found.update(texts(key))

    for node in ast.walk(tree):
        targets: Iterable[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = (node.target,)
        for target in targets:
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == of:
                found.update(texts(target.slice))
            if isinstance(target, ast.Name) and target.id == of and isinstance(node, (ast.Assign, ast.AnnAssign)):
                literal(node.value)
        if isinstance(node, ast.Return):
            literal(node.value)
        if isinstance(node, ast.Call):
            called = node.func
            on = called.value.id if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) else ""
            if on == of and isinstance(called, ast.Attribute) and called.attr == "update":
                found.update(word.arg for word in node.keywords if word.arg)
            if on == of and isinstance(called, ast.Attribute) and called.attr == "setdefault":
                found.update(texts(node.args[0]))
            for word in node.keywords:
                if word.arg == of:
                    literal(word.value)
    return found


def notes() -> set[str]:
    """Fields that layers and closers of lost runs add to the JSON view, by the code that writes them."""
    found: set[str] = set()
    layers = [path for path in (ROOT / "veil" / "layers").rglob("*.py") if path.parent.name != "tracing"]
    written = [*layers, ROOT / "veil/host/changes.py", ROOT / "veil/elsewhere.py"]
    for path in written:
        found |= keys(ast.parse(read(path)), "notes")
    (pairs,) = (
        node.value
        for node in ast.walk(function("veil/host/changes.py", "_head_notes"))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "pairs"
    )
    assert isinstance(pairs, ast.Tuple)
    found |= {name for pair in pairs.elts if isinstance(pair, ast.Tuple) for name in texts(pair.elts[0])}
    from veil.present.reply import _QUIET_NOTES

    assert found > _QUIET_NOTES
    return found - _QUIET_NOTES - {"before", "after", "total", "first"}


def test_the_json_view_and_its_table_name_the_same_fields() -> None:
    found = notes()
    for name in ("reply", "_ending", "_stream_facts", "_changes", "_verdict", "_streams"):
        found |= keys(function("veil/present/reply.py", name))
    found |= keys(function("veil/present/trace.py", "fields"))
    named = table("results.md", "## The JSON view of a run")
    assert sorted(named) == sorted(found)


def test_results_table_names_every_attribute_of_a_result() -> None:
    named = table("results.md", "## In Python")
    assert set(named) == {name for name in dir(veil.Result) if not name.startswith("_")} | {"record"}


@pytest.mark.parametrize(
    ("heading", "path", "functions"),
    [
        ("### Logs", "veil/present/poll.py", ["poll_reply"]),
        ("### The reply", "veil/present/stored.py", ["stored_reply"]),
        ("### Fields of a stream", "veil/present/stored.py", ["_totals", "_page", "_lines", "_found"]),
        ("### Errors", "veil/model/errors.py", ["to_dict"]),
    ],
)
def test_replies_and_their_tables_name_the_same_fields(heading: str, path: str, functions: list[str]) -> None:
    found: set[str] = set()
    for name in functions:
        found |= keys(function(path, name))
    if heading == "### The reply":
        found |= keys(function("veil/present/trace.py", "fields")) | keys(function("veil/present/trace.py", "page"))
        found -= {"trace_summary"}  # the events themselves stand beside it
    assert set(table("results.md", heading)) == found


def test_the_reply_to_kill_and_its_table_name_the_same_fields() -> None:
    sent = veil.Killed("cmd1", "killed", "SIGTERM", exit=143).to_dict()
    late = veil.Killed("cmd1", "exited", already_exited=True, exit=0).to_dict()
    assert set(table("results.md", "### Kill")) == {*sent, *late, "session"}  # the tool ends sessions as well


def test_every_check_stands_in_the_table_of_checks() -> None:
    from veil.wiring import checks

    assert sorted(table("results.md", "## expect")) == sorted(checks())


def test_the_table_of_options_is_the_options() -> None:
    assert table("running.md", "## Options") == list(NAMES)


def test_the_options_that_background_runs_refuse_are_named() -> None:
    page = read(ROOT / "docs" / "running.md")
    (told,) = re.findall(r"Options that need the end \(([^)]*)\)", page)
    assert set(re.findall(r"`(\w+)`", told)) == set(BACKGROUND_INCOMPATIBLE)


def test_the_options_of_the_plugin_are_those_of_its_page() -> None:
    from pytest_veil.config import MODES, OF_A_TEST, Settings
    from pytest_veil.options import MARKER, OPTIONS

    page = read(ROOT / "docs" / "pytest.md")
    rows = [
        [cell.strip().strip("`") for cell in line.split("|")[1:-1]]
        for line in re.findall(r"^\| `veil.*$", page, re.MULTILINE)
    ]
    rows = [row for row in rows if len(row) == 5]
    assert [row[0] for row in rows] == [option.name for option in OPTIONS]
    assert [row[1] for row in rows] == [option.flag or "" for option in OPTIONS]
    assert {row[2] for row in rows} - {""} | {"cassette"} == OF_A_TEST == set(re.findall(r"(\w+)=\.\.\.", MARKER))
    assert all(row[2] in ("", row[0].removeprefix("veil_")) for row in rows)
    defaults = {row[0]: row[4] for row in rows}
    plain = Settings()
    assert int(defaults["veil_runs"]) == plain.runs
    assert int(defaults["veil_failure_lines"]) == plain.failure_lines
    assert (defaults["veil_unused"], defaults["veil_on_drift"]) == (plain.unused, plain.on_drift)
    assert (defaults["veil_normalise"],) == plain.normalise
    assert set(re.findall(r"--veil[\w-]*", page)) == {option.flag for option in OPTIONS if option.flag}
    modes = page.partition("\n## Modes\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)`", modes, re.MULTILINE) == list(MODES)


def test_the_fixtures_and_hooks_of_the_plugin_are_those_of_its_page() -> None:
    from pytest_veil import hookspecs

    assert table("pytest.md", "## Hooks") == [name for name in vars(hookspecs) if name.startswith("pytest_veil_")]
    plugin = ast.parse(read(ROOT / "pytest_veil" / "plugin.py"))
    made = [
        node.name
        for node in plugin.body
        if isinstance(node, ast.FunctionDef) and any("fixture" in ast.unparse(d) for d in node.decorator_list)
    ]
    assert table("pytest.md", "## Fixtures") == made


def test_the_readme_names_every_command() -> None:
    from veil.cli.program import cli

    (line,) = re.findall(r"^`veil run`[^;]*;", read(ROOT / "README.md"), re.MULTILINE)
    assert set(re.findall(r"`(?:veil )?(\w+)`", line)) == set(cli.commands)


def test_the_command_line_has_the_options_that_the_page_promises() -> None:
    from veil.cli.program import cli

    page = read(ROOT / "docs" / "running.md")
    (told,) = re.findall(r"`veil run --help` lists them\.\s([^.]*) have no place there", page)
    absent = set(re.findall(r"`(\w+)`", told))
    there = {option.name for option in cli.commands["run"].params} - {
        "command",
        "as_json",
        "unset_env",
        "sandbox_option",
    }
    assert there == set(NAMES) - absent


def test_every_setting_that_a_page_names_exists() -> None:
    from veil.settings import TABLE

    known = {setting.variable for setting in TABLE.values()} | {"VEIL_RUN", "VEIL_CI"}
    for path in LINKED:
        used = set(re.findall(r"\bVEIL_[A-Z_]+\b", read(path)))
        # the page of settings shows a near miss, which is refused
        assert used - known <= ({"VEIL_TIMEOUT", "VEIL_"} if path.name == "settings.md" else set()), path.name
