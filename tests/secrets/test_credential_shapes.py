"""Text that looks like a credential, and text that does not."""

from __future__ import annotations

import base64
import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.secrets.shapes import CREDENTIAL_SHAPES, TOKEN, has_shape, redact_shapes, shapes_in

A = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"  # 36 letters and digits
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA\nabc+/=\n-----END RSA PRIVATE KEY-----"
)
HEADER = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
CLAIMS = base64.urlsafe_b64encode(b'{"sub":"1234567890"}').decode().rstrip("=")

WHOLE = {
    "GitHub token": f"ghp_{A}",
    "GitHub fine-grained token": f"github_pat_{A}_{A}",
    "GitLab token": f"glpat-{A[:20]}",
    "model provider key": f"sk-ant-api03-{A}",
    "Stripe key": f"sk_live_{A[:24]}",
    "AWS key id": "AKIAIOSFODNN7EXAMPLE",
    "Slack token": f"xoxb-1234567890-{A[:24]}",
    "Slack app token": f"xapp-1-{A[:24]}",
    "Google API key": f"AIza{A[:35]}",
    "Google access token": f"ya29.{A}",
    "npm token": f"npm_{A}",
    "PyPI token": f"pypi-AgEIcHlwaS5vcmc{A}{A}",
    "Hugging Face token": f"hf_{A[:34]}",
    "Docker token": f"dckr_pat_{A[:27]}",
    "DigitalOcean token": "dop_v1_" + "0a" * 32,
    "SendGrid key": f"SG.{A[:22]}.{A}{A[:7]}",
    "Shopify token": "shpat_" + "0a" * 16,
    "Databricks token": "dapi" + "0a" * 16,
    "Telegram bot token": f"123456789:AA{A[:33]}",
    "age key": "AGE-SECRET-KEY-1" + "Q" * 58,
    "JSON web token": f"{HEADER}.{CLAIMS}.{A}",
    "private key": KEY,
}
FRAMED = {
    "Slack webhook": ("https://hooks.slack.com/services/", f"T00000000/B00000000/{A[:24]}", ""),
    "Discord webhook": ("https://discord.com/api/webhooks/", f"123456789012345678/{A}", ""),
    "authorization header": ("Authorization: Basic ", "dXNlcjpwYXNz", "\r\n"),
    "bearer token": ("using bearer ", A, ""),
    "key header": ('"x-api-key": "', A, '"'),
    "token header": ("PRIVATE-TOKEN: ", A, ""),
    "password in an address": ("postgres://app:", "hunter2", "@db/app"),
}


def test_every_shape_has_an_example() -> None:
    assert {shape.name for shape in CREDENTIAL_SHAPES} == WHOLE.keys() | FRAMED.keys()


@pytest.mark.parametrize("name", WHOLE)
def test_a_credential_goes(name: str) -> None:
    text = WHOLE[name]
    for before, after in [("", ""), ("key=", "\n"), ('"', '"'), ("(", ")")]:
        assert redact_shapes(before + text + after) == before + TOKEN + after
        assert redact_shapes((before + text + after).encode()) == (before + TOKEN + after).encode()
    assert has_shape(text)
    assert shapes_in(f"x {text} y") == [text]


@pytest.mark.parametrize("name", FRAMED)
def test_what_frames_a_credential_stays(name: str) -> None:
    before, text, after = FRAMED[name]
    assert redact_shapes(before + text + after) == before + TOKEN + after
    assert text in shapes_in(before + text + after)


@pytest.mark.parametrize("name", ["Authorization: Bearer ", "authorization=token ", "'Authorization': 'Bearer "])
def test_headers_in_several_spellings(name: str) -> None:
    assert redact_shapes(name + A + "\n") == name + TOKEN + "\n"


def test_a_private_key_in_json_and_one_cut_off() -> None:
    assert redact_shapes(json.dumps({"k": KEY})) == json.dumps({"k": TOKEN})
    cut = "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nMIIEpAIBAAKCAQEA"
    assert redact_shapes(cut + "\nordinary text follows") == f"{TOKEN}\nordinary text follows"


PLAIN = [
    "commit 4f88d8d1a2b3c4d5e6f708192a3b4c5d6e7f8091",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    str(uuid.UUID(int=2**100)),
    base64.b64encode(b"the quick brown fox jumps over the lazy dog, twice and thrice").decode(),
    "integrity sha512-" + base64.b64encode(bytes(range(64))).decode(),
    "class='sk-loading-spinner-container-wrapper sk-chasing-dots-animated'",
    "task-0123456789-Abcdefghij disk-0123456789ABCDEFGHIJ risk-Assessment2024Report00",
    "npm_config_registry_something_quite_long_indeed_0 npm_lifecycle_event",
    "AKIAPPLES AKIA1234 MAKIAIOSFODNN7EXAMPLE",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0123456789 user@host",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <token>",
    "Authorization: Basic authentication is required",
    "the bearer of this message-has-no-token-whatsoever",
    "http://localhost:8080/@scope/pkg",
    "git@github.com:org/repo.git ssh://git@host:22/x",
    "postgres://app:${PASSWORD}@db postgres://app:$PW@db",
    "hf_hub_download hf_transfer ghp_short glpat-x xoxb- pypi-upload",
    "eyJ is how they begin. eyJhbGci.and.so",
    "https://hooks.slack.com/services/",
    "discord.com/api/webhooks/",
    "x-api-key: required, api-key: <your key>",
    "12:34:56 2024-01-01T00:00:00Z 10.0.0.1:8080",
    "skeleton sk-learn sk_test ya29 AIza SG. dapi",
    "C:\\Users\\x /usr/lib/python3.11/site-packages/pip/_vendor/rich/console.py",
]


@pytest.mark.parametrize("text", PLAIN)
def test_ordinary_text_stays(text: str) -> None:
    assert redact_shapes(text) is text
    assert redact_shapes(text.encode()) == text.encode()
    assert not has_shape(text)
    assert shapes_in(text) == []


HOSTILE = [
    "sk-",
    "eyJ",
    "eyJa-",
    "eyJaaaaaaaaa.",
    "ghp_",
    "xoxb-1",
    "a:",
    "a://",
    "://a:",
    "- -",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAA\n",
    "-----BEGIN PRIVATE KEY----- - - - ",
    "authorization: bearer ",
    "bearer a ",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_takes_linear_work(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    assert redact_shapes(redact_shapes(text)) is not None
    assert len(redact_shapes(text.encode())) <= len(text) * 4


@given(st.binary(max_size=200))
def test_bytes_and_text_agree(data: bytes) -> None:
    text = data.decode("latin-1")
    assert redact_shapes(data) == redact_shapes(text).encode("latin-1")
