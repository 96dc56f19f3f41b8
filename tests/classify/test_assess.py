"""What an assessment holds besides its category: spans, effects, warnings, and what the argument may be."""

from __future__ import annotations

import subprocess
import sys

import pytest

from veil.classify import Effect, assess
from veil.model.errors import BadInput


def test_spans_are_characters_of_the_command() -> None:
    command = "echo 'né ☃' && rm -- ä; ls > öut"
    found = assess(command)
    assert [(s.text, s.category) for s in found.segments] == [
        ("echo 'né ☃'", "read-only"),
        ("rm -- ä", "destructive"),
        ("ls", "read-only"),
        ("> öut", "mutating"),
    ]
    assert all(command[s.span[0] : s.span[1]] == s.text for s in found.segments)
    assert found.effects == (Effect("ä", "delete"), Effect("öut", "write"))


def test_an_inner_command_has_the_span_of_the_quoted_word() -> None:
    command = "bash -c 'rm a; ls'"
    (inner,) = [s for s in assess(command).segments if s.text == "rm a"]
    assert command[inner.span[0] : inner.span[1]] == "'rm a; ls'"


def test_the_view_is_quiet_about_what_only_reads() -> None:
    assert assess("ls -la").to_dict() == {"category": "read-only", "reversible": True}
    assert assess("").to_dict() == {"category": "read-only", "reversible": True}
    assert assess("# only a remark").category == "read-only"


def test_the_view_of_a_destructive_command() -> None:
    assert assess("git push --force").to_dict() == {
        "category": "destructive",
        "reversible": False,
        "segments": [
            {"text": "git push --force", "span": [0, 16], "category": "destructive", "reason": "option --force"}
        ],
        "warning": "would be lost: commits that only the other repository has, or its branches",
    }
    assert assess("rm -rf build 'a b'").to_dict()["effects"] == [
        {"path": "build", "what": "delete"},
        {"path": "a b", "what": "delete"},
    ]
    assert assess("rm -rf build 'a b'").warning == "would be lost: build, a b"


@pytest.mark.parametrize(
    ("command", "reversible"),
    [
        ("mkdir a", True),
        ("git add a", True),
        ("echo x > a", None),
        ("curl x", None),
        ("rm a", False),
        ("ls; rm a", False),
    ],
)
def test_reversible(command: str, reversible: bool | None) -> None:
    assert assess(command).reversible is reversible


@pytest.mark.parametrize(
    ("command", "effects"),
    [
        ("cp a b", [("b", "write")]),
        ("mv a b", [("a", "move"), ("b", "write")]),
        ("sort f -o g", [("g", "write")]),
        ("sed -i s/a/b/ f g", [("f", "write"), ("g", "write")]),
        ("echo x >> 'log file'", [("log file", "append")]),
        ("echo x > $f", []),
        ("dd if=a of=b", [("b", "write")]),
        ("curl -so page.html http://x", [("page.html", "write")]),
        ("tar czf a.tgz d", [("a.tgz", "write")]),
        ("mkdir -p a/{b,c}", [("a/b", "create"), ("a/c", "create")]),
        ("chmod +x f", [("f", "mode")]),
        ("ssh h rm x", []),
    ],
)
def test_effects_where_they_stand_literally(command: str, effects: list[tuple[str, str]]) -> None:
    assert sorted(assess(command).effects) == sorted(effects)


def test_an_argument_list_knows_no_shell() -> None:
    assert assess(["echo", "$(rm a)", ">", "b", "; rm c"]).category == "read-only"
    assert assess(["rm", "a b"]).effects == (Effect("a b", "delete"),)
    assert assess(("bash", "-c", "rm a")).category == "destructive"
    assert assess(["sort", "*"]).category == "read-only"


@pytest.mark.parametrize("wrong", [[], (), 7, None, ["ls", 1], b"ls"])
def test_what_is_no_command_is_refused(wrong: object) -> None:
    with pytest.raises(BadInput, match="command"):
        assess(wrong)  # type: ignore[arg-type]


def test_a_syntax_error_is_complex_and_what_stands_before_it_counts() -> None:
    assert assess("ls 'unterminated").category == "complex"
    found = assess("rm a; echo 'unterminated")
    assert found.category == "destructive"
    assert any("syntax error" in segment.reason for segment in found.segments)


def test_importing_the_room_does_not_import_the_grammar() -> None:
    code = "import sys, veil.classify; print('tree_sitter' in sys.modules, 'tree_sitter_bash' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "False False\n"), done.stderr
