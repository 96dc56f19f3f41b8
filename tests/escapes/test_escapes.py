"""The battery: every attempt to get out of the sandbox, in every backend, as root and as a user, and without a sandbox.

What is expected is said beside the attempts (``attempts`` and the modules ``escape_*``), and the page of the sandbox is
made from that. One driver (``try_all``) runs all attempts of one cell, a backend and a user; here each is judged.
Without a sandbox every attempt that is harmless has to get through, or it would show nothing that it is held elsewhere.
"""

from __future__ import annotations

import compileall
import fcntl
import functools
import importlib.util
import json
import os
import runpy
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from veil.host.confine.ruleset import version

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "host"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from attempts import BACKENDS, FAMILIES, SINCE, USERS, Attempt, everything  # noqa: E402
from confinements import PLAIN, SYSTEM, as_user, python_for  # noqa: E402

pytestmark = [
    pytest.mark.linux,
    pytest.mark.needs("bash", "git", "an interpreter outside /tmp"),
    pytest.mark.timeout(1500),
]

ATTEMPTS = everything()
CELLS = [(backend, user) for user in USERS for backend in ("none", *BACKENDS)]
Answer = dict[str, Any]
#: What veil imports that a Python of the machine may lack; both are one language throughout.
_NEEDED = ("pluggy", "filelock")


def _of(attempt: Attempt) -> str:
    return f"{attempt.module}: {attempt.name}"


def _copied(base: Path) -> None:
    """The attempts and veil itself, where everybody can read them."""
    code = base / "code"
    code.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("veil", *_NEEDED):
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        shutil.copytree(Path(found.origin).parent, code / name, ignore=ignored)
    shutil.copytree(HERE, base / "attempts", ignore=ignored)


def _rights(base: Path, user: int) -> dict[str, str]:
    """What only root can prepare: a folder below /run, and programs that bring rights."""
    if os.geteuid() != 0:
        return {}
    run = Path(tempfile.mkdtemp(prefix="veil-escape-", dir="/run"))
    os.chown(run, user, user)
    suid, capable = base / "suid", base / "capable"
    for name, path in (("id", suid), ("cat", capable)):
        found = shutil.which(name, path=SYSTEM)
        assert found is not None
        shutil.copy(found, path)
    os.chown(suid, 0, 0)
    suid.chmod(0o4755)
    capable.chmod(0o755)
    override, search = 1 << 1, 1 << 2
    os.setxattr(capable, "security.capability", struct.pack("<5I", 0x02000001, override | search, 0, 0, 0))
    return {"ESCAPE_RUN": str(run), "ESCAPE_SUID": str(suid), "ESCAPE_CAPABLE": str(capable)}


def _tried(backend: str, user: int, only: tuple[str, ...] = ()) -> dict[str, Answer]:
    """All attempts of one cell."""
    base = Path(tempfile.mkdtemp(prefix="veil-escape-", dir="/var/tmp")).resolve()
    given: dict[str, str] = {}
    try:
        base.chmod(0o755)
        _copied(base)
        python = python_for(user)
        if python == sys.executable:
            compileall.compile_dir(base, quiet=2)
        else:
            subprocess.run([python, "-m", "compileall", "-q", base], check=True)
        if os.geteuid() == 0:
            for path in (base, *base.rglob("*")):
                os.chown(path, user, user)
        given = _rights(base, user)
        done = subprocess.run(
            [python, "-B", str(base / "attempts" / "try_all.py"), str(base), backend, *only],
            capture_output=True,
            text=True,
            timeout=1200,
            cwd="/",
            env={"PATH": SYSTEM, "LANG": "C.UTF-8", "PYTHONPATH": str(base / "code"), **given},
            **as_user(user),
        )
        assert done.returncode == 0, done.stderr
        answers: dict[str, Answer] = json.loads(done.stdout)
        return answers
    finally:
        # moved away, when a driver that failed could not put it back
        for path in (base, base.with_name(f"{base.name}.gone"), *map(Path, filter(None, [given.get("ESCAPE_RUN")]))):
            if path.exists():
                shutil.rmtree(path)


