"""The law of the house, read from the sources: who may import whom, and how large a room may grow.

Each rule is a function that yields violations as ``file:line: what is wrong``; each source file is one test, so a
violation is named where it stands. ``tests/test_import_law.py::test_the_law_bites`` shows that every rule can fail.
"""

# over 300 lines because: it is one law: short rules, and for each of them a line of code that breaks it

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

#: Floor of each room. A part (floor 2) is a room of its own; the rest are known by the first name below ``veil``.
FLOORS = {
    "model": 0,
    "host": 1,
    **dict.fromkeys(("layers", "executors", "store", "snapshots", "previews"), 2),
    **dict.fromkeys(("checks", "present", "secrets", "cassettes", "policy", "classify", "importers"), 2),
    **dict.fromkeys(("kit", "pipeline", "cleaning", "jobs"), 3),
    **dict.fromkeys(("settings", "hookspecs", "builtin", "wiring", "asking"), 4),
    **dict.fromkeys(("__init__", "api", "result", "details", "background", "elsewhere", "by_id"), 5),
    **dict.fromkeys(("precheck", "promoting", "rewinding", "caution"), 5),
    **dict.fromkeys(("__main__", "runner", "stateful", "taping", "waiting"), 5),
    **dict.fromkeys(("cli", "tools", "serving", "testing", "doctor", "governed"), 5),
}
#: The only parts that may touch the machine.
ON_THE_HOST = {"layers", "executors", "store", "snapshots", "previews"}
#: Names of the rooms that may import a dependency.
OWNERS = {
    "psutil": {"host"},
    "filelock": {"host"},
    "pluggy": {"wiring", "hookspecs", "builtin"},
    "click": {"cli"},
    **{name: {"serving"} for name in ("mcp", "anyio", "uvicorn", "starlette")},
    "rich": {"cli"},
    "pytest": set[str](),
    "_pytest": set[str](),
}
#: Imported inside functions only, wherever it is imported.
LATE = {"regex", "psutil", "filelock", "tree_sitter", "tree_sitter_bash", "pyfakefs", "coverage", "tomllib", "tomli"}
#: Asking which machine this is belongs to the host.
MACHINE = {("sys", "platform"), ("os", "uname"), ("os", "name")}
MAX_FUNCTION, MAX_MODULE = 60, 300
REASON = "# over 300 lines because: "
#: Documented modules of veil that other doors may use by their path.
PUBLIC_MODULES = {"veil", "veil.governed", "veil.testing", "veil.taping", "veil.tools"}
NOT_LOADED = ["pytest", "_pytest", "click", "rich", "regex", "psutil", "filelock"]
NOT_LOADED += ["mcp", "anyio", "pyfakefs", "coverage", "asyncio", "tree_sitter"]


class Import(NamedTuple):
    """One import, resolved: ``names`` are what is taken out of ``module`` (empty for ``import module``)."""

    module: str
    names: tuple[str, ...]
    line: int
    late: bool
    typing: bool = False


class Source:
    """A parsed source file of the house."""

    def __init__(self, path: Path, root: Path = ROOT) -> None:
        self.path, self.shown = path, path.relative_to(root).as_posix()
        parts = path.relative_to(root).with_suffix("").parts
        self.package = parts[0]
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.room = parts[1] if len(parts) > 1 else "__init__"
        self.is_package = parts[-1] == "__init__"
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text, self.shown)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.imports = list(self._imports())

    def at(self, line: int, what: str) -> str:
        return f"{self.shown}:{line}: {what}"

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node

    def _typing_only(self, node: ast.AST) -> bool:
        return any(isinstance(n, ast.If) and ast.unparse(n.test).endswith("TYPE_CHECKING") for n in self._above(node))

    def _imports(self) -> Iterator[Import]:
        for node in ast.walk(self.tree):
            functions = (ast.FunctionDef, ast.AsyncFunctionDef)
            typing = self._typing_only(node)
            late = typing or any(isinstance(n, functions) for n in self._above(node))
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(alias.name, (), node.lineno, late, typing)
            elif isinstance(node, ast.ImportFrom):
                base = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
                above = base[: len(base) - node.level + 1] if node.level else []
                module = ".".join([*above, *([node.module] if node.module else [])])
                yield Import(module, tuple(alias.name for alias in node.names), node.lineno, late, typing)


def sources(root: Path = ROOT) -> list[Source]:
    return [Source(p, root) for package in ("veil", "pytest_veil") for p in sorted((root / package).rglob("*.py"))]


HOUSE = sources()
BY_NAME = {source.name: source for source in HOUSE}


def rooms_of(found: Import) -> Iterator[str]:
    """Rooms of veil that an import reaches: ``from veil import host`` reaches host as ``import veil.host`` does."""
    parts = found.module.split(".")
    if parts[0] != "veil":
        return
    if len(parts) > 1:
        yield parts[1]
    else:
        yield from (name if name in FLOORS else "__init__" for name in found.names or ("__init__",))


