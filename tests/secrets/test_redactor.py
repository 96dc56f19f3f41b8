"""Secret values in streams and texts."""

from __future__ import annotations

import base64
import html
import itertools
import json
import re
import shlex
import subprocess
import urllib.parse
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from veil.model.errors import BadInput
from veil.secrets.encodings import spellings
from veil.secrets.redactor import MIN_BYTES, Redactor, SecretSet, too_weak
from veil.secrets.shapes import TOKEN

SECRET = "a?b>c~~tok/+x9"
MARK = TOKEN.encode()


def redacted(secrets: SecretSet, chunks: Sequence[bytes]) -> bytes:
    stream = secrets.redactor()
    return b"".join([*(stream.feed(chunk) for chunk in chunks), stream.finish()])


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    borders = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(borders)]


def pieces(secret: str) -> set[str]:
    return {secret[start : start + 6] for start in range(len(secret) - 5)}


SPELLED = {
    "raw": SECRET,
    "percent": urllib.parse.quote(SECRET, safe=""),
    "percent path": urllib.parse.quote(SECRET),
    "percent lower": re.sub("%..", lambda match: match[0].lower(), urllib.parse.quote(SECRET, safe="")),
    "form": urllib.parse.quote_plus(SECRET),
    "hex": SECRET.encode().hex(),
    "HEX": SECRET.encode().hex().upper(),
    "json": json.dumps(SECRET),
    "json slashes": SECRET.replace("/", "\\/"),
    "html": html.escape(SECRET),
    "shell": shlex.quote(SECRET),
    **{f"base64 {n}": base64.b64encode(b"xyz"[:n] + SECRET.encode()).decode() for n in range(3)},
    **{f"base64 inside {n}": base64.b64encode(b"xyz"[:n] + SECRET.encode() + b"tail").decode() for n in range(3)},
    **{f"base64url {n}": base64.urlsafe_b64encode(b"xyz"[:n] + SECRET.encode()).decode().rstrip("=") for n in range(3)},
}


@pytest.mark.parametrize("how", SPELLED)
def test_scrub_01_every_spelling_goes(how: str) -> None:
    secrets = SecretSet.of({"MY_TOKEN": SECRET})
    out = secrets.redact_text(f"before {SPELLED[how]} after")
    assert TOKEN in out
    assert out.startswith("before ")
    assert out.endswith(" after")
    assert not any(piece in out for piece in pieces(SPELLED[how].rstrip("=")[3:-3]))


def test_scrub_01_what_real_programs_print() -> None:
    value = 'it\'s "7" $x & <y> été/+'
    script = (
        'printf \'%s\\n\' "$V"; printf \'%q\\n\' "$V"; printf %s "$V" | base64 -w0; echo; set -x; : "$V"; declare -p V'
    )
    done = subprocess.run(
        ["bash", "-c", script], env={"V": value, "PATH": "/usr/bin:/bin"}, stdout=-1, stderr=-2, check=True
    )
    out = SecretSet.of({}, [value]).redact(done.stdout).decode()
    assert out.count(TOKEN) >= 5
    assert not any(piece in out for piece in pieces(value))


def test_scrub_03_halves_are_never_shown() -> None:
    stream = SecretSet.of({"SECRET": "sk-live-AAAABBBBCCCC"}).redactor()
    assert stream.feed(b"key: sk-live-AAAA") == b"key: "
    assert stream.feed(b"BBBBCCCC") == MARK
    assert stream.feed(b"\n") == b"\n"
    assert stream.finish() == b""


def test_a_stream_that_ends_inside_a_secret() -> None:
    secrets = SecretSet.of({"SECRET": "sk-live-AAAABBBBCCCC"})
    assert secrets.redact(b"x sk-live-AAAABBBB") == b"x " + MARK
    assert secrets.redact(b"x sk-live-") == b"x sk-live-"


