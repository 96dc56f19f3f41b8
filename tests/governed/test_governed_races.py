"""What was judged is what runs, whoever swaps what in between."""

# over 300 lines because: it is one subject: a test for each thing that can be swapped between judging and running

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bounds import allow, bounded, script

from veil.governed import ApprovalRequired, Audit, Boundary, Denied, EffectUnknown, Policy, Question, Rule
from veil.governed.dispatch import Recheck, RecheckLayer
from veil.governed.executables import Executables
from veil.host import pump
from veil.host.orders import Controls
from veil.model.command import Command, Request
from veil.model.errors import VeilError
from veil.model.plan import Launch, Plan

NEEDS_GCC = pytest.mark.needs("gcc")


def while_asked(act: Callable[[], object]) -> Callable[[Question], bool]:
    """An approver in whose time something happens: between judgement and dispatch."""

    def approve(question: Question) -> bool:
        act()
        return True

    return approve


def marking(folder: Path, name: str, mark: Path) -> Path:
    """A compiled program that leaves a file."""
    source = folder / f"{name}.c"
    source.write_text(
        f'#include <stdio.h>\nint main(void) {{ FILE *f = fopen("{mark}", "a"); fputs("x", f); return fclose(f); }}\n'
    )
    subprocess.run(["gcc", "-o", folder / name, source], check=True)
    return folder / name


@pytest.mark.parametrize(
    "how", ["overwritten", "renamed over", "link retargeted", "made a link", "gone", "not executable"]
)
def test_a_program_that_is_swapped_before_it_starts_does_not_start(ws: Path, how: str) -> None:
    evil_ran = ws.parent / "evil-ran"
    evil = script(ws / "evil", f": > {evil_ran}\n")
    target = script(ws / "target", "echo good\n")
    tool = ws / "tool"
    if how == "link retargeted":
        tool.symlink_to("target")
    else:
        shutil.copy2(target, tool)

    def swap() -> None:
        if how == "overwritten":
            tool.write_text(evil.read_text())
        elif how == "renamed over":
            os.replace(shutil.copy2(evil, ws / "new"), tool)
        elif how in ("link retargeted", "made a link"):
            tool.unlink()
            tool.symlink_to("evil")
        elif how == "gone":
            tool.unlink()
        else:
            tool.chmod(0o644)

    at = bounded(ws, approver=while_asked(swap))
    with pytest.raises(Denied) as error:
        at.run(["./tool"])
    assert error.value.code == "executable_changed"
    assert error.value.facts["effect"] == "none"
    assert not evil_ran.exists()
    assert list(at.audit.lines())[-1]["effect"] == "none"


@pytest.mark.parametrize("how", ["link", "folder link", "cwd link", "workspace"])
def test_a_path_that_is_swapped_before_it_starts_is_not_opened(ws: Path, how: str) -> None:
    outside = ws.parent / "outside"
    (ws / "d").mkdir()
    (ws / "d" / "secret").write_text("own\n")
    (ws / "sub" / "in").write_text("own\n")

    def swap() -> None:
        if how == "link":
            (ws / "in").unlink()
            (ws / "in").symlink_to(outside / "secret")
        elif how == "folder link":
            shutil.rmtree(ws / "d")
            (ws / "d").symlink_to(outside)
        elif how == "cwd link":
            (ws / "sub").rename(ws / "sub2")
            (ws / "sub").symlink_to(outside)
        else:
            ws.rename(ws.parent / "ws2")
            ws.symlink_to(outside)

    at = bounded(ws, approver=while_asked(swap))
    word = {"link": "in", "folder link": "d/secret", "cwd link": "in", "workspace": "in"}[how]
    if how == "cwd link":
        at.chdir("sub")
    with pytest.raises(Denied) as error:
        at.run(["cat", word])
    assert error.value.code == "path_changed"
    assert error.value.facts["effect"] == "none"


def test_the_folder_that_was_looked_at_is_where_it_runs(ws: Path) -> None:
    at = bounded(ws, allow("pwd"))
    at.chdir("sub")
    assert at.run(["pwd", "-P"]).stdout == f"{ws}/sub\n"


