"""Deciders for programs that run another program: the verdict is that of the inner one, never better."""

from __future__ import annotations

import re
from collections.abc import Sequence

from veil.classify.base import COMPLEX, MUTATING, READ, UNKNOWN, Effect, Verdict, worst
from veil.classify.judging import Judge, option_verdicts, tool_of
from veil.classify.options import Arguments, take_apart
from veil.classify.tables import Row
from veil.classify.variables import ASSIGNMENT, assignment
from veil.classify.words import DYNAMIC, GLOB, Word, listed


def span_of(words: Sequence[Word]) -> tuple[int, int]:
    """From the first word's first character to the last one's last."""
    return words[0].start, max(words[-1].end, words[0].start)


def run_text(judge: Judge, words: Sequence[Word], why: str) -> Verdict:
    """A shell runs these words, joined by spaces."""
    if not words:
        return Verdict(READ, "runs nothing")
    text = " ".join(word.text for word in words)
    known = (
        judge.script(text.replace(GLOB, "*").replace(DYNAMIC, "${?}"), span_of(words))
        if text
        else Verdict(READ, "runs nothing")
    )
    if not all(word.literal for word in words):
        return known.at_least(COMPLEX, f"{why}: the text is known only at run time")
    return known


def combine(outer: Verdict, inner: Verdict) -> Verdict:
    """The inner verdict unless the wrapper by itself is worse; effects of both."""
    return worst([inner, outer])


def open_end(arguments: Arguments, row: Row) -> bool:
    """Whether words that are known only at run time stand where the wrapper's own options stand."""
    return bool(arguments.open) and bool(arguments.open[0].splits or not arguments.open[0].known)


