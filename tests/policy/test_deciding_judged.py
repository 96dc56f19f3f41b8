"""What a policy answers beyond its rules: behind launchers, for what is not known, and for git."""

from __future__ import annotations

import pytest
from policies import allow, answer, ask, deny, found, judged

from veil.policy.programs import Program
from veil.policy.rules import Rule

# -- launchers


@pytest.mark.parametrize(
    "argv",
    [
        ["env", "ls"],
        ["nice", "-n", "5", "ls"],
        ["timeout", "-k1", "--signal", "KILL", "9", "nice", "nohup", "ls"],
        ["stdbuf", "-oL", "ls"],
        ["time", "-p", "ls"],
    ],
)
def test_launchers_that_are_understood_hand_on_the_answer(argv: list[str]) -> None:
    assert answer(argv, allow("ls")) == "allow"
    assert answer(argv, allow(argv[0])) == "ask", "the launcher alone is not enough"
    assert answer(argv, allow("ls"), deny(argv[0])) == "deny"


@pytest.mark.parametrize(
    "argv",
    [
        ["env", "A=b", "ls"],
        ["env", "-C", "x", "ls"],
        ["env", "-i", "ls"],
        ["timeout", "--unknown", "9", "ls"],
        ["nice", "-x5", "ls"],
        ["sudo", "ls"],
        ["xargs", "ls"],
        ["find", ".", "-exec", "ls", ";"],
        ["flock", "l", "ls"],
        ["docker", "run", "ls"],
        ["sh", "-c", "ls"],
        ["env"],
        ["nohup"],
    ],
)
def test_what_is_not_understood_is_asked(argv: list[str]) -> None:
    assert answer(argv, allow("ls")) == "ask"
    named = allow("ls"), allow(argv[0])
    # to name a launcher is to answer for what it is, and not for what cannot be seen behind it
    assert answer(argv, *named) == ("allow" if len(argv) == 1 or argv[0] == "sudo" else "ask")
    assert answer(argv, Rule("exact", "allow", exact=tuple(argv)), allow("ls")) == "allow", "all of it was named"


def test_gov_13_a_denied_program_behind_a_launcher_that_is_allowed() -> None:
    launchers = [allow(name) for name in ("env", "nice", "xargs", "sh", "timeout", "find", "python3", "busybox")]
    denied = [
        ["/bin/rm", "f"],
        ["busybox", "rm", "f"],
        ["env", "rm", "f"],
        ["nice", "-n", "5", "rm", "f"],
        ["xargs", "rm"],
        ["sh", "-c", "rm f"],
        ["timeout", "5", "rm", "f"],
        ["find", ".", "-exec", "rm", "{}", ";"],
    ]
    for argv in denied:
        assert answer(argv, deny("rm"), *launchers) == "deny", argv
    for argv in (["find", ".", "-delete"], ["python3", "-c", "import os; os.remove('f')"]):
        assert answer(argv, deny("rm"), *launchers) == "ask", argv


def test_gov_07_a_denied_sub_command_with_options_before_it() -> None:
    # git itself is refused by its guard; the same rule for another tool
    for argv in (
        ["hg", "push"],
        ["/usr/bin/hg", "push"],
        ["hg", "-R", ".", "push"],
        ["hg", "--noninteractive", "push"],
        ["HG", "push"],
        ["env", "hg", "push"],
        ["hg", "--cwd=x", "-v", "push", "x"],
        ["hg", "pus"],
        ["sh", "-c", "hg 'pu'"],
    ):
        assert answer(argv, deny("hg", "push"), allow("hg"), level="always_allow") == "deny", argv
    for argv in (["hg", "log", "push"], ["hg", "pushed"], ["hg", "status"], ["hg", "log", "pu"], ["hg", ""]):
        assert answer(argv, deny("hg", "push"), level="always_allow") == "allow", argv


def test_a_hundred_launchers_are_not_too_many() -> None:
    assert answer(["env"] * 100 + ["rm", "f"], deny("rm"), level="always_allow") == "deny"
    assert answer(["env"] * 100 + ["ls"], allow("ls"), allow("env")) == "ask"


# -- built-in judgements


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (["python3", "x.py"], "interpreters"),
        (["sh", "-c", "ls | wc -l"], "interpreters"),
        (["npm", "install", "x"], "packages"),
        (["pip", "install", "x"], "packages"),
        (["curl", "https://example.org"], "network"),
        (["ssh", "host"], "network"),
        (["rm", "f"], "destructive"),
        (["shred", "f"], "destructive"),
        (["find", ".", "-delete"], "destructive"),
        (["sudo", "ls"], "elevation"),
        (["xargs", "ls"], "opaque"),
    ],
)
def test_what_is_judged_without_a_rule(argv: list[str], kind: str) -> None:
    made = judged(argv, level="blocklist")
    assert made.decision.answer == "ask"
    assert f"builtin:{kind}" in made.decision.rules
    assert answer(argv, level="blocklist", judgements={kind: "deny"}) == "deny"
    assert answer(argv, level="always_allow") == "allow"


