"""How many of 60 everyday commands give the same bytes 20 times, on hosts that drifted apart?

Every run has a fresh folder. Four levels are counted:

* bare: the child has the host's environment, the folder has a name of its own;
* profile: the determinism profile, the bytes as the child wrote them. The profile has its own place for folders, so a
  host whose temporary folder is memory does not differ in that; its workspace files have a fixed modification time.
  With --follow-host the folders lie where the host has its temporary folder instead, which is harder;
* stored: the same with known folders as tokens, which is how a cassette holds them (reversible, nothing is lost);
* normalised: after the standard normalisers, all on, and none made for this benchmark.

Usage: python benchmarks/determinism.py [--quick] [--runs N] [--only NAME ...] [--follow-host] [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from veil.cassettes.families import standard
from veil.cassettes.profile import DETERMINISTIC
from veil.cassettes.roots import Roots
from veil.cassettes.steps import Ending, KeptStream, Step
from veil.cassettes.verdicts import Proposal, Rules, propose
from veil.model.outcome import Stream

DATA = Path(__file__).with_name("data") / "determinism.json"
GOALS = {"bare": 7, "stored": 29, "normalised": 44}
LONGEST = 120.0
#: Seconds that a round through all commands takes at least.
LEAST_ROUND = 1.1
#: As veil itself: bash where there is one.
SHELL = shutil.which("bash") or "/bin/sh"


@dataclass(frozen=True)
class Host:
    """One host: its environment, umask, git settings and the folder in which its workspaces lie."""

    name: str
    environment: Mapping[str, str]
    umask: int
    base: Path


@dataclass(frozen=True)
class Run:
    """What one child did. ``pid`` is its process id."""

    exit: int
    stdout: bytes
    stderr: bytes
    pid: int

    def step(self, command: str, roots: Roots | None = None) -> Step:
        def kept(data: bytes) -> KeptStream:
            data = data if roots is None else roots.hide(data)
            return KeptStream.of(Stream(data, b"", len(data), 0))

        return Step((SHELL, "-c", command), text=command,
                    ending=Ending(exit=self.exit, stdout=kept(self.stdout), stderr=kept(self.stderr)))  # fmt: skip


def child(command: str, cwd: Path, env: Mapping[str, str], umask: int, launcher: tuple[str, ...] = ()) -> Run:
    """The one place where a process is started: everything else here is independent of how."""
    process = subprocess.Popen(
        (*launcher, SHELL, "-c", command),
        cwd=cwd,
        env=dict(env),
        umask=umask,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    return Run(process.returncode, out, err, process.pid)


def fixed_addresses() -> tuple[str, ...]:
    """A launcher that turns address randomisation off, or nothing where that is not allowed."""
    found = shutil.which("setarch")
    if found is None or subprocess.run([found, "-R", "true"], capture_output=True).returncode != 0:
        return ()
    return (found, "-R")


def locales(folder: Path) -> dict[str, str]:
    """Variables under which en_US.UTF-8 exists; builds it into ``folder`` when the host has only its sources."""
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.lower().split()
    if "en_us.utf8" in known or "en_us.utf-8" in known:
        return {}
    if shutil.which("localedef") is not None:
        subprocess.run(["localedef", "-i", "en_US", "-f", "UTF-8", folder / "en_US.UTF-8"], capture_output=True)
        if (folder / "en_US.UTF-8").is_dir():
            return {"LOCPATH": str(folder)}
    raise LookupError("the locale en_US.UTF-8 is not there and cannot be built")


def memory_folder() -> Path:
    """A folder on tmpfs."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", "/dev/shm"], capture_output=True, text=True).stdout.strip()
    if kind != "tmpfs" or not os.access("/dev/shm", os.W_OK):
        raise LookupError("no writable tmpfs")
    return Path("/dev/shm")


def real_environment() -> dict[str, str]:
    """The environment of whoever runs this, with the running Python first on PATH, without traces of a test runner."""
    dropped = ("PYTEST_", "COVERAGE_", "LC_", "LANG", "GIT_", "VEIL_", "NO_COLOR", "PYTHON")
    found = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    found["PATH"] = f"{Path(sys.executable).parent}:{found.get('PATH', '/usr/bin:/bin')}"
    return found


def hosts_of(data: dict[str, Any], folder: Path) -> tuple[list[Host], list[str]]:
    """The hosts that can be set up here, and a line for each thing that could not."""
    found, missing = [], []
    for row in data["hosts"]:
        env = real_environment() | row["environment"]
        base = folder
        try:
            if "en_US.UTF-8" in row["environment"].values():
                env |= locales(folder)
            if row["filesystem"] == "tmpfs":
                base = memory_folder() / folder.name
                base.mkdir(exist_ok=True)
        except LookupError as error:
            missing.append(f"host {row['name']} differs from its description: {error}")
        settings = "".join(f"[{k.split('.')[0]}]\n\t{k.split('.')[1]} = {v}\n" for k, v in row["git"].items())
        config = folder / f"{row['name']}.gitconfig"
        config.write_text(f"[user]\n\tname = {row['environment']['USER']}\n\temail = a@b.invalid\n{settings}")
        env["GIT_CONFIG_GLOBAL"] = str(config)
        found.append(Host(row["name"], env, int(row["umask"], 8), base))
    return found, missing


