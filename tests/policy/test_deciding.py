"""What the rules of a policy answer: precedence, levels, conditions, and names in every spelling."""

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
