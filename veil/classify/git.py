"""Deciders for git, where a table is not enough."""

from __future__ import annotations

import re
from collections.abc import Sequence

from veil.classify.base import COMPLEX, DESTRUCTIVE, MUTATING, READ, UNKNOWN, Effect, Verdict, worst
from veil.classify.judging import Judge, by_table, judge_sub, option_verdicts, tool_of
from veil.classify.options import Arguments, take_apart
from veil.classify.tables import Row
from veil.classify.words import Word
from veil.classify.wrapping import run_text

_UNCOMMITTED = "changes that are not committed"


def judge_git(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """Global options, then the sub-command."""
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    outer = option_verdicts(row, arguments, READ, "git by itself")
    if arguments.open:
        outer = outer.at_least(COMPLEX, "global options of git known only at run time")
    if not arguments.operands:
        return outer
    head = arguments.operands[0]
    if head.literal and head.text not in row["subs"]:
        inner = Verdict(COMPLEX, f"git {head.text}: an alias or a program of its own")
    else:
        inner = judge_sub(judge, row, name, arguments.operands)
    found = [inner, outer]
    if any(word.text == "--help" for word in arguments.operands[1:2]):
        found.append(Verdict(COMPLEX, "opens a manual in a pager or a browser"))
    if any(option.rule is None for option in arguments.options) and len(arguments.operands) > 1:
        found.append(judge_sub(judge, row, name, arguments.operands[1:]))
    verdict = worst(found)
    return verdict._replace(reversible=inner.reversible) if verdict.category == inner.category else verdict


def judge_git_list(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """branch, tag: without operands, or as a filter, they list; else they make."""
    verdict, arguments = by_table(row, words)
    filters = (
        "-l",
        "--list",
        "--contains",
        "--no-contains",
        "--merged",
        "--no-merged",
        "--points-at",
        "-v",
        "--verify",
        "--show-current",
    )
    if arguments.operands and verdict.category == READ:
        listing = arguments.has(*(filters if name.endswith("tag") else filters[:7]))
        if name.endswith("branch") and arguments.has("-a", "-r", "--all", "--remotes"):
            listing = True
        if not listing:
            return Verdict(MUTATING, "makes a reference", (), True)
    if name.endswith("tag") and arguments.has("-a", "--annotate", "-s", "--sign", "-u") and not _message(arguments):
        return verdict.at_least(COMPLEX, "starts an editor for the message")
    if verdict.category == MUTATING and arguments.has("-M", "-C"):
        return verdict._replace(reversible=None)
    return verdict


def _message(arguments: Arguments) -> bool:
    return arguments.has(
        "-m", "-F", "-C", "--message", "--file", "--reuse-message", "--no-edit", "--fixup", "--squash", "-l", "-d"
    )


def judge_git_message(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """commit: without a message it starts an editor."""
    verdict, arguments = by_table(row, words)
    if not _message(arguments):
        return verdict.at_least(COMPLEX, "starts an editor for the message")
    return verdict


def judge_git_push(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """push: a refspec with ``+`` forces, one with nothing before its colon deletes."""
    verdict, arguments = by_table(row, words)
    for word in arguments.operands[1:]:
        if word.text.startswith(("+", ":")):
            return Verdict(DESTRUCTIVE, "a refspec that forces or deletes", (), False, row["lost"])
    return verdict


def judge_git_foreach(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """submodule foreach: a shell text."""
    rest = [word for word in words if word.text not in ("--recursive", "-q", "--quiet", "--")]
    return run_text(judge, rest, "git submodule foreach").at_least(UNKNOWN, "runs a command in every submodule")


_CONFIG_READS = ("get", "list", "get-all", "get-regexp", "get-urlmatch", "get-color", "get-colorbool")
_CONFIG_CODE = re.compile(
    r"(?:alias|core\.(?:pager|editor|fsmonitor|hookspath|sshcommand|gitproxy|askpass|attributesfile|alternaterefscommand)|diff\..*|"
    r"difftool.*|merge\..*|mergetool.*|filter\..*|credential.*|pager.*|gpg.*|include.*|includeif.*|sequence\.editor|browser.*|man\..*|"
    r"help\.browser|web\.browser|interactive\.difffilter|uploadpack\.packobjectshook|remote\..*\.(?:uploadpack|receivepack|vcs|proxy)|"
    r"url\..*|protocol.*|trailer.*|submodule\..*\.update|ssh\.variant|receive.*|sendemail.*|init\.templatedir|tar\..*|guitool.*|"
    r"instaweb.*|http.*proxy.*|core\.worktree|hook.*|safe\..*|transfer\.credentialsinurl)",
    re.IGNORECASE,
)


def judge_git_config(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """config: one key is read, a key with a value is set; some keys name programs."""
    if any(word.may_be_option() for word in words):
        return Verdict(COMPLEX, "an argument known only at run time may be an option")
    options = [word.text.lstrip("-") for word in words if word.text.startswith("-")]
    operands = [word for word in words if not word.text.startswith("-")]
    valued = [o for o in options if o in ("f", "file", "blob", "type", "default", "comment", "value")]
    operands = operands[len(valued) :] if len(operands) > len(valued) else operands
    keys = [word for word in operands if "." in word.text]
    if any(o == "e" or (len(o) > 1 and "edit".startswith(o)) for o in options) or (
        operands and operands[0].text == "edit"
    ):
        return Verdict(COMPLEX, "starts an editor")
    if any(any(o.startswith(p) for p in ("unset", "remove", "rename", "add", "replace")) for o in options):
        return _config_set(keys)
    if "l" in options or any(o in _CONFIG_READS for o in options) or (operands and operands[0].text in ("get", "list")):
        return Verdict(READ, "reads settings")
    if not operands and not options:
        return Verdict(READ, "says how it is used")
    if len(operands) == 1 and "." in operands[0].text and not valued:
        return Verdict(READ, "reads a setting")
    return _config_set(keys)


def _config_set(keys: Sequence[Word]) -> Verdict:
    if not keys or any(not word.literal or _CONFIG_CODE.match(word.text) for word in keys[:1]):
        return Verdict(COMPLEX, "a setting that can name a program")
    return Verdict(MUTATING, "changes a setting")


_BRANCHES = re.compile(
    r"(?:main|master|develop|dev|trunk|staging|production|next|stable|release|gh-pages|-|HEAD.*|@.*|[0-9a-f]{7,40}|v?\d+(\.\d+)+.*|"
    r"(?:origin|upstream|remotes|heads|tags|refs|feature|features|feat|fix|bugfix|hotfix|release|releases|chore|task|user|users|pr|pull|topic|"
    r"wip|issue|docs|ci|refactor)/[^.*\s]+)(?:[~^]\d*)*\Z"
)


def judge_git_checkout(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """checkout: of a branch it keeps what is not committed (or refuses), of paths it overwrites."""
    verdict, arguments = by_table(row, words)
    if verdict.category != MUTATING:
        return verdict
    made = arguments.has("-b", "-B", "--orphan", "-t", "--track", "--detach", "-d")
    separate = any(word.text == "--" for word in words)
    operands = arguments.operands
    paths = [word for word in operands if word.literal]
    gone = Verdict(
        DESTRUCTIVE,
        "overwrites files of the work tree",
        tuple(Effect(w.text, "write") for w in paths),
        False,
        _UNCOMMITTED,
    )
    if arguments.has("-B"):
        return verdict._replace(reversible=None)
    if made:
        return verdict
    if (separate and operands and words[-1].text != "--") or len(operands) > 1:
        return gone
    if not operands or (separate and words[-1].text == "--"):
        return verdict
    only = operands[0]
    if not only.literal:
        return Verdict(COMPLEX, "a branch or files: known only at run time")
    if _BRANCHES.match(only.text):
        return verdict
    if (
        only.text in (".", "..", "*", ":/")
        or only.text.startswith(("./", "../", "/", ":"))
        or re.search(r"\.\w{1,5}\Z|[*?]|/\Z", only.text)
    ):
        return gone
    return Verdict(COMPLEX, "a branch, or a file that would be overwritten")


def judge_git_restore(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """restore: --staged alone touches only the index."""
    verdict, arguments = by_table(row, words)
    staged = arguments.has("-S", "--staged") and not arguments.has("-W", "--worktree")
    if staged and not arguments.open:
        if verdict.category == DESTRUCTIVE and not arguments.has("-p", "--patch"):
            return Verdict(MUTATING, "changes the index", (), None)
        return Verdict(COMPLEX, "asks at the terminal") if arguments.has("-p", "--patch") else verdict
    return verdict


def judge_git_clean(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """clean: -n only tells."""
    verdict, arguments = by_table(row, words)
    if arguments.has("-n", "--dry-run") and not arguments.open and not arguments.has("-i", "--interactive"):
        return Verdict(READ, "tells what it would delete")
    return verdict
