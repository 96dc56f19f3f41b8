"""Asking: what an approval is bound to, how it is used up, and what a denial means."""

# over 300 lines because: it is one subject: the life of an approval, from the question to its use

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from bounds import allow, bounded, kinds, script

from veil.governed import (
    Answer,
    ApprovalRequired,
    Bounds,
    Budget,
    Denied,
    EffectUnknown,
    Later,
    Policy,
    Question,
    Rule,
    Scripted,
    Terminal,
    later,
)
from veil.governed.approvals import Approvals
from veil.model.errors import BadInput, NotFound


def question(binding: str = "b", id: str = "ask-1") -> Question:
    return Question(id, "gov-1", ("a",), "/w", 1.0, "e", "/bin/a", "d", (), (), binding)


def test_an_approver_sees_everything_that_its_answer_is_bound_to(ws: Path) -> None:
    script_of = Scripted([True])
    at = bounded(ws, approver=script_of)
    assert at.run(["cat", "in"], timeout_s=7).returncode == 0
    (asked,) = script_of.questions
    assert (asked.argv, asked.cwd, asked.timeout) == (("cat", "in"), str(ws), 7.0)
    assert asked.executable in ("/usr/bin/cat", "/bin/cat")
    assert asked.digest.startswith("sha256:")
    assert asked.rules == ("level:allowlist",)
    assert set(asked.to_dict()) >= {"argv", "cwd", "timeout", "environment", "executable", "digest", "binding"}
    assert kinds(at) == ["request", "asked", "approved", "dispatch", "end"]


def test_one_approval_is_one_run(ws: Path) -> None:
    at = bounded(ws, approver=Scripted([True, True]))
    for _ in range(2):
        at.run(["cat", "in"])
    with pytest.raises(Denied) as error:
        at.run(["cat", "in"])
    assert error.value.code == "denied_by_approver"
    approvals = [line["approval"] for line in at.audit.lines() if line["kind"] == "dispatch"]
    assert len(set(approvals)) == 2


def test_an_approval_is_used_up_also_by_a_run_that_fails(ws: Path) -> None:
    at = bounded(ws, approver=later)
    with pytest.raises(ApprovalRequired) as error:
        at.run(["sleep", "600"], timeout_s=0.5)
    at.approve(error.value.facts["approval"], by="somebody")
    with pytest.raises(EffectUnknown):
        at.run(["sleep", "600"], timeout_s=0.5)
    with pytest.raises(ApprovalRequired):
        at.run(["sleep", "600"], timeout_s=0.5)
    assert at.spent.dispatches == 1


def test_many_threads_have_one_approval_between_them(ws: Path) -> None:
    marks = ws / "marks"
    marks.mkdir()
    script(ws / "tool", f": > {marks}/$$\n")
    at = bounded(ws, approver=later)
    with pytest.raises(ApprovalRequired) as error:
        at.run(["./tool"])
    at.approve(error.value.facts["approval"])
    ready, said = threading.Barrier(6), []

    def work() -> None:
        ready.wait()
        try:
            at.run(["./tool"])
            said.append("ran")
        except (ApprovalRequired, Denied) as refused:
            said.append(refused.code)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert said.count("ran") == 1
    assert set(said) <= {"ran", "approval_required", "approval_used"}
    assert len(list(marks.iterdir())) == 1


def test_an_approval_expires() -> None:
    now = [0.0]
    approvals = Approvals(clock=lambda: now[0])
    approvals.give(question(), Answer(True, expires=10))
    now[0] = 9.9
    assert approvals.has("b")
    now[0] = 10.0
    assert not approvals.has("b")
    assert approvals.take("b") is None
    assert not approvals.has("other")
    for seconds in (0, -1, True, float("nan"), float("inf"), "5"):
        with pytest.raises(BadInput, match="expires"):
            approvals.give(question(), Answer(True, expires=seconds))  # type: ignore[arg-type]


def test_questions_nobody_answers_do_not_pile_up() -> None:
    approvals = Approvals()
    for number in range(1_000):
        approvals.ask(question(id=f"ask-{number}"))
    assert len(approvals.pending()) == 256
    assert approvals.pending()[-1].id == "ask-999"
    with pytest.raises(NotFound):
        approvals.answered("ask-0")