def test_an_allowing_rule_answers_what_it_names() -> None:
    assert answer(["rm", "f"], allow("rm")) == "allow"
    assert answer(["curl", "https://example.org"], allow("curl")) == "allow"
    assert answer(["find", ".", "-delete"], allow("find")) == "ask"
    assert answer(["find", ".", "-delete"], allow("find", ".", "-delete")) == "allow"
    assert answer(["find", ".", "-delete"], allow("find", options=("-delete",))) == "allow"
    assert answer(["python3", "-m", "pytest", "-q"], allow("python3")) == "ask"
    assert answer(["python3", "-m", "pytest", "-q"], allow("python3", "-m")) == "ask"
    assert answer(["python3", "-m", "pytest", "-q"], allow("python3", "-m", "pytest")) == "allow"
    assert answer(["python3", "-I", "-m", "pytest"], allow("python3", "-I", "-m", "pytest")) == "allow"
    assert answer(["npm", "install", "x"], allow("npm")) == "ask"
    assert answer(["npm", "install", "x"], allow("npm", "install")) == "allow"
    assert answer(["npm", "test"], allow("npm", "test")) == "allow"


def test_code_that_cannot_be_seen_is_asked_wherever_something_is_forbidden() -> None:
    assert answer(["sh", "-c", "r\\m f"], level="always_allow") == "allow"
    assert answer(["sh", "-c", "r\\m f"], deny("rm"), level="always_allow") == "deny"
    assert answer(["python3", "-c", "'r' + 'm'"], deny("rm"), level="always_allow") == "ask"
    assert answer(["sh", "x.sh"], deny("rm"), level="always_allow") == "ask"


# -- raw git


@pytest.mark.parametrize(
    "argv",
    [
        ["git", "status"],
        ["git", "status", "--short"],
        ["git", "branch", "--show-current"],
        ["git", "rev-parse", "--show-toplevel"],
        ["git", "diff"],
        ["git", "diff", "--stat"],
    ],
)
def test_the_six_reads(argv: list[str]) -> None:
    assert answer(argv) == "allow"
    assert answer(argv, cwd="sub") == "deny"
    assert answer(argv, deny(*argv)) == "deny"
    assert answer(argv, ask(*argv)) == "ask"
    assert answer(["/usr/bin/git", *argv[1:]], allow("/usr/bin/git")) == "deny"
    assert answer(["env", *argv], allow("git"), allow("env")) == "deny"
    assert answer(["sh", "-c", " ".join(argv)], allow("sh")) == "deny"
    assert answer([*argv, "--"], allow("git")) == "deny"


@pytest.mark.parametrize(
    "argv",
    [
        ["git"],
        ["git", "push"],
        ["git", "diff", "HEAD"],
        ["git", "status", "-s"],
        ["git", "-c", "core.pager=x", "status"],
        ["git", "--no-pager", "diff"],
        ["git-status"],
        ["/usr/lib/git-core/git-push"],
        ["GIT", "status"],
        ["g\u0456t", "status"],
        ["git-upload-pack", "."],
        ["git-shell", "-c", "x"],
    ],
)
@pytest.mark.parametrize("level", ["allowlist", "blocklist", "always_allow"])
def test_all_other_git_is_refused_for_good(argv: list[str], level: str) -> None:
    made = judged(argv, Rule("exact", "allow", exact=tuple(argv)), level=level)
    assert made.decision.answer == "deny"
    assert made.decision.rules == ("builtin:git",)
    assert made.final


@pytest.mark.parametrize(
    "argv",
    [
        ["node", "-e", "1"],
        ["python3", "-c", "import os; os.system('g' + 'it push')"],
        ["tar", "-cf", "o", "f", "--checkpoint-action=exec=x"],
        ["make", "--eval=x"],
        ["sh", "-c", "python3 -c 1"],
        ["awk", 'BEGIN { system("x") }'],
        ["expect", "-c", "spawn g it"],
    ],
)
def test_code_that_may_be_git_is_asked_even_where_everything_is_allowed(argv: list[str]) -> None:
    assert answer(argv, level="always_allow") == "ask"
    assert answer(argv, Rule("named", "allow", exact=tuple(argv)), level="always_allow") == "allow"


def test_git_by_another_name_is_git() -> None:
    programs = {"g": Program("g", "/w/g", "/w/g", found("git").digest, (8, 8), local=True)}
    assert answer(["g", "status"], allow("g"), programs=programs) == "deny"


def test_git_in_path_under_another_name_is_git_too() -> None:
    same = {"digest": found("git").digest, "inode": (1, 1)}
    programs = {"vcs": Program("vcs", "/usr/bin/vcs", "/usr/bin/vcs", **same)}
    assert answer(["vcs", "push"], allow("vcs"), programs=programs) == "deny"
    # where one file is all tools of the machine, each is what it is called
    programs["make"] = Program("make", "/usr/bin/make", "/usr/bin/make", **same)
    assert answer(["make", "all"], allow("make"), programs=programs) == "allow"
    shim = {"git": Program("git", "/usr/bin/git", "/opt/mise", **same)}
    assert answer(["vcs", "push"], allow("vcs"), programs={**shim, "vcs": programs["vcs"]}) == "allow"
