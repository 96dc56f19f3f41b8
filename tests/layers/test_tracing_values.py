"""Values as strace prints them, back to what they were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from veil.layers.tracing import values
from veil.layers.tracing.values import Address, Descriptor, Result, Text


def printed(value: bytes, *, more: bytes = b"") -> bytes:
    """As strace prints a string: letters for a few, octal as short as what follows allows, ``more`` also in octal."""
    letters = {0x0A: b"\\n", 0x09: b"\\t", 0x0D: b"\\r", 0x0B: b"\\v", 0x0C: b"\\f", 0x22: b'\\"', 0x5C: b"\\\\"}
    out = b""
    for at, byte in enumerate(value):
        if byte in letters and byte not in more:
            out += letters[byte]
        elif 0x20 <= byte < 0x7F and byte not in more:
            out += bytes((byte,))
        else:
            digit_follows = at + 1 < len(value) and chr(value[at + 1]) in "0123456789"
            out += b"\\%03o" % byte if digit_follows else b"\\%o" % byte
    return out


@given(st.binary())
def test_every_string_comes_back(value: bytes) -> None:
    assert values.string(b'"' + printed(value) + b'"') == Text(value, False)
    assert values.string(b'"' + printed(value) + b'"...') == Text(value, True)


@given(st.binary())
def test_every_string_comes_back_from_hexadecimal(value: bytes) -> None:
    assert values.string(b'"' + b"".join(b"\\x%02x" % byte for byte in value) + b'"') == Text(value, False)


@given(st.binary(), st.integers(0, 99999), st.booleans())
def test_every_descriptor_comes_back(path: bytes, number: int, deleted: bool) -> None:
    shown = b"%d<" % number + printed(path, more=b"<>") + b">" + (b"(deleted)" if deleted else b"")
    assert values.descriptor(shown) == Descriptor(number, path, deleted)
    assert values.result(b" = " + shown) == Result(number, None, Descriptor(number, path, deleted))


@given(st.lists(st.one_of(st.binary(max_size=20), st.integers(-5, 5)), min_size=1, max_size=6), st.integers(-1, 9))
def test_arguments_are_told_apart_whatever_is_in_them(arguments: list[bytes | int], returned: int) -> None:
    shown = [b"%d" % a if isinstance(a, int) else b'"' + printed(a) + b'"' for a in arguments]
    text = b", ".join(shown) + b") = %d" % returned
    found, behind = values.split(text)
    assert found == shown
    assert values.result(behind).value == returned


@given(st.binary())
def test_nothing_breaks_the_decoder(text: bytes) -> None:
    found, behind = values.split(text)
    values.result(behind)
    for argument in found:
        values.string(argument)
        values.descriptor(argument)
        values.strings(argument)
        values.address(argument)


@given(st.lists(st.binary(max_size=30), max_size=5), st.booleans())
def test_an_argv_comes_back(words: list[bytes], more: bool) -> None:
    shown = b"[" + b", ".join(b'"' + printed(word) + b'"' for word in words) + (b", ...]" if more else b"]")
    found, goes_on = values.strings(shown)
    assert [text.value for text in found] == words
    assert goes_on == more


def test_nested_brackets_and_remarks_belong_to_their_argument() -> None:
    text = b'3, {msg_name={sa_family=AF_INET}, msg_iov=[{iov_base="a), (", iov_len=5}]}, 0x7f /* 3 vars */) = -1 EAGAIN'
    found, behind = values.split(text)
    assert len(found) == 3
    assert found[2] == b"0x7f /* 3 vars */"
    assert values.result(behind) == Result(-1, b"EAGAIN")


def test_results() -> None:
    assert values.result(b" = 0").ok
    assert values.result(b" = -1 ENOENT (No such file or directory)") == Result(-1, b"ENOENT")
    assert not values.result(b" = -1 ENOENT (No such file or directory)").ok
    assert values.result(b" = ?") == Result(None)
    assert values.result(b" = ? <unavailable>") == Result(None)
    assert values.result(None) == Result(None)
    assert values.result(b" = 2 /* 15648 in strace's PID NS */").other_number == 15648


def test_addresses() -> None:
    v4 = b'{sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("127.0.0.1")}'
    assert values.address(v4) == Address("inet", "127.0.0.1:9")
    v6 = b'{sa_family=AF_INET6, sin6_port=htons(80), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::1", &sin6_addr)}'
    assert values.address(v6) == Address("inet6", "[::1]:80")
    assert values.address(b'{sa_family=AF_UNIX, sun_path="/run/a\\"b"}') == Address("unix", '/run/a"b', b'/run/a"b')
    assert values.address(b'{sa_family=AF_UNIX, sun_path=@"hid"}') == Address("unix", "@hid")
    assert values.address(b"{sa_family=AF_UNSPEC, sa_data=...}") is None
    assert values.address(b"NULL") is None