def test_scrub_04_short_and_common_values_stay() -> None:
    env = {"MY_TOKEN": "", "OTHER_KEY": "1", "A_SECRET": "true", "B_SECRET": "changeme", "C_PASSWORD": "00000000"}
    secrets = SecretSet.of(env)
    assert not secrets
    text = b"101 true changeme 00000000\n"
    assert secrets.redact(text) == text
    assert SecretSet.of({"D_TOKEN": "  \n short \n"}).redact(b"short") == b"short"


@pytest.mark.parametrize(
    "value", ["", "1", "true", "password", "Password", "12345678", "        ", "aaaaaaaaaa", b"\0" * 9]
)
def test_a_weak_value_given_on_purpose_is_refused_and_not_shown(value: str | bytes) -> None:
    with pytest.raises(BadInput) as caught:
        SecretSet.of({}, ["a-good-secret-1", value], argument="redact")
    assert caught.value.facts["argument"] == "redact[1]"
    if value and value.strip():
        assert repr(value) not in str(caught.value)


def test_something_else_is_refused() -> None:
    with pytest.raises(BadInput, match=r"extra\[0\]"):
        SecretSet.of({}, [12345678])  # type: ignore[list-item]


def test_one_text_is_one_value() -> None:
    assert SecretSet.of({}, "a-good-secret-1").redact(b"a-good-secret-1 a") == MARK + b" a"


def test_only_secret_variables_count() -> None:
    env = {
        "EDITOR_NAME": "some-long-editor",
        "A_TOKEN": "some-long-token",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/u/creds.json",
    }
    secrets = SecretSet.of(env)
    assert len(secrets) == 1
    assert secrets.redact_text("some-long-editor some-long-token /home/u/creds.json") == (
        f"some-long-editor {TOKEN} /home/u/creds.json"
    )


def test_the_password_of_an_address_counts_by_itself() -> None:
    secrets = SecretSet.of({"DATABASE_URL": "postgres://app:p%40ssw0rd-9@db/app", "X": "Server=a;Password=Zx81-Zx81;"})
    assert secrets.redact_text("connecting with p@ssw0rd-9") == f"connecting with {TOKEN}"
    assert secrets.redact_text("Zx81-Zx81") == TOKEN
    assert not SecretSet.of({"DATABASE_URL": "sqlite:///application.db"})


