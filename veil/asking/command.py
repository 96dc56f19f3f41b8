"""The command of a request: argv or shell text, working directory, environment, standard input."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from veil.model.command import Command
from veil.model.errors import BadInput
from veil.settings import Settings


def command_of(command: object, said: Mapping[str, Any], settings: Settings) -> Command:
    cwd = _cwd(said.get("cwd"))
    env = _env(said.get("env"))
    stdin = said.get("stdin")
    if isinstance(stdin, str):
        stdin = _bytes("stdin", stdin)
    elif stdin is not None and not isinstance(stdin, (bytes, bytearray, memoryview)):
        raise BadInput("stdin", stdin, "text or bytes")
    stdin = None if stdin is None else bytes(stdin)
    if isinstance(command, str):
        if not command.strip():
            raise BadInput("command", command, "a shell text that is not blank, or an argv")
        if "\0" in command:
            raise BadInput("command", command, "a text without NUL")
        _bytes("command", command)
        shell = _shell(said.get("shell"), settings)
        return Command((shell, "-c", command), cwd, command, env, stdin)
    if "shell" in said:
        raise BadInput("shell", said["shell"], "nothing when the command is an argv (an argv uses no shell)")
    return Command(argv_of(command), cwd, None, env, stdin)


def _bytes(argument: str, text: str) -> bytes:
    """The text as the operating system takes it. A lone surrogate that stands for no byte cannot be handed over."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise BadInput(argument, text, "text that can be encoded (it holds a lone surrogate)") from None


def argv_of(command: object) -> tuple[str, ...]:
    """An argv as text. Raises ``BadInput``."""
    if isinstance(command, (bytes, bytearray)) or not isinstance(command, Sequence):
        raise BadInput("command", command, "a shell text or a sequence of arguments")
    argv = []
    for at, word in enumerate(command):
        try:
            text = os.fsdecode(word)
        except TypeError:
            raise BadInput(f"command[{at}]", word, "text, bytes or a path") from None
        if "\0" in text:
            raise BadInput(f"command[{at}]", word, "an argument without NUL")
        _bytes(f"command[{at}]", text)
        argv.append(text)
    if not argv or not argv[0].strip():
        raise BadInput("command", command, "an argv whose first element names a program")
    return tuple(argv)


def _cwd(value: object) -> str:
    if value is None:
        try:
            return os.getcwd()
        except OSError as error:
            raise BadInput("cwd", None, f"a folder, since this process's own is gone ({error.strerror})") from None
    try:
        name = os.fsdecode(value)  # type: ignore[arg-type]  # the TypeError is the check
    except TypeError:
        raise BadInput("cwd", value, "a path") from None
    if not name:  # mostly a variable that was not set, and not the folder that happens to be the current one
        raise BadInput("cwd", value, "a path that is not empty")
    try:
        path = os.path.abspath(name)
    except OSError:  # it is relative
        raise BadInput("cwd", value, "an absolute path, since this process's own folder is gone") from None
    if "\0" in path or not os.path.isdir(path):
        raise BadInput("cwd", value, "a folder that exists")
    return path


def _env(value: object) -> tuple[tuple[str, str | None], ...]:
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise BadInput("env", value, "a mapping of names to text, or to None to take a name away")
    pairs: list[tuple[str, str | None]] = []
    for name, text in value.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise BadInput("env", name, "names that are not empty and hold neither '=' nor NUL")
        _bytes("env", name)
        if text is not None and (not isinstance(text, str) or "\0" in text):
            raise BadInput(f"env[{name!r}]", type(text).__name__, "text without NUL, or None to take the name away")
        if text is not None:
            try:
                text.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:  # the value may be a secret: it is not shown
                raise BadInput(
                    f"env[{name!r}]", "text", "text that can be encoded (it holds a lone surrogate)"
                ) from None
        pairs.append((name, text))
    return tuple(sorted(pairs, key=lambda pair: pair[0]))


def _shell(value: object, settings: Settings) -> str:
    if value is None and settings.shell is None:
        return usual_shell(os.environ.get("PATH", os.defpath))
    argument, asked = ("VEIL_SHELL", settings.shell) if value is None else ("shell", value)
    try:
        name = os.fsdecode(asked)  # type: ignore[arg-type]  # the TypeError is the check
    except TypeError:
        raise BadInput(argument, asked, "the path or name of a shell (a text is always read by one)") from None
    import shutil

    found = shutil.which(name)
    if found is None:
        raise BadInput(argument, asked, "an executable that can be found")
    return found


@lru_cache(maxsize=8)
def usual_shell(path: str) -> str:
    """bash where there is one (agents write bash; under dash ``&>`` silently backgrounds), else sh."""
    import shutil

    return shutil.which("bash", path=path) or shutil.which("bash", path=os.defpath) or "/bin/sh"
