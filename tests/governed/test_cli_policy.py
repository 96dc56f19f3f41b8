"""``veil policy`` as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
POLICY = """\
level = "allowlist"

[[rule]]
id = "read"
effect = "allow"
prefix = ["cat"]

[[rule]]
id = "no-push"
effect = "deny"
prefix = ["hg", "push"]
reason = "pushing is for people"

[[example]]
argv = ["cat", "in"]
expect = "allow"

[[example]]
argv = ["env", "hg", "-R", ".", "push"]
expect = "deny"

[[example]]
argv = ["cat", "../outside/secret"]
expect = "deny"
"""


def veil(*words: str, cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "veil", "policy", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def here(ws: Path) -> Path:
    (ws / "policy.toml").write_text(POLICY)
    return ws


def test_check(here: Path) -> None:
    code, out, err = veil("check", "policy.toml", cwd=here)
    assert (code, err) == (0, "")
    assert "level allowlist, 2 rules, 3 examples, sha256:" in out
    (here / "bad.toml").write_text("level = 'allowlist'\n\n[[rule]]\neffect = 'maybe'\n")
    code, out, err = veil("check", "bad.toml", cwd=here)
    assert (code, out) == (125, "")
    assert "bad.toml:4: rule.0.effect" in err
    code, out, _ = veil("check", "bad.toml", "--json", cwd=here)
    assert code == 125
    assert json.loads(out)["facts"]["line"] == 4
    assert veil("check", "nothing.toml", cwd=here)[0] == 125


def test_explain(here: Path) -> None:
    code, out, _ = veil("explain", "--policy", "policy.toml", "--", "timeout", "9", "hg", "-v", "push", cwd=here)
    assert code == 0
    assert out.splitlines()[0] == "deny"
    assert "no-push" in out
    assert "pushing is for people" in out
    code, out, _ = veil("explain", "--policy", "policy.toml", "--json", "--", "git", "push", cwd=here)
    told = json.loads(out)
    assert (told["argv"], told["answer"]) == (["git", "push"], "deny")
    assert told["reasons"][0]["rule"] == "builtin:git"
    told = json.loads(veil("explain", "--policy", "policy.toml", "--json", "--", "nosuch", cwd=here)[1])
    assert (told["answer"], told["missing"]) == ("ask", True)
    told = json.loads(veil("explain", "--policy", "policy.toml", "--json", "--", "cat", "/etc/passwd", cwd=here)[1])
    assert (told["answer"], told["reasons"][0]["rule"]) == ("deny", "builtin:outside_workspace")


def test_explain_takes_the_policy_of_the_project(here: Path) -> None:
    nested = POLICY.replace("[[", "[[tool.veil.policy.").replace("level =", "[tool.veil.policy]\nlevel =", 1)
    (here / "pyproject.toml").write_text(nested)
    code, out, _ = veil("explain", "--json", "--", "cat", "in", cwd=here)
    assert (code, json.loads(out)["answer"]) == (0, "allow")
    done = subprocess.run(
        [sys.executable, "-m", "veil", "run", "true"],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, "a policy in the project is no unknown setting" + done.stderr


def test_examples_are_tried(here: Path) -> None:
    code, out, err = veil("test", "policy.toml", cwd=here)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["line", "expect", "told", "argv"]
    assert out.splitlines()[-1] == "3 examples, 0 answered otherwise"
    text = POLICY + '\n[[example]]\nargv = ["cat", "a b", ""]\nexpect = "ask"\n'
    (here / "policy.toml").write_text(text)
    code, out, _ = veil("test", "policy.toml", cwd=here)
    assert code == 1
    assert "   26  ask     allow   cat 'a b' ''" in out
    assert out.splitlines()[-1] == "4 examples, 1 answered otherwise"
    told = json.loads(veil("test", "policy.toml", "--json", cwd=here)[1])
    assert told["ok"] is False
    assert [row["ok"] for row in told["examples"]] == [True, True, True, False]


def test_explain_without_a_policy_takes_an_empty_one(here: Path) -> None:
    for text in (None, "[project]\nname = 'x'\n"):
        if text is not None:
            (here / "pyproject.toml").write_text(text)
        told = json.loads(veil("explain", "--json", "--", "git", "push", cwd=here)[1])
        assert (told["answer"], told["reasons"][0]["rule"]) == ("deny", "builtin:git")
        assert json.loads(veil("explain", "--json", "--", "ls", cwd=here)[1])["answer"] == "ask"
    (here / "pyproject.toml").write_text("[tool.veil.policy]\nlevel = 'x'\n")
    assert veil("explain", "--", "ls", cwd=here)[0] == 125


def test_audit(here: Path) -> None:
    from veil.governed import Audit

    audit = Audit(here / "a")
    for number in range(3):
        audit.append("x", {"number": number})
    code, out, _ = veil("audit", "a", cwd=here)
    assert (code, out) == (0, f"3 lines, the last one {audit.head[1]}\n")
    lines = (here / "a").read_text().splitlines(keepends=True)
    (here / "a").write_text(lines[0] + lines[2])
    code, out, _ = veil("audit", "a", "--json", cwd=here)
    assert code == 1
    assert json.loads(out)["problems"] == ["before line 2 something was removed, added or moved"]
    assert veil("audit", "nothing", cwd=here)[0] == 125