@NEEDS_GCC
@pytest.mark.linux
@pytest.mark.parametrize("contain", [False, True])
def test_a_program_runs_by_the_descriptor_that_was_hashed(ws: Path, contain: bool) -> None:
    """After the very last look the name leads to another program; the judged one runs."""
    good, evil = ws.parent / "good", ws.parent / "evil"
    tool, other = marking(ws, "tool", good), marking(ws, "other", evil)
    executables = Executables(["/usr/bin"], str(ws))
    program = executables.find("./tool", str(ws))
    folder = os.open(ws, os.O_RDONLY | os.O_DIRECTORY)
    wish = Recheck(program, executables, lambda: None, str(ws), folder)
    command = Command((str(tool),), str(ws))
    launch = Launch((str(tool),), str(ws), dict(os.environ), contain=contain)
    entered = RecheckLayer().enter(wish, launch, Plan(Request(command)))
    bound = next(entered)
    os.replace(other, tool)
    outcome = pump.run(bound, Controls())
    with pytest.raises(StopIteration):
        entered.send(outcome)
    os.close(folder)
    assert (outcome.exit, wish.watched.held, wish.watched.changed) == (0, True, False)
    assert good.read_text() == "x"
    assert not evil.exists()
    with pytest.raises(Denied) as error:
        next(RecheckLayer().enter(wish, launch, Plan(Request(command))))
    assert error.value.code == "executable_changed"


@NEEDS_GCC
@pytest.mark.linux
def test_compiled_programs_swapped_all_the_time(ws: Path) -> None:
    """A thread swaps file and link as fast as it can; an approved hash is what runs, or nothing does."""
    good, evil = ws.parent / "good", ws.parent / "evil"
    one, two = marking(ws, "one", good), marking(ws, "two", evil)
    tool, link = ws / "tool", ws / "link"
    shutil.copy2(one, tool)
    link.symlink_to("one")
    digest = bounded(ws, Policy("always_allow")).decide(["./one"]).seen[0].program.digest
    rules = (Rule("this file", "allow", executable=digest),)
    stop = threading.Event()

    def swap() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            source = two if turn % 2 else one
            os.replace(shutil.copy2(source, ws / "new"), tool)
            (ws / "newlink").symlink_to(source.name)
            os.replace(ws / "newlink", link)
            time.sleep(0.0005 * (turn % 7))

    thread = threading.Thread(target=swap)
    thread.start()
    said: dict[str, int] = {}
    try:
        at = bounded(ws, rules)
        deadline = time.monotonic() + 40
        for turn in range(150):
            try:
                at.run([("./tool", "./link")[turn % 2]])
                code = "ran"
            except VeilError as error:
                code = error.code
            said[code] = said.get(code, 0) + 1
            if time.monotonic() > deadline:
                break
    finally:
        stop.set()
        thread.join()
    assert not evil.exists(), said
    assert len(good.read_text() if good.exists() else "") == said.get("ran", 0)
    assert set(said) <= {"ran", "executable_changed", "approval_required", "executable_refused"}
    assert len(said) >= 2, "the swapping was seen"


def test_a_script_that_is_swapped_while_it_starts_is_told(ws: Path) -> None:
    """The kernel hands a script to its interpreter by name: that cannot be bound, and what it may have done is said."""
    at = bounded(ws, allow("./tool"))
    tool = script(ws / "tool", f"cp {ws}/evil {ws}/new && mv {ws}/new {ws}/tool; echo good\n")
    script(ws / "evil", "echo evil\n")
    before = tool.read_text()
    with pytest.raises(EffectUnknown) as error:
        at.run(["./tool"])
    assert error.value.code == "executable_changed"
    assert tool.read_text() != before
    assert at.completion(error.value.facts["id"])["effect"] == "unknown"


def test_what_a_launcher_starts_is_looked_at_again_too(ws: Path) -> None:
    evil_ran = ws.parent / "evil-ran"
    folder = ws.parent / "bin"
    inner = script(folder / "inner", "echo good\n")
    at = bounded(
        ws,
        Policy("allowlist", (Rule("ask", "ask", prefix=("inner",)),)),
        path=[str(folder), "/usr/bin", "/bin"],
        approver=while_asked(lambda: script(inner, f": > {evil_ran}\n")),
    )
    with pytest.raises(Denied) as error:
        at.run(["timeout", "9", "inner"])
    assert error.value.code == "executable_changed"
    assert not evil_ran.exists()


def test_a_new_program_earlier_in_path_is_another_program(ws: Path) -> None:
    first, second = ws.parent / "first", ws.parent / "second"
    first.mkdir()
    script(second / "tool", "echo good\n")
    evil_ran = ws.parent / "evil-ran"
    path = [str(first), str(second), "/usr/bin", "/bin"]
    at = bounded(ws, path=path, approver=while_asked(lambda: script(first / "tool", f": > {evil_ran}\n")))
    with pytest.raises(Denied) as error:
        at.run(["tool"])
    assert error.value.code == "executable_changed"
    assert not evil_ran.exists()


