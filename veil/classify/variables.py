"""Shell and environment variables: which of them make programs run or change what a name means."""

from __future__ import annotations

import re

from veil.classify.base import COMPLEX, READ, UNKNOWN, Verdict
from veil.classify.words import Word, listed

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")

#: Programs, libraries, start-up files, search paths and settings that tools take from the environment.
_DANGEROUS = re.compile(
    r"(?:LD_|DYLD_|GIT_|PYTHON|PERL|RUBY|NODE_(?!ENV\Z)|JAVA_|_JAVA|JDK_|GCONV|GTK_|QT_|GST_|BASH|SSH_|PROMPT_|LESS|MAN(?!WIDTH)|GEM_|BUNDLE_|"
    r"NPM_|npm_|PIP_|UV_|CARGO_|RUST(?!_BACKTRACE|_LOG)|GO(?!MAXPROCS)|DOCKER_|KUBE|AWS_|XDG_|GNUPG|MALLOC_|PG|MYSQL|SQLITE|CURL_|WGET|"
    r"http_proxy|https_proxy|HTTP_PROXY|HTTPS_PROXY|ALL_PROXY|all_proxy|FZF_|RSYNC_|TAR_|GREP_OPTIONS|POSIXLY_CORRECT_)"
    r"|(?:PATH|ENV|IFS_|SHELL|SHELLOPTS|PS[0-4]|HOME|BROWSER|VISUAL|CDPATH|GLOBIGNORE|HISTFILE|INPUTRC|TERMINFO|TERMCAP|LOCPATH|NLSPATH|"
    r"TMPDIR|CC|CXX|LD|AR|MAKE|CFLAGS|FPATH|ZDOTDIR|KRB5_CONFIG|ANT_OPTS|OPENSSL_CONF|OPENSSL_ENGINES|PKCS11_PROVIDER)\Z"
    r"|.*(?:PAGER|EDITOR|_COMMAND|_CMD|_OPTIONS|_OPTS|_FLAGS|MAKEFLAGS|_CONFIG|CONFIG_PATH|_CONFIG_FILE|_RC|RCFILE|_PATH|_PRELOAD|_WRAPPER|_PROXY_CMD|"
    r"_HOME|_SHELL|ASKPASS|_PLUGIN|_PLUGINS|_HOOK|_HOOKS|_EXEC|_PROGRAM|_BIN)\Z"
)
#: What only changes wording, colour, language or a program's own switch.
_HARMLESS = re.compile(
    r"(?:LC_[A-Z]+|LANG|LANGUAGE|TZ|NO_COLOR|CLICOLOR|CLICOLOR_FORCE|FORCE_COLOR|COLUMNS|LINES|TERM|COLORTERM|CI|DEBUG|VERBOSE|NODE_ENV|IFS|"
    r"RUST_BACKTRACE|RUST_LOG|GREP_COLOR|GREP_COLORS|LS_COLORS|BLOCKSIZE|BLOCK_SIZE|POSIXLY_CORRECT|TIMEFORMAT|MANWIDTH|GOMAXPROCS|DISPLAY|"
    r"HISTCONTROL|OPTIND|REPLY|DEBIAN_FRONTEND)\Z"
)


def dangerous(name: str) -> bool:
    """Whether setting this variable can make other programs run other code."""
    return _DANGEROUS.match(name) is not None and _HARMLESS.match(name) is None


def assignment(name: str, value: Word) -> Verdict:
    """``NAME=value`` before a command, or exported."""
    name = name.rstrip("+")
    if dangerous(name):
        return Verdict(COMPLEX, f"{name} decides which code other programs run")
    return Verdict(READ, "sets a variable")


def before_command(name: str) -> Verdict:
    """``NAME=value`` before a command that only reads: a variable that nobody here knows may mean something to it."""
    name = name.rstrip("+")
    if dangerous(name):
        return Verdict(COMPLEX, f"{name} decides which code other programs run")
    if _HARMLESS.match(name) or not name.isupper():
        return Verdict(READ, "sets a variable")
    return Verdict(UNKNOWN, f"what {name} means to the program is not known")


_NAME = re.compile(r"\$?\{?#?[A-Za-z_][A-Za-z0-9_]*")
_SAFE_NUMBERS = listed("RANDOM SECONDS LINENO EPOCHSECONDS UID EUID PPID COLUMNS LINES OPTIND BASHPID SHLVL")


def unsafe_arithmetic(text: str, numbers: frozenset[str]) -> str:
    """The first variable in an arithmetic text whose value may hold a command (``a[$(...)]``), or nothing.

    ``numbers``: variables that hold numbers.
    """
    given = re.search(r"\$[0-9@*]", text)
    if given:
        return given[0]
    without = re.sub(r"0[xX][0-9a-fA-F]+|\d+#[0-9A-Za-z@_]+|\d\w*", " ", text)
    for found in _NAME.finditer(without):
        name = found[0].lstrip("${")
        if name.startswith("#"):
            continue
        if name not in numbers and name not in _SAFE_NUMBERS:
            return name
    return ""
