"""Which programs a command may start, by name, through launchers and texts for a shell; or that this cannot be read.

The walk is that of the pre-check. What it makes of a word for a shell is the word without its quotes, so a name is
found however it is spelt. Where a shell would make the name itself, from a variable, a pattern, its input or a text
that is put together, nobody can say beforehand what it starts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from veil.classify.assessing import deciders
from veil.classify.base import COMPLEX, Verdict
from veil.classify.grammar import joined
from veil.classify.judging import Judge, find_row
from veil.classify.walk import Findings, Walker, judge_script
from veil.classify.words import DYNAMIC, GLOB, Word, listed, plain

#: Deciders of programs that start another one, or run a text, or change what names mean for a shell.
_STARTING = listed(
    "alias command env eval fc find flock joined parallel script shell shell_state source su sudo trap wrapper xargs"
)
#: Shells whose language is another one than the walk reads.
_FOREIGN = listed("fish csh tcsh zsh yash rbash xonsh nu elvish pwsh")
_FOREIGN_SAFE = re.compile(r"[\w./:@%+,\s|;&-]*\Z", re.ASCII)
#: Builtins of a shell by which a name comes to mean another program, or a text is kept to be run.
_NAMING = listed("hash enable bind complete compgen compopt")
_MOVING = listed("cd pushd popd")
#: Programs that hand a text to the standard shell of the machine.
_GIVING = listed("su runuser watch script flock parallel ssh")
#: What bash reads in another way than the shells that follow the standard alone.
_NOT_THE_SAME = re.compile(
    r"\$['\"\[]|&>|>&(?![\d-])|(?<!\$)\(\(|\[\[|[<>]\(|<<<|\|&|\b(?:function|select|coproc)\b|\{[^}\s]*[,.]|;;?&|=\("
)
_STANDARD = listed("sh dash ash ksh mksh zsh yash")
#: Variables by which a shell finds programs, or reads a text before the one that it is given.
_CHOOSING = re.compile(r"(PATH|ENV|IFS|CDPATH|FPATH|ZDOTDIR|SHELL\w*|GLOBIGNORE|BASH\w*|LD_\w+|DYLD_\w+) decides ")
_ANY = re.compile(r"\w+ decides which code other programs run")
#: Reasons of the pre-check by which no program is started that is not written there.
_OTHER = frozenset(
    {
        "the target of a redirection is known only at run time",
        "an argument comes from a command that does more than read",
    }
)
#: Reasons that are none outside of a text: nobody writes to the input of what runs, and all words stand there.
_OUTSIDE = frozenset(
    {
        "too large, too deep or too odd to follow",
        "a shell that runs what it reads",
        "an interactive shell",
        "a shell as another user",
        "a shell or editor as another user",
    }
)
_FILE = "a shell with a start-up file of its own"
#: Where a program of awk runs a text, and where it may.
_AWK_COMMAND = re.compile(
    r'\bsystem\s*\(\s*"([^"\\]*)"\s*\)|(?<!\|)\|&?\s*"([^"\\]*)"\s*(?=[;}\n]|$)|"([^"\\]*)"\s*\|&?\s*getline\b'
)
_AWK_HANDS = re.compile(r"\bsystem\b|(?<!\|)\|(?!\|)")
_PLAIN_ARGUMENT = re.compile(r"[\w./:@%+,=-]*\Z", re.ASCII)
#: Nodes of the grammar that are words, and those inside of words that hold commands or words of their own.
_WORDS = listed("word string raw_string ansi_c_string translated_string concatenation")
_INSIDE = listed("command_substitution process_substitution expansion")
#: More programs than this in one command are not told one by one.
MOST = 256


class Starts(NamedTuple):
    """What a command starts.

    Attributes:
        programs: each with its arguments, quotes undone; NUL stands for what is known only at run time.
        unclear: why these may not be all, or ``""``.
        foreign: some of them run code in a language that is not read here.
        words: of texts for a shell, whatever they are there for: arguments, targets, values.
        moved: the only folder that a text changes to, relative to where it begins; ``""``: it stays there.
    """

    programs: tuple[tuple[str, ...], ...]
    unclear: str = ""
    foreign: bool = False
    words: tuple[str, ...] = ()
    moved: str = ""


class _Walker(Walker):
    """A walk that also keeps every word of its text."""

    def __init__(self, text: str, findings: Findings, judge: _Recorder, within: tuple[int, int] | None) -> None:
        super().__init__(text, findings, judge, within)
        self._kept = judge.words

    def run(self) -> None:
        """Judges the whole text; its words are kept."""
        super().run()
        pending = [] if self.source.root is None else [self.source.root]
        while pending:
            node = pending.pop()
            whole = node.type in _WORDS
            if whole:
                self._kept.update(dict.fromkeys(_bare(word) for word in self.reader.words(node, 0, 0)))
            # the parts of a word are no words, but for the commands in it
            pending += [child for child in node.children if not whole or child.type in _INSIDE]
            if whole:
                pending += [inner for child in node.children for inner in child.children if inner.type in _INSIDE]


class _Recorder(Judge):
    """A judge that keeps every program that it is asked about."""

    def __init__(self, findings: Findings) -> None:
        super().__init__(deciders(), self._script)
        self._findings = findings
        self.kept: list[tuple[tuple[Word, ...], Verdict]] = []
        self.words: dict[str, None] = {}
        self.unclear = ""
        self.foreign = False

    def _walker(self, text: str, within: tuple[int, int] | None) -> Walker:
        return _Walker(text, self._findings, self, within)

    def _script(self, text: str, span: tuple[int, int]) -> Verdict:
        return judge_script(self._walker, self._findings, text, span)

    def read(self, text: str) -> None:
        """The text, as a shell reads it."""
        self._findings.texts += 1
        for reading in dict.fromkeys((text, joined(text))):
            self._walker(reading, (0, len(text))).run()

    def program(self, words: Sequence[Word]) -> Verdict:
        """The verdict of the pre-check; what it means for the question here is noted."""
        before = len(self.kept)
        verdict = super().program(words)
        if words:
            inner = {one.reason for _, one in self.kept[before:]}
            self._note(words, verdict, inner)
            self.kept.append((tuple(words), verdict))
        return verdict

    def _note(self, words: Sequence[Word], verdict: Verdict, inner: set[str]) -> None:
        head = words[0]
        row = find_row(head.text.rpartition("/")[2]) if head.literal else None
        judge = None if row is None else row.get("judge")
        if judge == "interpreter" or (judge == "source" and head.literal):
            self.foreign = True
        if not head.literal:
            self._doubt("which program runs is known only at run time")
        elif head.text in _NAMING and any(not word.literal or word.text.startswith("-") for word in words[1:]):
            self._doubt(f"{head.text} may make a name mean another program")
        elif verdict.reason == _FILE:
            self.foreign = True
        elif judge in ("awk", "sed") and verdict.category == COMPLEX:
            self._of_editor(words, verdict.reason)
        elif verdict.category == COMPLEX and judge in _STARTING:
            harmless = _OTHER | inner | (frozenset() if self._findings.texts else _OUTSIDE)
            listed = judge == "parallel" and _listed(words)
            if verdict.reason not in harmless and not listed and not _elsewhere(verdict.reason):
                self._doubt(verdict.reason)

    def _of_editor(self, words: Sequence[Word], reason: str) -> None:
        """What a program of awk hands to a shell, as far as it stands there as a text; of sed it is never known."""
        awk, known, handed = words[0].text.endswith("awk"), 0, 0
        for word in words[1:] if awk else ():
            texts = ["".join(found) for found in _AWK_COMMAND.findall(word.text)]
            known, handed = known + len(texts), handed + len(_AWK_HANDS.findall(word.text))
            for text in texts:
                self.script(text, (word.start, word.end))
        if "shell" in reason and (not awk or known != handed):
            self._doubt(reason)

    def _doubt(self, why: str) -> None:
        self.unclear = self.unclear or why


def _listed(words: Sequence[Word]) -> bool:
    """Whether ``parallel`` is given all its arguments here, and none that a shell would read in a way of its own."""
    return any(word.text.startswith(":::") for word in words) and all(
        word.literal and _PLAIN_ARGUMENT.match(word.text.replace("{}", "")) for word in words
    )


def _elsewhere(reason: str) -> bool:
    """Whether it is about a variable that means something to other programs, and nothing to a shell."""
    return _ANY.match(reason) is not None and _CHOOSING.match(reason) is None


def starts(command: str | Sequence[str]) -> Starts:
    """Every program that a command may start: a text for a shell, or an argv."""
    findings = Findings()
    recorder = _Recorder(findings)
    if isinstance(command, str):
        recorder.read(command)
    else:
        recorder.program([plain(word, at, at) for at, word in enumerate(command)])
    programs = [words for words, _ in recorder.kept]
    moved = _moved(programs)
    unclear = recorder.unclear or _of_text(findings, recorder) or _of_shells(programs, moved)
    if len(programs) > MOST:
        unclear = unclear or f"more than {MOST} programs"
    told = tuple(tuple(_bare(word) for word in words) for words in programs[:MOST])
    return Starts(told, unclear, recorder.foreign, tuple(recorder.words), moved)


def _bare(word: Word) -> str:
    text = word.text.replace(GLOB, DYNAMIC)
    return DYNAMIC if word.splits and not word.known else text


def _of_text(findings: Findings, recorder: _Recorder) -> str:
    """Doubts about a text that are none about a single program in it."""
    known = _OTHER | {verdict.reason for _, verdict in recorder.kept}
    for segment, verdict in findings.segments:
        if verdict.category == COMPLEX and verdict.reason not in known:
            if _elsewhere(verdict.reason):
                continue
            return f"{verdict.reason}: {segment.text[:80]!r}"
    return ""


def _moved(programs: Sequence[Sequence[Word]]) -> str:
    """The folder of the only ``cd``, if it is plain."""
    moves = {tuple(words) for words in programs if _name(words[0]) in _MOVING}
    if len({tuple(word.text for word in words) for words in moves}) != 1 or len(words := moves.pop()) != 2:
        return ""
    return words[1].text if words[0].text == "cd" and words[1].literal and not words[1].text.startswith("-") else ""


def _of_shells(programs: Sequence[Sequence[Word]], moved: str) -> str:
    """Doubts because of the shell that reads a text, or of the folder that a program is looked for in."""
    names = {_name(words[0]) for words in programs}
    foreign = sorted(names & _FOREIGN)
    for words in programs:
        name, arguments = _name(words[0]), [word.text for word in words[1:]]
        for text in arguments if name in _FOREIGN else ():
            if not _FOREIGN_SAFE.match(text):
                return f"{foreign[0]} reads {text[:80]!r} in a way of its own"
        for text in arguments if name in _STANDARD or name in _GIVING else ():
            if found := _NOT_THE_SAME.search(text):
                return f"not every shell reads {found[0]!r} in the same way"
    elsewhere = (names & _MOVING and not moved) or any(_moves(words) for words in programs)
    for words in programs if elsewhere else ():
        if "/" in words[0].text and not words[0].text.startswith("/"):
            return f"{words[0].text!r} is looked for in a folder that is known only at run time"
    return ""


def _name(word: Word) -> str:
    return word.text.rpartition("/")[2]


def _moves(words: Sequence[Word]) -> bool:
    """Whether a program starts others in another folder."""
    options = ("-execdir", "-okdir") if _name(words[0]) == "find" else ("-C", "-D", "--chdir", "--working-directory")
    moving = _name(words[0]) in ("find", "env", "sudo", "systemd-run")
    return moving and any(word.text.startswith(options) for word in words[1:])
