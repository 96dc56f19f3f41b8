"""Deciders for tools that write, move and delete files: cp, rm, dd, find, rsync, tar and their like."""

from __future__ import annotations

import re
from collections.abc import Sequence

from veil.classify.base import COMPLEX, DESTRUCTIVE, MUTATING, NETWORK, READ, UNKNOWN, Effect, Verdict, worst
from veil.classify.judging import Judge, by_table, tool_of
from veil.classify.options import effects_of, take_apart
from veil.classify.tables import Row
from veil.classify.words import DYNAMIC, GLOB, Word, listed

_HARMLESS = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full", "/dev/stdin")
_ROOTS = ("/", "/*", "~", "/etc", "/usr", "/bin", "/lib", "/var", "/home", "/boot", "/root")


def device(path: str) -> bool:
    """Whether a path names a device whose content a write would replace."""
    return (
        path.startswith("/dev/")
        and path not in _HARMLESS
        and not path.startswith(("/dev/fd/", "/dev/shm/", "/dev/pts/"))
    )


def targets(verdict: Verdict, words: Sequence[Word]) -> Verdict:
    """Worse when one of the written files is a device."""
    if any(device(word.text) for word in words):
        return verdict._replace(category=DESTRUCTIVE, reason="writes over a device", warning="what is on the device")
    return verdict


