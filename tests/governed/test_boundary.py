"""The tool's contract: inputs, results, the several bounds, and what each failure says."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from bounds import allow, bounded, kinds, script

from veil.governed import (
    Audit,
    Boundary,
    Bounds,
    Budget,
    Denied,
    EffectUnknown,
    Policy,
    run_shell_command,
    schema,
)
from veil.model.errors import BadInput, Refused

FREE = Policy("always_allow", judgements={"interpreters": "allow"})
PYTHON = sys.executable


@pytest.fixture
def py(ws: Path) -> list[str]:
    """How these tests start Python: by its name in a PATH that holds it."""
    return [Path(PYTHON).name, "-c"]


def free(ws: Path, **more: object) -> Boundary:
    return bounded(ws, FREE, path=[str(Path(PYTHON).parent), "/usr/bin", "/bin"], **more)


# -- inputs


@pytest.mark.parametrize(
    "argv",
    [
        [],
        (),
        "ls -l",
        b"ls",
        None,
        3,
        [""],
        ["  "],
        ["\t"],
        ["ls", 3],
        ["ls", None],
        ["a", "\0"],
        ["\0"],
        [b"ls"],
        ["\ud800"],
    ],
)
def test_what_is_no_argv(ws: Path, argv: object) -> None:
    at = bounded(ws, FREE)
    with pytest.raises(BadInput, match="argv"):
        at.run(argv)  # type: ignore[arg-type]
    (line,) = at.audit.lines()
    assert (line["kind"], line["decision"], line["code"], line["effect"]) == ("request", "deny", "bad_input", "none")


@pytest.mark.parametrize("timeout", [0, -1, math.inf, math.nan, True, "5", 601, 10**400])
def test_seconds_that_cannot_be(ws: Path, timeout: object) -> None:
    with pytest.raises(BadInput, match="timeout_s"):
        bounded(ws, FREE).run(["ls"], timeout_s=timeout)  # type: ignore[arg-type]


@pytest.mark.parametrize("chars", [-1, 1.5, True, "5", 10**8])
def test_characters_that_cannot_be(ws: Path, chars: object) -> None:
    at = bounded(ws, FREE)
    for name in ("max_stdout_chars", "max_stderr_chars"):
        with pytest.raises(BadInput, match=name):
            at.run(["ls"], **{name: chars})


def test_there_is_no_folder_environment_or_input_of_a_call(ws: Path) -> None:
    at = bounded(ws, FREE)
    for name in ("cwd", "env", "stdin", "shell", "timeout", "pty"):
        with pytest.raises(TypeError):
            at.run(["ls"], **{name: None})  # type: ignore[arg-type]
        said = run_shell_command(at, {"argv": ["ls"], name: None})
        assert (said["ok"], said["error"]) == (False, "bad_input")
    with pytest.raises(BadInput, match="an option of a boundary"):
        bounded(ws, FREE, stdin="x")


def test_words_reach_the_program_as_they_are(ws: Path, py: list[str]) -> None:
    words = ["a b", "", "$x", "`id`", "$(id)", ";", "|", "*", "\n", "\\", "'", '"', "é", "\udcff", "-", "--", "a;b&&c"]
    result = free(ws).run([*py, "import sys; print(sys.argv[1:])", *words])
    assert result.stdout == repr(words) + "\n"
    assert result.argv == (*py, "import sys; print(sys.argv[1:])", *words)


def test_nobody_is_at_the_other_end_of_the_input(ws: Path, py: list[str]) -> None:
    program = "import sys, os; print(repr(sys.stdin.read()), os.isatty(0), os.isatty(1), os.isatty(2))"
    assert free(ws).run([*py, program]).stdout == "'' False False False\n"


# -- results


_ON_A_TERMINAL = """
import fcntl, os, sys, termios
from veil.governed import Audit, Boundary, Policy
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.close(os.open("/dev/tty", os.O_RDWR))
options = {"effects": False, "no_store": True, "contain": sys.argv[2] == "1"}
at = Boundary(sys.argv[1], Policy("always_allow"), audit=Audit(), **options)
print(ascii(at.run(["sh", "./ask"]).stdout))
"""
_ASK = """
for n in 0 1 2; do test -t $n && echo terminal $n; done
(: > /dev/tty) 2>&- && echo /dev/tty
cat
echo done
"""


@pytest.mark.parametrize("contain", ["0", "1"])
def test_a_command_has_no_terminal_where_the_host_has_one(ws: Path, contain: str) -> None:
    (ws / "ask").write_text(_ASK)
    main, other = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _ON_A_TERMINAL, str(ws), contain],
        stdin=other,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(other)
    try:
        shown = process.communicate(timeout=60)[0]
    finally:
        process.kill()
        os.close(main)
    assert shown == b"'done\\n'\n"


def test_a_command_that_fails_is_a_completed_dispatch(ws: Path, py: list[str]) -> None:
    at = free(ws)
    result = at.run([*py, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"])
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert (result.stdout_truncated, result.stderr_truncated) == (False, False)
    assert result.effect == "unknown"
    killed = at.run([*py, "import os; os.kill(os.getpid(), 9)"])
    assert killed.returncode == 137


def test_bytes_that_are_no_text_are_replaced_and_that_is_evidence(ws: Path, py: list[str]) -> None:
    at = free(ws)
    result = at.run([*py, "import sys; sys.stdout.buffer.write(b'a\\xffb')"])
    assert result.stdout == "a\ufffdb"
    assert "bytes that are no UTF-8 were replaced" in at.completion(result.id)["open"]


def test_two_caps_that_only_narrow_and_two_flags(ws: Path, py: list[str]) -> None:
    at = free(ws, bounds=Bounds(max_chars=100))
    argv = [*py, "import sys; print('é' * 99); print('x' * 300, file=sys.stderr)"]
    result = at.run(argv)
    assert (len(result.stdout), result.stdout_truncated) == (100, False)
    assert (result.stderr, result.stderr_truncated) == ("x" * 100, True)
    assert dict(result.cut) == {"stderr": "boundary"}
    less = at.run(argv, max_stdout_chars=3, max_stderr_chars=0)
    assert (less.stdout, less.stdout_truncated, less.stderr, less.stderr_truncated) == ("ééé", True, "", True)
    assert dict(less.cut) == {"stdout": "call", "stderr": "call"}
    more = at.run(argv, max_stderr_chars=1000)
    assert (len(more.stderr), dict(more.cut)) == (100, {"stderr": "boundary"}), "a cap of a call gives nothing back"


def test_more_bytes_than_the_process_layer_takes_end_the_command(ws: Path, py: list[str]) -> None:
    at = free(ws, bounds=Bounds(max_bytes=10_000))
    program = "import sys, time\nwhile True: sys.stdout.write('x' * 1000); sys.stdout.flush()"
    with pytest.raises(EffectUnknown) as error:
        at.run([*py, program], timeout_s=60)
    assert error.value.code == "output_limit"
    assert error.value.facts["effect"] == "unknown"
    assert "before any retry" in str(error.value)
    assert "x" * 100 not in str(error.value.to_dict())
    assert at.completion(error.value.facts["id"])["effect"] == "unknown"
    quick = [*py, "print('x' * 20000)"]
    with pytest.raises(EffectUnknown, match="10000 bytes"):
        at.run(quick)


def test_a_result_too_large_to_persist_is_left_out_with_evidence(ws: Path, py: list[str]) -> None:
    at = free(ws, bounds=Bounds(max_persisted=2_000))
    with pytest.raises(EffectUnknown) as error:
        at.run([*py, "open('made', 'w').close(); print('x' * 5000)"])
    assert error.value.code == "result_omitted"
    assert (ws / "made").exists()
    evidence = at.completion(error.value.facts["id"])
    assert (evidence["ended"], evidence["effect"], evidence["returncode"]) == ("result_omitted", "unknown", 0)
    assert at.run([*py, "print('x' * 500)"]).returncode == 0


def test_the_four_bounds_are_told_apart(ws: Path, py: list[str]) -> None:
    at = free(ws, bounds=Bounds(max_bytes=3_000, max_persisted=2_500, max_chars=2_400))
    said = {}
    for size, cap in ((3_500, None), (2_450, None), (2_900, 100), (1_000, 100)):
        try:
            result = at.run([*py, f"print('x' * {size - 1})"], max_stdout_chars=cap)
            said[size] = dict(result.cut).get("stdout", "whole")
        except EffectUnknown as error:
            said[size] = error.code
    assert said == {3_500: "output_limit", 2_450: "result_omitted", 2_900: "call", 1_000: "call"}


def test_at_the_time_limit_the_effect_is_unknown(ws: Path, py: list[str]) -> None:
    at = free(ws)
    with pytest.raises(EffectUnknown) as error:
        at.run([*py, "import time; open('begun', 'w').close(); time.sleep(600)"], timeout_s=8)
    assert error.value.code == "timed_out"
    assert (ws / "begun").exists()
    evidence = at.completion(error.value.facts["id"])
    assert (evidence["effect"], evidence["ended"]) == ("unknown", "timed_out")
    assert evidence["used"]["wall"] >= 8
    at.verified(error.value.facts["id"], "begun is there, and empty", by="test")
    assert at.completion(error.value.facts["id"])["effect"] == "verified"


def test_a_cancelled_command_has_an_unknown_effect(ws: Path, py: list[str]) -> None:
    at = free(ws)
    errors: list[EffectUnknown] = []

    def work() -> None:
        try:
            at.run([*py, "import time; open('begun', 'w').close(); time.sleep(600)"])
        except EffectUnknown as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 60
    while not (ws / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert at.cancel() == 1
    thread.join(60)
    assert [error.code for error in errors] == ["cancelled"]
    assert list(at.audit.lines())[-1]["effect"] == "unknown"


def test_a_program_that_cannot_start_says_so(ws: Path) -> None:
    (ws / "broken").write_bytes(b"\x7fELF no program")
    (ws / "broken").chmod(0o755)
    with pytest.raises(EffectUnknown) as error:
        bounded(ws, FREE).run(["./broken"])
    assert error.value.code == "not_started"


@pytest.mark.parametrize("word", ["nosuch", "./in", "sub", "./sub", "./nothing", "/etc/hostname", "/opt/x", "sub/"])
def test_what_is_no_program_is_refused_before_anything(ws: Path, word: str) -> None:
    at = bounded(ws, FREE)
    with pytest.raises(Denied) as error:
        at.run([word])
    assert error.value.code == "executable_refused"
    assert kinds(at) == ["request"]


def test_a_program_outside_path_and_workspace_is_refused(ws: Path) -> None:
    tool = script(ws.parent / "elsewhere" / "tool", "echo x\n")
    (ws / "link").symlink_to(tool)
    at = bounded(ws, Policy("blocklist"))
    with pytest.raises(Denied, match="neither in the safe PATH nor in the workspace"):
        at.run([str(tool)])


# -- the working directory


def test_the_folder_is_chosen_inside_the_workspace(ws: Path) -> None:
    (ws / "out").symlink_to("..")
    at = bounded(ws, allow("pwd"))
    assert at.cwd == str(ws)
    assert at.chdir("sub") == str(ws / "sub")
    assert at.run(["pwd"]).stdout == f"{ws}/sub\n"
    for folder in ("../..", "../out", "/", "/etc"):
        with pytest.raises(Denied) as error:
            at.chdir(folder)
        assert error.value.code == "outside_workspace"
    for folder in ("nothing", "../in", "", "a\0b"):
        with pytest.raises(BadInput):
            at.chdir(folder)
    assert at.cwd == str(ws / "sub")
    assert at.chdir("..") == str(ws)


# -- the tool


def test_the_tool_gives_back_the_fields_of_the_reference(ws: Path) -> None:
    at = bounded(ws, allow("cat"))
    said = run_shell_command(at, {"argv": ["cat", "in", "nothing"], "timeout_s": 9, "max_stdout_chars": 3})
    assert said["ok"] is True
    assert said["argv"] == ["cat", "in", "nothing"]
    assert (said["returncode"], said["stdout"], said["stdout_truncated"]) == (1, "ins", True)
    assert "nothing" in said["stderr"]
    assert said["stderr_truncated"] is False
    denied = run_shell_command(at, {"argv": ["cat", "/etc/passwd"]})
    assert (denied["ok"], denied["error"]) == (False, "outside_workspace")
    assert "Stop here" in denied["message"]
    assert run_shell_command(at, {})["error"] == "bad_input"
    assert set(schema(at)["properties"]) == {"argv", "timeout_s", "max_stdout_chars", "max_stderr_chars"}
    assert schema(at)["additionalProperties"] is False


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
