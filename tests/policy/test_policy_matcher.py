"""Properties of the matcher: whatever the words are."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import allow, answer, deny, judged

from veil.governed.binding import binding, digest
from veil.policy.launchers import see
from veil.policy.names import names_of, skeleton, words_in
from veil.policy.options import follows, has_option, leading
from veil.policy.programs import Program
from veil.policy.rules import STRENGTH, Policy, Rule

WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8)
PROGRAM = st.sampled_from(["ls", "tool", "rm", "env", "nice", "timeout", "find", "sh", "x y", "x", "-", "--"])
ARGV = st.tuples(PROGRAM, st.lists(WORD | PROGRAM, max_size=6)).map(lambda parts: (parts[0], *parts[1]))


@given(ARGV, ARGV)
def test_an_exact_rule_allows_only_its_own_words(argv: tuple[str, ...], other: tuple[str, ...]) -> None:
    rule = Rule("exact", "allow", exact=argv)
    if other != argv:
        assert rule.id not in judged(other, rule).decision.rules
        made = judged(other, rule)
        assert not any(reason.rule == rule.id and reason.program == other[0] for reason in made.reasons) or any(
            seen.argv == argv for seen in made.seen
        )


@given(ARGV, ARGV)
def test_two_argv_are_bound_apart(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    def bound(argv: tuple[str, ...]) -> str:
        return binding(argv, "/w", 1.0, "env", ("exe",), "policy")

    assert (bound(one) == bound(other)) == (one == other)


@given(st.lists(WORD), st.lists(WORD))
def test_no_two_lists_of_texts_have_one_digest(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)


def test_every_part_of_a_binding_counts() -> None:
    whole = [("a",), "/w", 1.0, "e", ("x",), "p"]
    changed = [("b",), "/v", 2.0, "f", ("y",), "q"]
    bound = {binding(*(changed[n] if n == at else part for n, part in enumerate(whole))) for at in range(-1, 6)}  # type: ignore[arg-type]
    assert len(bound) == 7


@given(
    ARGV,
    st.lists(st.sampled_from(["ls", "tool", "rm", "env"]), max_size=3),
    st.sampled_from(["allowlist", "blocklist"]),
)
@settings(max_examples=150)
def test_one_more_forbidding_rule_never_weakens_the_answer(argv: tuple[str, ...], names: list[str], level: str) -> None:
    rules = [allow(name) for name in names]
    before = answer(argv, *rules, level=level)
    after = answer(argv, *rules, deny("rm"), level=level)
    assert STRENGTH[after] >= STRENGTH[before]  # type: ignore[index]


@given(ARGV, st.permutations([allow("ls"), allow("env"), deny("rm"), deny("tool", "x"), allow("tool")]))
@settings(max_examples=150)
def test_the_order_of_rules_does_not_matter(argv: tuple[str, ...], rules: list[Rule]) -> None:
    assert answer(argv, *rules) == answer(argv, *sorted(rules, key=lambda rule: rule.id))


LAUNCHER = st.sampled_from(
    [
        ("env",),
        ("nice", "-n", "3"),
        ("timeout", "9"),
        ("timeout", "-k", "1", "9"),
        ("nohup",),
        ("stdbuf", "-o0"),
        ("env", "A=b"),
    ]
)


@given(
    st.lists(LAUNCHER, max_size=12),
    st.lists(WORD, max_size=4),
    st.sampled_from(["blocklist", "always_allow", "allowlist"]),
)
@settings(max_examples=200)
def test_a_forbidden_program_is_seen_behind_any_launchers(
    launchers: list[tuple[str, ...]], words: list[str], level: str
) -> None:
    argv = [word for launcher in launchers for word in launcher] + ["rm", *words]
    assert answer(argv, deny("rm"), allow("env"), allow("nice"), allow("timeout"), level=level) == "deny"


@given(st.lists(WORD, min_size=1, max_size=5), st.sampled_from(["sh", "bash", "dash", "zsh"]))
@settings(max_examples=200)
def test_a_forbidden_program_is_seen_in_a_script(words: list[str], shell: str) -> None:
    script = "true; " + shlex.join(["rm", *words])
    assert answer([shell, "-c", script], deny("rm"), allow(shell), level="always_allow") == "deny"


@given(st.lists(WORD | st.sampled_from(["-C", "-v", "--x=y", "push", "."]), max_size=5))
def test_the_sub_command_may_follow_any_options(words: list[str]) -> None:
    options = [word for word in words if word.startswith("-") and len(word) > 1 and word != "--"]
    assert follows([*options, "push"], ["push"])
    for option in options:
        assert has_option([*words], option)


@given(st.lists(WORD, max_size=8))
def test_places_of_a_sub_command_are_no_options_and_in_order(words: list[str]) -> None:
    places = list(leading(words))
    assert places == sorted(set(places))
    assert all(not (len(words[at]) > 1 and words[at][0] == "-") for at in places)


@given(ARGV)
@settings(max_examples=200)
def test_seeing_through_an_argv_keeps_its_words(argv: tuple[str, ...]) -> None:
    from veil.governed.knowledge import launchers

    seen = see(argv, launchers(), lambda word: Program(word, "/usr/bin/" + word, "/usr/bin/" + word))
    assert seen[0].argv == argv
    assert seen[0].at == 0
    for one in seen:
        if one.sure:
            assert argv[one.at : one.at + len(one.argv)] == one.argv


@given(st.text(max_size=12))
def test_a_skeleton_is_stable_and_blind_to_case(text: str) -> None:
    assert skeleton(skeleton(text)) == skeleton(text)
    if text.isascii():
        assert skeleton(text.upper()) == skeleton(text.lower())


@given(st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12))
def test_a_name_is_among_its_names(name: str) -> None:
    assert name.lower() in names_of(name)
    assert names_of(name) == names_of("/usr/bin/" + name)


@given(st.lists(st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=6), max_size=5))
def test_words_of_a_script_are_found_whatever_stands_between(words: list[str]) -> None:
    for between in (" ", ";", "|", "&&", "\n", "$(", "'", '"', "`"):
        assert list(words_in(between.join(words))) == words


@pytest.mark.parametrize("level", ["allowlist", "blocklist", "always_allow"])
def test_a_script_of_a_megabyte_is_judged_in_bounded_work(level: str) -> None:
    script = "rm x; " * 30_000
    made = judged(["env", "-S", script], deny("rm"), level=level)
    assert made.decision.answer == "deny"
    assert max(len(seen.argv) for seen in made.seen[1:]) <= 64


def test_an_empty_policy_asks() -> None:
    assert Policy().level == "allowlist"
    assert answer(["ls"]) == "ask"
