"""Deciders for the running system and for the shell's own state."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from veil.classify.base import COMPLEX, DESTRUCTIVE, MUTATING, NETWORK, READ, UNKNOWN, Verdict, worst
from veil.classify.judging import Judge, by_table
from veil.classify.tables import Row
from veil.classify.variables import ASSIGNMENT, assignment, dangerous
from veil.classify.words import DYNAMIC, Word


def judge_getent(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """getent: names of machines are asked for over the network; the other databases are files as a rule."""
    if any(not word.literal or word.text.startswith(("host", "ahost", "network", "netgroup")) for word in words):
        return Verdict(NETWORK, "asks name servers")
    return judge.maker(row, words)


def judge_resolves(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """lsof, netstat, route, arp: they ask name servers about what they show, unless told not to."""
    verdict, arguments = by_table(row, words)
    shows = name != "lsof" or not words or arguments.has("-i") or bool(arguments.open)
    if shows and not arguments.has("-n", "--numeric", "--numeric-hosts"):
        return verdict.at_least(NETWORK, "asks name servers about the addresses that it shows")
    return verdict


def judge_manual(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """man: searches and locations are only printed; a page goes to a pager."""
    verdict, arguments = by_table({**row, "category": READ}, words)
    asked = "-k -f -w -W --where --path --location --apropos --whatis"
    if arguments.has(*asked.split()) and not arguments.open:
        return verdict
    return judge.maker(row, words)


def judge_top(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """top in batch mode only prints."""
    batch = any(re.fullmatch(r"-[a-zA-Z]*b[a-zA-Z]*\d*", word.text) for word in words) and all(
        word.literal for word in words
    )
    return (
        Verdict(READ, "prints processes")
        if name == "top" and batch
        else Verdict(COMPLEX, "takes keys, which may end processes")
    )


def judge_date(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """date: an operand that is no format sets the clock."""
    verdict, arguments = by_table(row, words)
    if any(not word.text.startswith("+") for word in arguments.operands):
        return verdict.at_least(MUTATING, "sets the clock")
    return verdict


def judge_service(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """service NAME status, service --status-all."""
    if words and all(word.literal for word in words) and words[-1].text in ("status", "--status-all"):
        return Verdict(UNKNOWN, "runs the services' own scripts")
    return judge.maker(row, words)


def judge_sysctl(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """sysctl: an operand with ``=`` sets."""
    verdict, arguments = by_table(row, words)
    if any("=" in word.text or not word.literal for word in arguments.operands):
        return verdict.at_least(MUTATING, "sets a kernel parameter")
    return verdict


_IP_READS = frozenset(["show", "list", "ls", "get", "help", "monitor"])


def judge_ip(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """ip: OBJECT [show]; other verbs change; ``netns exec`` runs a program."""
    operands = [word for word in words if not word.text.startswith("-")]
    options = [word.text for word in words if word.text.startswith("-")]
    if any(word.may_be_option() for word in words):
        return Verdict(COMPLEX, "arguments known only at run time")
    if any(re.match(r"-b|--?ba|--?f(o|$)|-n", option) for option in options):
        return Verdict(COMPLEX, "commands from a file, or in another namespace")
    if any(re.match(r"--?r", option) for option in options):
        return Verdict(NETWORK, "asks name servers")
    if not operands:
        return Verdict(READ, "tells")
    if operands[0].text in ("netns", "vrf") and len(operands) > 1:
        verbs = [word.text for word in operands]
        if any("exec".startswith(verb) for verb in verbs[1:2]):
            return worst([judge.program(operands[3:]), Verdict(UNKNOWN, "runs a program in another namespace")])
    if len(operands) == 1 or operands[1].text in _IP_READS:
        return Verdict(READ, "tells")
    return Verdict(MUTATING, "changes the network's settings")


def judge_mount(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """mount without operands lists."""
    if all(word.literal for word in words) and (not words or [word.text for word in words] == ["-l"]):
        return Verdict(READ, "lists mounts")
    return Verdict(MUTATING, "mounts")


def judge_kill(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """kill: -l lists signals, signal 0 asks; process -1 is every process."""
    texts = [word.text for word in words]
    literal = all(word.literal for word in words)
    if literal and texts[:1] in (["-l"], ["-L"], ["--list"], ["--table"]):
        return Verdict(READ, "lists signals")
    if literal and texts[:1] == ["-0"]:
        return Verdict(READ, "asks whether a process lives")
    if "-1" in texts[1:] or texts == ["-1"]:
        return Verdict(DESTRUCTIVE, "signals every process", (), False, "whatever runs and is not saved")
    return judge.maker(row, words)


def judge_crontab(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """crontab -l lists."""
    verdict, arguments = by_table(row, words)
    if arguments.has("-l") and not arguments.operands and not arguments.open and not arguments.has("-r", "-e", "-i"):
        return Verdict(READ, "lists timed commands")
    return verdict


def judge_firewall(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """iptables, nft, ufw: lists, flushes, changes."""
    texts = [word.text for word in words]
    if any(text in ("-F", "--flush", "-X", "--delete-chain", "flush", "reset", "disable", "destroy") for text in texts):
        return Verdict(DESTRUCTIVE, "drops firewall rules", (), False, "firewall rules")
    reads = {
        "-L",
        "-S",
        "-n",
        "-v",
        "--list",
        "--list-rules",
        "--line-numbers",
        "status",
        "list",
        "ruleset",
        "verbose",
        "--list-all",
        "--state",
    }
    if texts and set(texts) <= reads and all(word.literal for word in words):
        if "-L" in texts or "--list" in texts:
            return Verdict(READ if "-n" in texts else NETWORK, "lists rules; without -n it asks name servers")
        return Verdict(READ, "lists rules")
    return Verdict(MUTATING, "changes the firewall")


def judge_debugger(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """gdb --args PROGRAM: at least what the program does."""
    at = next((n for n, word in enumerate(words) if word.text in ("--args", "--")), -1)
    found = [Verdict(COMPLEX, "a debugger: runs programs and scripts")]
    if at >= 0:
        found.append(judge.program(words[at + 1 :]))
    return worst(found)


_GPG_READS = frozenset(
    ["-k", "-K", "--list-keys", "--list-secret-keys", "--list-public-keys", "--fingerprint", "--list-packets"]
)
_GPG_SHOWS = ("--with-", "--keyid-format", "--no-", "--batch", "--quiet", "--fixed-list-mode", "--utf8-strings")
_GPG_CONNECTS = ("--recv", "--send", "--refresh", "--search", "--keyserver", "--locate", "--fetch", "--auto-key")


def judge_gpg(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """gpg: lists, connects to key servers, deletes keys, or writes."""
    texts = [word.text for word in words]
    if any(text.startswith("--delete") for text in texts):
        return Verdict(DESTRUCTIVE, "deletes keys", (), False, "keys")
    if any(text.startswith(_GPG_CONNECTS) for text in texts):
        return Verdict(NETWORK, "asks a key server")
    if any(word.may_be_option() for word in words) or any(
        "-program" in text or "photo" in text or text.startswith(("--option", "--exec")) for text in texts
    ):
        return Verdict(COMPLEX, "options that can run programs")
    if (
        texts
        and texts[0] in _GPG_READS
        and all(not text.startswith("-") or text in _GPG_READS or text.startswith(_GPG_SHOWS) for text in texts)
    ):
        return Verdict(READ, "lists keys")
    return judge.maker(row, words)


def judge_dpkg(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """dpkg and rpm: queries read, removal deletes."""
    if any(not word.literal and word.may_be_option() for word in words):
        return Verdict(COMPLEX, "an argument known only at run time may be an option")
    texts = [word.text for word in words]
    if any(text.startswith(("--remove", "--purge", "--erase")) or text in ("-r", "-P", "-e") for text in texts):
        return Verdict(DESTRUCTIVE, "removes packages", (), False, "installed packages and their files")
    if name == "rpm" and texts and re.fullmatch(r"-q[a-zA-Z]*|--query|-V[a-z]*|--verify", texts[0]):
        if any(
            "://" in text
            or text.startswith(("--pipe", "--eval", "-D", "-E", "--define", "--rcfile", "--macros", "--load"))
            for text in texts
        ):
            return Verdict(COMPLEX, "options that can run programs")
        if texts[0].startswith(("-V", "--verify")) or "V" in texts[0]:
            return Verdict(UNKNOWN, "runs the packages' own scripts")
        return Verdict(READ, "asks about packages")
    reads = (
        "-l -L -s -S -p -c -I -C -V --list --listfiles --status --search --get-selections --print-architecture "
        "--contents --info --audit --verify"
    )
    if name == "dpkg" and texts and texts[0] in reads.split():
        if any(text.startswith(("--pre-invoke", "--post-invoke", "--status-logger")) for text in texts):
            return Verdict(COMPLEX, "options that can run programs")
        return Verdict(READ, "asks about packages")
    return judge.maker(row, words)


def judge_shell_state(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """set, export, read, unset, let, ...: the shell's own variables and options."""
    found = [by_table(row, words)[0] if name in ("mapfile", "readarray") else Verdict(READ, "the shell's own state")]
    for word in words:
        text = word.text
        if name in ("read", "mapfile", "readarray", "getopts") and dangerous(text):
            found.append(Verdict(COMPLEX, f"{text} decides which code other programs run"))
        elif name == "unset" and text == "PATH":  # programs are then those of the working folder
            found.append(Verdict(COMPLEX, "PATH decides which code other programs run"))
        named = ASSIGNMENT.match(text)
        if name == "let":
            found.append(_evaluated(text))
        elif named:
            found.append(assignment(text.partition("=")[0], word.tail(named.end())))
        elif name not in ("set", "shift", "exit", "return", "break", "continue") and "[" in text.replace("\1", "["):
            found.append(Verdict(COMPLEX, "a subscript is evaluated"))
        elif name == "shopt" and text == "expand_aliases":
            found.append(Verdict(COMPLEX, "makes aliases count"))
        elif name in ("export", "declare", "typeset", "readonly", "local", "let", "read", "unset") and DYNAMIC in text:
            if not (name == "read" and text.startswith("-") and not word.splits):
                found.append(Verdict(COMPLEX, "a variable known only at run time"))
        elif name in ("declare", "typeset", "local") and re.match(r"-\w*[in]", text):
            found.append(Verdict(COMPLEX, "a variable whose values are evaluated, or that stands for another"))
    return worst(found)


