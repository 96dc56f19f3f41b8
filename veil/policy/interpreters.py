"""Which words of an interpreter's argv decide what it runs: a text, a module, a script, files that it loads.

A rule that allows has to name all of them. Where the options of an interpreter are not known here, every word is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from veil.policy.names import listed
from veil.policy.options import is_option


class Interpreter(NamedTuple):
    """How options are read; letters of short ones, names of long ones (with their dashes).

    Attributes:
        inline: their value is code, and no script follows. loads: their value names something that is run as well.
        valued: their value is neither. module: their value is a module that is run, and all behind it its arguments.
        shell: the code of ``inline`` is the first operand, wherever it stands. unknown: every word counts.
    """

    inline: str = ""
    loads: str = ""
    valued: str = ""
    module: str = ""
    inline_names: tuple[str, ...] = ()
    loads_names: tuple[str, ...] = ()
    valued_names: tuple[str, ...] = ()
    shell: bool = False
    unknown: bool = False


_SHELL = Interpreter(
    "c", valued="oO", inline_names=("--command",), loads_names=("--rcfile", "--init-file", "--init-command"), shell=True
)
_PYTHON = Interpreter("c", valued="WXQ", module="m", valued_names=("--check-hash-based-pycs",))
_NODE = Interpreter(
    "ep",
    "rC",
    inline_names=("--eval", "--print"),
    loads_names=("--require", "--import", "--loader", "--experimental-loader", "--env-file"),
)
INTERPRETERS: Mapping[str, Interpreter] = {
    **dict.fromkeys(listed("sh bash zsh dash ksh ash mksh fish csh tcsh yash rbash"), _SHELL),
    **dict.fromkeys(listed("python pypy ipython jython micropython"), _PYTHON),
    **dict.fromkeys(listed("node nodejs ts-node tsx"), _NODE),
    # letters that only take what is glued to them (-i.bak, -l012) are not told from flags: an e behind them is code
    **dict.fromkeys(listed("perl raku"), Interpreter("eE", "mMI")),
    **dict.fromkeys(listed("ruby jruby"), Interpreter("e", "rIC", "E", inline_names=("--eval",))),
    "php": Interpreter("rBREF", "dczf", inline_names=("--run",), loads_names=("--file", "--define", "--php-ini")),
    **dict.fromkeys(
        listed(
            "dc m4 gnuplot octave lua luajit tclsh wish expect r rscript julia osascript groovy scala kotlin guile "
            "racket sbcl clisp ghci runghc runhaskell ocaml erl elixir iex swift jshell deno bun nvim vim vi ex view "
            "emacs ed psql mysql sqlite3 pwsh nu elvish xonsh"
        ),
        Interpreter(unknown=True),
    ),
}


#: Of these, the files that they are given are what they work on.
_WORKING = listed("sqlite3 mysql psql nvim vim vi ex view emacs ed gnuplot octave dc")


class Code(NamedTuple):
    """What decides which code runs.

    Attributes:
        at: index of the last such word. texts: indices of words that are or hold code (a script's name is none).
        rest: index from which on words are handed to such a text, which may start them; 0 for none.
    """

    at: int
    texts: tuple[int, ...] = ()
    rest: int = 0


def interpreter_of(names: frozenset[str]) -> Interpreter | None:
    """How a program of these names reads its options, if it is an interpreter."""
    return next((INTERPRETERS[name] for name in names if name in INTERPRETERS), None)


def code_of(argv: Sequence[str], interpreter: Interpreter) -> Code | None:
    """Which words of an interpreter's argv decide what it runs; ``None`` when it runs nothing."""
    if len(argv) == 2 and argv[1] in ("--version", "-V", "--help", "-h"):
        return None
    if interpreter.unknown:
        return Code(len(argv) - 1, tuple(range(1, len(argv))))
    texts: list[int] = []
    at, last, inline = 1, 0, False
    while at < len(argv):
        word = argv[at]
        if word == "--" or not (is_option(word) or word[:1] == "+"):
            at += word == "--"
            break
        kind, took = _option(word, interpreter)
        value = min(at + took - 1, len(argv) - 1)
        if kind == "module":
            return Code(max(last, value), (*texts, value))
        if kind == "inline" and interpreter.shell:
            if word.startswith("--"):
                return Code(value, (*texts, value), value + 1)
            inline = True
        elif kind in ("inline", "loads"):
            last = value
            texts.append(value)
            inline = inline or kind == "inline"
        at += took
    if interpreter.shell and inline and at < len(argv):
        return Code(at, (*texts, at), at + 1)
    if inline:
        return Code(last, tuple(texts), at)
    # without a script it reads its input, which is empty here, or shows a prompt to nobody
    return Code(max(last, at) if at < len(argv) else last, tuple(texts))


def files_of(argv: Sequence[str], names: frozenset[str]) -> tuple[int, ...]:
    """Which words of an interpreter's argv name files whose content it runs, if there are files of these names.

    Where its options are not known here that is the first of the words that does (``veil.governed.scripts`` looks).
    """
    interpreter = interpreter_of(names)
    if interpreter is None or names & _WORKING:
        return ()
    code = code_of(argv, interpreter)
    return () if code is None else tuple(sorted({at for at in (code.at, *code.texts) if 0 < at < len(argv)}))


def _option(word: str, interpreter: Interpreter) -> tuple[str, int]:
    """What an option does (``inline``, ``loads``, ``module``, ``valued`` or nothing), and how many words it takes."""
    name, equals, _ = word.partition("=")
    if word.startswith("--"):
        named = (("inline", interpreter.inline_names), ("loads", interpreter.loads_names))
        for kind, names in (*named, ("valued", interpreter.valued_names)):
            if any(known.startswith(name) for known in names):
                return kind, 1 if equals else 2
        return "", 1
    kinds = ("inline", "loads", "module", "valued")
    found = ""
    for at, letter in enumerate(word[1:], 1):
        kind = next((kind for kind in kinds if letter in getattr(interpreter, kind)), "")
        if kind == "inline" and interpreter.shell:
            found = "inline"  # the letters behind it are options still
        elif kind:
            return found or kind, 1 if at + 1 < len(word) else 2
    return found, 1