def floors(source: Source) -> Iterator[str]:
    """A room imports only rooms below it; assembly, wiring and doors also their own floor; parts only themselves."""
    if source.package != "veil":
        return
    if source.room not in FLOORS:
        yield source.at(1, f"room {source.room!r} has no floor: give it one in FLOORS and in ARCHITECTURE.md")
        return
    mine = FLOORS[source.room]
    for found in source.imports:
        for room in rooms_of(found):
            if room == source.room:
                continue
            if room not in FLOORS:
                yield source.at(found.line, f"imports veil.{room}, which has no floor")
            elif FLOORS[room] > mine:
                yield source.at(found.line, f"{source.room} (floor {mine}) imports {room} (floor {FLOORS[room]})")
            elif mine == FLOORS[room] == 2:
                yield source.at(found.line, f"the part {source.room} imports its sibling {room}")
            elif room == "host" and mine == 2 and source.room not in ON_THE_HOST:
                yield source.at(found.line, f"{source.room} imports host; only {', '.join(sorted(ON_THE_HOST))} may")


def owners(source: Source) -> Iterator[str]:
    """One room per dependency; veil never imports pytest; a heavy one is imported inside a function."""
    for found in source.imports:
        top = found.module.split(".")[0]
        if source.package == "veil" and top in OWNERS and source.room not in OWNERS[top]:
            yield source.at(found.line, f"{top} is imported only in {', '.join(sorted(OWNERS[top])) or 'no room'}")
        if top in LATE and not found.late:
            yield source.at(found.line, f"{top} is imported inside functions only")


def machine(source: Source) -> Iterator[str]:
    """Only the host asks which machine this is; ``veil/__init__`` alone may, to refuse Windows before all else."""
    if source.package == "veil" and source.room in ("host", "__init__"):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and tuple(ast.unparse(node).rsplit(".", 1)) in MACHINE:
            yield source.at(node.lineno, f"{ast.unparse(node)} outside veil/host")
    for found in source.imports:
        if found.module == "platform" or any((found.module, name) in MACHINE for name in found.names):
            yield source.at(found.line, f"{found.module} {' '.join(found.names)} outside veil/host")


def public_names(root: Path = ROOT) -> set[str]:
    """``veil.__all__`` as it is written in the source."""
    door = root / "veil" / "__init__.py"
    for node in ast.walk(ast.parse(door.read_text(encoding="utf-8") if door.exists() else "")):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            return set(ast.literal_eval(node.value))  # type: ignore[attr-defined]
    return set()


def doors(source: Source) -> Iterator[str]:
    """``pytest_veil`` uses what every caller may use: names of ``veil.__all__`` and documented modules."""
    if source.package != "pytest_veil":
        return
    public = public_names()
    for found in source.imports:
        if found.module.split(".")[0] != "veil":
            continue
        if found.module not in PUBLIC_MODULES:
            yield source.at(found.line, f"{found.module} is no public module of veil")
        elif found.module == "veil":
            for name in found.names:
                if name not in public and f"veil.{name}" not in PUBLIC_MODULES:
                    yield source.at(found.line, f"veil.{name} is not in veil.__all__")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "veil":
            used = ast.unparse(node)
            if node.attr not in public and used not in PUBLIC_MODULES:
                yield source.at(node.lineno, f"{used} is not in veil.__all__")


def length(source: Source) -> Iterator[str]:
    """Modules that say why when they are long."""
    lines = source.text.count("\n")
    if lines > MAX_MODULE and not re.search(rf"^{REASON}\S", source.text, re.MULTILINE):
        yield source.at(lines, f"{lines} lines; over {MAX_MODULE} needs a line {REASON!r}")


def bodies(source: Source) -> Iterator[str]:
    """Short functions."""
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION:
                yield source.at(node.lineno, f"{node.name} has {lines} lines; {MAX_FUNCTION} is the most")


def printing(source: Source) -> Iterator[str]:
    """Words and parts hand back data; speaking is for the doors."""
    if source.package == "veil" and FLOORS.get(source.room, 0) <= 4:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                yield source.at(node.lineno, "print below the doors")


def names(source: Source) -> Iterator[str]:
    """Importing ``veil.x`` puts the module in the place of a public function of that name."""
    root = source.path.parents[len(source.shown.split("/")) - 1]
    if source.package == "veil" and source.name.count(".") == 1 and source.room in public_names(root):
        yield source.at(1, f"veil.{source.room} is a public name, and this module would hide it")


RULES: tuple[Callable[[Source], Iterator[str]], ...] = (floors, owners, machine, doors, length, bodies, printing, names)


@pytest.mark.parametrize("source", HOUSE, ids=lambda source: source.shown)
def test_law(source: Source) -> None:
    violations = [violation for rule in RULES for violation in rule(source)]
    assert not violations, "\n" + "\n".join(violations)


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "docs"])
def test_modules_beside_the_packages_are_short_or_say_why(folder: str) -> None:
    beside = [Source(path, ROOT) for path in sorted((ROOT / folder).rglob("*.py"))]
    violations = [violation for source in beside for violation in length(source)]
    assert beside
    assert not violations, "\n" + "\n".join(violations)


