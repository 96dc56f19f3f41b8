"""Labels: what may be given to which program."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from bounds import allow, bounded, kinds, script

from veil.governed import Clearances, Denied, Label, Policy, Scripted
from veil.model.errors import BadInput
from veil.policy.labels import carried
from veil.policy.launchers import Seen

LABELS = (("keys/**", "secret"), ("*.csv", "internal"), ("open.csv", "public"))


@pytest.fixture
def keyed(ws: Path) -> Path:
    (ws / "keys" / "deep").mkdir(parents=True)
    (ws / "keys" / "deep" / "id").write_text("key\n")
    (ws / "a.csv").write_text("1\n")
    (ws / "open.csv").write_text("2\n")
    (ws / "alias").symlink_to("keys/deep/id")
    return ws


def policy(**clearances: str) -> Policy:
    others = clearances.pop("default", "internal")
    return Policy(
        "allowlist", allow("cat", "wc", "env", "grep"), labels=LABELS, clearances=clearances, clearance=others
    )


@pytest.mark.parametrize(
    "word", ["keys/deep/id", "./keys/deep/id", "alias", "--file=keys/deep/id", "-fkeys/deep/id", "keys", "."]
)
def test_a_secret_file_goes_to_cleared_programs_only(keyed: Path, word: str) -> None:
    asked = Scripted([True])
    at = bounded(keyed, policy(wc="secret"), approver=asked)
    with pytest.raises(Denied) as error:
        at.run(["cat", word])
    assert error.value.code == "data_flow_denied"
    assert "cat is cleared for internal only" in str(error.value)
    assert (kinds(at), asked.questions) == (["request"], []), "before any approval and before the dispatch"
    at.run(["wc", word])
    with pytest.raises(Denied, match="env is cleared"):
        at.run(["env", "wc", word])


def test_levels_are_ordered(keyed: Path) -> None:
    at = bounded(keyed, policy())
    assert at.run(["cat", "a.csv"]).stdout == "1\n"
    strict = bounded(keyed, policy(default="public"))
    with pytest.raises(Denied):
        strict.run(["cat", "a.csv"])
    assert strict.run(["cat", "open.csv"]).stdout == "2\n"
    assert strict.run(["cat", "in"]).stdout == "inside\n"


def test_labels_of_the_hosts_own_objects(keyed: Path) -> None:
    at = bounded(keyed, policy())
    with pytest.raises(Denied, match="report is secret"):
        at.run(["cat", "in"], labels=[Label("report", "secret")])
    assert at.run(["cat", "in"], labels=[Label("report", "internal")]).returncode == 0
    with pytest.raises(BadInput, match="sensitivity of x"):
        Label("x", "top")


def test_a_clearance_is_for_a_program_and_not_for_its_name(keyed: Path) -> None:
    script(keyed / "wc", "cat\n")
    made = Policy("blocklist", (*allow("./wc"),), labels=LABELS, clearances={"wc": "secret"})
    at = bounded(keyed, made)
    with pytest.raises(Denied, match=r"\./wc is cleared for internal only"):
        at.run(["./wc", "keys/deep/id"])
    path = at.decide(["wc"]).seen[0].program
    assert path.path is not None
    assert path.digest is not None
    for key in (path.path, path.digest):
        named = Policy("allowlist", allow("wc"), labels=LABELS, clearances={key: "secret"})
        assert bounded(keyed, named).run(["wc", "keys/deep/id"]).returncode == 0


def test_a_host_may_judge_for_itself_and_its_failure_denies(keyed: Path) -> None:
    seen: list[tuple[list[str], list[str]]] = []

    def own(programs: Sequence[Seen], objects: Sequence[Label]) -> str | None:
        seen.append(([one.argv[0] for one in programs], [label.name for label in objects]))
        return "untrusted" if any(not label.trusted for label in objects) else None

    at = bounded(keyed, policy(), data_flow=own)
    at.run(["env", "cat", "keys/deep/id"])
    with pytest.raises(Denied, match="untrusted"):
        at.run(["cat", "in"], labels=[Label("mail", trusted=False)])
    assert seen == [(["env", "cat"], ["keys/deep/id"]), (["cat"], ["mail"])]

    def fails(programs: Sequence[Seen], objects: Sequence[Label]) -> str | None:
        raise KeyError("x")

    with pytest.raises(Denied, match="judging the data flow failed") as error:
        bounded(keyed, policy(), data_flow=fails).run(["cat", "in"])
    assert error.value.code == "data_flow_denied"


def test_what_a_launcher_that_is_not_understood_starts_is_not_cleared(keyed: Path) -> None:
    made = Policy("blocklist", allow("xargs", "cat"), labels=LABELS, clearances={"xargs": "secret", "cat": "secret"})
    at = bounded(keyed, made, approver=lambda question: True)
    with pytest.raises(Denied, match="what xargs starts is not known"):
        at.run(["xargs", "-a", "keys/deep/id", "cat"])


def test_patterns_and_folders() -> None:
    def levels(*paths: str) -> dict[str, str]:
        return {label.name: label.sensitivity for label in carried(paths, LABELS)}

    assert levels("keys/a", "keys", "x/keys/a", "keysx") == {"keys/a": "secret", "keys": "secret"}
    assert levels("a.csv", "open.csv", "x.txt") == {"a.csv": "internal"}
    assert levels(".") == {".": "secret"}
    assert Clearances({})((), ()) is None


def test_what_a_text_starts_needs_its_clearance_too(keyed: Path) -> None:
    at = bounded(keyed, policy(sh="secret", wc="secret"), approver=lambda question: True)
    assert at.run(["sh", "-c", "wc -c keys/deep/id"]).returncode == 0
    with pytest.raises(Denied, match="cat is cleared for internal only"):
        at.run(["sh", "-c", "c\\at keys/deep/id"])


def test_what_a_shell_makes_of_a_pattern_may_be_any_of_it(keyed: Path) -> None:
    at = bounded(keyed, policy(), approver=lambda question: True)
    for text in ("cat *", "cat k*/*/id", 'for x in keys; do cat "$x/deep/id"; done', "cat keys/d*/id", "cat $HOME"):
        with pytest.raises(Denied) as error:
            at.run(["sh", "-c", text])
        # a slash behind a star, or behind a variable, is taken for the beginning of a path
        assert error.value.code == ("outside_workspace" if "*/" in text or "x/" in text else "data_flow_denied"), text
    (keyed / "sub" / "x").write_text("x\n")
    assert at.run(["sh", "-c", "cat sub/*"]).stdout == "x\n"


def test_a_label_holds_where_case_makes_no_difference() -> None:
    rows = (("Keys/**", "secret"), ("caf\u00e9", "secret"))
    assert [label.name for label in carried(["KEYS/id", "keys/", "cafe\u0301"], rows)] == [
        "KEYS/id",
        "keys",
        "cafe\u0301",
    ]


@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", 'cat ke""ys/deep/id'],
        ["sh", "-c", 'cat < "key"s/deep/id'],
        ["grep", "-r", "key"],
        ["grep", "-nR", "in"],
        ["grep", "--recursive", "key"],
        ["find", "-name", "id", "-exec", "cat", "{}", ";"],
        ["find", "-L", "-name", "id", "-exec", "cat", "{}", ";"],
        ["sh", "-c", "gr''ep -r key"],
        ["sed", "r keys/deep/id", "in"],
    ],
)
def test_what_is_named_by_a_shell_or_not_at_all_is_carried_too(keyed: Path, argv: list[str]) -> None:
    at = bounded(keyed, policy(), approver=lambda question: True)
    with pytest.raises(Denied) as error:
        at.run(argv)
    assert error.value.code == "data_flow_denied"


def test_a_search_elsewhere_carries_what_lies_there(keyed: Path) -> None:
    (keyed / "sub" / "x").write_text("key\n")
    at = bounded(keyed, policy(), approver=lambda question: True)
    assert at.run(["grep", "-r", "key", "sub"]).returncode == 0
    assert at.run(["find", "sub", "-name", "x", "-exec", "cat", "{}", ";"]).stdout == "key\n"
    at.chdir("sub")
    assert at.run(["grep", "-r", "key"]).returncode == 0


@pytest.mark.needs("git")
def test_a_git_diff_carries_the_whole_work_tree(keyed: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=keyed, check=True)
    with pytest.raises(Denied) as error:
        bounded(keyed, policy()).run(["git", "diff"])
    assert error.value.code == "data_flow_denied"
    assert bounded(keyed, policy(git="secret")).run(["git", "diff"]).returncode == 0
    assert bounded(keyed, policy()).run(["git", "status", "--short"]).returncode == 0
