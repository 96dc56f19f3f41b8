"""What a policy denies does not run: told by the marks that programs leave, not by what a call returned."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from attacks import ALLOWED, DENIED, LAUNCHERS, LOOKS, WRAPPERS, Argv, World, corpus, world

from veil.governed import Approver, Audit, Boundary, Budget, Denied, Policy, Rule, Scripted, later
from veil.governed.approvals import Question
from veil.model.errors import VeilError

FORBIDS = (Rule("no-rm", "deny", prefix=("rm",)), Rule("no-push", "deny", prefix=("tool", "push")))
ALLOWS = tuple(Rule(f"allow-{name}", "allow", prefix=(name,)) for name in ALLOWED.split())
POLICIES = {
    "allowlist": Policy("allowlist", (*FORBIDS, *ALLOWS)),
    "blocklist": Policy("blocklist", FORBIDS),
    "blocklist and allowed": Policy("blocklist", (*FORBIDS, *ALLOWS)),
    "always_allow": Policy("always_allow", FORBIDS),
}


@pytest.fixture
def made(tmp_path: Path) -> World:
    return world(tmp_path)


def no(question: Question) -> bool:
    return False


def yes(question: Question) -> bool:
    return True


def boundary(made: World, policy: Policy, answer: Approver = no) -> Boundary:
    # containment is not to do the policy's work: words may name the markers
    policy = replace(policy, allowed_paths=(str(made.bin),))
    options = {"contain": False, "effects": False, "no_store": True}
    return Boundary(made.workspace, policy, path=made.path, approver=answer, audit=Audit(), **options)


def attempt(at: Boundary, argv: Argv) -> str:
    try:
        at.run(argv, timeout_s=30)
    except VeilError as error:
        return error.code
    return "ran"


def test_the_corpus_is_large_and_each_attack_is_there_once(made: World) -> None:
    attacks = corpus(made)
    assert len(attacks) >= 2000
    assert len({argv for _, argv in attacks}) == len(attacks)
    assert {denied[0] for denied in DENIED} <= {argv[0] for _, argv in attacks}


@pytest.mark.parametrize("name", POLICIES)
def test_nothing_that_is_denied_runs(made: World, name: str) -> None:
    wrong = []
    # nobody answers, so that no denial of before can help
    with boundary(made, POLICIES[name], later) as at:
        for title, argv in corpus(made):
            said, ran = attempt(at, argv), made.ran()
            if said == "ran" or ran:
                wrong.append(f"{title}: {argv}: {said}, {ran}")
    assert not wrong, f"{len(wrong)} attacks\n" + "\n".join(wrong[:40])
    assert made.ran() == []


@pytest.mark.parametrize("name", ["allowlist", "always_allow"])
def test_no_approval_lets_through_what_is_denied_by_name(made: World, name: str) -> None:
    """Whoever approves everything still gets nothing denied to run, where its name stands in the argv."""
    wrong = []
    for title, wrap in {"plain": lambda argv: argv, **WRAPPERS}.items():
        for denied in DENIED:
            argv = wrap(denied)
            with boundary(made, POLICIES[name], yes) as at:
                said = attempt(at, argv)
            ran = [mark for mark in made.ran() if mark in ("rm", "tool-push", "git", "git-push")]
            if ran:
                wrong.append(f"{title}: {argv}: {said}, {ran}")
    assert not wrong, "\n".join(wrong)


def test_the_same_wrappers_do_run_a_program_that_is_not_denied(made: World) -> None:
    """The corpus has teeth: with nothing denied and everything approved, the markers run."""
    ran, quiet = [], []
    for title, wrap in WRAPPERS.items():
        with boundary(made, Policy("always_allow"), yes) as at:
            attempt(at, wrap(("rm", "f")))
        (ran if "rm" in made.ran() else quiet).append(title)
    # not every machine has every launcher, and some need rights
    assert len(ran) >= 45, quiet
    assert {"plain", *quiet}.isdisjoint(
        {"env", "nice", "sh -c", "bash -c", "find -exec ;", "xargs", "python3 -c", "env -S"}
    )


@pytest.mark.parametrize("title", ["env", "env --", "nice -n", "nohup", "timeout", "timeout -k", "stdbuf", "ionice"])
def test_an_allowed_program_runs_behind_launchers_that_are_understood(made: World, title: str) -> None:
    policy = Policy("allowlist", (*FORBIDS, Rule("ok", "allow", prefix=("ok",))))
    with boundary(made, policy) as at:
        assert attempt(at, LAUNCHERS[title](("ok", "x"))) == "ran"
    assert made.ran() == ["ok"]


def test_look_alikes_are_there_to_be_started(made: World) -> None:
    """Otherwise they would be refused for not being there, and the corpus would prove nothing."""
    for name, look in LOOKS.items():
        assert look != name
        subprocess.run([made.workspace / "t" / look], check=True)
        assert made.ran() == [name]


@pytest.mark.needs("strace")
def test_a_trace_of_system_calls_shows_no_denied_program(made: World, tmp_path: Path) -> None:
    """A sample of the corpus under strace: every program that was started, whoever started it."""
    attacks = corpus(made)
    sample = [argv for _, argv in attacks[:: len(attacks) // 150]]
    control = [("ok", "x"), ("env", "ok", "y")]
    (tmp_path / "attacks.json").write_text(json.dumps([*sample, *control]))
    program = (
        "import json, sys\n"
        "from veil.governed import Approver, Audit, Boundary, Policy, Rule\n"
        "from veil.model.errors import VeilError\n"
        "rules = [Rule('a', 'deny', prefix=('rm',)), Rule('b', 'deny', prefix=('tool', 'push'))]\n"
        "rules += [Rule(f'allow {n}', 'allow', prefix=(n,)) for n in sys.argv[3].split()]\n"
        "at = Boundary(sys.argv[1], Policy('allowlist', tuple(rules)), path=sys.argv[2], audit=Audit(),\n"
        "              approver=lambda question: False, contain=False, effects=False, no_store=True)\n"
        "for argv in json.load(open(sys.argv[4])):\n"
        "    try: at.run(argv)\n"
        "    except VeilError: pass\n"
    )
    words = [str(made.workspace), ":".join(made.path), ALLOWED, str(tmp_path / "attacks.json")]
    log = tmp_path / "trace"
    traced = ["strace", "-f", "-qq", "-e", "trace=execve,execveat", "-s", "4096", "-o", str(log)]
    subprocess.run([*traced, sys.executable, "-c", program, *words], check=True, timeout=250)
    started = [line for line in log.read_text(errors="replace").splitlines() if "execve" in line and "= 0" in line]
    # the one that veil started itself was started by descriptor or path, the other one by env
    assert sum('["ok", ' in line or f'["{made.bin}/ok", ' in line for line in started) == 2, started
    assert [line for line in started if any(f'{made.bin}/{name}"' in line for name in ("rm", "git"))] == []
    assert [line for line in started if f'{made.bin}/tool"' in line and '"push"' in line] == []
    assert made.ran() == ["ok"]


def test_denied_once_is_denied_in_every_wrapping(made: World) -> None:
    """After a person said no, the same program and sub-command are refused without another question."""
    script = Scripted([False])
    policy = Policy("blocklist", (Rule("ask", "ask", prefix=("tool", "push")),))
    at = boundary(made, policy, script)
    with pytest.raises(Denied) as first:
        at.run(["tool", "push"])
    assert first.value.code == "denied_by_approver"
    for title, wrap in LAUNCHERS.items():
        with pytest.raises(Denied) as error:
            at.run(wrap(("tool", "push")))
        assert error.value.code in ("denied_before", "executable_refused"), title
    assert len(script.questions) == 1
    assert made.ran() == []
    at.run(["tool", "pull"])
    assert made.ran() == ["tool"]


def test_what_is_not_dispatched_costs_no_dispatch(made: World) -> None:
    at = Boundary(made.workspace, POLICIES["allowlist"], path=made.path, audit=Audit(), budget=Budget(dispatches=1))
    for argv in (("rm", "f"), ("env", "rm", "f"), ("cat", "/etc/passwd")):
        assert attempt(at, argv) != "ran"
    assert at.spent.dispatches == 0
