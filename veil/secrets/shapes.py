"""Text in the shape of a known kind of credential, whatever variable it came from.

Only shapes with a mark of their own are listed (a prefix, a frame, a header name), so that a git hash, a UUID or a
base64 text stays. Each repetition is bounded or starts at a border of a word, so that searching takes time linear in
the text. Not covered: credentials without a mark (a plain password, an AWS secret key, a hex token), and shapes that
are not listed here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import AnyStr

#: What stands in the place of a credential.
TOKEN = "[redacted]"


@dataclass(frozen=True)
class Shape:
    """Attributes: name: what it is. pattern: for ``re``; when it has a group, the group is the credential and the rest
    is its frame. mark: a text in lower case that every match holds, which makes looking for it cheap."""

    name: str
    pattern: str
    mark: str


_EDGE = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9_-])"
# a digit and a capital: no hyphenated words
_MIXED = r"(?=[A-Za-z+/=._~-]{0,200}[0-9])(?=[a-z0-9+/=._~-]{0,200}[A-Z])"

CREDENTIAL_SHAPES: tuple[Shape, ...] = (
    Shape("GitHub token", _EDGE + r"gh[pousr]_[A-Za-z0-9]{36,255}", "gh"),
    Shape("GitHub fine-grained token", _EDGE + r"github_pat_[A-Za-z0-9_]{22,255}", "github_pat_"),
    Shape("GitLab token", _EDGE + r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,255}", "gl"),
    Shape("model provider key", _EDGE + r"sk-" + _MIXED + r"[A-Za-z0-9_-]{20,255}", "sk-"),
    Shape("Stripe key", _EDGE + r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,255}", "k_"),
    Shape("AWS key id", _EDGE + r"(?:AKIA|ASIA)[A-Z2-7]{16}" + _END, "ia"),
    Shape("Slack token", _EDGE + r"xox[abeprs]-[A-Za-z0-9-]{10,255}", "xox"),
    Shape("Slack app token", _EDGE + r"xapp-[0-9]-[A-Za-z0-9-]{10,255}", "xapp-"),
    Shape("Slack webhook", r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9+/_-]{20,255})", "hooks.slack.com"),
    Shape("Discord webhook", r"discord(?:app)?\.com/api/webhooks/([0-9]{10,30}/[A-Za-z0-9_-]{30,255})", "webhooks"),
    Shape("Google API key", _EDGE + r"AIza[0-9A-Za-z_-]{35}" + _END, "aiza"),
    Shape("Google access token", _EDGE + r"ya29\.[0-9A-Za-z_-]{20,2000}", "ya29."),
    Shape("npm token", _EDGE + r"npm_[A-Za-z0-9]{36}" + _END, "npm_"),
    Shape("PyPI token", _EDGE + r"pypi-AgE[A-Za-z0-9_-]{50,2000}", "pypi-age"),
    Shape("Hugging Face token", _EDGE + r"hf_[A-Za-z0-9]{34,100}" + _END, "hf_"),
    Shape("Docker token", _EDGE + r"dckr_[po]at_[A-Za-z0-9_-]{20,100}", "dckr_"),
    Shape("DigitalOcean token", _EDGE + r"do[opr]_v1_[a-f0-9]{64}" + _END, "_v1_"),
    Shape("SendGrid key", _EDGE + r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}" + _END, "sg."),
    Shape("Shopify token", _EDGE + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}" + _END, "shp"),
    Shape("Databricks token", _EDGE + r"dapi[a-f0-9]{32}(?:-[0-9])?" + _END, "dapi"),
    Shape("Telegram bot token", _EDGE + r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}" + _END, ":aa"),
    Shape("age key", _EDGE + r"AGE-SECRET-KEY-1[A-Z0-9]{58}" + _END, "age-secret-key-1"),
    Shape("JSON web token", _EDGE + r"eyJ[\w-]{8,4000}\.eyJ[\w-]{8,8000}\.[\w-]{10,2000}", "eyj"),
    Shape(
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]{0,20000}(?:-(?!----)[^-]{0,20000}){0,50}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        # cut off before its end: the lines of base64 that follow
        r"|(?:(?:\\[nr]|\s){1,9}[A-Za-z0-9+/=]{16,200}){0,2000})",
        "private key",
    ),
    Shape(
        "authorization header",
        r"(?i:authorization[\"']?\s{0,5}[:=]\s{0,5}[\"']?(?:bearer|basic|token|digest)\s{1,5})"
        r"(?=[a-z+/._~-]{0,200}[A-Z0-9=])([A-Za-z0-9+/=._~-]{8,4000})",  # "basic authentication" is none
        "authorization",
    ),
    Shape("bearer token", r"(?i:\bbearer\s{1,5})" + _MIXED + r"([A-Za-z0-9+/=._~-]{20,4000})", "bearer"),
    Shape(
        "key header",
        r"(?i:\b(?:x-)?api-key[\"']?\s{0,5}[:=]\s{0,5}[\"']?)([A-Za-z0-9+/=._~-]{16,4000})",
        "api-key",
    ),
    Shape(
        "token header",
        r"(?i:\b(?:x-auth|private|x-vault|x-amz-security)-token[\"']?\s{0,5}[:=]\s{0,5}[\"']?)"
        r"([A-Za-z0-9+/=._~-]{16,4000})",
        "-token",
    ),
    Shape(
        "password in an address",
        r"\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/?#:@\"'<>]{0,256}:(?![$<{*])([^\s/?#@\"'<>]{1,256})@",
        "://",
    ),
)


@lru_cache(maxsize=1)
def _for_text() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(shape.pattern, re.ASCII), shape.mark) for shape in CREDENTIAL_SHAPES)


@lru_cache(maxsize=1)
def _for_bytes() -> tuple[tuple[re.Pattern[bytes], bytes], ...]:
    return tuple((re.compile(shape.pattern.encode()), shape.mark.encode()) for shape in CREDENTIAL_SHAPES)


@lru_cache(maxsize=1)
def _marks() -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(mark for _, mark in _for_bytes()))


@lru_cache(maxsize=1)
def _text_marks() -> tuple[str, ...]:
    return tuple(dict.fromkeys(mark for _, mark in _for_text()))


def has_shape(text: str) -> bool:
    """Whether a credential of a known shape stands in the text."""
    low = text.lower()
    if not any(map(low.__contains__, _text_marks())):
        return False
    return any(mark in low and pattern.search(text) is not None for pattern, mark in _for_text())


def shapes_in(text: str) -> list[str]:
    """Every credential of a known shape that stands in the text, without its frame."""
    low = text.lower()
    return [
        match[1] if pattern.groups else match[0]
        for pattern, mark in _for_text()
        if mark in low
        for match in pattern.finditer(text)
    ]


def redact_shapes(data: AnyStr) -> AnyStr:
    """The text or bytes with every credential of a known shape replaced by ``[redacted]``. What frames it (the name of
    a header, the user of an address) stays. Text without one comes back as it is."""
    if isinstance(data, str):
        low = data.lower()
        for pattern, mark in _for_text():
            if mark in low:
                data = pattern.sub(_text_replaced, data)
                low = data.lower()
        return data
    small = data.lower()
    if not any(map(small.__contains__, _marks())):
        return data
    for binary, sign in _for_bytes():
        if sign in small:
            data = binary.sub(_bytes_replaced, data)
            small = data.lower()
    return data


def _text_replaced(match: re.Match[str]) -> str:
    if not match.re.groups:
        return TOKEN
    start, end = (place - match.start() for place in match.span(1))
    return match[0][:start] + TOKEN + match[0][end:]


def _bytes_replaced(match: re.Match[bytes]) -> bytes:
    if not match.re.groups:
        return TOKEN.encode()
    start, end = (place - match.start() for place in match.span(1))
    return match[0][:start] + TOKEN.encode() + match[0][end:]
