"""What a test may ask of the machine.

``@pytest.mark.needs("bubblewrap")`` (by habit ``NEEDS_BWRAP = pytest.mark.needs("bubblewrap")`` at the top of a file)
skips a test where the machine cannot do it; the skip names what is missing and how to get it. With ``VEIL_CI=1`` the
machine is meant to have everything: every skip, whatever made it, is then a failure. A test of another platform is no
skip: ``@pytest.mark.linux`` and ``@pytest.mark.darwin`` deselect it elsewhere; nor is one of agent frameworks
(``@pytest.mark.frameworks``), which has an environment of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator

import hypothesis
import pytest
from marked import Marker

# machines are shared: how long one example takes says nothing about what is tested
hypothesis.settings.register_profile("veil", deadline=None)
hypothesis.settings.load_profile("veil")

_STRICT = pytest.StashKey[bool]()
_PLATFORMS = ("linux", "darwin")
#: Packages of the extra ``frameworks``. One brings a plugin of pytest that every session would load, so they are not in
#: the environment of the other tests; ``.ci/run`` and ``tox -e frameworks`` have them.
_FRAMEWORKS = ("langchain_core", "pydantic_ai")


def _works(*argv: str) -> bool:
    """The program is there and does its smallest job: an installed bwrap may be forbidden to make namespaces."""
    if shutil.which(argv[0]) is None:
        return False
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60).returncode == 0


def _pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def _landlock() -> bool:
    """The kernel can confine what is written: version 3 of the interface, asked as linux/landlock.h tells."""
    create_ruleset, ask_version = 444, 1
    return int(ctypes.CDLL(None).syscall(create_ruleset, None, ctypes.c_size_t(0), ctypes.c_uint32(ask_version))) >= 3


def _pypi() -> bool:
    """pip gets a small project of a pinned version from wherever it is told to look."""
    with tempfile.TemporaryDirectory() as folder:
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps")
        return _works(*pip, "--retries", "1", "--timeout", "20", "--dest", folder, "xmltodict==0.13.0")


#: Capability: (probe, how to get it).
CAPABILITIES: dict[str, tuple[Callable[[], bool], str]] = {
    "bash": (lambda: _works("bash", "-c", ":"), "install bash"),
    "bubblewrap": (
        lambda: _works("bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--dev", "/dev", "true"),
        "install bubblewrap, and allow user namespaces",
    ),
    "gcc": (lambda: _works("gcc", "--version"), "install gcc"),
    "git": (lambda: _works("git", "--version"), "install git"),
    "landlock": (_landlock, "run on Linux 6.2 or newer, with landlock in lsm="),
    "make": (lambda: _works("make", "--version"), "install make"),
    "node": (lambda: _works("node", "--version"), "install nodejs"),
    "an interpreter outside /tmp": (
        lambda: not os.path.realpath(sys.prefix).startswith("/tmp/"),
        "make the virtual environment elsewhere: a confined command has a /tmp of its own",
    ),
    "pidfd": (_pidfd, "run on Linux 5.3 or newer"),
    "pivot_root": (lambda: _works("pivot_root", "--version"), "install util-linux"),
    "pypi": (_pypi, "have pip, and let it reach PyPI"),
    "root": (lambda: os.geteuid() == 0, "run the tests as root"),
    "rsync": (lambda: _works("rsync", "--version"), "install rsync"),
    "strace": (
        lambda: _works("strace", "-DDD", "-f", "--seccomp-bpf", "--pidns-translation", "-o", "/dev/null", "true"),
        "install strace 5.9 or newer, and allow ptrace",
    ),
    "user namespaces": (lambda: _works("unshare", "-Ur", "true"), "allow unprivileged user namespaces"),
}


@functools.cache
def missing(capability: str) -> str | None:
    """``None``, or one line that names the capability and how to get it."""
    probe, remedy = CAPABILITIES[capability]
    return None if probe() else f"needs {capability}: {remedy}"


def pytest_configure(config: pytest.Config) -> None:
    # read once and here: the fixture own_state takes every VEIL_* variable away while a test runs
    config.stash[_STRICT] = os.environ.get("VEIL_CI") == "1"
    # a shell starts what it puts into the background with these ignored, and so would every command of a test
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    config.addinivalue_line("markers", f"needs(*capabilities): of {', '.join(CAPABILITIES)}; skipped when missing")
    for name in _PLATFORMS:
        config.addinivalue_line("markers", f"{name}: a test of this platform; deselected on others")
    config.addinivalue_line(
        "markers", "frameworks: runs where the extra of this name is installed; deselected elsewhere"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    alone = any(importlib.util.find_spec(name) is None for name in _FRAMEWORKS)
    kept: list[pytest.Item] = []
    other: list[pytest.Item] = []
    for item in items:
        platforms = [name for name in _PLATFORMS if item.get_closest_marker(name)]
        elsewhere = platforms and sys.platform not in platforms
        (other if elsewhere or (alone and item.get_closest_marker("frameworks")) else kept).append(item)
        for mark in item.iter_markers("needs"):
            unknown = [name for name in mark.args if name not in CAPABILITIES]
            if unknown or not mark.args or mark.kwargs:
                raise pytest.UsageError(f"{item.nodeid}: needs{mark.args}: known are {', '.join(CAPABILITIES)}")
    if other:
        config.hook.pytest_deselected(items=other)
        items[:] = kept


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for capability in mark.args:
            reason = missing(capability)
            if reason is not None:
                pytest.skip(reason)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    told = report.longrepr
    return str(told[2] if isinstance(told, tuple) else told)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.CallInfo[None], None]:
    made = yield
    report: pytest.TestReport = made.get_result()  # type: ignore[attr-defined]
    if item.config.stash[_STRICT] and report.skipped and not hasattr(report, "wasxfail"):
        report.longrepr = f"VEIL_CI=1 allows no skip: {_reason(report)}"
        report.outcome = "failed"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CallInfo[None], None]:
    made = yield
    report: pytest.CollectReport = made.get_result()  # type: ignore[attr-defined]
    if collector.config.stash[_STRICT] and report.outcome == "skipped":
        report.longrepr = f"VEIL_CI=1 allows no skip: {_reason(report)}"
        report.outcome = "failed"


@pytest.fixture
def marker() -> Iterator[Marker]:
    made = Marker()
    yield made
    for pid in made.alive():  # only after a failed test
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(autouse=True)
def no_run_left() -> Iterator[None]:
    """A background run that a test leaves behind in this process counts among those of the next one."""
    yield
    wiring, cores = sys.modules.get("veil.wiring"), sys.modules.get("veil.host.confine.cores")
    deadline = time.monotonic() + 10
    while cores is not None and cores._starting and time.monotonic() < deadline:
        time.sleep(0.01)
    assert cores is None or cores._starting == 0, "a start that never gave the limit of core files back"
    if wiring is None:
        return
    while ((left := wiring.jobs.alive()) or wiring.jobs._starting) and time.monotonic() < deadline:
        time.sleep(0.01)  # its processes are gone, and its record is just being written; or a start was given up
    if left:
        wiring.jobs.close()
        pytest.fail(f"left running: {', '.join(left)}")
    assert wiring.jobs._starting == 0, "a start that never ends"
