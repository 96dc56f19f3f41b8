"""Deciders for shells, and for what runs a command on another machine or in a container."""

from __future__ import annotations

from collections.abc import Sequence

from veil.classify.base import COMPLEX, NETWORK, READ, UNKNOWN, Verdict, worst
from veil.classify.judging import Judge, tool_of
from veil.classify.options import read_row, take_apart
from veil.classify.tables import Row
from veil.classify.words import Word
from veil.classify.wrapping import run_text

_SHELL_VALUED = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})


def judge_shell(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """sh, bash, ...: with -c the first operand is a command; with a script, nobody knows; else it reads its input."""
    at, inline = 0, False
    while at < len(words):
        word = words[at]
        text = word.text
        if word.may_be_option():
            return Verdict(COMPLEX, "a shell with a script known only at run time")
        if text in ("--", "-"):
            at += 1
            break
        if text[:1] not in ("-", "+") or len(text) < 2:
            break
        if text in ("--rcfile", "--init-file") or text.startswith(("--rcfile=", "--init-file=")):
            return Verdict(COMPLEX, "a shell with a start-up file of its own")
        if not text.startswith("--") and not word.literal:
            return Verdict(COMPLEX, "shell options known only at run time")
        bundled = text[1:] if not text.startswith("--") else ""
        inline = inline or (text[0] == "-" and "c" in bundled) or text in ("--command", "--init-command")
        if text[0] == "-" and "i" in bundled:
            return run_text(judge, words[at + 1 :][:1], name).at_least(COMPLEX, "an interactive shell")
        at += 1
        if text in _SHELL_VALUED or (bundled.endswith(("o", "O")) and text[0] in "-+"):
            at += 1
    rest = words[at:]
    if inline:
        return run_text(judge, rest[:1], name) if rest else Verdict(UNKNOWN, "a shell without the command of -c")
    if not rest or any("s" in word.text for word in words[:at] if word.text[:1] == "-" and word.text[:2] != "--"):
        return Verdict(COMPLEX, "a shell that runs what it reads")
    return judge_source(judge, row, name, rest)


def judge_source(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """source: a script that is not read here."""
    if words and (not words[0].literal or words[0].text.startswith("/dev/")):
        return Verdict(COMPLEX, "runs a script known only at run time")
    return Verdict(UNKNOWN, "runs a script")


def judge_ssh(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """ssh: a host, then a text that the shell there runs."""
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    found = [Verdict(NETWORK, "connects to another machine")]
    rest = arguments.operands[1:]
    if rest and rest[0].text.startswith("-"):
        rest = take_apart(tool_of(row), rest, stop_at_operand=True).operands
    if rest:
        with judge.away():
            found.insert(0, judge.here(run_text(judge, rest, "ssh")))
    return worst(found)


def _inner(judge: Judge, row: Row, name: str, words: Sequence[Word], values: str, lead: int) -> list[Verdict]:
    """The command behind ``lead`` operands, whichever way unlisted options are read."""
    arguments = take_apart(read_row({"read": values}), words, stop_at_operand=True)
    operands = arguments.operands
    if arguments.open:
        return [Verdict(COMPLEX, "options known only at run time")]
    rest = operands[lead:]
    if rest and rest[0].text == "--":
        rest = rest[1:]
    with judge.away():
        found = [judge.here(judge.program(rest))] if rest else []
        if any(option.rule is None for option in arguments.options) and len(rest) > 1:
            found.append(judge.here(judge.program(rest[1:])))
    return found


_RUN_VALUES = (
    "-e= -v= -p= -w= -u= -h= -m= -c= -l= -a= --name= --network= --env= --volume= "
    "--publish= --workdir= --user= --entrypoint= --mount= --memory= "
    "--cpus= --platform= --env-file= --label= --restart= --gpus= --hostname= --add-host= "
    "--cap-add= --cap-drop= --security-opt= --device= --pull= "
    "--shm-size= --ulimit= --tmpfs= --dns= --link= --volumes-from= --log-driver= "
    "--log-opt= --ip= --pid= --ipc= --userns= --index= --net= "
    "--cidfile= --runtime= --stop-signal= --detach-keys="
)


def judge_container_run(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """docker run: an image, then a command in it; the image may be fetched."""
    return worst(
        [*_inner(judge, row, name, words, _RUN_VALUES, 1), Verdict(NETWORK, "may fetch an image, and runs it")]
    )


def judge_container_exec(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """docker exec: a container, then a command in it."""
    found = _inner(judge, row, name, words, _RUN_VALUES, 1)
    return worst(found) if found else Verdict(UNKNOWN, "a container without a command")


def judge_cluster_exec(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """kubectl exec: a pod, then a command in it."""
    cut = next((n for n, word in enumerate(words) if word.text == "--"), -1)
    if cut >= 0:
        with judge.away():
            found = [judge.here(judge.program(words[cut + 1 :]))]
    else:
        found = _inner(judge, row, name, words, "-n= -c= --namespace= --container=", 1)
    return worst([*found, Verdict(NETWORK, "talks to a cluster")])


def judge_fetch_and_run(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """npx, uvx: a package is fetched and run; its arguments are judged as if it were on this machine already."""
    found = [Verdict(NETWORK, "fetches a package and runs it")]
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    if arguments.operands and arguments.operands[0].literal:
        inner = judge.program(arguments.operands)
        if inner.category not in (UNKNOWN, READ):
            found.append(inner)
    return worst(found)