def test_an_answer_is_kept_only_where_the_host_allows_it(ws: Path) -> None:
    asked = Scripted([Answer(True, remember=True), Answer(True)])
    at = bounded(ws, approver=asked)
    at.run(["cat", "in"])
    at.run(["cat", "in"])
    assert len(asked.questions) == 2, "the host said nothing of remembering"
    kept = Scripted([Answer(True, remember=True)])
    at = bounded(ws, approver=kept, remember=True)
    for _ in range(3):
        at.run(["cat", "in"])
    assert len(kept.questions) == 1
    with pytest.raises(Denied):
        at.run(["cat", "in", "in"])
    assert at.policy.rules == ()


@pytest.mark.parametrize("answer", [None, "yes", 1, 0, object()])
def test_what_is_no_answer_is_no_approval(ws: Path, answer: object) -> None:
    at = bounded(ws, approver=lambda asked: answer)  # type: ignore[arg-type, return-value]
    with pytest.raises(Denied, match="asking failed: TypeError"):
        at.run(["cat", "in"])
    assert "dispatch" not in kinds(at)


def test_an_approver_that_fails_has_not_approved(ws: Path) -> None:
    def fails(asked: Question) -> bool:
        raise OSError("the line is dead")

    with pytest.raises(Denied, match="the line is dead"):
        bounded(ws, approver=fails).run(["cat", "in"])


def test_a_question_may_be_answered_later(ws: Path) -> None:
    at = bounded(ws, approver=later)
    with pytest.raises(ApprovalRequired) as error:
        at.run(["cat", "in"])
    assert error.value.facts["effect"] == "none"
    (pending,) = at.pending()
    assert pending.id == error.value.facts["approval"]
    at.deny(pending.id, by="somebody", reason="not today")
    assert at.pending() == ()
    with pytest.raises(Denied) as denied:
        at.run(["cat", "in"])
    assert denied.value.code == "denied_before"
    with pytest.raises(NotFound):
        at.approve(pending.id)
    with pytest.raises(Later):
        later(pending)


def test_nothing_that_is_denied_for_good_is_asked(ws: Path) -> None:
    asked = Scripted([True] * 10)
    rules = (Rule("no rm", "deny", prefix=("rm",)), Rule("bad", "ask", when=lambda seen, at: 1 / 0 > 1))
    at = bounded(ws, Policy("allowlist", rules), approver=asked)
    for argv in (["rm", "in"], ["git", "push"], ["cat", "/etc/passwd"], ["nosuch"], ["ls"]):
        with pytest.raises(Denied):
            at.run(argv)
    assert asked.questions == []


def test_a_denial_says_stop_and_holds_for_what_is_the_same(ws: Path) -> None:
    at = bounded(
        ws, Policy("blocklist", (Rule("ask", "ask", prefix=("hg",)), *allow("env"))), approver=Scripted([False])
    )
    script_folder = ws.parent / "bin"
    script(script_folder / "hg", "echo hg $*\n")
    at = bounded(ws, at.policy, approver=Scripted([False, True]), path=[str(script_folder), "/usr/bin", "/bin"])
    with pytest.raises(Denied, match="Stop here: do not wrap, split, rename"):
        at.run(["hg", "push"])
    for argv in (
        ["env", "hg", "push"],
        ["hg", "-v", "push"],
        ["hg", "push", "x"],
        ["timeout", "9", "nice", "hg", "push"],
    ):
        with pytest.raises(Denied) as error:
            at.run(argv)
        assert error.value.code == "denied_before", argv
    assert at.run(["hg", "pull"]).stdout == "hg pull\n", "another sub-command is another question"


def test_a_person_at_a_terminal_sees_each_word_apart(ws: Path) -> None:
    shown: list[str] = []
    prompt: list[str] = []

    def read(text: str) -> str:
        prompt.append(text)
        return "y\n"

    at = bounded(ws, approver=Terminal(read, shown.append))
    assert at.run(["printf", "%s", "a b\x1b[2J", "r\u217f"]).returncode == 0
    text = "".join(shown)
    assert "argv[0]  'printf'\nargv[1]  '%s'\nargv[2]  'a b\\x1b[2J'\nargv[3]  'r\\u217f'\n" in text
    assert "\x1b" not in text
    assert prompt == ["Run this once? [y/N] "]


@pytest.mark.parametrize("said", ["", "n", "yess", "ja", "1", "true"])
def test_anything_but_yes_is_no(ws: Path, said: str) -> None:
    at = bounded(ws, approver=Terminal(lambda text: said, lambda text: None))
    with pytest.raises(Denied):
        at.run(["cat", "in"])


