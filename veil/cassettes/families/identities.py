"""Values that say which one it is: numbered, so that the same stays the same and another stays another."""

from __future__ import annotations

import re

from veil.cassettes.normalise import Context, Normaliser, numbered

# lengths of digests in hex: sha512, sha384, sha256, sha224, sha1, md5
_WHOLE = (
    rb"(?<![0-9A-Za-z_])(?:[0-9a-f]{128}|[0-9a-f]{96}|[0-9a-f]{64}|[0-9a-f]{56}|[0-9a-f]{40}|[0-9a-f]{32})"
    rb"(?![0-9A-Za-z_])"
)
_SHORT = rb"[0-9a-f]{7,39}"
# only where git is known to write an abbreviated id
_GIT = (
    rb"^(?:commit |index |Merge: |HEAD is now at |Updating )(?P<a>" + _SHORT + rb")(?![0-9A-Za-z])"
    rb"(?:(?:\.\.\.?| )(?P<b>" + _SHORT + rb")(?![0-9A-Za-z]))?"
    rb"|^\[[^\]\n]+ (?P<c>" + _SHORT + rb")\]"
    rb"|^ [ +*-] (?P<d>" + _SHORT + rb")\.\.\.?(?P<e>" + _SHORT + rb") "
    rb"|^\^?(?P<f>(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,12}) (?=\S)"
)
_HASHES = re.compile(rb"(?P<whole>" + _WHOLE + rb")|" + _GIT, re.MULTILINE)
_SHORTEST = 7


def _hashes(text: bytes, context: Context) -> bytes:
    """Whole digests, and git's abbreviated ids; an abbreviation gets the number of the id that it stands for."""
    whole: dict[bytes, bytes] = {}
    for found in _HASHES.finditer(text):
        for value in found.groups():
            if value:
                key = value[:_SHORTEST]
                whole[key] = max(whole.get(key, b""), value, key=len)
    for value in context.values("hash"):
        whole[value[:_SHORTEST]] = max(whole.get(value[:_SHORTEST], b""), value, key=len)

    def token(value: bytes) -> bytes:
        longest = whole.get(value[:_SHORTEST], value)
        return context.token("hash", longest if longest.startswith(value) else value)

    def replace(found: re.Match[bytes]) -> bytes:
        parts, at = [], found.start()
        spans = sorted(found.span(n) for n in range(1, len(found.groups()) + 1) if found[n] is not None)
        for start, end in spans:
            parts += [text[at:start], token(text[start:end])]
            at = end
        return b"".join(parts) + text[at : found.end()]

    return _HASHES.sub(replace, text)


def _pids(text: bytes, context: Context) -> bytes:
    """Process ids where the words around say so, and the ids that the run is known to have had."""
    known = [value.encode() for value in context.known.get("pid", ()) if value.isascii() and value.isdigit()]
    long = b"|".join(value for value in known if len(value) >= _CLEAR)
    short = b"|".join(value for value in known if len(value) == _CLEAR - 1)
    bare = rb"|(?<![\w.:/-])(?P<known>" + long + rb")(?![\w:/-]|\.[0-9])" if long else b""
    bare += rb"|^(?P<alone>" + short + rb")$" if short else b""
    pattern = re.compile(_PID + bare, re.MULTILINE | re.IGNORECASE)

    def replace(found: re.Match[bytes]) -> bytes:
        name = found.lastgroup
        assert name is not None  # every alternative has one named group
        start, end = found.span(name)
        return text[found.start() : start] + context.token("pid", found[name]) + text[end : found.end()]

    return pattern.sub(replace, text)


#: A known process id of so many digits is looked for among other text; one digit shorter, only on a line of its own;
#: with still fewer not at all: it would be found in any table of numbers.
_CLEAR = 4
_PID = (
    rb"\b(?:pid|ppid|process id)(?: is)?[ =:]{1,2}#?(?P<said>[0-9]{2,7})(?![0-9.])"
    rb"|^==(?P<valgrind>[0-9]{2,7})=="
    rb"|(?<=[A-Za-z])\[(?P<syslog>[0-9]{2,7})\](?=:)"
    rb"|^\[[0-9]+\][ +-]+(?P<job>[0-9]{2,7})$"
)

#: A lower port was chosen by somebody and is worth comparing.
_EPHEMERAL = rb"(?P<value>3276[89]|327[7-9][0-9]|32[89][0-9]{2}|3[3-9][0-9]{3}|[456][0-9]{4})(?![0-9])"

FAMILY = (
    numbered("uuids", 1, "uuids in their usual form", "uuid",
             rb"(?<![0-9A-Za-z-])(?P<value>[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})(?![0-9A-Za-z-])"),
    Normaliser("hashes", 1, "digests of 32 to 128 hex digits, and git's abbreviated ids", False, ("hash",), _hashes),
    numbered("addresses", 1, "memory addresses: 0x and 6 to 16 hex digits", "address",
             rb"(?<![0-9A-Za-z_])(?P<value>0x[0-9A-Fa-f]{6,16})(?![0-9A-Za-z_])"),
    Normaliser("pids", 1, "process ids: where words say so, and those known of the run", False, ("pid",), _pids),
    numbered("ports", 1, "ephemeral ports (32768 and up) behind an address or the word port", "port",
             rb"(?:(?:127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1?\]|::1?):|\b[Pp]ort[ =:]{1,2})" + _EPHEMERAL),
)  # fmt: skip