def test_a_key_of_several_lines() -> None:
    body = "\n".join(f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{n:02d}" for n in range(5))
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"
    secrets = SecretSet.of({"SSH_PRIVATE_KEY": key})
    assert secrets.redact_text(f"x\n{key}y") == f"x\n{TOKEN}\ny"
    assert secrets.redact_text(json.dumps({"k": key})) == f'{{"k": "{TOKEN}\\n"}}'
    indented = secrets.redact_text(key.replace("\n", "\n   "))
    assert "MIIE" not in indented
    assert "-----BEGIN PRIVATE KEY-----" in indented


def test_overlapping_secrets_become_one_mark() -> None:
    secrets = SecretSet([b"abcdefgh1234", b"1234zyxwvuts"])
    assert secrets.redact(b"<abcdefgh1234zyxwvuts>") == b"<" + MARK + b">"
    assert SecretSet([b"abcdefgh", b"abcdefghij"]).redact(b"abcdefghij abcdefghi.") == MARK + b" " + MARK + b"i."


def test_without_secrets_nothing_is_touched() -> None:
    data = b"x" * 1000
    stream = SecretSet.of({"PATH": "/bin"}).redactor()
    assert stream.feed(data) is data
    assert stream.finish() == b""
    assert SecretSet().redact_text("x") == "x"


def test_the_values_are_not_shown_by_the_set() -> None:
    assert SECRET not in repr(SecretSet.of({"MY_TOKEN": SECRET}))


def test_text_that_no_encoding_takes_comes_back() -> None:
    secrets = SecretSet.of({"MY_TOKEN": SECRET})
    for text in ["\ud800", "\udcff é", "a\0b", ""]:
        assert secrets.redact_text(f"{text}{SECRET}{text}") == f"{text}{TOKEN}{text}"


def test_hostile_output_takes_linear_work() -> None:
    secrets = SecretSet.of({"A_TOKEN": "abababababababababababababababac", "B_TOKEN": "ghp_0123456789" * 20})
    for unit in (b"ab", b"ghp_0123456789", b"ghp_", b"a"):
        data = unit * (2_000_000 // len(unit))
        assert len(redacted(secrets, [data[at : at + 65536] for at in range(0, len(data), 65536)])) <= len(data)


strong = st.text("abcXYZ019+/-_=?& '\"\\é\n", min_size=MIN_BYTES, max_size=20).filter(
    lambda text: too_weak(text.encode()) is None
)


@st.composite
def outputs(draw: st.DrawFn) -> tuple[list[str], bytes]:
    """Secrets, and output made of them, of parts of them and of ordinary text."""
    values = draw(st.lists(strong, min_size=1, max_size=3))
    part = st.sampled_from(values).flatmap(
        lambda value: st.tuples(st.integers(0, len(value)), st.integers(0, len(value))).map(
            lambda ends: value[min(ends) : max(ends)]
        )
    )
    words = st.sampled_from(values) | part | st.text("abc 09\n", max_size=4)
    return values, "".join(draw(st.lists(words, max_size=10))).encode()


@settings(deadline=None)
@given(outputs(), st.lists(st.integers(0, 500), max_size=8))
@example((["abcabcabd0"], b"abcabcabcabd0abcabcabd"), [1, 5, 12, 13])
def test_the_cut_into_chunks_makes_no_difference(made: tuple[list[str], bytes], places: list[int]) -> None:
    values, data = made
    secrets = SecretSet.of({}, values)
    whole = secrets.redact(data)
    assert redacted(secrets, cut(data, places)) == whole
    assert redacted(secrets, [data[at : at + 1] for at in range(len(data))]) == whole
    for value in values:
        assert value.strip().encode() not in whole


def plainly(values: Sequence[str], data: bytes) -> bytes:
    """The definition, written down without speed: cover every occurrence, then put one mark for each stretch."""
    needles = {spelled for value in values for spelled in spellings(value.encode()) if len(spelled) >= MIN_BYTES}
    shown, done = b"", 0
    for start in range(len(data)):
        rest = data[start:]
        ends = [start + len(needle) for needle in needles if rest.startswith(needle)]
        if len(rest) >= MIN_BYTES:
            ends += [len(data) for n in needles if n.startswith(rest) and 2 * len(rest) >= len(n)]
        if not ends:
            continue
        if start >= done:
            shown += data[done:start] + MARK
        done = max(done, *ends)
    return shown + data[done:]


@settings(deadline=None)
@given(outputs(), st.lists(st.integers(0, 500), max_size=8))
def test_scrub_03_no_prefix_that_is_shown_holds_a_part(made: tuple[list[str], bytes], places: list[int]) -> None:
    values, data = made
    whole = plainly(values, data)
    stream = SecretSet.of({}, values).redactor()
    shown = b""
    for chunk in cut(data, places):
        shown += stream.feed(chunk)
        # the whole has no byte of a secret in it, so neither has what it begins with
        assert whole.startswith(shown)
    assert shown + stream.finish() == whole


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_output_without_secrets_is_the_same_bytes(data: bytes, places: list[int]) -> None:
    secrets = SecretSet.of({"A_TOKEN": "correct-horse-battery-1", "B_TOKEN": "ghp_" + "x7Y9" * 9})
    assert redacted(secrets, cut(data, places)) == data


def test_a_redactor_can_be_used_again() -> None:
    stream = Redactor([b"abcdefgh12"])
    for _ in range(2):
        assert stream.feed(b"abcdefg") == b""
        assert stream.feed(b"h1") == b""
        assert stream.finish() == MARK
