"""What results and replies say at their edges: bounds, secrets beside the streams, cuts, what was not looked at."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import veil

SECRET = "s3cr3t-Value-0815-xyz"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def test_a_signal_that_ends_nothing_leaves_a_run_exited() -> None:
    handle = veil.start("trap 'echo got' USR1; echo ready; until [ -e stop ]; do sleep 0.02; done; exit 0")
    handle.wait_for(pattern="ready")
    handle.kill("USR1")
    handle.wait_for(pattern="got")
    Path("stop").touch()
    result = handle.wait(30)
    assert (result.exit, result.record.status) == (0, "exited")


def test_a_retry_never_starts_beside_what_is_kept() -> None:
    with pytest.raises(veil.BadInput, match="left_running"):
        veil.run("sleep 30 & false", left_running="keep", retries=1)


def test_secrets_are_taken_out_of_paths_errors_and_facts(here: Path) -> None:
    (here / SECRET).mkdir()
    result = veil.run(
        f"touch {SECRET}-new", secrets=[SECRET], cwd=here / SECRET, expect={"file_exists": f"{SECRET}-new"}
    )
    missing = veil.run([f"./{SECRET}"], secrets=[SECRET])
    assert result.assert_ok is True
    assert result.created
    for run in (result, missing):
        kept = veil.detail(run.id, "full").text
        assert SECRET not in kept + repr(run) + json.dumps(run.to_dict())


def test_replies_about_very_many_changes_are_bounded() -> None:
    name = "a-rather-long-name-of-a-folder-" * 3
    code = f"import os; [(os.mkdir(f'{name}{{i}}'), open(f'{name}{{i}}/file', 'w')) for i in range(3000)]"
    result = veil.run(["python3", "-c", code])
    assert len(result.files_changed) == 3000
    shown = result.to_dict()
    assert len(json.dumps(shown)) < 20_000
    assert shown["files_changed_total"] == 3000
    assert sum(row.get("count", 1) for row in shown["files_changed"]) == 3000
    for selector in ("meta", "full"):
        assert len(json.dumps(veil.detail(result.id, selector).to_dict())) < 80_000  # type: ignore[arg-type]


def test_full_logs_are_paged_and_lose_nothing() -> None:
    handle = veil.start("seq 1 60000")
    whole = handle.wait(60).stdout
    assert len(whole) > 200_000
    told, cursor = "", 0
    while True:
        reply = handle.logs(stdout_cursor=cursor, full=True).to_dict()
        assert len(json.dumps(reply)) < 100_000
        if reply["stdout_cursor"] == cursor:
            break
        told, cursor = told + reply["stdout"], reply["stdout_cursor"]
    assert told == whole


@pytest.mark.parametrize("lines", [(1,), (1, 2, 3), "1:2", 5, ()])
def test_lines_that_are_no_pair_are_refused(lines: object) -> None:
    stored = veil.detail(veil.run("seq 9", effects=False).id, "stdout")
    with pytest.raises(veil.BadInput, match=r"^lines: expected"):
        stored.to_dict(lines=lines)  # type: ignore[arg-type]
    assert stored.to_dict(lines=(2, 3))["stdout"]["text"] == "2\n3\n"


def test_advice_counts_what_was_left_behind() -> None:
    both = "2 processes left behind by the command were ended"
    assert (veil.run("sleep 60 & sleep 60 &", effects=False).advice or "").startswith(both)


def test_why_a_secret_is_too_weak_fits_what_was_given() -> None:
    with pytest.raises(veil.BadInput, match="blanks around it not counted, got 'a value of 9 bytes'"):
        veil.run("true", secrets=[" abcdefg "])


def test_a_cut_makes_no_false_character() -> None:
    result = veil.run("for i in $(seq 100); do printf ä; done", max_output=33)
    assert result.stdout_truncated
    assert set(result.stdout) == {"ä"}
    assert "stdout_lossy" not in result.to_dict()
    assert len(result.stdout_bytes) == 33


def test_nothing_changed_is_told_from_nobody_looked() -> None:
    assert "effects" not in veil.run("true").to_dict()
    assert veil.run("true", effects=False).to_dict()["effects"] == "off"


@pytest.mark.parametrize("option", [{"effects": "all"}, {"effects": True}, {"contain": False}, {"trace": True}])
def test_what_the_background_cannot_grant_is_refused_by_name(option: dict[str, object]) -> None:
    with pytest.raises(veil.Refused) as caught:
        veil.start("sleep 30", **option)  # type: ignore[arg-type]
    assert caught.value.code == "background_incompatible"
    assert caught.value.facts["options"] == list(option)
    assert not any("sleep 30" in name for name in os.listdir("."))


def test_the_human_view_speaks_to_humans(here: Path) -> None:
    """What tools are told (a hint in JSON, a pair of before and after) is told to people in words."""
    subprocess.run(["git", "init", "-q"], check=True)
    moved = "git -c user.name=a -c user.email=a@b commit -qm x --allow-empty; seq 100"
    told = subprocess.run(
        [sys.executable, "-m", "veil", "run", moved], capture_output=True, text=True, check=True
    ).stdout
    assert "head: none -> " in told
    assert "sh_detail" not in told
    assert "veil detail cmd1 --selector stdout" in told


@pytest.mark.parametrize("name", ["cwd", "project"])
def test_an_empty_folder_name_is_a_variable_that_was_not_set(name: str) -> None:
    with pytest.raises(veil.BadInput, match=name):
        veil.run("true", **{name: ""})  # type: ignore[arg-type]


def test_what_could_not_start_is_over_at_once() -> None:
    handle = veil.start(["no-such-program-of-ours"])
    assert (handle.pid, handle.status) == (None, "exited")
    assert handle.wait().exit == 127


def test_no_descriptors_left_is_a_refusal_by_name() -> None:
    code = "import resource, veil; resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))\n"
    code += "try: veil.run('true', no_store=True, effects=False)\nexcept veil.Refused as error: print(error.code)"
    code = "import veil; veil.run('true', no_store=True, effects=False)\n" + code
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.stdout == "no_descriptors\n", told.stderr


def test_errors_and_results_pass_through_a_pool_of_processes(here: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(veil.run, "echo far away").result().stdout == "far away\n"
        with pytest.raises(veil.CommandFailed) as failed:
            pool.submit(veil.run, "echo why; exit 3", check=True).result()
        assert (failed.value.result.stdout, failed.value.code, failed.value.facts["exit"]) == (
            "why\n",
            "command_failed",
            3,
        )
        calls: list[tuple[Any, dict[str, Any]]] = [
            (veil.run, {"command": "true", "timeout": math.nan}),
            (veil.run, {"command": "true", "timout": 3}),
            (veil.detail, {"id": "cmd999", "project": here}),
            (veil.start, {"command": "true", "timeout": 3}),
        ]
        for door, said in calls:
            with pytest.raises(veil.VeilError) as near:
                door(**said)
            with pytest.raises(type(near.value)) as there:
                pool.submit(door, **said).result()
            assert there.value.to_dict() == near.value.to_dict()


@pytest.mark.parametrize("selector", ["stdout", "meta", "trace", "full"])
def test_a_page_that_cannot_be_meant_is_refused_of_every_selector(selector: Any) -> None:
    found = veil.detail(veil.run("seq 3").id, selector)
    for page in ({"limit": 0}, {"limit": -1}, {"limit": True}, {"offset": -1}):
        with pytest.raises(veil.BadInput, match=next(iter(page))):
            found.to_dict(**page)
