"""``veil doctor``, and that the page of the command line says what the command says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT, veil, veil_json

from veil.host.confine.bubblewrap import programs
from veil.host.probes import probes
from veil.layers.tracing.handling import CALLS


def test_it_tells_where_records_lie(tmp_path: Path, own_state: Path) -> None:
    found = veil_json("doctor", cwd=tmp_path)
    assert (found["project"], found["state"]) == (str(tmp_path), str(own_state))
    assert veil("doctor", cwd=tmp_path).stdout.decode().splitlines()[0].endswith(f"{tmp_path} in {own_state}")


def test_what_is_missing_comes_with_a_remedy(tmp_path: Path) -> None:
    # a machine with Python and nothing else
    found = {row["name"]: row for row in veil_json("doctor", cwd=tmp_path, env={"PATH": str(tmp_path)})["probes"]}
    for name in ("git", "bash", "rsync"):
        assert (found[name]["ok"], found[name]["found"]) == (False, "not installed")
        assert name in found[name]["remedy"]


def planted(tmp_path: Path, name: str, text: str) -> tuple[Path, Path]:
    """A folder with a program of this name, and one to work in, beside it."""
    folder, work = tmp_path / "bin", tmp_path / "work"
    folder.mkdir()
    work.mkdir()
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder, work


def test_a_program_that_is_there_but_fails_is_told_as_missing(tmp_path: Path) -> None:
    folder, work = planted(tmp_path, "git", "echo broken here >&2\nexit 3")
    found = {row["name"]: row for row in veil_json("doctor", cwd=work, env={"PATH": f"{folder}:/bin"})["probes"]}
    assert (found["git"]["ok"], found["git"]["found"]) == (False, "broken here")


@pytest.mark.linux
def test_strace_works_when_a_trace_would_and_only_then(tmp_path: Path) -> None:
    """A strace that is too old for the words of a trace, although it traces with simpler ones."""
    too_old = 'case " $* " in *" --pidns-translation "*) echo unrecognized >&2; exit 1;; esac'
    folder, work = planted(tmp_path, "strace", too_old)
    env = {"PATH": f"{folder}:/usr/bin:/bin"}
    found = {row["name"]: row for row in veil_json("doctor", cwd=work, env=env)["probes"]}["strace"]
    assert (found["ok"], found["found"]) == (False, "strace does not work here: unrecognized")
    code = "import veil, sys; sys.stdout.write(str(veil.run('true', trace=True).trace_unavailable))"
    env["PYTHONPATH"] = str(ROOT)
    run = subprocess.run([sys.executable, "-c", code], cwd=work, env=env, capture_output=True, text=True, timeout=60)
    assert found["found"] in run.stdout, run.stderr


@pytest.mark.linux
@pytest.mark.needs("strace")
def test_a_strace_that_works_tells_its_version(tmp_path: Path) -> None:
    strace = next(probe for probe in probes(tmp_path, CALLS) if probe.name == "strace")
    assert strace.ok
    assert strace.found.startswith("strace")


@pytest.mark.needs("git")
def test_the_version_is_the_real_one(tmp_path: Path) -> None:
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=60).stdout.strip()
    assert {probe.name: probe.found for probe in probes(tmp_path, CALLS)}["git"] == git


@pytest.mark.linux
def test_every_probe_has_its_say_and_leaves_nothing(tmp_path: Path) -> None:
    state = tmp_path / "not" / "there"
    found = list(probes(state, CALLS))
    names = {probe.name for probe in found}
    some = {"pidfd", "user namespaces", "bubblewrap", "landlock without network", "strace"}
    assert some | {"reflink in the state folder"} <= names
    assert all((probe.remedy is None) == probe.ok and probe.found for probe in found)
    assert list(tmp_path.iterdir()) == []
    if not programs():
        assert not next(probe for probe in found if probe.name == "bubblewrap").ok


def test_the_page_has_the_help_that_prints(tmp_path: Path) -> None:
    """Whitespace apart: versions of click break lines at other places."""
    page = re.sub(r"\s+", " ", (ROOT / "docs" / "cli.md").read_text())
    code = "import sys; sys.path.insert(0, 'docs'); import make_cli; print(make_cli.helps())"
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) > 3000
    assert re.sub(r"\s+", " ", done.stdout).strip() in page, "run: python docs/make_cli.py"