def reached(source: Source, known: dict[str, Source]) -> Iterator[tuple[str, int]]:
    """Modules of the house that a source imports when it runs, late ones too. Packages on the way do not count:
    Python runs ``veil/__init__`` for every one of them, and it imports downwards by itself."""
    for found in source.imports:
        if found.typing:
            continue
        names = [f"{found.module}.{name}" for name in found.names if f"{found.module}.{name}" in known]
        if found.module in known and (len(names) < len(found.names) or not found.names):
            names.append(found.module)
        yield from ((name, found.line) for name in names if name != source.name)


def cycle(known: dict[str, Source]) -> list[str]:
    """One import cycle as ``file:line: imports x`` steps, or nothing."""
    done: set[str] = set()

    def walk(name: str, path: list[tuple[str, str]]) -> list[str]:
        for position, (before, _) in enumerate(path):
            if before == name:
                return [step for _, step in path[position:]]
        if name in done:
            return []
        for target, line in reached(known[name], known):
            found = walk(target, [*path, (name, known[name].at(line, f"imports {target}"))])
            if found:
                return found
        done.add(name)
        return []

    return next((found for name in known if (found := walk(name, []))), [])


def test_no_import_cycles() -> None:
    found = cycle(BY_NAME)
    assert not found, "a cycle:\n" + "\n".join(found)


def test_importing_veil_is_light() -> None:
    code = f"import sys, veil; print(sorted(set({NOT_LOADED!r}) & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stdout + done.stderr


VIOLATIONS = {
    "model reaches up": ("veil/model/x.py", "def f():\n    import veil.host.process\n", "x.py:2: model (floor 0)"),
    "from the root": ("veil/model/x.py", "from veil import host\n", "x.py:1: model (floor 0)"),
    "the door itself": ("veil/store/x.py", "import veil\n", "x.py:1: store (floor 2) imports __init__"),
    "a relative import": ("veil/model/x.py", "from ..host import process\n", "x.py:1: model (floor 0)"),
    "a sibling": ("veil/layers/x.py", "from veil.store.base import Store\n", "x.py:1: the part layers"),
    "a pure part": ("veil/checks/x.py", "from veil.host import tree\n", "x.py:1: checks imports host"),
    "an unknown room": ("veil/utils/x.py", "", "x.py:1: room 'utils' has no floor"),
    "somebody's dependency": ("veil/store/x.py", "def f():\n    import filelock\n", "x.py:2: filelock"),
    "pytest": ("veil/cli/x.py", "def f():\n    from _pytest import main\n", "x.py:2: _pytest"),
    "an early import": ("veil/host/x.py", "import psutil\n", "x.py:1: psutil is imported inside"),
    "the platform": ("veil/layers/x.py", "import sys\nx = sys.platform\n", "x.py:2: sys.platform"),
    "the platform by name": ("veil/cli/x.py", "from os import uname\n", "x.py:1: os uname"),
    "a private name": ("pytest_veil/x.py", "from veil import _secret\n", "x.py:1: veil._secret"),
    "a private module": ("pytest_veil/x.py", "import veil.host.process\n", "x.py:1: veil.host.process"),
    "a private attribute": ("pytest_veil/x.py", "import veil\nveil.host\n", "x.py:2: veil.host"),
    "a long function": ("veil/kit.py", "def f():\n" + "    x = 1\n" * 60, "kit.py:1: f has 61 lines"),
    "a long module": ("veil/kit.py", "x = 1\n" * 301, "kit.py:301: 301 lines"),
    "a public name": ("veil/result.py", "", "result.py:1: veil.result is a public name"),
    "a print": ("veil/present/x.py", "print('x')\n", "x.py:1: print"),
}


@pytest.mark.parametrize("case", VIOLATIONS)
def test_the_law_bites(case: str, tmp_path: Path) -> None:
    name, text, expected = VIOLATIONS[case]
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    (tmp_path / "veil").mkdir(exist_ok=True)
    (tmp_path / "veil" / "__init__.py").write_text('__all__ = ["result"]\n', encoding="utf-8")
    violations = [violation for rule in RULES for violation in rule(Source(file, tmp_path))]
    assert len(violations) == 1, violations
    assert expected in violations[0]


def test_a_long_module_with_a_reason_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "veil" / "kit.py"
    file.parent.mkdir()
    file.write_text(f"{REASON}it is one table\n" + "x = 1\n" * 301, encoding="utf-8")
    assert not list(length(Source(file, tmp_path)))
    file.write_text(f"X = {REASON!r}\n" + "x = 1\n" * 301, encoding="utf-8")
    assert list(length(Source(file, tmp_path))), "a text that holds the words is no reason"


def test_a_late_cycle_is_found(tmp_path: Path) -> None:
    model = tmp_path / "veil" / "model"
    model.mkdir(parents=True)
    (model / "a.py").write_text("from veil.model import b\n", encoding="utf-8")
    (model / "b.py").write_text("def f():\n    from veil.model.a import x\n", encoding="utf-8")
    found = cycle({source.name: source for source in sources(tmp_path)})
    assert found == ["veil/model/a.py:1: imports veil.model.b", "veil/model/b.py:2: imports veil.model.a"]
