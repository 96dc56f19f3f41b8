"""What a reader of the reference tries first, and what somebody tries who wants to get around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bounds import allow, bounded, kinds, script

from veil.executors.base import Running
from veil.governed import Denied, EffectUnknown, Policy, Scripted, run_shell_command
from veil.governed.errors import ApprovalRequired
from veil.host.orders import Controls
from veil.model.errors import VeilError
from veil.model.plan import Work
from veil.model.record import Record
from veil.policy.labels import carried
from veil.runner import Asked, Runner


@pytest.mark.parametrize("arguments", [{"argv": ["cat", "in"], "cwd": "/"}, {"env": {}}, [], None, "cat in"])
def test_a_tool_call_that_means_nothing_is_answered_and_leaves_its_line(ws: Path, arguments: Any) -> None:
    at = bounded(ws, allow("cat"))
    answer = run_shell_command(at, arguments)
    assert (answer["ok"], answer["error"]) == (False, "bad_input")
    (line,) = at.audit.lines()
    assert (line["kind"], line["decision"], line["code"], line["effect"]) == ("request", "deny", "bad_input", "none")
    assert line["id"] == answer["facts"]["id"]
    assert at.completion(line["id"])["open"] == ["nothing was run"]


def test_a_request_that_waits_for_an_approval_has_done_nothing(ws: Path) -> None:
    at = bounded(ws)
    with pytest.raises(ApprovalRequired) as error:
        at.run(["cat", "in"])
    told = at.completion(error.value.facts["id"])
    assert (told["effect"], told["open"]) == ("none", ["nothing was run"])


@pytest.mark.parametrize("argv", [["env"], ["timeout", "5"], ["nohup"]])
def test_a_denied_launcher_with_nothing_to_start_is_denied_for_good(ws: Path, argv: list[str]) -> None:
    at = bounded(ws, allow("cat"), approver=Scripted([False, True]))
    for code in ("denied_by_approver", "denied_before"):
        with pytest.raises(Denied) as error:
            at.run(argv)
        assert error.value.code == code
    # what others are started by was not meant
    assert at.run(["env", "cat", "in"]).returncode == 0


class _Breaks(Runner):
    """Runs everything, and then cannot keep what came of it."""

    def perform(self, asked: Asked, controls: Controls) -> Record:
        super().perform(asked, controls)
        raise OSError("no space left")


def test_a_provider_that_fails_after_the_start_leaves_an_unknown_effect(ws: Path) -> None:
    at = bounded(ws, allow("touch"), runner=_Breaks())
    with pytest.raises(EffectUnknown, match="before any retry") as error:
        at.run(["touch", "made"])
    assert (error.value.code, isinstance(error.value.__cause__, OSError)) == ("provider_failed", True)
    assert (ws / "made").exists()
    assert kinds(at) == ["request", "dispatch", "end"]
    assert at.completion(error.value.facts["id"])["effect"] == "unknown"


@pytest.mark.parametrize("pattern", ["*.pem", "**/*.pem", "d*/k.pem", "deep/k.pem", "[d]eep/*"])
def test_a_folder_carries_what_a_pattern_finds_in_it(ws: Path, pattern: str) -> None:
    (ws / "deep").mkdir()
    (ws / "deep" / "k.pem").write_text("key\n")
    at = bounded(ws, Policy("blocklist", labels=((pattern, "secret"),)))
    for words in (["deep/k.pem"], ["deep"], ["deep/"], ["."]):
        with pytest.raises(Denied) as error:
            at.run(["grep", "-r", "key", *words])
        assert error.value.code == "data_flow_denied"
    assert at.run(["cat", "in"]).stdout == "inside\n"
    assert not carried(["other/"], [("deep/*", "secret")])


@pytest.mark.parametrize(
    ("kind", "argv"),
    [
        ("packages", ["dpkg", "-i", "x.deb"]),
        ("packages", ["rpm", "-e", "x"]),
        ("packages", ["mvn", "install"]),
        ("packages", ["gradle", "build"]),
        ("network", ["twine", "upload", "x"]),
        ("destructive", ["kill", "-9", "1"]),
        ("destructive", ["pkill", "x"]),
        ("destructive", ["systemctl", "stop", "x"]),
    ],
)
def test_tools_that_only_the_policy_minds(ws: Path, tmp_path: Path, kind: str, argv: Sequence[str]) -> None:
    script(tmp_path / "bin" / argv[0], "exit 0\n")
    at = bounded(ws, Policy("blocklist"), path=str(tmp_path / "bin"))
    told = at.decide(argv).decision
    assert (told.answer, told.rules) == ("ask", (f"builtin:{kind}",))


@pytest.mark.parametrize(
    "word", ["x ../outside/secret", "x ../outside/new", "x link", "x {top}/outside/new", "x\tlink"]
)
def test_a_path_behind_a_blank_is_one(ws: Path, word: str) -> None:
    (ws / "link").symlink_to("../outside/secret")
    at = bounded(ws, Policy("always_allow"))
    with pytest.raises(Denied) as error:
        at.run(["cat", word.replace("{top}", str(ws.parent))])
    assert error.value.code == "outside_workspace"
    assert at.run(["echo", "in and / or: see ..., this"]).returncode == 0


@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", "cat in"],
        ["bash", "-xc", "cd . && cat -n ./in"],
        ["env", "python3", "-c", "import os; os.system('cat in')"],
        ["xargs", "-a", "in", "cat"],
        ["find", ".", "-name", "in", "-exec", "cat", "{}", ";"],
    ],
)
def test_what_was_denied_is_denied_inside_an_interpreter_too(ws: Path, argv: list[str]) -> None:
    at = bounded(ws, approver=Scripted([False, True, True]))
    with pytest.raises(Denied):
        at.run(["cat", "in"])
    with pytest.raises(Denied) as error:
        at.run(argv)
    assert error.value.code == "denied_before"
    assert at.run(["sh", "-c", "echo cat; ls"]).returncode == 0, "another program was not meant"
    assert at.run(["echo", "cat", "sub"]).returncode == 0


def test_an_audit_that_breaks_while_a_command_runs_leaves_an_unknown_effect(ws: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    script(ws / "spoils", f"touch made; echo damage >> {log}\n")
    at = bounded(ws, Policy("always_allow"), audit=log)
    with pytest.raises(EffectUnknown, match="before any retry") as error:
        at.run(["./spoils"])
    assert error.value.code == "provider_failed"
    assert (ws / "made").exists()


class _Misses(Runner):
    """What runs refuses to begin."""

    def ask(self, *args: Any, **more: Any) -> Asked:
        asked = super().ask(*args, **more)
        return dataclasses.replace(asked, kit=dataclasses.replace(asked.kit, executor=_Nothing()))


class _Nothing:
    name = "nothing"

    def begin(self, work: Work, controls: Controls) -> Running:
        raise VeilError("not in this recording")


def test_what_refuses_to_begin_has_done_nothing(ws: Path) -> None:
    at = bounded(ws, allow("touch"), runner=_Misses())
    with pytest.raises(VeilError, match="not in this recording"):
        at.run(["touch", "made"])
    end = list(at.audit.lines())[-1]
    assert (end["kind"], end["ended"], end["effect"]) == ("end", "not_dispatched", "none")


@pytest.mark.parametrize("front", [[], ["env"], ["nice", "timeout", "60"], ["find", "in", "-exec"]])
def test_an_approval_is_bound_to_the_program_behind_launchers_too(ws: Path, front: list[str]) -> None:
    tool = script(ws / "tool", "echo good\n")
    at = bounded(ws)
    argv = [*front, "./tool", *([";"] if "find" in front else [])]
    with pytest.raises(ApprovalRequired) as error:
        at.run(argv)
    at.approve(error.value.facts["approval"])
    tool.write_text("#!/bin/sh\necho evil\n")
    with pytest.raises(ApprovalRequired):
        at.run(argv)
    tool.write_text("#!/bin/sh\necho good\n")
    assert at.run(argv).stdout == "good\n", "the very same file as was approved"


def test_an_approval_is_bound_to_the_interpreter_of_a_script_in_the_workspace(ws: Path) -> None:
    inner = script(ws / "inner", "echo good\n")
    script(ws / "tool", "").write_text(f"#!{ws}/inner\n")
    at = bounded(ws)
    with pytest.raises(ApprovalRequired) as error:
        at.run(["./tool"])
    at.approve(error.value.facts["approval"])
    inner.write_text("#!/bin/sh\necho evil\n")
    with pytest.raises(ApprovalRequired):
        at.run(["./tool"])