class Bench:
    """Runs a command on a host, bare or under the profile."""

    def __init__(self, data: dict[str, Any], hosts: list[Host], place: Path | None) -> None:
        self.place = place
        self.prepare = "\n".join(data["prepare"]) + "\n"
        self.hosts = hosts
        self.launcher = fixed_addresses()

    def bare(self, command: str, host: Host) -> Run:
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=host.base))
        try:
            child(self.prepare, folder, host.environment, host.umask)
            return child(command, folder, host.environment, host.umask)
        finally:
            shutil.rmtree(folder)

    def profiled(self, command: str, host: Host) -> tuple[Run, Roots]:
        place = (self.place or host.base) / "profile"
        root, home, tmp = place / "work", place / "home", place / "tmp"
        for folder in (root, home, tmp):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for name, text in DETERMINISTIC.home_files.items():
            (home / name).write_text(text)
        env = DETERMINISTIC.environment(host.environment, str(home), str(tmp))
        umask = DETERMINISTIC.umask if DETERMINISTIC.umask is not None else host.umask
        child(self.prepare, root, env, umask)
        if DETERMINISTIC.file_seconds is not None:
            for path in [*root.rglob("*"), root, place]:
                os.utime(path, (DETERMINISTIC.file_seconds,) * 2)
        run = child(command, root, env, umask, self.launcher)
        return run, Roots.of({"root": str(root), "home": str(home), "tmp": str(tmp)})


@dataclass
class Samples:
    """What was seen of one command."""

    command: str
    bare: list[Step] = field(default_factory=list)
    written: list[Step] = field(default_factory=list)
    stored: list[Step] = field(default_factory=list)
    known: list[dict[str, tuple[str, ...]]] = field(default_factory=list)

    def add(self, bench: Bench, host: Host) -> None:
        """One more run, bare and under the profile."""
        self.bare.append(bench.bare(self.command, host).step(self.command))
        run, roots = bench.profiled(self.command, host)
        self.written.append(run.step(self.command))
        self.stored.append(run.step(self.command, roots))
        self.known.append({"pid": (str(run.pid),)})

    def row(self, name: str) -> dict[str, Any]:
        """One row of the table: at each level, whether all runs were the same."""
        proposal: Proposal = propose(self.stored, Rules(), self.known)
        return {
            "name": name,
            "bare": same(self.bare),
            "profile": same(self.written),
            "stored": same(self.stored),
            "normalised": proposal.needed is not None,
            "needed": proposal.needed,
            "masked": proposal.masked,
            "exits": sorted({step.ending.exit for step in self.stored}),
        }


def measure(bench: Bench, commands: Mapping[str, str], runs: int) -> list[dict[str, Any]]:
    """All commands once, then all again: the runs of one command lie at least a second apart, so that nothing that
    prints the time is the same by luck, and other commands have been at work between them."""
    samples = {name: Samples(command) for name, command in commands.items()}
    for number in range(runs):
        start = time.monotonic()
        for sample in samples.values():
            sample.add(bench, bench.hosts[number % len(bench.hosts)])
        time.sleep(max(0.0, start + LEAST_ROUND - time.monotonic()))
    return [sample.row(name) for name, sample in samples.items()]


def same(steps: list[Step]) -> bool:
    return all(step == steps[0] for step in steps)


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The report, line by line."""
    yield f"{'command':20} bare profile stored normalised  what was needed"
    for row in rows:
        marks = ["yes" if row[level] else "-" for level in ("bare", "profile", "stored", "normalised")]
        needed = "" if not row["needed"] else ", ".join(n + ("*" if n in row["masked"] else "") for n in row["needed"])
        exits = "" if row["exits"] == [0] else f"  (exit {', '.join(map(str, row['exits']))})"
        yield f"{row['name']:20} {marks[0]:4} {marks[1]:7} {marks[2]:6} {marks[3]:10}  {needed}{exits}"
    yield "(* erases: such a step is called weak, not exact)"
    yield ""
    for level in ("bare", "profile", "stored", "normalised"):
        good = sum(row[level] for row in rows)
        goal = f" (goal: at least {GOALS[level]})" if level in GOALS and level != "bare" else ""
        failing = " ".join(row["name"] for row in rows if not row[level])
        yield f"{level}: {good} of {len(rows)}{goal}; not the same: {failing if level != 'bare' else len(rows) - good}"
    yield f"of the normalised, with something erased: {sum(bool(row['masked']) for row in rows)}"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder on disk, and its twin on tmpfs, both gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="veil-determinism-", dir=DETERMINISTIC.place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(Path("/dev/shm") / folder.name, ignore_errors=True)


def main(argv: list[str] | None = None) -> int:
    """Prints the table; exit status 1 when a goal is missed with all commands and at least 20 runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="runs of each command and level (default 20)")
    parser.add_argument("--quick", action="store_true", help="4 runs: once per host")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these commands")
    parser.add_argument("--follow-host", action="store_true", help="profile folders lie on the host's file system")
    parser.add_argument("--json", metavar="FILE", help="also write the rows here")
    options = parser.parse_args(argv)
    runs = 4 if options.quick else options.runs
    data = json.loads(DATA.read_text())
    chosen = {n: c for n, c in data["commands"].items() if not options.only or n in options.only}
    with scratch() as folder:
        hosts, missing = hosts_of(data, folder)
        bench = Bench(data, hosts, None if options.follow_host else folder)
        for line in missing:
            print(line)
        print(f"{len(chosen)} commands, {runs} runs each over {len(hosts)} hosts ({', '.join(h.name for h in hosts)});"
              f" profile {DETERMINISTIC.name} {DETERMINISTIC.version};"
              f" addresses {'fixed' if bench.launcher else 'random: setarch -R is not allowed here'};"
              f" {len(standard().names)} normalisers", flush=True)  # fmt: skip
        rows = measure(bench, chosen, runs)
    print("\n".join(table(rows)))
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    missed = [level for level, goal in GOALS.items() if level != "bare" and sum(row[level] for row in rows) < goal]
    return 1 if missed and runs >= 20 and len(chosen) == len(data["commands"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
