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
    "text",
    [
        "w ../outside/new",
        "w../outside/new",
        "1w../outside/new",
        "$!w../outside/new",
        "/in/w../outside/new",
        "/in/{w../outside/new\n}",
        "s/i/o/gw../outside/new",
        "s,i,o,w ../outside/new",
        "w{top}/outside/new",
        "w {top}/outside/new",
        "s/i/o/w{top}/outside/new",
        "w/new-in-the-root",
        "r../outside/secret",
        "r {top}/outside/secret",
        "wlink",
        "1w link",
        "r link",
        "s/i/o/\nw link",
    ],
)
def test_files_that_a_script_of_sed_names_stay_inside(ws: Path, text: str) -> None:
    (ws / "link").symlink_to("../outside/secret")
    at = bounded(ws, Policy("always_allow"), approver=lambda question: True)
    script = text.replace("{top}", str(ws.parent))
    for argv in (["sed", "-n", script, "in"], ["env", "sed", "-ne", script, "in"], ["sed", "-n", "-e" + script, "in"]):
        with pytest.raises(Denied) as error:
            at.run(argv)
        assert error.value.code == "outside_workspace"
    assert kinds(at) == ["request"] * 3
    assert (ws / "../outside/secret").read_text() == "secret\n"


SEDS = [
    "s/bar/raw/",
    "s/w/x/g",
    "s/r/w/",
    "s/in/out/w new",
    "wnew",
    "$r in",
    "s,/in,/out,w sub/new",
    "y/rw/wr/",
    "/in/p",
    "/in/,/out/p",
    "s|/usr/lib|/opt|",
    "/^#/d;s,/,_,g",
    "/in/{s/i/~/;s/x/$y\\//}",
    "$!d",
    "\\,/in,p",
]


@pytest.mark.parametrize("text", SEDS)
def test_usual_scripts_of_sed_run(ws: Path, text: str) -> None:
    at = bounded(ws, Policy("always_allow"))
    assert at.run(["sed", text, "in"]).returncode == 0
    assert at.run(["nice", "sed", "-n", "-e", text, "-e", "p", "in"]).returncode == 0
    assert at.run(["timeout", "60", "sed", f"--expression={text}", "in"]).returncode == 0
    assert at.run(["sed", "-i.bak", "-E", text, "in"]).returncode == 0


@pytest.mark.parametrize(
    "argv",
    [
        ["awk", "/in/", "in"],
        ["awk", "/in/,/out/ {print $1/2}", "in"],
        ["awk", "-F", ":", '!/x/ && $1 !~/foo/ {print "x"}', "in"],
        ["awk", "-F/", "-vx=1", "($1/$2) {n++} END {print n}", "in"],
        ["nice", "awk", "--", "/a/", "in"],
    ],
)
def test_usual_programs_of_awk_run(ws: Path, argv: list[str]) -> None:
    (ws / "in").write_text("4/2\n")
    assert bounded(ws, Policy("always_allow")).run(argv).returncode == 0


@pytest.mark.parametrize(
    "argv",
    [
        ["sed", "-n", "sxinxonxw{top}/outside/new", "in"],
        ["sed", "-n", "\\xinxw{top}/outside/new", "in"],
        ["sed", "-n", "yxaxbx;w{top}/outside/new", "in"],
        ["sed", "-n", "/in/p", "{top}/outside/secret"],
        ["sed", "-n", "/in/p", "in", "-e", "r{top}/outside/secret"],
        ["sed", "-n", "-e", "/in/p", "-e", "w {top}/outside/new", "in"],
        ["sed", "-n", "-e", "/in/p", "{top}/outside/secret"],
        ["sed", "-n", "-e", "i\\", "-e", "x", "-e", "w{top}/outside/new", "in"],
        ["sed", "--what", "{top}/outside/secret", "in"],
        ["sed", "-n", "-f", "{top}/outside/secret", "in"],
        ["sed", "-s", "-l", "5", "{top}/outside/secret", "in"],
        ["sed", "-n", "s/in/x/w~/new", "in"],
        ["cat", "sed", "{top}/outside/secret"],
        ["xargs", "cat", "sed", "{top}/outside/secret"],
        ["env", "-S", "x", "sed", "{top}/outside/secret"],
        ["awk", '{print > "{top}/outside/new"}', "in"],
        ["awk", '/in/ {while ((getline x < "{top}/outside/secret") > 0) print x}', "in"],
        ["awk", "-f", "{top}/outside/secret", "in"],
        ["awk", "-vx={top}/outside/secret", "BEGIN {getline y < x; print y}"],
        ["awk", "/in/", "{top}/outside/secret"],
        ["awk", "-e", "/in/", "-f", "{top}/outside/secret"],
        ["awk", "/in/", "x={top}/outside/secret", "in"],
    ],
)
def test_programs_of_sed_and_awk_open_no_way_out(ws: Path, argv: list[str]) -> None:
    at = bounded(ws, Policy("always_allow"), approver=lambda question: True)
    (ws / "x").write_text("1\n")
    words = [word.replace("{top}", str(ws.parent)) for word in argv]
    with pytest.raises(Denied) as error:
        at.run(words)
    assert error.value.code == "outside_workspace"
    assert not (ws.parent / "outside" / "new").exists()


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


def test_a_script_of_sed_carries_the_file_that_it_reads(ws: Path) -> None:
    (ws / "key").write_text("key\n")
    at = bounded(ws, Policy("always_allow", labels=(("key", "secret"),)))
    for argv in (["sed", "rkey", "in"], ["sed", "-n", "1rkey", "in"], ["env", "sed", "$rkey", "in"]):
        with pytest.raises(Denied) as error:
            at.run(argv)
        assert error.value.code == "data_flow_denied"
