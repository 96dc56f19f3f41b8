"""What a replayed step costs beside a process, and what recording a suite costs beside running it live.

    python benchmarks/replay.py [rounds]

``replay``: one step through the runner of ``veil_run`` (match, apply, judge an expectation) against
``subprocess.run(["true"])``: one that changes no file, and one that changes a file. Blocks of ten steps and ten
processes alternate, since a session that replays starts no process between its steps; what a step costs when a process
has just emptied the processor's caches is printed as well, and so is a step that makes a new file (which is up to the
disk). ``record``: sessions of pytest over a suite in mode ``record`` and in mode ``live``, alternating. Exits with 1
beyond 0.2 (no file or one file changed, in a row) and 1.3.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from veil.taping import DETERMINISTIC, Header, Player, Recorder, Stage, StageRunner, Tape

MOST_REPLAY, MOST_RECORD = 0.2, 1.3

_SUITE = """
import pytest

@pytest.mark.parametrize("n", range(10))
def test_it(veil_run, expect, n):
    veil_run("mkdir -p src && for i in 1 2 3 4 5 6 7 8; do seq 1 200 > src/$i.txt; done", expect={"exit": 0})
    built = veil_run("cat src/*.txt | sort -n | uniq -c > made && wc -l < made", expect={"file_exists": "made"})
    expect(built).ok().stdout.contains("200")
    veil_run("sed -i s/1/one/ src/3.txt; rm src/4.txt")
    assert veil_run("grep -c one src/3.txt").ok
    veil_run(["python3", "-c", "print('x' * 1000)"])
"""


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def replayed(folder: Path, rounds: int, command: str, block: int) -> tuple[float, float]:
    """Medians in microseconds: a replayed step, a process."""
    header_profile = DETERMINISTIC
    options = {"expect": {"exit": 0}}
    commands = [command.format(number) for number in range(rounds)]

    def ask(runner: StageRunner, command: str) -> None:
        assert runner.run(command, options).assert_ok

    recorder = Recorder(Stage.make(folder / "stage", header_profile, os.environ), folder / "records")
    for command in commands:
        ask(recorder, command)
    header = Header(header_profile.name, header_profile.version)
    tape = Tape(recorder.cassette(header), "bench", header)
    player = Player(Stage.make(folder / "stage", header_profile, os.environ), tape, records=folder / "records")
    steps: list[float] = []
    processes: list[float] = []
    for number, command in enumerate(commands, 1):
        steps.append(_timed(lambda: ask(player, command)))  # noqa: B023 -- called at once
        if number % block == 0:
            processes += [_timed(lambda: subprocess.run(["true"], check=True)) for _ in range(block)]
    return statistics.median(steps) * 1e6, statistics.median(processes) * 1e6


def recorded(folder: Path, rounds: int) -> tuple[float, float]:
    """Medians in seconds: a suite recorded, the same suite live."""
    (folder / "test_it.py").write_text(_SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if "veil" not in subprocess.run([*command, "--help"], capture_output=True, text=True, cwd=folder).stdout:
        command += ["-p", "pytest_veil.plugin"]

    def session(mode: str) -> float:
        shutil.rmtree(folder / "cassettes", ignore_errors=True)
        run = [*command, f"--veil-mode={mode}"]
        return _timed(lambda: subprocess.run(run, cwd=folder, check=True, stdout=subprocess.DEVNULL))

    session("live")
    pairs = [(session("record"), session("live")) for _ in range(rounds)]
    record, live = (statistics.median(column) for column in zip(*pairs, strict=True))
    return record, live


def main(rounds: int) -> int:
    ratios = []
    for what, command in (("no file", "true {}"), ("one file", "echo {} > f"), ("a new file", "echo {0} > f{0}")):
        for block in (10, 1):
            with tempfile.TemporaryDirectory() as made:
                step, alone = replayed(Path(made), 50 * rounds, command, block)
            limited = block > 1 and what != "a new file"
            if limited:
                ratios.append(step / alone)
            print(
                f"replay, {what}, {'in a row' if block > 1 else 'between processes'}: {step:.0f} us a step, "
                f"{alone:.0f} us a process: {step / alone:.2f}" + (f" (limit {MOST_REPLAY})" if limited else "")
            )
    with tempfile.TemporaryDirectory() as made:
        record, live = recorded(Path(made), rounds)
    print(f"record: {record:.2f} s, live {live:.2f} s: {record / live:.2f} (limit {MOST_RECORD})")
    return int(max(ratios) > MOST_REPLAY or record / live > MOST_RECORD)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
