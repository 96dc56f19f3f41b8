"""The tool beside the rest of veil: budgets, records, secrets, sandboxes, an audit, and others at the same time."""

from __future__ import annotations

import math
import os
import subprocess
import threading
from pathlib import Path

import pytest
from bounds import PYTHON, allow, bounded, free, kinds, py, script

from veil.governed import Audit, Budget, Denied, EffectUnknown
from veil.model.errors import BadInput, Refused

__all__ = ["py"]


# -- budgets


def test_a_budget_of_dispatches_counts_failures_too(ws: Path) -> None:
    at = bounded(ws, allow("cat"), budget=Budget(dispatches=2))
    assert at.run(["cat", "nothing"]).returncode == 1
    assert at.run(["cat", "in"]).returncode == 0
    with pytest.raises(Denied) as error:
        at.run(["cat", "in"])
    assert error.value.code == "budget_spent"
    assert at.spent.dispatches == 2
    assert kinds(at)[-1] == "request"


def test_seconds_of_a_budget_end_a_command(ws: Path, py: list[str]) -> None:
    at = free(ws, budget=Budget(wall=3.0))
    with pytest.raises(EffectUnknown) as error:
        at.run([*py, "import time; time.sleep(600)"], timeout_s=60)
    assert error.value.code == "budget_spent"
    assert at.spent.wall >= 3.0
    with pytest.raises(Denied) as refused:
        at.run([*py, "1"])
    assert refused.value.code == "budget_spent"


@pytest.mark.linux
def test_processor_time_of_a_budget_ends_a_command(ws: Path, py: list[str]) -> None:
    at = free(ws, budget=Budget(cpu=1.0))
    with pytest.raises(EffectUnknown) as error:
        at.run([*py, "while True: pass"], timeout_s=120)
    assert error.value.code == "budget_spent"
    assert at.spent.cpu >= 1.0
    with pytest.raises(Denied):
        at.run([*py, "1"])


@pytest.mark.linux
def test_memory_of_a_budget_is_a_limit_and_is_charged(ws: Path, py: list[str]) -> None:
    at = free(ws, budget=Budget(memory=200_000_000))
    result = at.run([*py, "x = bytearray(400_000_000); print(len(x))"])
    assert result.returncode == 1
    assert "MemoryError" in result.stderr
    assert at.run([*py, "x = bytearray(60_000_000); print(len(x))"]).returncode == 0
    small = free(ws, budget=Budget(memory=1_000))
    small.run(["ls"])
    if small.spent.memory:  # what is below this process's own peak is not known
        with pytest.raises(Denied):
            small.run(["ls"])


@pytest.mark.parametrize(
    "budget", [{"wall": -1}, {"cpu": math.nan}, {"dispatches": 1.5}, {"memory": True}, {"wall": "x"}]
)
def test_a_budget_that_cannot_be(budget: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="budget"):
        Budget(**budget)  # type: ignore[arg-type]


# -- composing with the rest of veil


def test_records_are_kept_as_of_every_run(ws: Path) -> None:
    import veil

    at = bounded(ws, allow("cat"), effects=True, project=str(ws))
    result = at.run(["cat", "in"])
    kept = veil.detail(result.record, project=str(ws)).result
    assert kept.argv == ("cat", "in")
    assert kept.stdout == "inside\n"
    assert kept.files_changed == []


def test_secrets_are_redacted_when_asked(ws: Path, py: list[str]) -> None:
    at = free(ws, secrets=["hunter2hunter2"])
    assert "hunter2" not in at.run([*py, "print('hunter2' * 2)"]).stdout


@pytest.mark.needs("bubblewrap")
def test_a_sandbox_goes_around_it(ws: Path, py: list[str]) -> None:
    at = free(ws, sandbox={"network": False})
    outside = ws.parent / "outside" / "made"
    # what a program opens by itself is no word of the argv: only the sandbox can hold it
    (ws / "x.py").write_text(f"open('made', 'w').close(); open({str(outside)!r}, 'w').close()")
    result = at.run([py[0], "x.py"])
    assert result.returncode == 1
    assert (ws / "made").exists()
    assert not outside.exists()


def test_a_wish_that_cannot_be_granted_stops_the_run(ws: Path) -> None:
    at = bounded(ws, allow("ls"), sandbox={"backend": "no-such-backend"})
    with pytest.raises((Refused, BadInput)):
        at.run(["ls"])
    end = list(at.audit.lines())[-1]
    assert (end["kind"], end["effect"]) == ("end", "none")


def test_an_audit_that_cannot_be_written_stops_everything(ws: Path) -> None:
    marker = ws / "ran"
    script(ws / "tool", f": > {marker}\n")
    at = bounded(ws, allow("./tool"), audit=Audit(ws.parent / "audit"))
    at.run(["./tool"])
    marker.unlink()
    for damage in ("", "damaged\n"):
        (ws.parent / "audit").write_text(damage)
        with pytest.raises(Refused) as error:
            at.run(["./tool"])
        assert error.value.code == "audit_unavailable"
    assert not marker.exists()


def test_a_supervised_command_leaves_nobody(ws: Path, py: list[str]) -> None:
    at = free(ws, contain=True)
    program = "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
    pid = int(at.run([*py, program]).stdout)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_it_is_imported_by_its_first_use() -> None:
    code = (
        "import sys, veil; before = 'veil.governed' in sys.modules; boundary = veil.governed.Boundary;"
        "print(before, boundary.__name__, hasattr(veil, 'nothing'))"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([PYTHON, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout == "False Boundary False\n", done.stderr


def test_commands_at_the_same_time_share_the_seconds_of_a_budget(ws: Path) -> None:
    at = bounded(ws, allow("sleep"), budget=Budget(wall=2.0))
    ended: list[str] = []

    def work() -> None:
        try:
            at.run(["sleep", "60"])
        except (Denied, EffectUnknown) as error:
            ended.append(error.code)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == ["budget_spent"] * 6
    assert at.spent.dispatches == 1, "the one that runs has all that is left"
    assert at.spent.wall < 2 * 2.0 + 60
    assert kinds(at).count("dispatch") == 1


def test_what_was_set_aside_and_not_used_is_there_for_the_next(ws: Path) -> None:
    at = bounded(ws, allow("cat"), budget=Budget(wall=60.0))
    for _ in range(3):
        assert at.run(["cat", "in"], timeout_s=59).returncode == 0
    assert at.spent.wall < 60
