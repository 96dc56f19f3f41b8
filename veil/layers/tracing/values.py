"""Values as strace prints them: strings, descriptors with their paths, lists, results, addresses of sockets."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    rb'"(?:[^"\\]|\\.)*"(?:\.\.\.)?'  # a string
    rb"|<[^<>\n]*>"  # what a descriptor is: < and > are escaped within
    rb"|/\*.*?\*/"  # a remark
    rb"|[\[\](){},]"
    rb'|[^"<\[\](){},/]+|.',
    re.DOTALL,
)
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}
_STRING = re.compile(rb'(@?)"((?:[^"\\]|\\.)*)"(\.\.\.)?', re.DOTALL)
_DESCRIPTOR = re.compile(rb"(AT_FDCWD|-?\d+)(?:<([^<>]*)>(\(deleted\))?)?")
_RESULT = re.compile(rb"\s*= (-?\d+|0x[0-9a-f]+|\?)(?:<([^<>]*)>(\(deleted\))?)?(?:[ ]([A-Z][A-Z0-9_]*))?")
_OTHER_NUMBER = re.compile(rb"/\* (\d+) in strace's PID NS \*/")
_V4 = re.compile(rb'sin_port=htons\((\d+)\), sin_addr=inet_addr\("([^"]*)"\)')
_V6 = re.compile(rb'sin6_port=htons\((\d+)\).*?inet_pton\(AF_INET6, "([^"]*)"')
_FAMILY = re.compile(rb"sa_family=(\w+)")
_UNIX = re.compile(rb'sun_path=(@?"(?:[^"\\]|\\.)*")', re.DOTALL)


class Text(NamedTuple):
    """A string argument. ``cut``: there was more of it than strace printed."""

    value: bytes
    cut: bool


class Descriptor(NamedTuple):
    """A descriptor argument or result. ``number`` is ``None`` for AT_FDCWD; ``path``: what it leads to, if told."""

    number: int | None
    path: bytes | None
    deleted: bool = False


class Result(NamedTuple):
    """What a call returned. ``error``: the name of its errno; ``opened``: where a returned descriptor leads to."""

    value: int | None
    error: bytes | None = None
    opened: Descriptor | None = None
    other_number: int | None = None

    @property
    def ok(self) -> bool:
        return self.error is None and self.value is not None and self.value >= 0


def unescaped(text: bytes) -> bytes:
    """The bytes that a printed string stands for."""
    if b"\\" not in text:
        return text
    return _ESCAPE.sub(_one, text)


def _one(found: re.Match[bytes]) -> bytes:
    code: bytes = found[1]
    if code[:1] == b"x" and len(code) == 3:
        return bytes((int(code[1:], 16),))
    if code[:1].isdigit() and code[0] < 0x38:
        return bytes((int(code, 8) & 0xFF,))
    return _LETTERS.get(code, code)


def string(argument: bytes) -> Text | None:
    """A quoted argument; ``None`` for a null pointer or an address that could not be read."""
    found = _STRING.fullmatch(argument)
    return None if found is None else Text(unescaped(found[2]), found[3] is not None)


def descriptor(argument: bytes) -> Descriptor | None:
    """``AT_FDCWD</folder>`` or ``3</file>``."""
    found = _DESCRIPTOR.fullmatch(argument)
    if found is None:
        return None
    number = None if found[1] == b"AT_FDCWD" else int(found[1])
    return Descriptor(number, None if found[2] is None else unescaped(found[2]), found[3] is not None)


def split(text: bytes) -> tuple[list[bytes], bytes | None]:
    """The arguments at the start of ``text``, and what is behind their closing bracket (``None``: it never came)."""
    arguments: list[bytes] = []
    depth, start = 0, 0
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if len(sign) > 1:
            continue
        if sign == b"," and not depth:
            arguments.append(text[start : token.start()].strip())
            start = token.end()
        elif sign in b"([{":
            depth += 1
        elif sign in b")]}":
            if not depth:
                last = text[start : token.start()].strip()
                return [*arguments, last] if last or arguments else [], text[token.end() :]
            depth -= 1
    last = text[start:].strip()
    return [*arguments, last] if last else arguments, None


def result(text: bytes | None) -> Result:
    """What stands behind the arguments."""
    found = None if text is None else _RESULT.match(text)
    if found is None or found[1] == b"?":
        return Result(None)
    value = int(found[1], 0)
    other = _OTHER_NUMBER.search(text, found.end()) if text is not None else None
    opened = None
    if found[2] is not None:
        opened = Descriptor(value, unescaped(found[2]), found[3] is not None)
    return Result(value, found[4] if value < 0 else None, opened, None if other is None else int(other[1]))


def strings(argument: bytes) -> tuple[list[Text], bool]:
    """A list of strings (an argv), and whether it goes on beyond what was printed."""
    if not argument.startswith(b"["):
        return [], True
    found: list[Text] = []
    parts, _ = split(argument[1:])
    for part in parts:
        one = string(part)
        if one is None:
            return found, True
        found.append(one)
    return found, not argument.endswith(b"]")


class Address(NamedTuple):
    """Where a socket was to lead. ``family``: ``inet``, ``inet6``, ``unix`` or another word of strace's in small
    letters. ``path``: of a unix socket that has one in the file system."""

    family: str
    name: str
    path: bytes | None = None


def address(argument: bytes) -> Address | None:
    """``{sa_family=AF_INET, ...}``; ``None`` when there is no address in it."""
    family = _FAMILY.search(argument)
    if family is None or family[1] == b"AF_UNSPEC":
        return None
    v4 = _V4.search(argument)
    if v4 is not None:
        return Address("inet", f"{v4[2].decode('ascii', 'replace')}:{int(v4[1])}")
    v6 = _V6.search(argument)
    if v6 is not None:
        return Address("inet6", f"[{v6[2].decode('ascii', 'replace')}]:{int(v6[1])}")
    unix = _UNIX.search(argument)
    if unix is not None:
        abstract = unix[1].startswith(b"@")
        value = unescaped(_STRING.fullmatch(unix[1])[2])  # type: ignore[index]  # it is made of what _UNIX matched
        name = value.decode("utf-8", "surrogateescape")
        return Address("unix", f"@{name}" if abstract else name, None if abstract else value)
    return Address(family[1].decode().removeprefix("AF_").lower(), "")
