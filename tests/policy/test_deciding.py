"""Answers of a policy: precedence, levels, launchers, judgements."""

from __future__ import annotations

import pytest
from policies import allow, answer, ask, deny, found, judged

from veil.policy.launchers import Seen
from veil.policy.programs import Program
from veil.policy.rules import Rule, Situation


def broken(seen: Seen, situation: Situation) -> bool:
    raise KeyError("no such thing")


# -- precedence and levels


@pytest.mark.parametrize(
    ("level", "expected"),
    [("always_deny", "deny"), ("allowlist", "ask"), ("blocklist", "allow"), ("always_allow", "allow")],
)
def test_the_level_answers_where_no_rule_does(level: str, expected: str) -> None:
    assert answer(["ls"], level=level) == expected


@pytest.mark.parametrize("level", ["allowlist", "blocklist", "always_allow"])
def test_forbid_beats_ask_beats_allow(level: str) -> None:
    assert answer(["ls"], allow("ls"), level=level) == "allow"
    assert answer(["ls"], allow("ls"), ask("ls"), level=level) == "ask"
    assert answer(["ls"], allow("ls"), ask("ls"), deny("ls"), level=level) == "deny"
    assert answer(["ls"], deny("ls"), ask("ls"), allow("ls"), level=level) == "deny", "whatever their order"


def test_nothing_is_allowed_when_everything_is_denied() -> None:
    assert answer(["ls"], allow("ls"), level="always_deny") == "deny"
    assert answer(["git", "status"], level="always_deny") == "deny"


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
@pytest.mark.parametrize("level", ["allowlist", "blocklist", "always_allow"])
def test_a_rule_that_errors_denies(effect: str, level: str) -> None:
    made = judged(["ls"], allow("ls"), Rule("broken", effect, when=broken), level=level)  # type: ignore[arg-type]
    assert made.decision.answer == "deny"
    assert made.final, "and nobody can approve it"
    assert made.decision.errors == ("broken: KeyError: 'no such thing'",)
    assert "broken" in made.decision.rules


def test_a_rule_in_python_that_does_not_match_says_nothing() -> None:
    assert answer(["ls"], allow("ls"), Rule("never", "deny", when=lambda seen, situation: False)) == "allow"


def test_the_decision_names_the_rules_that_led_to_it() -> None:
    made = judged(["env", "rm", "f"], deny("rm"), allow("env"), allow("rm"))
    assert made.decision.rules == ("deny ('rm',)",)
    assert [reason.program for reason in made.told] == ["rm"]


# -- conditions


def test_an_exact_rule_allows_that_argv_and_no_other() -> None:
    rule = Rule("exact", "allow", exact=("ls", "-l", "a b"))
    assert answer(["ls", "-l", "a b"], rule) == "allow"
    for other in (
        ["ls", "-l", "a", "b"],
        ["ls", "-l"],
        ["ls", "-l", "a b", ""],
        ["ls", "-l", "a  b"],
        ["/bin/ls", "-l", "a b"],
    ):
        assert answer(other, rule) == "ask", other


def test_gov_06_words_are_never_joined() -> None:
    rule = Rule("one file", "allow", exact=("rm", "a b"))
    assert answer(["rm", "a b"], rule) == "allow"
    for other in (["rm", "a", "b"], ["rm", "a\nb"], ["rm", "", "a"], ["rm", "a b "], ["rm", " a b"], ["rm a b"]):
        assert answer(other, rule) == "ask", other


def test_a_prefix_ends_between_words() -> None:
    assert answer(["ls", "-la"], allow("ls", "-l")) == "ask"
    assert answer(["lsx"], allow("ls")) == "ask"
    assert answer(["ls", "-l", "x"], allow("ls", "-l")) == "allow"


def test_options_of_an_allowing_rule_are_all_that_may_be_there() -> None:
    rule = allow("ls", options=("-l", "--color"))
    assert answer(["ls", "-l", "x"], rule) == "allow"
    assert answer(["ls", "--color=never"], rule) == "allow"
    assert answer(["ls", "-la"], rule) == "ask"
    assert answer(["ls", "-R"], rule) == "ask"


@pytest.mark.parametrize(
    "words", [["-rf"], ["-fr"], ["-r", "-f"], ["-vrf"], ["-r", "x", "-f"], ["--", "-rf"], ["-rvf"], ["-rfx"]]
)
def test_options_of_a_forbidding_rule_are_found_in_every_form(words: list[str]) -> None:
    assert answer(["rm", *words], deny("rm", "-rf"), level="always_allow") == "deny"


def test_long_options_are_found_abbreviated_and_with_a_value() -> None:
    rule = Rule("force", "deny", prefix=("tool",), options=("--force", "-f"))
    for words in (["--force"], ["--forc"], ["--force=yes"], ["-f"], ["-xf"], ["x", "--fo"], ["-force"]):
        assert answer(["tool", *words], rule, level="always_allow") == "deny", words
    assert answer(["tool", "--format"], rule, level="always_allow") == "allow"
    assert answer(["tool", "force"], rule, level="always_allow") == "allow"