def judge_wrapper(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """nohup, timeout, nice, ...: options, then ``skip`` operands, then the command."""
    words = _legacy_number(name, words)
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    outer = option_verdicts(row, arguments, READ, f"{name} by itself")
    command = list(arguments.operands)
    skip = row.get("skip", 0)
    head, command = command[:skip], command[skip:]
    if arguments.open or any(not word.literal for word in head):
        outer = outer.at_least(COMPLEX, f"which program {name} runs is known only at run time")
    if not command:
        return outer.at_least(row.get("bare", UNKNOWN), f"{name} without a command")
    found = [outer, judge.program(command)]
    if any(option.rule is None for option in arguments.options) and len(command) > 1:
        # an option that is not listed may have taken a value
        found.append(judge.program(command[1:]))
    return worst(sorted(found, key=lambda verdict: verdict is outer))


def _legacy_number(name: str, words: Sequence[Word]) -> Sequence[Word]:
    if name == "nice" and words and re.fullmatch(r"-{1,2}\d+|-\+\d+", words[0].text):
        return words[1:]
    return words


def judge_sudo(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """sudo, doas: assignments may stand before the command; without one, they only tell or start a shell."""
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    outer = option_verdicts(row, arguments, READ, f"{name} by itself")
    command, found = list(arguments.operands), [outer]
    while command and ASSIGNMENT.match(command[0].text):
        found.append(assignment(*_split(command.pop(0))))
    if arguments.open:
        found.append(Verdict(COMPLEX, f"which program {name} runs is known only at run time"))
    if command:
        found.append(judge.program(command))
        if (
            any(option.rule is None and option.name not in _SUDO_FLAGS for option in arguments.options)
            and len(command) > 1
        ):
            found.append(judge.program(command[1:]))
    elif not arguments.has("-l", "--list", "-v", "--validate", "-k", "-K", "-V"):
        found.append(Verdict(COMPLEX, "a shell or editor as another user"))
    return worst(found)


_SUDO_FLAGS = listed("-A -b -E -H -n -P -S -B -N -k -K -l -v -V --preserve-env --set-home --non-interactive --stdin")


def _split(word: Word) -> tuple[str, Word]:
    name, _, _ = word.text.partition("=")
    return name, word.tail(len(name) + 1)


def judge_env(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """env: options, assignments, command; ``-S`` is a text that it splits by itself."""
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    found = [option_verdicts(row, arguments, READ, "shows the environment")]
    command: list[Word] = []
    for text in arguments.values("-S", "--split-string"):
        if not text.literal or re.search(r"[\\$]", text.text):
            found.append(Verdict(COMPLEX, "env -S splits a text known only at run time"))
        found.append(
            judge.script("env " + text.text.replace(DYNAMIC, "${?}").replace("\n", " "), (text.start, text.end))
        )
        split = _split_string(text)
        if split is None:
            found.append(Verdict(COMPLEX, "env -S splits a text with quotes of its own"))
        command.extend(split or ())
    command.extend(arguments.operands)
    if arguments.open:
        found.append(Verdict(COMPLEX, "which program env runs is known only at run time"))
    while command and (ASSIGNMENT.match(command[0].text) or command[0].text == "-"):
        word = command.pop(0)
        found.append(assignment(*_split(word)) if word.text != "-" else Verdict(READ, "an empty environment"))
    if command and command[0].text.startswith("-") and list(arguments.values("-S", "--split-string")):
        found.append(judge_env(judge, row, name, command))
    elif command:
        found.append(judge.program(command))
    return worst(found)


def _split_string(word: Word) -> list[Word] | None:
    if re.search(r"['\"\\$#]", word.text) or not word.literal:
        return None
    return [Word(part, word.start, word.end) for part in word.text.split()]


def judge_xargs(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """xargs: its command with arguments known only at run time at the end, or in place of the ``-I`` word."""
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    outer = option_verdicts(row, arguments, READ, "runs a command for its input")
    if arguments.open:
        return outer.at_least(COMPLEX, "which program xargs runs is known only at run time")
    places = [word.text for word in arguments.values("-I", "-J", "--replace")]
    places += ["{}"] if arguments.has("-i", "--replace") else []
    command = list(arguments.operands) or [Word("echo")]
    start, end = command[-1].start, command[-1].end
    if places:
        mark = places[-1]
        if not mark or DYNAMIC in mark or GLOB in mark:
            outer = outer.at_least(COMPLEX, "xargs replaces a word known only at run time")
        command = [word._replace(text=word.text.replace(mark, DYNAMIC)) if mark else word for word in command]
        if "-J" in [option.name for option in arguments.options]:
            command.append(Word(DYNAMIC, start, end, True))
    else:
        command.append(Word(DYNAMIC, start, end, True))
    found = [outer, judge.program(command)]
    if (
        any(option.rule is None and option.name not in _XARGS_FLAGS for option in arguments.options)
        and len(command) > 2
    ):
        found.append(judge.program(command[1:]))
    return worst(found)


_XARGS_FLAGS = listed("-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit --open-tty")


def judge_command(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """command: -v and -V only tell."""
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    if arguments.has("-v", "-V") and not arguments.open:
        return Verdict(READ, "tells what a name is")
    return judge_wrapper(judge, row, name, words)


def judge_eval(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """eval: its words, joined, are a command."""
    return run_text(judge, words[1:] if words and words[0].text == "--" else words, "eval")


def judge_trap(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """trap: its first operand is a command for later."""
    rest = [word for word in words if word.text not in ("-p", "-l", "--")]
    if len(rest) < 2 and all(word.literal for word in rest):
        return Verdict(READ, "shows or clears traps")
    return run_text(judge, rest[:1], "trap") if rest[0].text not in ("-", "") else Verdict(READ, "clears a trap")


def judge_coproc(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """coproc: a command, maybe with a name before it."""
    if not words:
        return Verdict(UNKNOWN, "coproc without a command")
    found = [judge.program(words)]
    if len(words) > 1:
        rest = [word for word in words[1:] if word.text not in ("{", "(")]
        found.append(judge.program(rest) if rest else Verdict(READ, "runs nothing"))
    return max(found, key=lambda verdict: verdict.category != UNKNOWN and verdict.category != READ)


def judge_busybox(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """busybox: the applet is the program."""
    if words and words[0].text in ("--list", "--list-full", "--help") and len(words) == 1:
        return Verdict(READ, "lists its applets")
    return judge.program(words)


def judge_su(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """su: -c is a command; runuser -u also takes one as operands."""
    arguments = take_apart(tool_of(row), words)
    if arguments.open:
        return Verdict(COMPLEX, "arguments known only at run time may be a command")
    found = [run_text(judge, [value], name) for value in arguments.values("-c", "--command")]
    if name == "runuser" and arguments.has("-u", "--user"):
        at = next((n for n, w in enumerate(words) if w.text == "--"), -1)
        found.append(judge.program(words[at + 1 :] if at >= 0 else arguments.operands))
        if at < 0:
            found.append(Verdict(UNKNOWN, "runs a command as another user"))
    if not found:
        return Verdict(COMPLEX, "a shell as another user")
    return worst(found)


def judge_flock(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """flock: a lock file (made when missing), then a command or -c and a text."""
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    operands = arguments.operands
    if arguments.open or any(word.splits for word in operands[:1]):
        return Verdict(COMPLEX, "what flock runs is known only at run time")
    lock = Verdict(MUTATING, "makes a lock file", tuple(Effect(w.text, "create") for w in operands[:1] if w.literal))
    rest = operands[1:]
    if rest and rest[0].text in ("-c", "--command"):
        return worst([run_text(judge, rest[1:2], name), lock])
    return worst([judge.program(rest), lock])


def judge_joined(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """watch: joins its words and gives them to a shell (or runs them with -x)."""
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    if arguments.open:
        return Verdict(COMPLEX, "what it runs is known only at run time")
    return worst(
        [
            run_text(judge, arguments.operands, name),
            judge.program(arguments.operands) if arguments.has("-x", "--exec") else Verdict(READ, "shows"),
        ]
    )


def judge_script(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """script: -c is a command; without it, an interactive shell is logged."""
    arguments = take_apart(tool_of(row), words)
    effects = tuple(Effect(word.text, "write") for word in arguments.operands[:1] if word.literal)
    found = [Verdict(MUTATING, "writes a log", effects)]
    commands = list(arguments.values("-c", "--command"))
    found += [run_text(judge, [value], name) for value in commands]
    if len(arguments.operands) > 1:
        # BSD: script file command ...
        found.append(judge.program(arguments.operands[1:]))
    elif not commands:
        found.append(Verdict(COMPLEX, "an interactive shell"))
    if arguments.open:
        found.append(Verdict(COMPLEX, "arguments known only at run time may be a command"))
    return worst(found)


def judge_parallel(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """parallel: a template that a shell runs; its arguments come from ``:::`` or from its input."""
    cut = next((n for n, word in enumerate(words) if word.text.startswith(":::")), len(words))
    # shell text made from values that are not read: complex, and worse where the template by itself is
    template = words[:cut]
    while template and template[0].text.startswith("-"):
        template = template[1:]
    found = [Verdict(COMPLEX, "commands made from its input")]
    for skipped in range(min(2, len(template))):
        found.append(run_text(judge, template[skipped:], name))
    return worst(found)
