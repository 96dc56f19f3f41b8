"""Redaction and scrubbing through whole runs: what is kept, shown and heard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import veil

SECRET = "hunter2-Kx93-zzQ"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def kept_in(state: Path) -> list[Path]:
    return [path for path in state.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize("how", ["env of the process", "env of the run", "value given", "setting"])
def test_a_secret_is_nowhere(how: str, own_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, object] = {"redact": True}
    if how == "env of the process":
        monkeypatch.setenv("APP_PASSWORD", SECRET)
    elif how == "env of the run":
        options["env"] = {"APP_PASSWORD": SECRET}
    elif how == "value given":
        options = {"secrets": [SECRET]}
    else:
        monkeypatch.setenv("VEIL_REDACT", "1")
        options = {"env": {"APP_PASSWORD": SECRET}}
    heard: list[bytes] = []
    text = f"echo out {SECRET}; echo err {SECRET} >&2; exit 1"
    expect = {"stdout_contains": SECRET + "x", "stderr_contains": "err"}
    result = veil.run(text, expect=expect, on_output=lambda name, data: heard.append(data), **options)  # type: ignore[arg-type]
    assert result.exit == 1
    assert result.stdout.startswith("out ")
    assert result.stderr.startswith("err ")
    said = [result.command, result.stdout, result.stderr, result.view, repr(result), repr(result.record)]
    said += [json.dumps(result.to_dict()), veil.detail(result.id).text, b"".join(heard).decode()]
    assert [text for text in said if SECRET in text] == []
    assert kept_in(own_state) == []


def test_the_command_itself_gets_the_real_value(own_state: Path) -> None:
    result = veil.run(f"[ \"$APP_TOKEN\" = '{SECRET}' ] && echo same", env={"APP_TOKEN": SECRET}, redact=True)
    assert result.stdout == "same\n"


def test_without_redaction_the_bytes_are_the_commands_own(own_state: Path) -> None:
    result = veil.run(f"echo {SECRET}", env={"APP_TOKEN": SECRET})
    assert result.stdout == f"{SECRET}\n"
    assert kept_in(own_state) != []


def test_attempts_and_a_background_run_are_redacted_too(own_state: Path) -> None:
    tried = veil.run(f"echo {SECRET}; exit 1", retries=1, secrets=[SECRET])
    assert tried.attempts == 2
    handle = veil.start(f"echo {SECRET}; exit 1", secrets=[SECRET])
    assert SECRET not in handle.wait(60).stdout + handle.logs().stdout
    assert kept_in(own_state) == []


def test_without_the_store_nothing_is_on_disk(own_state: Path) -> None:
    veil.run("true")
    result = veil.run(f"echo {SECRET}", no_store=True)
    assert (result.stored, result.to_dict()["stored"]) == ("memory-only", "memory-only")
    assert veil.detail(result.id).result.stdout == f"{SECRET}\n"
    assert kept_in(own_state) == []


def test_a_weak_secret_is_refused_and_not_shown() -> None:
    for weak in ("short", "", "password"):
        with pytest.raises(veil.BadInput) as caught:
            veil.run("touch ran", secrets=["long enough to be one", weak])
        assert "secrets[1]" in str(caught.value)
        assert not weak or weak not in str(caught.value)
    assert not Path("ran").exists()


def test_scrubbed_names_leave_and_those_that_were_asked_for_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)
    result = veil.run("echo ${GITHUB_TOKEN-gone} ${MINE_TOKEN-gone}", scrub_env=True, env={"MINE_TOKEN": "asked"})
    assert result.stdout == "gone asked\n"
    assert result.to_dict()["secrets_env_scrubbed"] >= 1
    monkeypatch.setenv("VEIL_SCRUB_ENV", "1")
    assert veil.run("echo ${GITHUB_TOKEN-gone}").stdout == "gone\n"
    assert veil.run("echo ${GITHUB_TOKEN-gone}", scrub_env=False).stdout == f"{SECRET}\n"
    handle = veil.start("echo ${GITHUB_TOKEN-gone}")
    assert handle.wait(60).stdout == "gone\n"