def test_without_a_terminal_the_answer_is_no(ws: Path) -> None:
    with pytest.raises(Denied, match="no terminal"):
        bounded(ws, approver=Terminal()).run(["cat", "in"])


_ASKING = """
import sys
from veil.governed import Audit, Boundary, Denied, Policy, Terminal
at = Boundary(sys.argv[1], Policy(), approver=Terminal(), audit=Audit(), contain=False, effects=False, no_store=True)
try:
    print("ran", at.run(["touch", "made"]).returncode)
except Denied as error:
    print("refused", error.code)
"""


@pytest.mark.parametrize(
    ("typed", "ran"), [("y\n", True), ("yes\n", True), ("n\n", False), ("\n", False), ("\x04", False)]
)
def test_a_person_at_a_real_terminal_is_asked(ws: Path, typed: str, ran: bool) -> None:
    main, other = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _ASKING, str(ws)], stdin=other, stdout=other, stderr=other, start_new_session=True
    )
    os.close(other)
    shown = b""
    try:
        while b"[y/N]" not in shown:
            shown += os.read(main, 4096)
        os.write(main, typed.encode())
        with contextlib.suppress(OSError):  # the terminal is gone when the last process is
            while data := os.read(main, 4096):
                shown += data
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(main)
    assert b"argv[0]  'touch'\r\nargv[1]  'made'\r\nprogram  '/" in shown
    assert (b"ran 0" if ran else b"refused denied_by_approver") in shown
    assert (ws / "made").exists() == ran


def test_no_approval_given_beforehand_lifts_what_refuses(ws: Path) -> None:
    """Containment, data flow, budget and a denial are looked at before it, and leave it where it is."""
    (ws / "key").write_text("k")
    policy = Policy("allowlist", labels=(("key", "secret"),))
    at = bounded(ws, policy, budget=Budget(dispatches=1))
    with pytest.raises(ApprovalRequired) as error:
        at.run(["cat", "in"])
    at.approve(error.value.facts["approval"])
    (ws / "in").unlink()
    (ws / "in").symlink_to("../outside/secret")
    with pytest.raises(Denied) as refused:
        at.run(["cat", "in"])
    assert refused.value.code == "outside_workspace"
    (ws / "in").unlink()
    (ws / "in").symlink_to("key")
    with pytest.raises(Denied) as refused:
        at.run(["cat", "in"])
    assert refused.value.code == "data_flow_denied"
    (ws / "in").unlink()
    (ws / "in").write_text("inside\n")
    assert at.run(["cat", "in"]).stdout == "inside\n", "nothing of that has used it up"
    with pytest.raises(Denied) as refused:
        at.run(["cat", "in"])
    assert refused.value.code == "budget_spent"


@pytest.mark.parametrize("how", ["timed_out", "output_limit"])
def test_an_approval_is_used_up_where_the_effect_is_unknown(ws: Path, how: str) -> None:
    asked = Scripted([True])
    at = bounded(ws, approver=asked, bounds=Bounds(max_bytes=1000))
    argv = ["sleep", "60"] if how == "timed_out" else ["seq", "100000"]
    with pytest.raises(EffectUnknown) as error:
        at.run(argv, timeout_s=0.4 if how == "timed_out" else 30)
    assert error.value.code == how
    with pytest.raises(Denied):
        at.run(argv, timeout_s=0.4 if how == "timed_out" else 30)
    assert len(asked.questions) == 2


@pytest.mark.parametrize("first", ["hg push", "h\\g pu''sh", "ls in && hg push"])
def test_what_was_denied_in_a_text_is_denied_out_of_it(ws: Path, first: str) -> None:
    script(ws.parent / "bin" / "hg", "echo hg $*\n")
    asked = Scripted([False, True, True])
    at = bounded(ws, allow("ls"), approver=asked, path=[str(ws.parent / "bin"), "/usr/bin", "/bin"])
    with pytest.raises(Denied):
        at.run(["sh", "-c", first])
    for argv in (["hg", "push"], ["nice", "hg", "-v", "push"], ["bash", "-c", "x=1; hg p\\ush"], ["sh", "-c", "hg $x"]):
        with pytest.raises(Denied) as error:
            at.run(argv)
        assert error.value.code == "denied_before", argv
    assert at.run(["ls", "in"]).stdout == "in\n", "what the policy allows by itself was not meant"
    assert at.run(["hg", "pull"]).stdout == "hg pull\n"
    assert len(asked.questions) == 2
