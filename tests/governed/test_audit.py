"""The audit: every request leaves a line, and nothing can be taken out of it unseen."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import threading
from pathlib import Path

import pytest
from bounds import allow, bounded, kinds
from hypothesis import given, settings
from hypothesis import strategies as st

import veil
from veil.governed import Audit, Boundary, Denied, EffectUnknown, Policy, Rule, verify
from veil.governed.audit import START
from veil.model.errors import BadInput, NotFound, Refused, VeilError


def filled(path: Path, lines: int = 5) -> Audit:
    audit = Audit(path)
    for number in range(lines):
        audit.append("x", {"number": number, "word": f"w\udcff{number}"})
    return audit


def test_a_whole_audit_verifies(tmp_path: Path) -> None:
    audit = filled(tmp_path / "a")
    found = verify(tmp_path / "a", audit.head)
    assert found.ok
    assert (found.lines, found.head) == audit.head == (5, found.head)
    assert [line["number"] for line in audit.lines()] == [0, 1, 2, 3, 4]
    assert next(audit.lines())["previous"] == START
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert verify(_empty(tmp_path)).ok


def _empty(tmp_path: Path) -> Path:
    (tmp_path / "empty").write_bytes(b"")
    return tmp_path / "empty"


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("how", ["edited", "removed", "doubled", "swapped", "inserted", "cut", "rehashed"])
def test_whatever_is_done_to_a_line_shows(tmp_path: Path, at: int, how: str) -> None:
    path = tmp_path / "a"
    head = filled(path).head
    lines = path.read_bytes().splitlines(keepends=True)
    if how == "edited":
        lines[at] = lines[at].replace(b'"number":', b'"number":1')
    elif how == "removed":
        del lines[at]
    elif how == "doubled":
        lines.insert(at, lines[at])
    elif how == "swapped":
        other = (at + 1) % 5
        lines[at], lines[other] = lines[other], lines[at]
    elif how == "inserted":
        lines.insert(at, b'{"kind":"x"}\n')
    elif how == "cut":
        lines[at] = lines[at][:-10]
    else:
        line = json.loads(lines[at])
        line["number"] = 99
        del line["hash"]
        from veil.governed.audit import _canonical, _hash

        lines[at] = _canonical({**line, "hash": _hash(line)}) + b"\n"
    path.write_bytes(b"".join(lines))
    assert not verify(path, head).ok
    # without the head kept elsewhere, only what was done to the end of the chain can stay unseen
    if not (at == 4 and how in ("removed", "rehashed")):
        assert not verify(path).ok


@given(where=st.floats(0, 1), by=st.integers(1, 255))
@settings(max_examples=60, deadline=None)
def test_any_flipped_byte_shows(where: float, by: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("audit") / "a"
    head = filled(path, 3).head
    content = bytearray(path.read_bytes())
    content[int(where * (len(content) - 1))] ^= by
    path.write_bytes(bytes(content))
    assert not verify(path, head).ok


def test_an_audit_goes_on_where_it_ended(tmp_path: Path) -> None:
    first = filled(tmp_path / "a", 3)
    first.close()
    again = filled(tmp_path / "a", 2)
    assert verify(tmp_path / "a", again.head).lines == 5
    big = Audit(tmp_path / "a")
    big.append("x", {"text": "y" * 300_000})
    assert again.append("x", {})["n"] == 7
    assert Audit(tmp_path / "a").head == again.head
    assert verify(tmp_path / "a").ok


def _write(path: str) -> None:
    audit = Audit(path)
    for number in range(25):
        audit.append("x", {"number": number})


def test_many_processes_and_threads_write_one_chain(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(path,)) for _ in range(3)]
    threads = [threading.Thread(target=_write, args=(path,)) for _ in range(3)]
    for each in (*processes, *threads):
        each.start()
    for each in (*processes, *threads):
        each.join(120)
    found = verify(path)
    assert found.problems == ()
    assert found.lines == 150


@pytest.mark.parametrize("damage", [b"no line\n", b'{"n":1}\n', b'{"n":1', b"[]\n", b"\xff\n"])
def test_nobody_goes_on_behind_a_damaged_line(tmp_path: Path, damage: bytes) -> None:
    filled(tmp_path / "a").close()
    with (tmp_path / "a").open("ab") as file:
        file.write(damage)
    with pytest.raises(Refused) as error:
        Audit(tmp_path / "a")
    assert error.value.code == "audit_unavailable"


def test_an_audit_that_became_shorter_is_noticed(tmp_path: Path) -> None:
    audit = filled(tmp_path / "a")
    lines = (tmp_path / "a").read_bytes().splitlines(keepends=True)
    (tmp_path / "a").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(Refused, match="shorter"):
        audit.append("x", {})


def test_a_place_that_cannot_be_written_to_is_refused(ws: Path) -> None:
    with pytest.raises(Refused) as error:
        bounded(ws, audit=ws.parent / "outside" / "secret" / "audit")
    assert error.value.code == "audit_unavailable"


def test_the_audit_lies_beside_the_records(ws: Path, own_state: Path) -> None:
    at = Boundary(ws, Policy("allowlist", allow("cat")), project=str(ws), effects=False, contain=False)
    at.run(["cat", "in"])
    (path,) = own_state.rglob("governed.jsonl")
    assert verify(path, at.audit.head).lines == 3


def test_every_request_leaves_all_that_it_was(ws: Path) -> None:
    policy = Policy("allowlist", (*allow("cat"), Rule("no rm", "deny", prefix=("rm",))), digest="sha256:policy")
    at = bounded(ws, policy)
    at.run(["cat", "in", "a b"], timeout_s=5, max_stdout_chars=2)
    request, dispatch, end = at.audit.lines()
    assert request["argv"] == ["cat", "in", "a b"]
    assert (request["cwd"], request["timeout"], request["caps"]) == (str(ws), 5.0, [2, None])
    assert (request["decision"], request["rules"], request["policy"]) == ("allow", ["allow cat"], "sha256:policy")
    assert request["executable"]["digest"].startswith("sha256:")
    assert (dispatch["kind"], dispatch["effect"], dispatch["approval"]) == ("dispatch", "unknown", None)
    assert (end["returncode"], end["ended"], end["effect"]) == (1, "exited", "unknown")
    assert (end["stdout_truncated"], end["stderr_truncated"]) == (True, False)
    assert end["used"]["wall"] > 0
    assert {request["id"], dispatch["id"], end["id"]} == {request["id"]}


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["rm", "in"], "policy_denied"),
        (["git", "push"], "git_refused"),
        (["cat", "/etc/passwd"], "outside_workspace"),
        (["nosuch"], "executable_refused"),
        ([], "bad_input"),
        (["ls"], "approval_required"),
    ],
)
def test_what_is_refused_leaves_its_line_too(ws: Path, argv: list[str], code: str) -> None:
    at = bounded(ws, (*allow("cat"), Rule("no rm", "deny", prefix=("rm",))))
    with pytest.raises(VeilError) as error:
        at.run(argv)
    assert error.value.code == code
    request = next(at.audit.lines())
    assert request["argv"] == argv
    assert request["id"] == error.value.facts["id"]
    if code != "approval_required":
        assert (request["code"], request["effect"], request["decision"]) == (code, "none", "deny")
        assert at.completion(request["id"])["open"] == ["nothing was run"]
    assert "dispatch" not in kinds(at)


def test_completion_evidence(ws: Path) -> None:
    at = bounded(ws, allow("cat", "sleep"))
    result = at.run(["cat", "in"])
    evidence = at.completion(result.id)
    assert evidence["argv"] == ["cat", "in"]
    assert (evidence["cwd"], evidence["timeout"], evidence["returncode"]) == (str(ws), 60.0, 0)
    assert (evidence["stdout_truncated"], evidence["stderr_truncated"]) == (False, False)
    assert evidence["open"] == ["nobody has looked at what it changed"]
    at.verified(result.id, "nothing changed", by="test")
    done = at.completion(result.id)
    assert (done["open"], done["effect"]) == ([], "verified")
    assert done["checks"] == [{"by": "test", "evidence": "nothing changed"}]
    cut = at.run(["cat", "in"], max_stdout_chars=1)
    assert "stdout is a prefix" in at.completion(cut.id)["open"]
    with pytest.raises(EffectUnknown) as error:
        at.run(["sleep", "60"], timeout_s=0.3)
    unknown = at.completion(error.value.facts["id"])
    assert unknown["open"][0].startswith("it ended as timed_out: inspect")
    with pytest.raises(NotFound):
        at.completion("gov-nothing")
    with pytest.raises(BadInput):
        at.verified(result.id, " ")


def test_a_look_at_a_folder_is_noted(ws: Path) -> None:
    at = bounded(ws)
    at.chdir("sub")
    with pytest.raises(Denied):
        at.chdir("/etc")
    assert [(line["kind"], line["decision"]) for line in at.audit.lines()] == [("chdir", "allow"), ("chdir", "deny")]


def test_the_line_names_every_program_behind_launchers_and_in_texts(ws: Path) -> None:
    at = bounded(ws, approver=lambda question: True)
    at.run(["env", "nice", "sh", "-c", "cat in | wc -l"])
    request = next(at.audit.lines())
    assert request["executable"]["path"].endswith("/env")
    assert [one["word"] for one in request["behind"]] == ["nice", "sh", "cat", "wc"]
    assert all(one["path"] and one["digest"].startswith("sha256:") for one in request["behind"])
    assert at.completion(request["id"])["behind"] == request["behind"]


def test_the_record_carries_the_decision(ws: Path, own_state: Path) -> None:
    policy = Policy("allowlist", allow("cat"), digest="sha256:policy")
    at = bounded(ws, policy, project=str(ws), approver=lambda question: True)
    for argv, answer, rule in ((["cat", "in"], "allow", "allow cat"), (["ls"], "ask", "level:allowlist")):
        result = at.run(argv)
        meta = veil.detail(result.record, selector="meta", project=str(ws)).meta
        expected = {"answer": answer, "rules": [rule], "policy": "sha256:policy", "request": result.id}
        assert meta["decision"] == expected
    plain = veil.run(["ls"], cwd=ws, project=str(ws))
    assert "decision" not in veil.detail(plain.id, selector="meta", project=str(ws)).meta


def test_no_audit_lies_where_commands_can_write(ws: Path) -> None:
    (ws.parent / "link").symlink_to(ws)
    for path in (ws / "audit", ws.parent / "link" / "audit", ws / "sub" / ".." / "audit"):
        with pytest.raises(BadInput, match="outside the workspace"):
            bounded(ws, audit=path)
    assert not (ws / "audit").exists()


def test_another_file_in_the_place_of_the_audit_is_noticed(tmp_path: Path) -> None:
    audit = filled(tmp_path / "a")
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes())
    (tmp_path / "b").rename(tmp_path / "a")
    with pytest.raises(Refused, match="another file"):
        audit.append("x", {})


def test_forked_processes_write_one_chain_with_their_parent(tmp_path: Path) -> None:
    audit = filled(tmp_path / "a")
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                for number in range(40):
                    audit.append("child", {"number": number})
            finally:
                os._exit(0)
        children.append(child)
    for number in range(40):
        audit.append("parent", {"number": number})
    for child in children:
        os.waitpid(child, 0)
    audit.append("last", {})
    found = verify(tmp_path / "a", audit.head)
    assert (found.lines, found.problems) == (5 + 160 + 1, ())
