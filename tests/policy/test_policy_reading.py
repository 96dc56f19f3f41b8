"""Policies from TOML: what they mean, and on which line what is wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.governed import load_policy
from veil.model.errors import BadInput
from veil.policy.lines import lines_of
from veil.policy.reading import BadPolicy, read
from veil.policy.rules import Example, Policy, Rule

WHOLE = """\
level = "blocklist"
allowed_paths = ["/usr/share/dict"]

[judgements]
network = "deny"
packages = "allow"

[clearance]
default = "public"
"/usr/bin/gpg" = "secret"

[[label]]
path = "keys/**"
sensitivity = "secret"

[[rule]]
id = "no-push"
effect = "deny"
prefix = ["hg", "push"]
reason = "pushing is for people"

[[rule]]
effect = "allow"
exact = ["make", "test"]
cwd = "src/**"
executable = "/usr/bin/make"
network = false

[[rule]]
effect = "ask"
prefix = ["rm"]
options = ["-r", "--recursive"]

[[example]]
argv = ["hg", "push"]
expect = "deny"

[[example]]
argv = ["make", "test"]
expect = "allow"
cwd = "src"
"""


def test_everything_that_a_file_can_say() -> None:
    policy = read(WHOLE)
    assert policy == Policy(
        level="blocklist",
        rules=(
            Rule("no-push", "deny", prefix=("hg", "push"), reason="pushing is for people"),
            Rule(
                "allow:make test",
                "allow",
                exact=("make", "test"),
                executable="/usr/bin/make",
                cwd="src/**",
                network=False,
            ),
            Rule("ask:rm", "ask", prefix=("rm",), options=("-r", "--recursive")),
        ),
        judgements={"network": "deny", "packages": "allow"},
        allowed_paths=("/usr/share/dict",),
        clearances={"/usr/bin/gpg": "secret"},
        clearance="public",
        labels=(("keys/**", "secret"),),
        examples=(Example(("hg", "push"), "deny", ".", 34), Example(("make", "test"), "allow", "src", 38)),
        digest=policy.digest,
    )
    assert policy.digest.startswith("sha256:")
    assert read(WHOLE + "\n").digest != policy.digest


def test_the_same_in_a_pyproject() -> None:
    head, _, rest = WHOLE.partition("\n[judgements]")
    nested = "[project]\nname = 'x'\n\n[tool.veil.policy]\n" + head + "\n[judgements]" + rest
    for name in ("judgements", "clearance", "label", "rule", "example"):
        nested = nested.replace(f"[{name}]", f"[tool.veil.policy.{name}]")
    policy = read(nested, "pyproject.toml")
    assert policy.rules == read(WHOLE).rules
    assert [example.line for example in policy.examples] == [38, 42]
    with pytest.raises(BadPolicy, match=r"tool\.veil\.policy in pyproject\.toml"):
        read("[tool.other]\n", "pyproject.toml")


@pytest.mark.parametrize(
    ("text", "line", "about"),
    [
        ("level = 'x", 1, "TOML"),
        ("\nlevel = 'strict'\n", 2, "level"),
        ("level = 'allowlist'\nlevle = 1\n", 2, "did you mean 'level'"),
        ("[judgements]\nnetwork = 'no'\n", 2, "judgements.network"),
        ("[judgements]\n\nweather = 'ask'\n", 3, "judgements.weather"),
        ("[[rule]]\nid = 'a'\n", 1, "rule.0.effect"),
        ("[[rule]]\neffect = 'allow'\n", 1, "at least one of"),
        ("[[rule]]\neffect = 'alow'\nprefix = ['x']\n", 2, "rule.0.effect"),
        (
            "[[rule]]\neffect = 'allow'\nprefix = ['x']\n[[rule]]\neffect = 'deny'\nprefix = 'rm x'\n",
            6,
            "rule.1.prefix",
        ),
        ("[[rule]]\neffect = 'allow'\nprefix = []\n", 3, "not empty"),
        ("[[rule]]\neffect = 'allow'\nprefix = ['x', 3]\n", 3, "list of texts"),
        ("[[rule]]\neffect = 'allow'\nprefix = [' ']\n", 3, "not blank"),
        ("[[rule]]\neffect = 'allow'\nprefix = ['x']\nexact = ['x']\n", 3, "either exact or prefix"),
        ("[[rule]]\neffect = 'allow'\nexecutable = 'git'\n", 3, "absolute path"),
        ("[[rule]]\neffect = 'allow'\nexecutable = 'sha256:12'\n", 3, "64 hexadecimal"),
        ("[[rule]]\neffect = 'deny'\noptions = ['force']\n", 3, "begin with a dash"),
        ("[[rule]]\neffect = 'deny'\ncwd = '../x'\n", 3, "without .."),
        ("[[rule]]\neffect = 'deny'\ncwd = '/x'\n", 3, "below the workspace"),
        ("[[rule]]\neffect = 'deny'\nnetwork = 'yes'\n", 3, "true or false"),
        ("[[rule]]\neffect = 'deny'\nprefx = ['x']\n", 3, "did you mean 'prefix'"),
        (
            "[[rule]]\nid='a'\neffect='deny'\nprefix=['x']\n[[rule]]\nid='a'\neffect='deny'\nprefix=['y']\n",
            6,
            "no other rule",
        ),
        ("rule = 3\n", 1, "[[rule]]"),
        ("allowed_paths = ['x']\n", 1, "absolute paths"),
        ("[[label]]\npath = '/x'\nsensitivity = 'secret'\n", 2, "below the workspace"),
        ("[[label]]\npath = 'x'\nsensitivity = 'top'\n", 3, "label.0.sensitivity"),
        ("[clearance]\nx = 'top'\n", 2, "clearance.x"),
        ("[[example]]\nargv = ['x']\nexpect = 'maybe'\n", 3, "example.0.expect"),
        ("[[example]]\nargv = [\n  'x',\n  3,\n]\nexpect = 'allow'\n", 2, "example.0.argv"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, line: int, about: str) -> None:
    with pytest.raises(BadPolicy) as error:
        read(text, "p.toml")
    assert error.value.facts["line"] == line, str(error.value)
    assert error.value.facts["file"] == "p.toml"
    assert about in str(error.value)


def test_rules_without_an_id_are_told_apart() -> None:
    text = "[[rule]]\neffect='deny'\nprefix=['rm', 'a b']\n[[rule]]\neffect='deny'\nprefix=['rm', 'a', 'b']\n"
    text += "[[rule]]\neffect='deny'\nprefix=['rm', 'a', 'b']\ncwd='x'\n[[rule]]\neffect='ask'\ncwd='y'\n"
    assert [rule.id for rule in read(text).rules] == ["deny:rm 'a b'", "deny:rm a b", "deny:rm a b (line 7)", "rule-11"]


def test_lines_are_not_misled_by_what_stands_in_texts() -> None:
    text = 'a = """\n[[rule]]\neffect = 1\n"""\nb = [\n  "[[rule]]",\n  # ]\n]\n'
    text += '[[rule]]\neffect = "allow"\n[[rule]]\n"x y" = 2\n'
    lines = lines_of(text)
    assert lines[("a",)] == 1
    assert lines[("b",)] == 5
    assert lines[("rule", 0)] == 9
    assert lines[("rule", 0, "effect")] == 10
    assert lines[("rule", 1)] == 11
    assert lines[("rule", 1, "x y")] == 12
    assert ("rule", 2) not in lines


@given(st.text(max_size=60))
@settings(max_examples=300)
def test_any_text_is_a_policy_or_an_error_with_a_line(text: str) -> None:
    line = 1
    try:
        assert isinstance(read(text), Policy)
    except BadPolicy as error:
        line = error.facts["line"]
    assert 1 <= line <= text.count("\n") + 2


@given(
    st.lists(
        st.sampled_from(["[[rule]]", "[a]", "[a.b]", "k = 1", "x.y = 2", '"q" = """', '"""', "z = [", "]", "'''", "#"])
    )
)
def test_lines_of_anything_are_lines_of_it(parts: list[str]) -> None:
    assert all(1 <= line <= len(parts) for line in lines_of("\n".join(parts)).values())


def test_a_file_that_cannot_be_read_is_bad_input(tmp_path: object) -> None:
    with pytest.raises(BadInput, match="a file in UTF-8"):
        load_policy("/nowhere/policy.toml")
