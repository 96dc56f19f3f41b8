"""The benchmark runs, and its four levels mean what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from veil.cassettes.profile import DETERMINISTIC

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "determinism.py"


def test_a_few_commands(tmp_path: Path) -> None:
    rows_file = tmp_path / "rows.json"
    names = ["git_commit_hash", "py_uuid4", "bash_time", "py_random", "umask_perm"]
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--quick", "--only", *names, "--json", rows_file],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(rows_file.read_text())}
    assert rows.keys() == set(names)
    levels = ("bare", "stored", "normalised")
    assert [rows["git_commit_hash"][level] for level in levels] == [False, True, True]
    assert [rows["umask_perm"][level] for level in levels] == [False, True, True]
    assert [rows["py_uuid4"][level] for level in levels] == [False, False, True]
    # few runs on a quiet machine may take the same milliseconds, and then nothing had to be masked
    assert rows["bash_time"]["normalised"] is True
    assert rows["bash_time"]["masked"] in ([], ["durations"])
    assert [rows["py_random"][level] for level in levels] == [False, False, False]
    assert DETERMINISTIC.place is not None
    assert f"profile {DETERMINISTIC.name} {DETERMINISTIC.version}" in done.stdout