def _evaluated(text: str) -> Verdict:
    if re.fullmatch(r"[A-Za-z_]\w*(?:\+\+|--|[-+*]?=\d+)", text):
        return Verdict(READ, "computes")
    return Verdict(COMPLEX, "a text that is evaluated")


def judge_test(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """test: -v and -R evaluate the subscript of a name, also when both come out of a variable."""
    if any(word.splits for word in words):
        return Verdict(COMPLEX, "an argument known only at run time may be a subscript that is evaluated")
    for word, following in itertools.pairwise(words):
        operator = word.text in ("-v", "-R") or word.may_be_option()
        if operator and (not following.literal or (word.literal and "[" in following.text)):
            return Verdict(COMPLEX, "a subscript is evaluated")
    return Verdict(READ, "tests")


def judge_make(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """make: rules from its input or its arguments."""
    texts = [word.text for word in words]
    if any(text.startswith(("--eval", "-E", "SHELL=", ".SHELLFLAGS=")) for text in texts) or "-f-" in texts:
        return Verdict(COMPLEX, "rules that stand in its arguments")
    if any(option in ("-f", "--file", "--makefile") and value == "-" for option, value in itertools.pairwise(texts)):
        return Verdict(COMPLEX, "rules that it reads from its input")
    if any(word.may_be_option() for word in words):
        return Verdict(COMPLEX, "an argument known only at run time may be an option")
    return judge.maker(row, words)


def judge_fc(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """fc -l lists."""
    if words and words[0].text in ("-l", "-ln", "-lr", "-nl") and all(word.literal for word in words):
        return Verdict(READ, "shows past commands")
    return Verdict(COMPLEX, "runs past commands again")


def judge_alias(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """alias NAME=VALUE changes what a later word means."""
    if any("=" in word.text or not word.literal for word in words):
        return Verdict(COMPLEX, "changes what a word means")
    return Verdict(READ, "shows aliases")
