"""Known secret values are taken out of streams and texts before anything is kept.

Covered: the value itself and the spellings of ``veil.secrets.encodings``, wherever they stand, also across the borders
of chunks. Not covered: base64 or hex broken into lines or groups (``base64`` of more than 57 bytes, ``xxd``), base32,
UTF-16, two encodings on top of each other (JSON in JSON is covered), a value printed backwards, with other signs in
between or in pieces by a program that means to, and values shorter than ``MIN_BYTES``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from veil.model.errors import BadInput
from veil.secrets.encodings import spellings
from veil.secrets.names import carries_secret, is_secret_name, passwords_in
from veil.secrets.shapes import TOKEN

#: Shorter values would redact ordinary text.
MIN_BYTES = 8
#: A half-written secret at the very end of a stream is redacted from this share of its length on.
_HALF = 2

_COMMON = frozenset(
    b"""
    password password1 passw0rd changeme changeit changethis postgres postgresql username anonymous disabled
    localhost development production undefined required optional internal external default1 unlimited
    administrator example12 12345678 123456789 1234567890 qwertyuiop iloveyou sunshine abcdefgh testtest test1234
    testing1 secret123 password123 disabled1 placeholder not-needed notneeded your-token your_token_here your-api-
    key sk-placeholder redacted [redacted] dummy-key dummy-token test-key test-token fake-key fake-token mysecret
    mypassword supersecret
    """.split()
)
_POINTERS = frozenset({"GOOGLE_APPLICATION_CREDENTIALS", "NETRC"})
_PLAIN_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]{0,40}://?[^@]*")


def too_weak(value: bytes) -> str | None:
    """Why a value cannot be redacted without hurting ordinary text, or ``None``."""
    core = value.strip()
    if len(core) < MIN_BYTES:
        return f"at least {MIN_BYTES} bytes, blanks around it not counted"
    if len(set(core)) < 4:
        return "at least 4 different characters"
    if core.lower() in _COMMON:
        return "something that is not a common word"
    if core.isdigit() and len(core) < 12:
        return "something else than a short number"
    return None


class SecretSet:
    """Secret values and all their spellings, immutable and shared by every stream of a run. False when empty."""

    def __init__(self, values: Iterable[bytes] = ()) -> None:
        """``values``: taken as they are; ``of`` is the careful way."""
        self._values = tuple(sorted({value for value in values if value}))

    @classmethod
    def of(cls, env: Mapping[str, str], extra: Iterable[str | bytes] = (), *, argument: str = "extra") -> SecretSet:
        """The values of the secret variables in ``env`` that are strong enough to be told from ordinary text, and those
        in ``extra``.

        Of an address with a password, the password counts too. Raises ``BadInput`` for an extra value that is too
        short or too common: it is named by its position, never shown.
        """
        found: set[bytes] = set()
        for name, value in env.items():
            found.update(part for part in _parts(name, value) if too_weak(part) is None)
        for place, given in enumerate([extra] if isinstance(extra, (str, bytes)) else extra):
            where = f"{argument}[{place}]"
            if not isinstance(given, (str, bytes)):
                raise BadInput(where, type(given).__name__, "a secret value as text or bytes")
            raw = _encoded(given) if isinstance(given, str) else given
            reason = too_weak(raw)
            if reason is not None:
                raise BadInput(where, f"a value of {len(raw)} bytes", f"a secret value: {reason}")
            found.add(raw)
        return cls(found)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<SecretSet of {len(self._values)}>"

    def redactor(self) -> Redactor:
        """A new one, for one stream."""
        return Redactor(self)

    def redact(self, data: bytes) -> bytes:
        """Bytes that are whole already."""
        if not self._values or not self._needles.may_be_in(data):
            return data
        stream = self.redactor()
        return stream.feed(data) + stream.finish()

    def redact_text(self, text: str) -> str:
        """A text that is whole already (the command, an argument, metadata)."""
        if not self._values or not text:
            return text
        return _decoded(self.redact(_encoded(text)), text)

    @property
    def _needles(self) -> _Needles:
        return _needles_of(self._values)


class Redactor:
    """Redaction of one stream. Not for several threads at once.

    Every stretch of bytes covered by secrets becomes one ``[redacted]``, however the stream is cut into chunks. Bytes
    that could still become a secret are held back (never more than the longest spelling), so nothing that is given out
    ends in a part of one that goes on. When the stream ends inside a secret, what was written of it goes when it is at
    least half.
    """

    def __init__(self, secrets: SecretSet | Iterable[bytes]) -> None:
        chosen = secrets if isinstance(secrets, SecretSet) else SecretSet(secrets)
        self._needles = chosen._needles if chosen else None
        self._held = b""
        # bytes at the start of _held that a secret covers whose token was given out already
        self._covered = 0

    def feed(self, data: bytes) -> bytes:
        """The next bytes that can be shown."""
        if self._needles is None:
            return data
        return self._run(self._needles, self._held + data, last=False) if data else b""

    def finish(self) -> bytes:
        """The rest. Afterwards the redactor is as new."""
        if self._needles is None:
            return b""
        rest = self._run(self._needles, self._held, last=True)
        self._held, self._covered = b"", 0
        return rest

    def _run(self, needles: _Needles, data: bytes, *, last: bool) -> bytes:
        shown: list[bytes] = []
        token = TOKEN.encode()
        done = self._covered  # everything before is given out or covered
        for start, end in needles.found(data, last):
            if end is None:
                pending = start
                break
            if start < done:
                done = max(done, end)
                continue
            shown += (data[done:start], token)
            done = end
        else:
            pending = len(data)
        if done < pending:
            shown.append(data[done:pending])
        self._held = data[pending:]
        self._covered = max(0, done - pending)
        return b"".join(shown)


class _Needles:
    """The spellings, found by their first bytes."""

    def __init__(self, values: tuple[bytes, ...]) -> None:
        every = {spelled for value in values for spelled in spellings(value) if len(spelled) >= MIN_BYTES}
        self._by_prefix: dict[bytes, tuple[bytes, ...]] = {}
        for spelled in sorted(every, key=len, reverse=True):
            prefix = spelled[:MIN_BYTES]
            self._by_prefix[prefix] = (*self._by_prefix.get(prefix, ()), spelled)
        self._pattern = re.compile(_alternation(sorted(self._by_prefix)), re.DOTALL)
        self._short = frozenset(prefix[:size] for prefix in self._by_prefix for size in range(1, MIN_BYTES))

    def may_be_in(self, data: bytes) -> bool:
        """False: in bytes that are whole there is none, nor half of one."""
        return self._pattern.search(data) is not None

    def found(self, data: bytes, last: bool) -> Iterable[tuple[int, int | None]]:
        """Start and end of the longest needle at each place where one begins, in order. Before the ``last`` bytes are
        known, the search stops with ``(start, None)`` at the first place where one may begin that is not all there."""
        search = self._pattern.search
        match = search(data)
        while match is not None:
            start = match.start()
            left = len(data) - start
            best = None
            for needle in self._by_prefix[match[0]]:  # longest first
                if left < len(needle):
                    if needle.startswith(data[start:]):
                        if not last:
                            yield start, None
                            return
                        if left * _HALF >= len(needle):
                            best = len(data)
                            break
                elif data.startswith(needle, start):
                    best = start + len(needle)
                    break
            if best is not None:
                yield start, best
            match = search(data, start + 1)
        if not last:
            for start in range(max(0, len(data) - MIN_BYTES + 1), len(data)):
                if data[start:] in self._short:
                    yield start, None
                    return


@lru_cache(maxsize=32)
def _needles_of(values: tuple[bytes, ...]) -> _Needles:
    return _Needles(values)


def _alternation(prefixes: list[bytes]) -> bytes:
    """A pattern for any of the texts (all of one length), branching by their first and second byte, so that a place in
    the data is dismissed after a glance."""
    groups: dict[bytes, dict[bytes, list[bytes]]] = {}
    for prefix in prefixes:
        groups.setdefault(prefix[:1], {}).setdefault(prefix[1:2], []).append(re.escape(prefix[2:]))
    branches = []
    for first, seconds in groups.items():
        inner = [re.escape(second) + b"(?:" + b"|".join(rest) + b")" for second, rest in seconds.items()]
        branches.append(re.escape(first) + b"(?:" + b"|".join(inner) + b")")
    return b"|".join(branches)


def _parts(name: str, value: str) -> list[bytes]:
    """The texts in a variable that must not be shown."""
    by_name = is_secret_name(name) and name.upper() not in _POINTERS
    if not by_name and not carries_secret(value):
        return []
    inner = passwords_in(value)
    # DATABASE_URL=sqlite:///x.db holds no secret; the address of a webhook is one
    harmless = _PLAIN_ADDRESS.fullmatch(value) is not None and not value.lower().startswith("http")
    whole = [] if harmless and not inner else [value]
    return [_encoded(part) for part in (*whole, *inner)]


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a surrogate pair, as JSON may bring
        return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes, origin: str) -> str:
    try:
        origin.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return data.decode("utf-8", "surrogatepass")
    return data.decode("utf-8", "surrogateescape")
