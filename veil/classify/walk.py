"""Walks the tree of a command and judges every simple command, redirection and assignment in it."""

# over 300 lines because: it is one walk; each kind of node has one short method
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from veil.classify import storing
from veil.classify.base import COMPLEX, DESTRUCTIVE, MUTATING, NETWORK, RANK, READ, Effect, Segment, Verdict, worst
from veil.classify.grammar import Source, joined
from veil.classify.judging import Judge, crude
from veil.classify.variables import assignment, before_command, dangerous, unsafe_arithmetic
from veil.classify.words import Reader, Word, listed

#: Bounds that keep every command finite: nodes of one command, nesting of nodes, texts inside texts.
MOST_NODES, DEEPEST_NODE, DEEPEST_TEXT = 400_000, 150, 12
_WORDS = listed(
    "word string raw_string ansi_c_string translated_string concatenation number "
    "simple_expansion expansion command_substitution arithmetic_expansion "
    "process_substitution brace_expression variable_assignment extglob_pattern regex "
    "test_operator"
)
_PLAIN = frozenset({"word", "raw_string", "number", "ansi_c_string", "variable_name", "file_descriptor", "comment"})
_NO_FILE = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin")
_FUNCTION = re.compile(r"\(\s*\)|\bfunction\b")
_RESERVED = listed("if then elif else fi for while until do done case esac in select function { } [[ ]] !")
_DESCRIPTOR = re.compile(r"\{[A-Za-z_]\w*\}\Z")
_NUMERIC = re.compile(r"-?\d+\Z")
#: What stands unquoted in a test and is split into words; the name of a variable is the group.
_SPLIT_IN_TEST = re.compile(r"\$(?:([A-Za-z_]\w*)|[@*0-9]|\{(?!#\w+\}|[?$!#]\})|\((?!\())|`")
_TEST_NUMBERS = re.compile(r"(?:^|\s)-(?:eq|ne|lt|le|gt|ge|v|R)(?:\s|$)")


class Findings:
    """What is found while one whole command is judged, its inner texts included."""

    def __init__(self) -> None:
        self.segments: list[tuple[Segment, Verdict]] = []
        self.nodes = 0
        self.depth = 0
        self.texts = 0
        self.worst = 0

    def add(self, text: str, span: tuple[int, int], verdict: Verdict) -> None:
        """Keeps a segment."""
        self.worst = max(self.worst, RANK[verdict.category])
        self.segments.append((Segment(text, span, verdict.category, verdict.reason, verdict.effects), verdict))


