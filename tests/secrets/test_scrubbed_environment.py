"""The layer that takes secrets out of the child's environment, with a real child."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from veil.layers.scrub_env import ScrubEnvLayer
from veil.model.command import Command, Request, ScrubEnv
from veil.model.outcome import Findings, Outcome
from veil.model.plan import Launch, Place, Plan
from veil.secrets.names import is_secret_value

PRINT = (sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))")


def scrubbed(env: dict[str, str], asked: dict[str, str | None] | None = None) -> tuple[dict[str, str], Findings]:
    """The environment that a child sees, and what the layer found."""
    layer = ScrubEnvLayer(is_secret_value)
    plan = Plan(Request(Command(PRINT, "/", env=tuple(sorted((asked or {}).items())))))
    whole = {**env, **{name: value for name, value in (asked or {}).items() if value is not None}}
    launch = Launch(PRINT, "/", whole, stdin=b"x", tag="t1")
    assert layer.unavailable(ScrubEnv(), plan) is None
    entered = layer.enter(ScrubEnv(), launch, plan)
    used = next(entered)
    assert (used.argv, used.cwd, used.stdin, used.tag) == (launch.argv, launch.cwd, launch.stdin, launch.tag)
    assert dict(launch.env) == whole
    out = subprocess.run(used.argv, env=dict(used.env), capture_output=True, check=True).stdout
    try:
        entered.send(Outcome("exited", 0))
    except StopIteration as stop:
        return json.loads(out), stop.value
    raise AssertionError("the layer yielded twice")


def test_scrub_06_secrets_go_and_the_rest_stays() -> None:
    # the count is all that is told: neither names nor values
    kept = {"TOKENIZERS_PARALLELISM": "false", "PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LANG": "C.UTF-8"}
    secret = {"AWS_SECRET_ACCESS_KEY": "x", "GITHUB_PAT": "y", "DATABASE_URL": "sqlite:///x", "EMPTY_TOKEN": ""}
    seen, found = scrubbed({**kept, **secret, "PROXY": "http://u:pw@proxy:1"})
    assert kept.items() <= seen.items()
    assert not (secret.keys() | {"PROXY"}) & seen.keys()
    assert found == Findings(notes={"secrets_env_scrubbed": 5})


def test_what_was_asked_for_stays() -> None:
    seen, found = scrubbed({"GH_TOKEN": "inherited", "NPM_TOKEN": "n"}, {"GH_TOKEN": "given", "PATH": None})
    assert seen["GH_TOKEN"] == "given"
    assert "NPM_TOKEN" not in seen
    assert found.notes == {"secrets_env_scrubbed": 1}


def test_nothing_found_is_said() -> None:
    _, found = scrubbed({"PATH": "/bin"})
    assert found.notes == {"secrets_env_scrubbed": 0}


def test_git_still_works_when_a_header_was_in_its_environment() -> None:
    env: dict[str, Any] = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "http.https://example.org/.extraheader",
        "GIT_CONFIG_VALUE_0": "AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46Z2hz",
        "GIT_CONFIG_KEY_1": "user.name",
        "GIT_CONFIG_VALUE_1": "Somebody",
    }
    seen, found = scrubbed(env)
    assert found.notes == {"secrets_env_scrubbed": 1}
    assert seen["GIT_CONFIG_VALUE_0"] == ""
    out = subprocess.run(["git", "config", "user.name"], env=seen, capture_output=True, check=True, text=True).stdout
    assert out == "Somebody\n"


def test_it_guards() -> None:
    layer = ScrubEnvLayer(is_secret_value)
    assert (layer.name, layer.place, layer.needed, layer.grants) == ("scrub_env", Place.GUARD, True, ScrubEnv)
