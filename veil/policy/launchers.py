"""Programs that start another program, seen through at any depth.

Two readings are made. The *sure* one follows what is understood to the last option; only it can permit. Where an option
is not known, or a text is given to a shell, every word behind it is a *loose* one: it can only forbid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from veil.policy.names import listed, names_of, words_in
from veil.policy.options import is_option, leading
from veil.policy.programs import MULTICALL, Lookup, Program

#: How deep launchers may stand in each other before nothing is taken for understood.
DEPTH = 16
#: Words behind a loose one that may be its arguments: a script of a megabyte must not cost its square.
_FAR = 64
#: Launchers that change nothing about what they start: the answer is that of the inner program.
TRANSPARENT = listed("nohup nice time gtime timeout gtimeout stdbuf ionice env command setsid chronic")
#: Launchers under which a program may do what it else could not, or is somewhere else.
ELEVATING = listed(
    "sudo doas pkexec gosu su-exec su runuser chroot unshare nsenter setpriv systemd-run bwrap firejail sshpass"
)
#: Programs that run another one in ways that are not read here, so that all that follows is loose.
_RUNNERS = listed(
    "npx bunx uvx pipx dotenv doppler chamber aws-vault envdir envchain ssh entr watchexec nodemon concurrently rlwrap "
    "hyperfine perf gdb lldb valgrind rr strace ltrace start-stop-daemon daemonize parallel watch script flock su "
    "runuser trap eval coproc source . bwrap firejail ld.so ld-linux.so ld-linux-x86-64.so ld-linux-aarch64.so "
    "dbus-launch at batch crontab tmux screen expect setarch nix-shell op tini dumb-init catatonit proxychains proot "
    "proxychains4 torsocks torify tsocks trickle setlock softlimit chpst envuidgid setuidgid pgrphack s6-setuidgid "
    "s6-setlock s6-softlimit ifne sem cgexec schedtool xvfb-run capsh lckdo i386 x86_64 linux32 linux64 qemu-x86_64 "
    "qemu-aarch64 qemu-arm wine box64 fex-emu run-one run-this-one with-lock-ex unbuffer logger-run socat ncat "
    "uclampset coresched systemd-cat sg newgrp switch_root agetty run-parts gtk-launch"
)
#: The same for one of these sub-commands.
_RUNNING = {
    **dict.fromkeys(listed("npm pnpm yarn bun deno"), listed("exec x dlx")),
    **dict.fromkeys(listed("uv poetry pipenv pdm hatch rye pixi conda mamba micromamba"), listed("run tool shell")),
    **dict.fromkeys(listed("rbenv pyenv asdf mise direnv bundle"), listed("exec x")),
    **dict.fromkeys(listed("docker podman nerdctl kubectl"), listed("run exec debug create compose")),
    "nix": listed("run shell develop"),
}
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z_0-9]*=", re.ASCII)


@dataclass(frozen=True)
class Launcher:
    """How the arguments of a launcher are read.

    Attributes:
        valued: options that take a value. flags: options that take none.
        skip: operands before the program (``timeout 5 prog``).
        kind: ``wrapper``, ``env`` (assignments before the program), ``xargs`` (arguments are added from elsewhere).
    """

    valued: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    skip: int = 0
    kind: str = "wrapper"


@dataclass(frozen=True)
class Seen:
    """One program that an argv may start.

    Attributes:
        argv: it and its arguments.
        at: index of its first word in the whole argv; -1 where it stands inside a word.
        program: what its first word names.
        sure: it is certain that this is what is started, with these arguments.
        launcher: it is there to start another one, which is understood. through: the launchers in front of it.
        unclear: index in the whole argv of the word from which on it is not understood what it starts.
        why: the reason for ``unclear``.
        loose: any word behind it may be a program, or a text that it runs.
    """

    argv: tuple[str, ...]
    at: int
    program: Program
    sure: bool = True
    launcher: bool = False
    through: tuple[str, ...] = ()
    unclear: int | None = None
    why: str = ""
    loose: bool = False


def see(argv: Sequence[str], launchers: Mapping[str, Launcher], lookup: Lookup) -> tuple[Seen, ...]:
    """Every program that this argv may start, the outermost first."""
    found: list[Seen] = []
    _Walk(launchers, lookup, found).program(tuple(argv), 0, ())
    return tuple(found)


class _Walk:
    def __init__(self, launchers: Mapping[str, Launcher], lookup: Lookup, found: list[Seen]) -> None:
        self.launchers = launchers
        self.lookup = lookup
        self.found = found

    def program(self, argv: tuple[str, ...], at: int, through: tuple[str, ...]) -> None:
        program = self.lookup(argv[0])
        seen = Seen(argv, at, program, through=through)
        if len(through) >= DEPTH:
            self._loosen(seen, at, f"more than {DEPTH} launchers")
            return
        if program.local and program.interpreter:
            # the kernel starts the program of the first line with the script among its arguments
            self.found.append(seen)
            inner = (*program.interpreter, program.path or argv[0], *argv[1:])
            before = len(self.found)
            self.program(inner, at, (*through, argv[0]))
            # it stands in the file and not in the argv: it can forbid, and whether it may run is told of the script
            self.found[before:] = [replace(one, sure=False) for one in self.found[before:]]
            return
        self._by_name(seen)

    def _by_name(self, seen: Seen) -> None:
        names, argv = seen.program.names, seen.argv
        name = next((name for name in names if name in self.launchers), None)
        if any(base.startswith(tuple(MULTICALL)) for base in names_of(argv[0])):
            self._multicall(seen)
        elif names & {"find", "gfind", "fd", "fdfind"}:
            self._find(seen)
        elif name is not None:
            self._wrapper(seen, self.launchers[name])
        elif len(argv) > 1 and (names & _RUNNERS or _runs(names, argv)):
            self._loosen(seen, seen.at + 1, "it runs other programs in ways that are not read here")
        else:
            self.found.append(seen)

    def _loosen(self, seen: Seen, unclear: int, why: str) -> None:
        """Nothing is sure from here on: every word may be a program, and every text a script."""
        end = seen.at + len(seen.argv) - 1
        self.found.append(replace(seen, unclear=max(unclear, end), why=why, loose=True))
        for at, word in enumerate(seen.argv[1:], 1):
            self._loose(seen.argv[at : at + _FAR], seen)
            for text in _texts(word):
                words = words_in(text)
                for start in range(len(words)):
                    self._loose(words[start : start + _FAR], seen)

    def _loose(self, argv: tuple[str, ...], outer: Seen) -> None:
        # only the name counts: looking each word up would make a long argv dear and tell nothing about most
        if argv and argv[0] and not is_option(argv[0]):
            through = (*outer.through, outer.argv[0])
            self.found.append(Seen(argv, -1, Program(argv[0]), sure=False, through=through))

    def _inner(self, seen: Seen, start: int, unclear: int | None = None, why: str = "") -> None:
        self.found.append(replace(seen, launcher=start < len(seen.argv), unclear=unclear, why=why))
        if start < len(seen.argv):
            self.program(seen.argv[start:], seen.at + start, (*seen.through, seen.argv[0]))

    def _wrapper(self, seen: Seen, launcher: Launcher) -> None:
        words, at = seen.argv, 1
        while at < len(words) and is_option(words[at]):
            if words[at] == "--":
                at += 1
                break
            took = _took(words[at], launcher)
            if took is None or at + took > len(words):
                self._loosen(seen, seen.at + at, f"the option {words[at]} is not known here")
                return
            at += took
        at += launcher.skip
        unclear, why = None, ""
        if launcher.kind == "env":
            while at < len(words) and (_ASSIGNMENT.match(words[at]) or words[at] == "-"):
                unclear, why = seen.at + at, "it changes the variables that the program gets"
                at += 1
            if at < len(words) and "=" in words[at]:
                self._loosen(seen, seen.at + at, "it sets a variable")
                return
        if launcher.kind == "xargs":
            unclear, why = seen.at + len(words) - 1, "it adds arguments that are not here"
        self._inner(seen, at, unclear, why)

    def _multicall(self, seen: Seen) -> None:
        word = seen.argv[1] if len(seen.argv) > 1 else ""
        if not word or is_option(word):
            self._loosen(seen, seen.at + 1, "an option of a program of many names")
        else:
            self._inner(seen, 1)

    def _find(self, seen: Seen) -> None:
        """``-exec`` and its kin: what stands between it and ``;`` or ``+`` is started with names that it finds."""
        words, starts = seen.argv, []
        for at, word in enumerate(words):
            if at and word in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
                starts.append(at + 1)
            elif at and word.startswith(("--exec=", "--exec-batch=")):
                self._loosen(seen, seen.at + at, "it runs a program for what it finds")
                return
        last = seen.at + len(words) - 1
        self.found.append(replace(seen, unclear=last if starts else None, why="it runs a program for what it finds"))
        for start in starts:
            end = next((n for n in range(start, len(words)) if words[n] in (";", "+", "\\;")), len(words))
            if start < end:
                self.program(words[start:end], seen.at + start, (*seen.through, words[0]))


def _runs(names: frozenset[str], argv: Sequence[str]) -> bool:
    words = {argv[at] for at in leading(argv, 1)}
    return any(not _RUNNING[name].isdisjoint(words) for name in names if name in _RUNNING)


def _texts(word: str) -> Iterator[str]:
    """The texts that a word may hand over: itself, and what may be glued to one of its option letters."""
    if words_in(word) != (word,):
        yield word
    if is_option(word) and word[1] != "-":
        yield from (word[start:] for start in range(2, min(len(word), 8)))


def _took(word: str, launcher: Launcher) -> int | None:
    """How many words an option takes, itself included; ``None`` when that is not known."""
    if word.startswith("--"):
        name, equals, _ = word.partition("=")
        if equals:
            return 1 if name in launcher.valued or name in launcher.flags else None
        return 2 if name in launcher.valued else 1 if name in launcher.flags else None
    for at, letter in enumerate(word[1:], 1):
        if "-" + letter in launcher.valued:
            return 1 if at + 1 < len(word) else 2
        if "-" + letter not in launcher.flags:
            return None
    return 1