def test_hashes_are_kept_while_a_file_stays_and_no_longer(ws: Path) -> None:
    tool = script(ws / "tool", "echo one\n")
    found = Executables(["/usr/bin"], str(ws))
    first = found.find("./tool", str(ws))
    assert found.find("./tool", str(ws)) is first
    seen = tool.stat()
    tool.write_text("#!/bin/sh\necho two\n")
    os.utime(tool, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    second = found.find("./tool", str(ws))
    assert second.digest != first.digest, "size, mtime and inode are as before; the ctime is not"


def test_confirmed_by_the_process_itself(ws: Path) -> None:
    at = Boundary(ws, Policy("allowlist", allow("sleep")), audit=Audit(), contain=False, effects=False)
    result = at.run(["sleep", "3"])
    if Path("/proc/self/exe").exists():
        assert at.completion(result.id)["confirmed"] is True


def test_a_script_that_an_interpreter_is_given_is_bound_to_its_approval(ws: Path) -> None:
    (ws / "build.sh").write_text("echo good\n")
    at = bounded(ws)
    for argv in (["sh", "build.sh"], ["timeout", "60", "sh", "./build.sh"], ["sh", "-c", "sh build.sh"]):
        (ws / "build.sh").write_text("echo good\n")
        with pytest.raises(ApprovalRequired) as error:
            at.run(argv)
        at.approve(error.value.facts["approval"])
        (ws / "build.sh").write_text("echo evil\n")
        with pytest.raises(ApprovalRequired):
            at.run(argv)
        (ws / "build.sh").write_text("echo good\n")
        assert at.run(argv).stdout == "good\n", "the content that was approved"
    request = next(line for line in at.audit.lines() if line["kind"] == "request")
    (script_line,) = request["scripts"]
    assert script_line["path"].endswith("build.sh")
    assert script_line["digest"].startswith("sha256:")


@pytest.mark.parametrize("how", ["written", "replaced", "link", "folder"])
def test_a_script_that_is_swapped_while_somebody_is_asked_does_not_start(ws: Path, how: str) -> None:
    evil_ran = ws.parent / "evil-ran"
    (ws / "sub" / "build.sh").write_text("echo good\n")
    (ws / "evil").mkdir()
    (ws / "evil" / "build.sh").write_text(f": > {evil_ran}\n")

    def swap() -> None:
        name = ws / "sub" / "build.sh"
        if how == "written":
            name.write_text(f": > {evil_ran}\n")
        elif how == "replaced":
            (ws / "evil" / "build.sh").rename(name)
        elif how == "link":
            name.unlink()
            name.symlink_to(ws / "evil" / "build.sh")
        else:
            (ws / "sub").rename(ws / "old")
            (ws / "sub").symlink_to(ws / "evil")

    at = bounded(ws, approver=while_asked(swap))
    with pytest.raises(Denied) as error:
        at.run(["sh", "sub/build.sh"])
    assert error.value.code == "executable_changed"
    assert not evil_ran.exists()
    assert at.completion(error.value.facts["id"])["effect"] == "none"


def test_a_script_that_changes_while_it_runs_leaves_an_unknown_effect(ws: Path) -> None:
    (ws / "build.sh").write_text("echo more >> build.sh\necho good\n")
    at = bounded(ws, allow("sh"), approver=lambda question: True)
    with pytest.raises(EffectUnknown) as error:
        at.run(["sh", "build.sh"])
    assert error.value.code == "executable_changed"
    assert at.completion(error.value.facts["id"])["effect"] == "unknown"


def test_a_fifo_in_the_place_of_a_script_keeps_nobody_waiting(ws: Path) -> None:
    (ws / "build.sh").write_text("echo good\n")

    def swap() -> None:
        (ws / "build.sh").unlink()
        os.mkfifo(ws / "build.sh")

    at = bounded(ws, approver=while_asked(swap))
    with pytest.raises(Denied) as error:
        at.run(["sh", "build.sh"])
    assert error.value.code == "executable_changed"


def test_files_that_an_interpreter_only_works_on_may_change(ws: Path) -> None:
    (ws / "work.py").write_text("open('data', 'a').write('x')\n")
    (ws / "data").write_text("1\n")
    at = bounded(ws, approver=lambda question: True, path=[str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    assert at.run([Path(sys.executable).name, "work.py", "data"]).returncode == 0
    assert (ws / "data").read_text() == "1\nx"
