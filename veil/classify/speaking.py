"""Deciders for interpreters, databases, downloads and clouds: what their texts and operands say."""

from __future__ import annotations

import re
from collections.abc import Sequence

from veil.classify.base import COMPLEX, DESTRUCTIVE, MUTATING, NETWORK, READ, UNKNOWN, Effect, Verdict, worst
from veil.classify.judging import Judge, by_table, tool_of
from veil.classify.options import take_apart
from veil.classify.storing import device, targets
from veil.classify.tables import Row
from veil.classify.words import Word, listed

_MODULES = {
    "http.server": Verdict(NETWORK, "serves files"),
    "SimpleHTTPServer": Verdict(NETWORK, "serves files"),
    "venv": Verdict(MUTATING, "makes an environment"),
    "virtualenv": Verdict(MUTATING, "makes an environment"),
    "py_compile": Verdict(MUTATING, "compiles"),
    "compileall": Verdict(MUTATING, "compiles"),
    "site": Verdict(READ, "tells"),
    "this": Verdict(READ, "tells"),
    "smtplib": Verdict(NETWORK, "connects"),
    "ensurepip": Verdict(NETWORK, "installs"),
    "ftplib": Verdict(NETWORK, "connects"),
    "webbrowser": Verdict(NETWORK, "opens a browser"),
    "pdb": Verdict(COMPLEX, "a debugger"),
    "code": Verdict(COMPLEX, "an interpreter"),
    "timeit": Verdict(COMPLEX, "runs code that stands in its arguments"),
    "trace": Verdict(UNKNOWN, "runs a script"),
    "tarfile": Verdict(MUTATING, "works on archives"),
    "zipfile": Verdict(MUTATING, "works on archives"),
}
#: Modules that are the program of that name.
_AS_PROGRAM = listed("pip black isort ruff mypy pytest flake8 pylint coverage poetry pipx uv yapf autopep8")