class Walker:
    """Judges one text. Inner texts get walkers of their own, which share the findings and the judge."""

    def __init__(self, text: str, findings: Findings, judge: Judge, within: tuple[int, int] | None = None) -> None:
        self.source = Source(text)
        self.findings, self.judge, self.within = findings, judge, within
        self.reader = Reader(self.source.data)
        self.numbers: frozenset[str] = frozenset()
        self._handlers: dict[str, Callable[[Any], None]] = {
            "command": self._command,
            "redirected_statement": self._redirected,
            "file_redirect": self._redirect,
            "heredoc_redirect": self._heredoc,
            "variable_assignment": self._assigned,
            "declaration_command": self._declaration,
            "unset_command": self._declaration,
            "test_command": self._test,
            "function_definition": self._function,
            "arithmetic_expansion": self._arithmetic,
            "expansion": self._expansion,
            "subscript": self._subscript,
            "compound_statement": self._compound,
            "c_style_for_statement": self._counted,
            "for_statement": self._for,
            "comment": self._comment,
            "ERROR": self._error,
        }

    def run(self) -> None:
        """Judges the whole text."""
        root = self.source.root
        text = self.source.text
        for fault in self.source.faults:
            self._add_text(text, 0, len(text), Verdict(COMPLEX, fault))
        if self.source.faults:
            self._add_text(text, 0, len(text), crude(text))
        if root is not None:
            if _FUNCTION.search(text):
                self._name_functions(root)
            self.numbers = (
                self._counters(root) if "((" in text or "[" in text or "-eq" in text or "let " in text else frozenset()
            )
            self.walk(root)

    # walking

    def walk(self, node: Any) -> None:
        """Judges a node by its kind."""
        findings = self.findings
        findings.nodes += 1
        if findings.depth > DEEPEST_NODE or findings.nodes > MOST_NODES:
            self._add(node, crude(self._text(node)))
            return
        handler = self._handlers.get(node.type)
        findings.depth += 1
        try:
            if handler is not None:
                handler(node)
            else:
                self._children(node)
        finally:
            findings.depth -= 1

    def _children(self, node: Any) -> None:
        for child in node.children:
            if child.child_count or child.type in ("comment", "ERROR"):
                self.walk(child)

    def _text(self, node: Any) -> str:
        return self.reader.text(node.start_byte, node.end_byte)

    def _add(self, node: Any, verdict: Verdict) -> None:
        start, end = self.source.span(node)
        self._add_text(self._text(node), start, end, verdict)

    def _add_text(self, text: str, start: int, end: int, verdict: Verdict) -> None:
        self.findings.add(text, self.within or (start, end), self.judge.here(verdict))

    # commands

    def _words(self, node: Any) -> list[Word]:
        if self.within is not None:
            return self.reader.words(node, *self.within)
        return self.reader.words(node, *self.source.span(node))

    def _command(self, node: Any, more: Sequence[tuple[int, Any]] = ()) -> None:
        """A simple command. ``more``: its words behind redirections, each with the byte at which what precedes ends."""
        words: list[Word] = []
        assigned: list[Any] = []
        nested = self.findings.worst
        self.findings.worst = 0
        apart = True
        own = node.children
        for before, child in [*zip([-1, *(child.end_byte for child in own)], own, strict=False), *more]:
            kind = child.type
            if kind == "command_name" or (kind in _WORDS and (words or kind != "variable_assignment")):
                apart = apart and self._apart(before, child.start_byte)
                if not self._is_descriptor(child):
                    words.extend(self._words(child))
            elif kind == "variable_assignment":
                assigned.append(child)
            elif kind in ("$", "==", "=~"):
                words.extend(self._words(child))
            elif kind.endswith("_redirect"):
                apart = apart and self._on_one_line(before, child.start_byte)
            if kind not in _PLAIN and child.child_count:
                if kind == "variable_assignment":
                    self._children(child)
                    self._subscripts(child)
                else:
                    self.walk(child)
        inside = self.findings.worst
        verdict = self._judged(words, assigned)
        if (
            words
            and words[0].text in _RESERVED
            and node.children[0].type == "command_name"
            and self._text(node.children[0]) in _RESERVED
        ):
            behind = [word for number, word in enumerate(words) if number >= 1]
            while behind and behind[0].text in _RESERVED:
                behind = behind[1:]
            verdict = worst(
                [verdict, self.judge.program(behind), Verdict(COMPLEX, "a reserved word where a command stands")]
            )
        if not apart:
            verdict = verdict.at_least(COMPLEX, "words that bash may read as one")
        if inside > 0 and verdict.category != READ:
            verdict = verdict.at_least(COMPLEX, "an argument comes from a command that does more than read")
        self.findings.worst = max(nested, self.findings.worst)
        if words or assigned:
            end = self.source.at(more[-1][1].end_byte if more else node.end_byte)
            start = self.source.at(node.start_byte)
            self._add_text(self._text(node), start, end, verdict)

    def _judged(self, words: list[Word], assigned: Sequence[Any]) -> Verdict:
        verdict = self.judge.program(words)
        for child in assigned:
            name = self._assigned_name(child)
            before = before_command(name)
            if before.category == COMPLEX or verdict.category == READ:
                verdict = verdict.at_least(before.category, before.reason)
        return verdict

    def _is_descriptor(self, node: Any) -> bool:
        """Whether it is the name of the descriptor of a redirection (``{fd}> file``), and no word."""
        following = self.source.data[node.end_byte : node.end_byte + 1]
        return following in (b"<", b">") and _DESCRIPTOR.match(self._text(node)) is not None

    def _apart(self, before: int, start: int) -> bool:
        """Whether a word has a blank before it for bash as well. ``before``: the end of what precedes, -1: nothing."""
        return before < 0 or (self._between(before, start) != b"" and self._on_one_line(before, start))

    def _on_one_line(self, before: int, start: int) -> bool:
        return before < 0 or not self._between(before, start).strip(b" \t")

    def _between(self, before: int, start: int) -> bytes:
        return self.source.data[before:start].replace(b"\\\n", b"")

    def _declaration(self, node: Any) -> None:
        words = []
        for child in node.children:
            if child.is_named and child.type not in _PLAIN and child.child_count:
                if child.type == "variable_assignment":
                    self._children(child)
                    self._subscripts(child)
                else:
                    self.walk(child)
            text, splits = self.reader.read(child)
            start, end = self.within or self.source.span(child)
            words.append(Word(text, start, end, splits and child.type != "variable_assignment"))
        self._add(node, self.judge.program(words))

    def _assigned_name(self, node: Any) -> str:
        return re.split(r"[\[=+]", self._text(node), maxsplit=1)[0]

    def _assigned(self, node: Any) -> None:
        self._children(node)
        self._subscripts(node)
        self._add(node, assignment(self._assigned_name(node), Word("")))

    def _subscripts(self, node: Any) -> None:
        # `a[i]=1` has its subscript as a child, which was walked
        if node.children and node.children[0].type == "subscript":
            self._subscript(node.children[0])

    # redirections

    def _redirected(self, node: Any) -> None:
        body = node.child_by_field_name("body")
        extra = [found for child in node.children for found in _behind(child)]
        for child in node.children:
            if body is not None and child.id == body.id:
                if child.type == "command":
                    self._command(child, extra)
                elif child.type in ("declaration_command", "unset_command", "variable_assignment") or not extra:
                    self.walk(child)
                else:
                    self.walk(child)
                    self._add(node, Verdict(COMPLEX, "words behind a redirection"))
            elif child.child_count or child.type in ("comment", "ERROR"):
                self.walk(child)
        if body is None and extra:
            words = [word for _, child in extra for word in self._words(child)]
            verdict = self.judge.program(words)
            if not all(self._apart(before, child.start_byte) for before, child in extra):
                verdict = verdict.at_least(COMPLEX, "words that bash may read as one")
            self._add(node, verdict)
        elif body is not None and body.type != "command" and extra:
            self._add(node, Verdict(COMPLEX, "words behind a redirection"))

    def _redirect(self, node: Any) -> None:
        operator = ""
        for child in node.children:
            if not child.is_named and child.type[:1] in "<>&":
                # a mended operator stands in the text as it was
                operator = self.reader.text(child.start_byte, child.end_byte)
        destinations = [] if _closes(node) else node.children_by_field_name("destination")
        for child in node.children:
            if child.child_count or child.type == "ERROR":
                self.walk(child)
        if destinations:
            words = self._words(destinations[0])
            if operator in (">&", "<&") and words and words[0].text[:1] == "-" and words[0].text != "-":
                # `>& -rm x`: bash closes the descriptor and takes the rest for a word
                self._add(node, crude(self._text(node)))
            for word in words:
                verdict = redirection(operator, word, destinations[0].type)
                if verdict is not None:
                    self._add(node, verdict)

    def _heredoc(self, node: Any) -> None:
        fault = self.source.heredoc_fault(node)
        if fault:
            self._add(node, Verdict(COMPLEX, fault))
        words: list[Word] = []
        for child in node.children:
            if child.type in ("heredoc_start", "heredoc_end"):
                continue
            if child.type in _WORDS:
                words.extend(self._words(child))
            elif child.type == "file_redirect":
                words.extend(word for _, found in _behind(child) for word in self._words(found))
            if child.child_count or child.type in ("comment", "ERROR"):
                self.walk(child)
        if words:
            self._add(node, Verdict(COMPLEX, "words behind a here-document"))

    # words that do something by themselves

    def _arithmetic(self, node: Any) -> None:
        self._children(node)
        self._evaluated(node, self._text(node))

    def _evaluated(self, node: Any, text: str) -> None:
        if "$(" in text.replace("$((", "") or "`" in text or "${" in text:
            self._add(node, Verdict(COMPLEX, "arithmetic on text known only at run time"))
            return
        unsafe = unsafe_arithmetic(text, self.numbers)
        if unsafe:
            self._add(node, Verdict(COMPLEX, f"arithmetic evaluates what {unsafe} holds"))

    def _expansion(self, node: Any) -> None:
        self._children(node)
        text = self._text(node).strip()
        if re.match(r"\$\{!(?![A-Za-z_]\w*(?:[*@]|\[[*@]\])\})", text):
            self._add(node, Verdict(COMPLEX, "an indirect expansion evaluates what the variable holds"))
        elif re.search(r"@[PEAaKk]\}\Z", text):
            self._add(node, Verdict(COMPLEX, "an expansion evaluates what the variable holds"))
        elif re.match(r"\$\{[A-Za-z_]\w*:?=", text) and dangerous(re.split(r"[:=]", text[2:])[0]):
            self._add(node, Verdict(COMPLEX, "sets a variable that decides which code runs"))
        else:
            offset = re.match(r"\$\{(?:[A-Za-z_]\w*|[@*\d])(?:\[[^\]]*\])?:(?![-=?+])(.*)\}\Z", text, re.DOTALL)
            if offset:
                self._evaluated(node, offset[1])

    def _subscript(self, node: Any) -> None:
        self._children(node)
        inner = self._text(node).partition("[")[2].rpartition("]")[0]
        if inner not in ("@", "*"):
            self._evaluated(node, inner.strip("\"'") if inner[:1] in "\"'" and "$" not in inner else inner)

    def _compound(self, node: Any) -> None:
        self._children(node)
        if node.children and node.children[0].type == "((":
            self._evaluated(node, self._text(node))

    def _counted(self, node: Any) -> None:
        self._children(node)
        body = node.child_by_field_name("body")
        end = body.start_byte if body is not None else node.end_byte
        self._evaluated(node, re.sub(r"^for|\bdo\b", "", self.reader.text(node.start_byte, end)))

    def _for(self, node: Any) -> None:
        self._children(node)
        variable = node.child_by_field_name("variable")
        if variable is not None and dangerous(self._text(variable)):
            self._add(node, Verdict(COMPLEX, "sets a variable that decides which code runs"))

    def _test(self, node: Any) -> None:
        self._children(node)
        text = self._text(node)
        verdict = Verdict(READ, "tests")
        bracket = node.children[0].type if node.children else ""
        bare = re.sub(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[<>]\(", " ", text)
        if bracket == "[" and re.search(r"[<>]", bare):
            verdict = Verdict(MUTATING, "a redirection inside of [ ]")
        elif bracket == "[" and any(name not in self.numbers for name in _SPLIT_IN_TEST.findall(bare)):
            # it may be several words, and these -v 'a[$(...)]'
            verdict = Verdict(COMPLEX, "an unquoted value may be a subscript that is evaluated")
        elif _TEST_NUMBERS.search(text):
            without = re.sub(r"-[a-zA-Z]+|\[\[|\]\]|\$\(\(|\"|'", " ", text)
            if bracket == "[[" or "-v" in text or "-R" in text:
                numeric = re.sub(r"\$\{#\w+(\[[@*]\])?\}|\$[#?$!]", "1", without)
                names = re.findall(r"[A-Za-z_]\w*|\$\{?[0-9@*]|\$\(|`", numeric)
                if any(name not in self.numbers for name in names):
                    verdict = Verdict(COMPLEX, "a test that evaluates what a variable holds")
        self._add(node, verdict)

    def _function(self, node: Any) -> None:
        self._children(node)
        name = node.child_by_field_name("name")
        if name is not None:
            called = rf"(?<![\w-]){re.escape(self._text(name))}(?![\w-])"
            body = self._text(node).partition("{")[2]
            if re.search(called, body) and re.search(r"\||&(?!&)", body):
                self._add(
                    node,
                    Verdict(
                        DESTRUCTIVE,
                        "a function that multiplies itself",
                        (),
                        False,
                        "the machine's use, until it is started anew",
                    ),
                )

    def _comment(self, node: Any) -> None:
        before = self.source.data[node.start_byte - 1 : node.start_byte]
        if before and before not in b" \t\n;&|()<>":
            self._add(node, Verdict(COMPLEX, "what looks like a remark may be part of a word"))
            self._add(node, crude(self._text(node)))

    def _error(self, node: Any) -> None:
        self._children(node)
        text = self._text(node)
        if len(text) > 1:
            self._add(node, crude(text))

    # what is known before the walk

    def _name_functions(self, root: Any) -> None:
        pending = [root]
        while pending:
            node = pending.pop()
            if node.type == "function_definition":
                name = node.child_by_field_name("name")
                if name is not None:
                    self.judge.functions.add(self._text(name))
            pending.extend(child for child in node.children if child.child_count)

    def _counters(self, root: Any) -> frozenset[str]:
        """Variables that are only ever given numbers here, and not by anything that reads text."""
        good: set[str] = set()
        bad: set[str] = set()
        pending = [root]
        while pending:
            node = pending.pop()
            if node.type == "variable_assignment":
                name = self._assigned_name(node)
                value = node.child_by_field_name("value")
                numeric = value is None or value.type == "arithmetic_expansion" or _NUMERIC.match(self._text(value))
                (good if numeric and "[" not in self._text(node).partition("=")[0] else bad).add(name)
            elif node.type == "for_statement":
                variable = node.child_by_field_name("variable")
                values = node.children_by_field_name("value")
                numeric = all(
                    _NUMERIC.match(self._text(v)) or re.fullmatch(r"\{-?\d+\.\.-?\d+\}", self._text(v)) for v in values
                )
                if variable is not None:
                    (good if values and numeric else bad).add(self._text(variable))
            elif node.type == "command":
                text = self._text(node)
                if re.match(r"(?:read|mapfile|readarray|printf|getopts|eval|source|\.)\b", text):
                    bad.update(re.findall(r"[A-Za-z_]\w*", text))
            pending.extend(child for child in node.children if child.child_count)
        return frozenset(good - bad)


def _closes(node: Any) -> bool:
    """Whether a redirection closes a descriptor (``2>&-``) and has no target."""
    return any(child.type in (">&-", "<&-") for child in node.children)


def _behind(node: Any) -> list[tuple[int, Any]]:
    """The words behind a redirection, each with the byte at which what precedes it ends.

    The grammar takes arguments that stand behind a redirection for more targets of it, or for a part of it.
    """
    if node.type == "heredoc_redirect":
        rows = pairwise(node.children)
        return [
            found
            for before, child in rows
            for found in ([(before.end_byte, child)] if child.type in _WORDS else _behind(child))
        ]
    if node.type != "file_redirect":
        return []
    found = node.children_by_field_name("destination")
    if _closes(node):
        operator = next(child for child in node.children if child.type in (">&-", "<&-"))
        found = [operator, *found]
    return [(before.end_byte, child) for before, child in pairwise(found)]


def redirection(operator: str, word: Word, kind: str) -> Verdict | None:
    """What a redirection does, or None when it does nothing to any file."""
    text = word.text
    writes = ">" in operator
    if operator in (">&", "<&", ">&-", "<&-") and re.fullmatch(r"\d+-?|-", text):
        return None
    if kind == "process_substitution":
        return None
    if word.literal and re.match(r"/+dev/+(?:tcp|udp)/", text):
        return Verdict(NETWORK, "bash connects to a host")
    if not word.literal:
        return Verdict(COMPLEX, "the target of a redirection is known only at run time")
    if not writes or text in _NO_FILE or text.startswith("/dev/fd/"):
        return None
    if storing.device(text):
        return Verdict(
            DESTRUCTIVE, f"writes over the device {text}", (Effect(text, "write"),), False, f"what is on {text}"
        )
    return Verdict(MUTATING, f"a redirection into {text}", (Effect(text, "append" if ">>" in operator else "write"),))


def judge_script(
    walker_of: Callable[[str, tuple[int, int]], Walker], findings: Findings, text: str, span: tuple[int, int]
) -> Verdict:
    """The verdict of an inner text; its segments are kept as well."""
    if findings.texts >= DEEPEST_TEXT:
        return crude(text)
    findings.texts += 1
    before = len(findings.segments)
    try:
        for reading in dict.fromkeys((text, joined(text))):
            walker_of(reading, span).run()
    finally:
        findings.texts -= 1
    found = [verdict for _, verdict in findings.segments[before:]]
    return worst(found) if found else Verdict(READ, "runs nothing")