def test_the_folder_of_a_rule() -> None:
    below, exact = allow("make", cwd="src/**"), allow("ls", cwd="src")
    assert [answer(["make"], below, cwd=cwd) for cwd in ("src", "src/a/b", ".", "srcx")] == [
        "allow",
        "allow",
        "ask",
        "ask",
    ]
    assert [answer(["ls"], exact, cwd=cwd) for cwd in ("src", "src/a", ".")] == ["allow", "ask", "ask"]
    assert answer(["ls"], allow("ls", cwd="**"), cwd="a/b") == "allow"


def test_a_program_by_path_and_by_hash() -> None:
    rule = Rule("this", "allow", executable="/usr/bin/ls")
    assert answer(["ls"], rule) == "allow"
    elsewhere = {"ls": Program("ls", "/opt/ls", "/opt/ls", "sha256:other", (9, 9))}
    assert answer(["ls"], rule, programs=elsewhere) == "ask"
    assert answer(["ls"], Rule("hash", "allow", executable="sha256:other"), programs=elsewhere) == "allow"
    assert (
        answer(["ls"], Rule("hash", "deny", executable="sha256:other"), level="always_allow", programs=elsewhere)
        == "deny"
    )


def test_network_as_a_condition() -> None:
    quiet = allow("curl", network=False)
    assert answer(["curl", "--version"], quiet) == "allow"
    assert answer(["curl", "https://example.org"], quiet) == "ask"
    assert answer(["wget", "x"], Rule("net", "deny", network=True), level="always_allow") == "deny"
    assert answer(["ls"], Rule("net", "deny", network=True), level="always_allow") == "allow"
    for argv in (["rsync", "--delete", "a", "h:b"], ["sh", "-c", "rm x; c\\url h"], ["nice", "curl", "-o", "f", "h"]):
        assert answer(argv, Rule("net", "deny", network=True), level="always_allow") == "deny", argv
    assert answer(["rm", "-rf", "x"], Rule("net", "deny", network=True), level="always_allow") == "allow"


# -- names


@pytest.mark.parametrize("name", ["rm", "/bin/rm", "RM", "./rm", "Rm", "r\u217f", "\uff52\uff4d", "rm\u200b", "rm/"])
def test_a_forbidden_name_in_any_spelling(name: str) -> None:
    assert answer([name, "f"], deny("rm"), level="always_allow") == "deny"


@pytest.mark.parametrize("name", ["/bin/ls", "LS", "./ls", "l\u0455", "ls\u200b"])
def test_an_allowed_name_in_no_other_spelling(name: str) -> None:
    assert answer([name], allow("ls")) == "ask"


def test_a_forbidden_program_by_another_name_is_the_same_file() -> None:
    link = {"g": Program("g", "/w/g", "/usr/bin/rm", "sha256:x", (3, 4), local=True)}
    copy = {"g": Program("g", "/w/g", "/w/g", found("rm").digest, (3, 5), local=True)}
    hard = {"g": Program("g", "/w/g", "/w/g", "sha256:y", found("rm").inode, local=True)}
    other = {"g": Program("g", "/w/g", "/w/g", "sha256:z", (3, 6), local=True)}
    for programs in (link, copy, hard):
        assert answer(["g", "f"], deny("rm"), level="always_allow", programs=programs) == "deny"
    assert answer(["g", "f"], deny("tool"), level="blocklist", programs=other) == "ask", (
        "what can be rewritten is asked"
    )


def test_one_file_of_many_names_is_not_all_of_them() -> None:
    def applet(name: str) -> Program:
        return Program(name, f"/bin/{name}", "/bin/busybox", "sha256:busybox", (5, 5))

    programs = {name: applet(name) for name in ("rm", "ls", "busybox", "env")}
    assert answer(["ls"], deny("rm"), level="always_allow", programs=programs) == "allow"
    assert answer(["rm", "f"], deny("rm"), level="always_allow", programs=programs) == "deny"
    assert answer(["busybox", "rm", "f"], deny("rm"), level="always_allow", programs=programs) == "deny"
    assert answer(["env", "rm", "f"], deny("rm"), level="always_allow", programs=programs) == "deny"


def test_what_the_host_has_in_path_is_what_it_is_called_there() -> None:
    def shim(name: str) -> Program:
        return Program(name, f"/shims/{name}", f"/shims/{name}", "sha256:shim", (6, 6))

    programs = {name: shim(name) for name in ("pip", "python")}
    assert answer(["python", "--version"], deny("pip"), allow("python"), programs=programs) == "allow"
    programs["p"] = Program("p", "/w/p", "/shims/pip", "sha256:shim", (6, 6), local=True)
    assert answer(["p"], deny("pip"), level="always_allow", programs=programs) == "deny"


def test_versions_are_the_same_program() -> None:
    for name in ("python3", "python3.11", "python", "python2.7", "/opt/python-3"):
        assert answer([name, "x.py"], deny("python"), level="always_allow") == "deny", name


def test_an_allowed_name_means_no_file_of_the_workspace() -> None:
    programs = {"ls": Program("ls", "/w/ls", "/w/ls", "sha256:q", (7, 7), local=True)}
    assert answer(["ls"], allow("ls"), programs=programs) == "ask"


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
