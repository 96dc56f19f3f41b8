"""Which parts of an argument may be a path."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.policy.containment import candidates, refused


def texts(word: str) -> set[str]:
    return {candidate.text for candidate in candidates(word)}


@pytest.mark.parametrize(
    "word",
    [
        "/etc/x",
        "--output=/etc/x",
        "-o/etc/x",
        "-xvf/etc/x",
        "-I/etc/x",
        "if=/etc/x",
        "@/etc/x",
        "-d@/etc/x",
        "name=@/etc/x;type=text",
        "host:/etc/x",
        "user@host:/etc/x",
        "a,/etc/x",
        "-Wl,-rpath,/etc/x",
        "/a:/etc/x",
        "--a=b=/etc/x",
        "concat:/a|/etc/x",
        "'/etc/x'",
        '--x="/etc/x"',
        "<(/etc/x)",
    ],
)
def test_a_path_wherever_it_is_glued(word: str) -> None:
    assert "/etc/x" in texts(word)


@pytest.mark.parametrize("word", ["-C..", "-f../x", "--x=../x", "a=../x", "@../x", "h:../x", "-xC../x", "../x", ".."])
def test_a_step_up_wherever_it_is_glued(word: str) -> None:
    assert {"..", "../x"} & texts(word)


def test_a_name_glued_to_an_option_letter() -> None:
    assert "link" in texts("-flink")
    assert "link" in texts("-xflink")
    assert "link" in texts("--file=link")
    # a link may be called like an option
    assert texts("--verbose") == {"--verbose"}
    assert texts("-v") == {"-v"}


@pytest.mark.parametrize(
    "word",
    [
        "file:///etc/x",
        "FILE:/etc/x",
        "--url=file:///x",
        "jar:file:/x!/y",
        "file:x",
        "-ofile:/x",
        "\uff46ile:/x",
        "a file:/x",
    ],
)
def test_addresses_of_files_are_refused(word: str) -> None:
    assert refused(word) == "an address of a local file"


@pytest.mark.parametrize("word", ["~", "~/x", "~root/x", "--x=~/y", "-I~/x", "a:~", "@~/x", "'~/x'"])
def test_homes_are_refused(word: str) -> None:
    assert refused(word) == "a path in a home directory"


@pytest.mark.parametrize("word", ["$HOME/x", "${HOME}/x", "--x=$HOME/y", "-I$PWD/x", "${X:-/etc}/y"])
def test_variables_in_front_of_a_path_are_refused(word: str) -> None:
    assert refused(word) == "a path behind a variable, which nothing here expands"


@pytest.mark.parametrize(
    "word",
    ["a~", "HEAD~1", "x.txt~", "$1", "{print $1}", "profile:x", "Makefile:12", "100$", "a$b", "https://x/~u/y"[:5], ""],
)
def test_what_only_looks_like_it(word: str) -> None:
    assert refused(word) is None


def test_an_address_counts_as_a_path_only_where_its_folder_is() -> None:
    assert {candidate.unless for candidate in candidates("https://example.org/a/../b")} == {"https:"}
    glued = {candidate.text: candidate.unless for candidate in candidates("x=https://example.org/a")}
    assert glued["x=https://example.org/a"] == "x=https:"
    assert glued["https://example.org/a"] == "https:"
    for word in ("--a=/etc/x,https://example.org", "https://example.org,/etc/x"):
        beside = {candidate.text: candidate for candidate in candidates(word)}
        assert beside["/etc/x"].unless is None, word


@pytest.mark.parametrize("word", ["a://etc/x", "host://etc/x", "x:///etc/x", "C://etc/x"])
def test_what_is_no_address_is_a_path_behind_a_colon(word: str) -> None:
    assert {candidate.text.lstrip("/") for candidate in candidates(word) if candidate.unless is None} >= {"etc/x"}


def test_a_slash_in_prose_counts_only_where_something_is() -> None:
    found = {candidate.text: candidate.only_if_there for candidate in candidates("see /etc/hosts there")}
    assert found["/etc/hosts"] is True


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30))
@settings(max_examples=300)
def test_a_word_is_a_candidate_for_itself(word: str) -> None:
    assert not word or word in texts(word)


@given(
    st.text(st.characters(codec="ascii", categories=("L",)), max_size=6),
    st.sampled_from(list("=,:@;|<>\"'(){}[]!^+&`%#*?")),
    st.sampled_from(["/etc/passwd", "../secret", "..", "a/../../b"]),
    st.sampled_from(["", ",x", ":y", "'"]),
)
@settings(max_examples=300)
def test_a_path_behind_any_separator_is_found(before: str, mark: str, path: str, after: str) -> None:
    assert path in texts(before + mark + path + after)


@given(st.sampled_from("abcdefgxyzIoCLW"), st.text(st.sampled_from("abvxz"), max_size=4))
def test_a_path_behind_bundled_letters_is_found(letter: str, bundle: str) -> None:
    assert "/etc/passwd" in texts(f"-{bundle}{letter}/etc/passwd")
    assert "../s" in texts(f"-{bundle}{letter}../s")


def test_a_slash_in_the_middle_of_a_glued_name_counts_where_something_is() -> None:
    found = {candidate.text: candidate for candidate in candidates("-Isrc/lib/x")}
    assert not found["src/lib/x"].only_if_there
    assert (found["/lib/x"].only_if_there, found["/lib/x"].or_folder) == (True, True)
    for word in ("-f/lib/x", "-xf/lib/x", "-xvf/lib/x", "-x=a/lib/x:/lib/x"):
        assert any(found.text == "/lib/x" and not found.only_if_there for found in candidates(word)), word


def test_a_long_word_costs_no_square() -> None:
    assert len(list(candidates("a:" * 5000))) < 20_000
    assert "/etc/x" in texts("-" + "x" * 500 + "/etc/x")


ADDRESSES = [
    "foo://example.org/x",
    "neo4j+s://db.example.org",
    "amqp+x://u:p@h:1/v",
    "--to=rtmp://live.example.org/a/b",
]


@pytest.mark.parametrize("word", ADDRESSES)
def test_addresses_of_any_scheme_are_no_paths_where_nothing_of_that_name_is(word: str) -> None:
    for candidate in candidates(word):
        assert candidate.only_if_there or candidate.unless or not candidate.text.startswith(("/", ".")), candidate


@pytest.mark.parametrize("word", ["sqlite:////etc/x", "unix:///etc/x", "sqlite://../x", "x://etc/x", "zlib://./../x"])
def test_an_address_without_a_host_is_a_path(word: str) -> None:
    sure = {c.text for c in candidates(word) if not c.only_if_there and c.unless is None}
    assert any(text.startswith(("/", "..", "./..")) for text in sure), sure