def judge_interpreter(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """python, node, perl, ...: code in an option, a module, a script, or whatever comes in."""
    arguments = take_apart(tool_of(row), words, stop_at_operand=True)
    found = [Verdict(READ, f"{name} by itself")]
    for option in arguments.options:
        if option.name == "-m" and name.startswith(("python", "pypy")):
            return _module(judge, option.value, words)
        if option.rule is not None and option.rule.category != READ:
            reason = "code that stands in an option" if option.value is not None else f"option {option.name}"
            found.append(Verdict(option.rule.category, reason))
    if arguments.open:
        found.append(Verdict(COMPLEX, "an argument known only at run time may be code"))
    elif arguments.operands and arguments.operands[0].text != "-":
        script = arguments.operands[0]
        if not script.literal or script.text.startswith("/dev/"):
            found.append(Verdict(COMPLEX, "runs a script known only at run time"))
        else:
            found.append(Verdict(UNKNOWN, "runs a script"))
    elif len(found) == 1 or all(verdict.category == READ for verdict in found):
        found.append(Verdict(COMPLEX, "an interpreter that runs what it reads"))
    return worst(found)


def _module(judge: Judge, module: Word | None, words: Sequence[Word]) -> Verdict:
    if module is None or not module.literal:
        return Verdict(COMPLEX, "a module known only at run time")
    at = next(
        (n for n, word in enumerate(words) if word.start == module.start and word.text.endswith(module.text)),
        len(words),
    )
    rest = list(words[at + 1 :])
    known = _known_module(judge, module, rest)
    alone = any(re.fullmatch(r"-[A-Za-z]*[IP][A-Za-z]*", word.text) for word in words[:at] if word.literal)
    if known.category == READ and not alone:
        return Verdict(UNKNOWN, "a module; a file of its name in the folder would be run instead")
    return known


def _known_module(judge: Judge, module: Word, rest: Sequence[Word]) -> Verdict:
    if module.text in _AS_PROGRAM:
        return judge.program([module, *rest])
    if module.text == "json.tool":
        plain = [word for word in rest if not word.text.startswith("--") or word.text == "--" or word.may_be_option()]
        return (
            Verdict(READ, "reads")
            if len(plain) < 2 and not any(w.splits for w in plain)
            else Verdict(MUTATING, "writes a file")
        )
    return _MODULES.get(module.text, Verdict(UNKNOWN, "runs a module"))


def judge_calculator(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """bc and dc compute; dc runs a shell at ``!``, which may stand in its input or in -e."""
    if name == "dc" or any(not word.text.startswith("-") or not word.literal for word in words):
        return Verdict(COMPLEX, "a calculator that runs scripts")
    return Verdict(READ, "computes")


def judge_compiler(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """Compilers: options that load or run something; ``@file`` holds more options."""
    verdict, arguments = by_table(row, words)
    verdict = targets(verdict, list(arguments.values("-o")))
    for word in words:
        text = word.text
        if text.startswith("@"):
            return verdict.at_least(COMPLEX, "options that stand in a file")
        if re.match(r"-(?:fplugin|load|Xclang|specs|B.|wrapper|processor|J|plugin|fuse-ld=/|dylib-file)", text):
            return verdict.at_least(COMPLEX, f"option {text.partition('=')[0]} runs or loads a program")
    return verdict


_SQL_LOSES = re.compile(
    r"\b(?:drop|truncate|delete|flushall|flushdb|dropdatabase|deletemany|deleteone|remove|destroy|unlink|del|hdel|purge|wipe)\b",
    re.IGNORECASE,
)
_SQL_READS = re.compile(
    r"\s*(?:select|explain|pragma\s+(?:table_info|index_list|foreign_key_list)\s*\([\w'\"]+\)|values)\b", re.IGNORECASE
)
_SQL_CALLS = re.compile(
    r"\b(?:writefile|load_extension|edit|readfile|fts3_tokenizer|attach|into|copy|install|load|pragma)\b", re.IGNORECASE
)


def judge_database(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """Clients of a server: they connect; statements in their arguments may lose data or run programs."""
    found = [Verdict(NETWORK, "connects to a database")]
    for word in words:
        statement = re.search(r"[\s(.]", word.text) is not None or name in ("redis-cli", "valkey-cli")
        if statement and _SQL_LOSES.search(word.text):
            found.append(Verdict(DESTRUCTIVE, "a statement that deletes", (), False, "what the statement deletes"))
    return worst(found)


def judge_sqlite(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """sqlite3: statements and dot-commands; with -readonly, a SELECT only reads."""
    found = [Verdict(MUTATING, "opens a database, which may write it")]
    operands, options = [w for w in words if not w.text.startswith("-")], {w.text.lstrip("-") for w in words}
    statements = operands[1:]
    if options & {"init", "cmd", "A", "archive", "c"} or any(word.may_be_option() for word in words):
        found.append(Verdict(COMPLEX, "commands in options"))
    if not statements:
        found.append(Verdict(COMPLEX, "runs what it reads"))
    for word in statements:
        for line in word.text.splitlines():
            if line.lstrip().startswith(".") and not re.match(
                r"\s*\.(tables|schema|indexes|databases|mode|headers?|dump)\b[\w\s%]*\Z", line
            ):
                found.append(Verdict(COMPLEX, "a dot-command"))
        if not word.literal:
            found.append(Verdict(COMPLEX, "a statement known only at run time"))
        if _SQL_LOSES.search(word.text):
            found.append(Verdict(DESTRUCTIVE, "a statement that deletes", (), False, "what the statement deletes"))
        elif _SQL_CALLS.search(word.text):
            found.append(Verdict(COMPLEX, "a statement that may touch other files or load code"))
    reads = (
        "readonly" in options
        and statements
        and all(_SQL_READS.match(w.text) and ";" not in w.text.rstrip("; ") for w in statements)
    )
    if reads and len(found) == 1:
        return Verdict(READ, "a SELECT on a database that is opened for reading")
    return worst(found)


def judge_fetch(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """curl, wget: they connect; files that they write are named."""
    verdict, arguments = by_table(row, words)
    written = [
        option.value for option in arguments.options if option.rule is not None and option.rule.writes and option.value
    ]
    effects = tuple(Effect(word.text, "write") for word in written if word.literal and word.text != "-")
    verdict = (
        verdict._replace(category=NETWORK, reason=row["why"], effects=effects)
        if verdict.category != DESTRUCTIVE
        else verdict
    )
    method = [value.text.upper() for value in arguments.values("-X", "--request", "--method")]
    if "DELETE" in method:
        return verdict._replace(
            category=DESTRUCTIVE, reason="asks a server to delete", warning="what the address names"
        )
    return targets(verdict, [word for word in written if device(word.text)])


def judge_api(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """gh api: the method may be DELETE."""
    verdict, arguments = by_table(row, words)
    if any(value.text.upper() == "DELETE" for value in arguments.values("-X", "--method")) or any(
        "delete" in w.text.lower() for w in words
    ):
        return verdict._replace(
            category=DESTRUCTIVE, reason="asks a server to delete", warning="what the address names"
        )
    return verdict


_CLOUD_LOSES = re.compile(
    r"(?:rm|rb|delete|destroy|terminate|purge|remove|deregister|undeploy|empty|revoke|release)(?:-[a-z-]+)?\Z|del\Z"
)


def judge_cloud(judge: Judge, row: Row, name: str, words: Sequence[Word]) -> Verdict:
    """aws, gcloud, az: they connect; verbs that delete are many, so any word that reads like one counts."""
    for word in words:
        if _CLOUD_LOSES.match(word.text) or word.text in ("--delete", "--delete-removed", "--force-delete"):
            return Verdict(DESTRUCTIVE, f"{name} ... {word.text}", (), False, "what it names in the cloud")
    return Verdict(NETWORK, "talks to a cloud")
