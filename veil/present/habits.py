"""Advice on two habits of people at a terminal: programs that wait for somebody, and a pipe that hides how it ended.

Both are told from the text of the command and from how it ended. A wrong word of advice costs trust, so what is not
certain is left alone: texts with here-documents, quotes that do not close, programs that are fed by a pipe or a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from veil.model.record import Record

_LONGEST = 4_000
#: What a text is made of: words with their quotes, operators, comments and blanks; what is left over is a quote that
#: does not close.
_TOKEN = re.compile(
    r"""(?P<word>(?:[^\s'"\\();<>|&#]|(?<=[^\s();<>|&])\#|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)"""
    r"""|(?P<operator>&>>?|[0-9]*[<>]+&?\|?|\|&|&&|\|\||;;|[();|&\n])"""
    r"""|(?P<blank>[^\S\n]+|\#[^\n]*)"""
    r"""|(?P<stray>.)""",
    re.DOTALL,
)
_QUOTED = re.compile(r"""'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|\\(?P<escaped>.)""", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
#: Words in front of a command that leave it what it is.
_BEFORE = frozenset(("exec", "command", "time", "nohup", "then", "do", "else", "!", "{"))


@dataclass(frozen=True)
class Simple:
    """One simple command of a text.

    Attributes:
        program: its name without folders. words: its arguments.
        assigned: names of the variables that are set for it.
        fed: something else writes its standard input. then: the operator behind it, empty at the end.
    """

    program: str
    words: tuple[str, ...]
    assigned: tuple[str, ...] = ()
    fed: bool = False
    then: str = ""


def commands(record: Record) -> tuple[Simple, ...]:
    """The simple commands of a record in order; none where the text is not plain enough to be sure."""
    if record.text is None:
        return tuple(_simple(list(record.argv), fed=False, then=""))
    if len(record.text) > _LONGEST or any(sign in record.text for sign in ("<<", "$(", "`", "<(", ">(")):
        return ()
    found: list[Simple] = []
    words: list[str] = []
    fed, target = False, False
    for token in (*_TOKEN.finditer(record.text), None):
        word = "" if token is None else token["word"]
        operator = "" if token is None else token["operator"]
        if word:
            if not target:
                words.append(_plain(word))
            target = False
        elif operator and set(operator) & set("<>"):
            if words and words[-1].isdigit():
                words.pop()  # the descriptor
            fed, target = fed or operator[0] == "<", True
        elif operator or token is None:
            found += _simple(words, fed=fed, then=operator)
            words, fed, target = [], operator in ("|", "|&"), False
        elif token is not None and token["stray"]:
            return ()
    return tuple(found)


def _plain(word: str) -> str:
    """A word without its quotes."""
    return _QUOTED.sub(lambda part: part["single"] or part["double"] or part["escaped"] or "", word)


def _simple(words: list[str], *, fed: bool, then: str) -> Iterator[Simple]:
    assigned = []
    while words and (words[0] in _BEFORE or _ASSIGNMENT.match(words[0]) or words[0] == "env"):
        if _ASSIGNMENT.match(words[0]):
            assigned.append(words[0].partition("=")[0])
        words = words[1:]
    if words and words[0] == "timeout":
        words = words[2:]
    if words:
        yield Simple(words[0].rpartition("/")[2], tuple(words[1:]), tuple(assigned), fed, then)


# -- somebody is waited for


def _any(words: tuple[str, ...], *options: str) -> bool:
    """One of these options is there: a long one by its name, a short one also among others (``-it``)."""
    for word in words:
        for option in options:
            if option.startswith("--"):
                if word == option or word.startswith(option + "="):
                    return True
            elif word.startswith("-") and not word.startswith("--") and option[1:] in word[1:]:
                return True
    return False


def _bare(words: tuple[str, ...]) -> bool:
    """Nothing but switches that ask for nothing to be run."""
    return all(word in ("-i", "-q", "-u", "-l", "-B", "-E", "-s", "-I", "-") for word in words)


def _git(simple: Simple) -> str | None:
    words = simple.words
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in ("-C", "-c") else words[1:]
    if not words:
        return None
    verb, rest = words[0], words[1:]
    if (
        verb == "rebase"
        and _any(rest, "--interactive", "-i")
        and not {"GIT_SEQUENCE_EDITOR", "GIT_EDITOR"} & set(simple.assigned)
    ):
        return (
            "set GIT_SEQUENCE_EDITOR to a command that edits the list, or use git rebase --onto, cherry-pick or reset"
        )
    if verb in ("add", "checkout", "restore", "reset", "stash", "commit") and "--patch" in rest:
        return "name the files, or git apply a patch that was written for it"
    return None


def _editor(simple: Simple) -> str | None:
    if _any(simple.words, "-e", "-E", "-s", "--batch", "--version", "--help") or "-batch" in simple.words:
        return None
    return "write the file with a here-document, sed or a script"


def _interpreter(simple: Simple) -> str | None:
    return None if simple.fed or not _bare(simple.words) else "give it a script, -c or -e, or standard input"


def _client(simple: Simple) -> str | None:
    if simple.fed or _any(simple.words, "-c", "-f", "-e", "-l", "--command", "--file", "--execute", "--version"):
        return None
    return "give it the query as an option, or standard input"


def _top(simple: Simple) -> str | None:
    return None if _any(simple.words, "-b", "-l") else "take one picture: top -b -n 1, or ps aux"


def _watch(simple: Simple) -> str | None:
    return "run the command itself, once or in a loop that ends"


#: Programs that wait for a person, whatever became of them this time, and what to do instead.
_ALWAYS: dict[str, Callable[[Simple], str | None]] = {
    **dict.fromkeys(("vi", "vim", "nvim", "nano", "pico", "emacs", "joe", "micro"), _editor),
    **dict.fromkeys(("python", "python2", "python3", "ipython", "node", "irb", "ghci", "R"), _interpreter),
    **dict.fromkeys(("bash", "sh", "zsh", "dash", "fish"), _interpreter),
    **dict.fromkeys(("psql", "mysql", "mariadb"), _client),
    "git": _git,
    "top": _top,
    "htop": _watch,
    "watch": _watch,
}


def _sudo(simple: Simple) -> str | None:
    quiet = _any(simple.words[:3], "-n", "-S", "-A", "--non-interactive", "--stdin", "--askpass")
    return None if quiet else "sudo -n says at once whether a password is needed; or do it without"


def _ssh(simple: Simple) -> str | None:
    if any(word.lower().removeprefix("-o").startswith("batchmode=yes") for word in simple.words):
        return None
    return f"{simple.program} -o BatchMode=yes fails at once where it would ask"


def _commit(simple: Simple) -> str | None:
    words = simple.words
    if words[:1] != ("commit",) or simple.assigned:
        return None
    says = ("-m", "-F", "-C", "--message", "--file", "--no-edit", "--reuse-message", "--fixup", "--dry-run")
    return None if _any(words[1:], *says) else "give it the message: git commit -m"


def _container(simple: Simple) -> str | None:
    asks = simple.words[:1] in (("run",), ("exec",)) and _any(simple.words[1:4], "-t", "--tty")
    return "leave -t out: there is no terminal" if asks else None


def _installer(simple: Simple) -> str | None:
    wants = simple.words[:1] in (("install",), ("upgrade",), ("remove",), ("init",))
    return f"{simple.program} -y answers its questions" if wants and not _any(simple.words, "-y", "--yes") else None


#: Programs that ask when they have to; said only when the command did not end well.
_WHEN_FAILED: dict[str, Callable[[Simple], str | None]] = {
    "sudo": _sudo,
    **dict.fromkeys(("ssh", "scp", "sftp"), _ssh),
    "su": lambda simple: None if simple.fed else "it asks for a password, and there is nobody to give it",
    "passwd": lambda simple: None if simple.fed else "chpasswd reads from standard input",
    "git": _commit,
    **dict.fromkeys(("docker", "podman"), _container),
    **dict.fromkeys(("apt", "apt-get", "dnf", "yum", "npm"), _installer),
}


def interactive(record: Record) -> str | None:
    """Advice when a command waits for a person: there is none, and its standard input is empty."""
    if record.observation.outcome.ended == "spawn_failed":
        return None  # it never began to wait
    failed = not record.observation.outcome.ok
    for simple in commands(record):
        program = re.sub(r"^(python3?)\.\d+$", r"\1", simple.program)
        for table in (_ALWAYS, _WHEN_FAILED) if failed else (_ALWAYS,):
            instead = table[program](simple) if program in table else None
            if instead is not None:
                return f"{simple.program} waits for a person, and nobody answers here: {instead}"
    return None


# -- a pipe that hides how it ended

#: Programs whose end is what a caller wants to know of them.
_JUDGES = re.compile(
    r"make|cmake|ninja|meson|bazel|cargo|go|gcc|g\+\+|clang|rustc|javac|mvnw?|gradlew?|npm|npx|yarn|pnpm|tsc|eslint|jest"
    r"|vitest|mocha|pytest|tox|nox|mypy|ruff|flake8|pylint|pip3?|uv|poetry|dotnet|swift|rake|bundle|rspec|phpunit"
    r"|composer|terraform|ansible-playbook|docker|helm|alembic|ctest|pre-commit"
)
#: Filters that end with 0 whatever they are given.
_FILTERS = re.compile(r"tail|head|tee|cat|less|more|sed|awk|sort|uniq|cut|tr|wc|fold|nl|column")
_SCRIPT = re.compile(r"\.(sh|bash|py|js|rb|pl)$")


def masked(record: Record) -> str | None:
    """Advice when exit 0 is that of the filter at the end of a pipe, and not of what was run in front of it."""
    if not record.observation.outcome.ok or (record.text or "").find("pipefail") >= 0:
        return None
    found = commands(record)
    if len(found) < 2 or not _FILTERS.fullmatch(found[-1].program) or found[-1].then.strip("\n"):
        return None
    for at in range(len(found) - 2, -1, -1):
        if found[at].then not in ("|", "|&"):
            return None
        if _judges(found[at]):
            return (
                f"exit 0 is that of {found[-1].program}, not of {found[at].program}: leave the pipe out, since output "
                "is condensed anyway, or begin with set -o pipefail"
            )
    return None


def _judges(simple: Simple) -> bool:
    if _JUDGES.fullmatch(simple.program) or _SCRIPT.search(simple.program):
        return True
    runs = simple.program in ("bash", "sh", "node", "ruby", "perl") or simple.program.startswith("python")
    return runs and any(_SCRIPT.search(word) or word == "-m" for word in simple.words[:2])