class _Cells:
    """What came of every cell; each is tried once, however many workers. One that would wait tries another."""

    def __init__(self, shared: Path) -> None:
        self._shared = shared
        self._known: dict[tuple[str, str], dict[str, Answer]] = {}

    def of(self, backend: str, user: str) -> dict[str, Answer]:
        wanted = (backend, user)
        if wanted not in self._known:
            for cell in (wanted, *CELLS):
                if self._try(cell, wait=False) and cell == wanted:
                    break
            self._try(wanted, wait=True)
            self._known[wanted] = json.loads(self._path(wanted).read_text(encoding="utf-8"))
        return self._known[wanted]

    def _path(self, cell: tuple[str, str]) -> Path:
        return self._shared / f"escapes-{'-'.join(cell)}.json"

    def _try(self, cell: tuple[str, str], *, wait: bool) -> bool:
        """Whether it is known by now; ``False``: another worker is about it."""
        backend, user = cell
        if user == "root" and os.geteuid() != 0:
            return True
        with self._path(cell).with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            if not self._path(cell).exists():
                answers = _tried(backend, 0 if user == "root" else PLAIN)
                self._path(cell).write_text(json.dumps(answers), encoding="utf-8")
        return True


@pytest.fixture(scope="session")
def cells(tmp_path_factory: pytest.TempPathFactory) -> _Cells:
    base = tmp_path_factory.getbasetemp()
    return _Cells(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@functools.cache
def _itself_confined() -> str | None:
    """Why this machine holds by itself what others do not, as in a container; ``None``: it does not."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    if status.get("Seccomp", "0") != "0":
        return "a filter of system calls"
    # those of files and users, raw packets, modules, chroot, tracing, administration, restarts, devices
    wanted = sum(1 << number for number in (0, 1, 2, 6, 7, 13, 16, 18, 19, 21, 22, 27))
    if os.geteuid() == 0 and int(status["CapEff"], 16) & wanted != wanted:
        return "root has not all capabilities"
    if subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode != 0:
        return "no user namespaces"
    return None


def _params() -> Iterator[Any]:
    for backend, user in CELLS:
        for attempt in ATTEMPTS:
            if backend == "none" and not attempt.harmless:
                continue
            marks = [pytest.mark.needs("root")] if user == "root" else []
            yield pytest.param(
                attempt, backend, user, id=f"{backend}-{user}-{attempt.module[7:]}-{attempt.id}", marks=marks
            )


@pytest.mark.parametrize(("attempt", "backend", "user"), list(_params()))
def test_attempt(attempt: Attempt, backend: str, user: str, cells: _Cells) -> None:
    answers = cells.of(backend, user)
    if "unavailable" in answers:
        pytest.skip(f"needs {backend}: {answers['unavailable']}")
    answer = answers[_of(attempt)]
    verdict, told = answer["verdict"], json.dumps(answer, indent=1)
    assert verdict != "faulty", told
    bare = cells.of("none", user).get(_of(attempt))
    nothing_to_hold = bare is not None and bare["verdict"] == "unmade"
    if verdict == "unmade" and (nothing_to_hold or bare is None):
        pytest.xfail(f"this machine cannot even try: {answer['told'].strip()}")
    if backend == "none":
        if user not in attempt.bare:
            if verdict == "held" and (reason := _itself_confined()) is not None:
                pytest.xfail(f"this machine is itself confined: {reason}")
            assert verdict == "through", f"it shows nothing, since it is held without a sandbox too: {told}"
        return
    if backend == "landlock" and attempt.since > version():
        assert verdict == "through", f"better than the page says: {told}"
        assert any(SINCE[attempt.since] in gap for gap in answer["gaps"]), f"no gap names it: {told}"
        return
    if not attempt.passes(backend, user):
        assert verdict in ("held", "unmade"), told
        return
    if verdict == "held" and bare is not None and bare["verdict"] == "held":
        pytest.xfail(f"this machine holds it without a sandbox: {answer['told'].strip()}")
    assert verdict == "through", f"better than the page says: {told}"
    assert attempt.through is not None
    secrets = {line[len("told: ") :] for line in answer["evidence"] if line.startswith("told: ")}
    assert secrets <= set(attempt.through.tells), f"it tells more than the page says: {told}"
    if attempt.through.gap is not None:
        assert any(attempt.through.gap in gap for gap in answer["gaps"]), f"no gap names it: {told}"


# --- the data and the page -------------------------------------------------------------------------------------------


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    assert len(ATTEMPTS) >= 100
    assert len({(attempt.module, attempt.id) for attempt in ATTEMPTS}) == len(ATTEMPTS)
    assert {attempt.module for attempt in ATTEMPTS} == set(FAMILIES)


def test_the_page_of_the_sandbox_has_them_all() -> None:
    root = HERE.parents[1]
    remade: Callable[[str], str] = runpy.run_path(str(root / "docs" / "make_escapes.py"))["remade"]
    page = (root / "docs" / "sandbox.md").read_text(encoding="utf-8")
    assert page == remade(page)
    for attempt in ATTEMPTS:
        assert f"| {attempt.name.replace('|', '/')} |" in page