def judge_targets(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """tee, truncate: every operand is written."""
    verdict, arguments = by_table(row, words)
    return targets(verdict, arguments.operands)


def judge_copies(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """cp, mv, install: the last operand, or the value of -t, is written."""
    verdict, arguments = by_table(row, words)
    into = [*arguments.values("-t", "--target-directory"), *arguments.operands[-1:]]
    moved = arguments.operands[:-1] if name == "mv" else ()
    effects = [Effect(word.text, "move") for word in moved if word.literal]
    effects += [Effect(word.text, "write") for word in into[:1] if word.literal]
    verdict = targets(verdict._replace(effects=(*verdict.effects, *effects)), into)
    if name == "mv" and any(word.text == "/dev/null" for word in into):
        return verdict._replace(category=DESTRUCTIVE, reason="moves into nothing", warning="the moved files")
    return verdict


def judge_deletes(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """rm, unlink, shred: the warning names what is named."""
    verdict, arguments = by_table(row, words)
    named = [word.text.replace(DYNAMIC, "...").replace("\1", "*") for word in arguments.operands]
    shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
    return verdict._replace(warning=shown or "the files that it is given")


def judge_modes(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """chmod, chown: worse for everything below a folder of the system."""
    verdict, arguments = by_table(row, words)
    deep = arguments.has("-R", "--recursive")
    if deep and any(word.text.replace("\1", "*").rstrip("/") in ("", *_ROOTS) for word in arguments.operands[1:]):
        return verdict._replace(
            category=DESTRUCTIVE, reason="changes the system's own files", warning="their modes or owners"
        )
    return verdict


def judge_blocks(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """dd: ``of=`` is written; without it, the output stream."""
    verdicts = [Verdict(READ, "copies to its output")]
    for word in words:
        key, _, path = word.text.partition("=")
        if word.may_be_option() or DYNAMIC in key:
            verdicts.append(Verdict(COMPLEX, "an operand known only at run time may name the output file"))
        elif key == "of":
            target = word.tail(3)
            effects = (Effect(path, "write"),) if target.literal else ()
            verdicts.append(targets(Verdict(MUTATING, "writes the file of=", effects), [target]))
            if not target.literal:
                verdicts.append(Verdict(COMPLEX, "the output file is known only at run time"))
    return worst(verdicts)


def judge_rsync(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """rsync: an operand with a colon before any slash is on another machine."""
    verdict, arguments = by_table(row, words)
    found = [verdict]
    for word in arguments.operands:
        host = word.text.partition("/")[0]
        if ":" in host:
            found.append(Verdict(NETWORK, "copies from or to another machine"))
        elif word.splits or host.startswith(DYNAMIC):
            found.append(Verdict(COMPLEX, "an operand known only at run time may be another machine's or an option"))
    if len(arguments.operands) > 1 and arguments.operands[-1].literal:
        found[0] = verdict._replace(effects=(*verdict.effects, Effect(arguments.operands[-1].text, "write")))
    return worst(found)


_FIND_VALUED = listed(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname "
    "-type -xtype -size -mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer "
    "-samefile -inum -links -maxdepth -mindepth -perm -user -group -uid -gid -fstype "
    "-used -regextype -printf -context -D -files0-from -Bmin -Bnewer -flags"
)
_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_FIND_WRITES = ("-fprint", "-fprint0", "-fls", "-fprintf")


def judge_find(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """find: its expression, word by word."""
    found = [Verdict(READ, "lists files")]
    at = 0
    while at < len(words):
        word, text = words[at], words[at].text
        at += 1
        if word.may_be_option():
            if not _folder(word):
                found.append(Verdict(COMPLEX, "an argument known only at run time may be an action"))
        elif text == "-delete":
            found.append(Verdict(DESTRUCTIVE, "deletes what it finds", warning="every file that it finds"))
        elif text in _FIND_RUNS:
            end = at
            while (
                end < len(words)
                and words[end].text != ";"
                and not (words[end].text == "+" and words[end - 1].text == "{}")
            ):
                end += 1
            several = words[end - 1 : end] if end < len(words) and words[end].text == "+" else ()
            found.append(_find_runs(judge, [*words[at:end], *several]))
            at = end + 1
        elif text in _FIND_WRITES:
            effects = (Effect(words[at].text, "write"),) if at < len(words) and words[at].literal else ()
            found.append(Verdict(MUTATING, f"{text} writes a file", effects))
            at += 2 if text == "-fprintf" else 1
        elif text in _FIND_VALUED or text.startswith("-newer"):
            if at < len(words) and (words[at].splits or _names_an_action(words[at])):
                found.append(Verdict(COMPLEX, "an argument known only at run time may be an action"))
            at += 1
        elif text.startswith("-") and not word.literal:
            found.append(Verdict(COMPLEX, "an action known only at run time"))
    return worst(found)


def _names_an_action(word: Word) -> bool:
    """Whether a pattern that the shell expands fits a file that is called like an action: it comes as a word then."""
    if GLOB not in word.text:
        return False
    pattern = re.compile(".*".join(map(re.escape, word.text.split(GLOB))), re.DOTALL)
    return any(pattern.fullmatch(action) for action in ("-delete", *_FIND_RUNS, *_FIND_WRITES))


def _folder(word: Word) -> bool:
    """A word that cannot be an action: what it begins with is known and no dash, and it stays one word."""
    return not word.splits and bool(word.known)


def _find_runs(judge: Judge, command: Sequence[Word]) -> Verdict:
    if not command:
        return Verdict(UNKNOWN, "an action without a command")
    # the paths that find puts in begin with what it was given, which is no dash
    inner = [word._replace(text=word.text.replace("{}", DYNAMIC)) if "{}" in word.text else word for word in command]
    if DYNAMIC in inner[0].text:
        return Verdict(COMPLEX, "find runs the files that it finds")
    inner = [inner[0], *(_found_path(word) for word in inner[1:])]
    return judge.program(inner)


def _found_path(word: Word) -> Word:
    """A found path begins with a starting point, so it is never an option: ``./`` stands for it."""
    return word._replace(text="./" + DYNAMIC) if word.text == DYNAMIC and not word.splits else word


_TAR_VALUED = (
    "-f= -C= -b= -g= -K= -L= -N= -T= -V= -X= -H= --file= --directory= --exclude= "
    "--exclude-from= --files-from= --owner= --group= --mode= "
    "--mtime= --transform= --xform= --strip-components= --format= --blocking-factor= "
    "--newer= --after-date= --starting-file= --label= "
    "--tape-length= --suffix= --sort= --pax-option= --warning= --totals --checkpoint "
    "--checkpoint= --quoting-style= --record-size= --add-file= "
    "--exclude-tag= --listed-incremental= --level= --sparse-version= "
    "--hole-detection= --no-recursion --anchored"
)
_TAR: Row = {
    "complex": "-I= --use-compress-program= --checkpoint-action= --to-command= -F= --info-script= "
    "--new-volume-script= --rsh-command= "
    "--rmt-command=",
    "destructive": "--remove-files --delete --recursive-unlink",
    "mutating": "-c --create -x --extract --get -r --append -u --update -A --catenate --concatenate --index-file=> "
    "--volno-file=>",
    "read": "-t --list -d --diff --compare --test-label " + _TAR_VALUED,
    "lost": "the files that went into the archive, or entries of it",
}


def judge_tar(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """tar: the first word may be a bundle of letters without a dash."""
    spelled = list(words)
    if spelled and spelled[0].literal and spelled[0].text[:1].isalpha():
        spelled = [*_old_style(spelled[0], spelled[1:])]
    verdict, arguments = by_table(_TAR, spelled)
    if verdict.category == READ and not arguments.has("-t", "--list", "-d", "--diff", "--compare", "--test-label"):
        verdict = Verdict(UNKNOWN, "tar without a known operation")
    archive = next(arguments.values("-f", "--file"), None)
    found = [verdict]
    if archive is not None:
        if ":" in archive.text.partition("/")[0] and not arguments.has("--force-local"):
            found.append(Verdict(NETWORK, "the archive is on another machine"))
        if archive.splits or archive.text.startswith(DYNAMIC):
            found.append(Verdict(COMPLEX, "the archive is known only at run time and may be another machine's"))
        if (
            archive.literal
            and arguments.has("-c", "--create", "-r", "--append", "-u", "--update")
            and archive.text != "-"
        ):
            found.append(targets(Verdict(MUTATING, "writes an archive", (Effect(archive.text, "write"),)), [archive]))
    return worst(found)


def _old_style(bundle: Word, rest: Sequence[Word]) -> list[Word]:
    """``czf a.tar d`` as ``-c -z -f a.tar d``: letters that take a value take the following words in turn."""
    spelled, following = [], list(rest)
    for letter in bundle.text:
        spelled.append(bundle._replace(text="-" + letter))
        if letter in "fCbgKLNTVXHIF" and following:
            spelled.append(following.pop(0))
    return [*spelled, *following]


def judge_compress(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """gzip and its like only read with -l, -t or -c, and as a filter."""
    verdict, arguments = by_table(row, words)
    if arguments.has("-l", "--list", "-t", "--test", "-c", "--stdout", "--to-stdout") or not arguments.operands:
        if arguments.has("-o", "--output", "--rm"):
            return verdict
        return Verdict(READ, "reads")
    return verdict


def judge_unzip(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """unzip only reads with -l, -v, -t, -p, -Z, -c, -z."""
    verdict, arguments = by_table(row, words)
    if arguments.open:
        return verdict.at_least(COMPLEX, "an argument known only at run time may be an option")
    return Verdict(READ, "reads") if arguments.has("-l", "-v", "-t", "-p", "-Z", "-c", "-z") else verdict


def judge_ar(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """ar: ``t`` and ``p`` only read."""
    if name == "ar" and words and words[0].literal:
        operation = words[0].text.lstrip("-")
        if any(word.text.startswith(("@", "--p")) or word.may_be_option() for word in words):
            return Verdict(COMPLEX, "options that stand in a file, or a plugin")
        if operation[:1] in ("t", "p") and not set(operation) & set("dmqrsx"):
            return Verdict(READ, "lists")
    return judge.maker(row, words)


def judge_cpio(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """cpio and pax write archives or files; a colon in the archive's name connects."""
    verdict, arguments = by_table(row, words)
    if any(":" in word.text for word in words):
        return verdict.at_least(NETWORK, "the archive may be on another machine")
    if arguments.has("-t", "--list") and not arguments.has("-o", "-p", "-O", "-F") and name == "cpio":
        return Verdict(READ, "lists") if verdict.category == MUTATING else verdict
    return verdict


def judge_disks(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """Partition tables: -l only lists."""
    if words and all(word.literal for word in words) and words[0].text in ("-l", "--list"):
        return Verdict(READ, "lists partitions")
    arguments = take_apart(tool_of(row), words)
    return judge.maker(row, words)._replace(effects=effects_of(tool_of(row), arguments))
