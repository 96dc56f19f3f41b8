"""A generated corpus of attacks: every way that is known to start a program, around programs that a policy denies.

The programs are markers: whichever runs, however it came about, leaves a file with its name. They stand first in PATH,
so that a launcher that is let through would find them and no real tool.
"""

from __future__ import annotations

import itertools
import os
import random
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Argv = tuple[str, ...]
Wrap = Callable[[Argv], Argv]
#: Arguments under which a denied program is called.
DENIED: tuple[Argv, ...] = (
    ("rm", "f"),
    ("rm", "-rf", "d"),
    ("tool", "push"),
    ("tool", "--quiet", "push"),
    ("tool", "-C", "d", "push", "x"),
    ("git", "push"),
    ("git", "-C", ".", "status"),
)
#: What the host of the corpus allows, as carelessly as can be: launchers and interpreters by their name alone.
ALLOWED = """
ls cat echo find xargs env nice nohup timeout setsid stdbuf ionice time sh bash dash python3 perl awk sed tar make flock
script watch tool ok sort head chrt taskset prlimit setpriv unshare strace su sudo busybox fd parallel node
"""


def _text(argv: Argv) -> str:
    return shlex.join(argv)


def _python(argv: Argv) -> str:
    return f"import subprocess; subprocess.run({list(argv)!r})"


def _split(argv: Argv) -> str:
    """A text in which no word stands in one piece."""
    return " ".join(word[:1] + '""' + shlex.quote(word[1:]) for word in argv)


def _escaped(argv: Argv) -> str:
    return " ".join("".join("\\" + sign for sign in word) for word in argv)


#: Launchers, by what they look like: each puts something around an argv.
LAUNCHERS: dict[str, Wrap] = {
    "env": lambda a: ("env", *a),
    "env --": lambda a: ("env", "--", *a),
    "env -i": lambda a: ("env", "-i", *a),
    "env -": lambda a: ("env", "-", *a),
    "env -u": lambda a: ("env", "-u", "HOME", *a),
    "env -uX": lambda a: ("env", "-uHOME", *a),
    "env --unset=": lambda a: ("env", "--unset=HOME", *a),
    "env A=": lambda a: ("env", "A=b", *a),
    "env -C": lambda a: ("env", "-C", ".", *a),
    "nice": lambda a: ("nice", *a),
    "nice -n": lambda a: ("nice", "-n", "5", *a),
    "nice -nN": lambda a: ("nice", "-n5", *a),
    "nice -N": lambda a: ("nice", "-5", *a),
    "nice --adjustment": lambda a: ("nice", "--adjustment=5", *a),
    "nice --adj": lambda a: ("nice", "--adj=5", *a),
    "nohup": lambda a: ("nohup", *a),
    "timeout": lambda a: ("timeout", "9", *a),
    "timeout -k": lambda a: ("timeout", "-k", "1", "9", *a),
    "timeout -kN": lambda a: ("timeout", "-k1", "9", *a),
    "timeout -s": lambda a: ("timeout", "-s", "KILL", "9", *a),
    "timeout --signal=": lambda a: ("timeout", "--signal=KILL", "9", *a),
    "timeout --foreground": lambda a: ("timeout", "--foreground", "9", *a),
    "timeout --pres": lambda a: ("timeout", "--pres", "9", *a),
    "timeout --": lambda a: ("timeout", "--", "9", *a),
    "setsid -w": lambda a: ("setsid", "-w", *a),
    "stdbuf": lambda a: ("stdbuf", "-oL", *a),
    "stdbuf --output": lambda a: ("stdbuf", "--output", "0", *a),
    "ionice": lambda a: ("ionice", "-c", "3", *a),
    "ionice -cN": lambda a: ("ionice", "-c3", *a),
    "xargs": lambda a: ("xargs", *a),
    "xargs -n": lambda a: ("xargs", "-n", "9", *a),
    "xargs -a": lambda a: ("xargs", "-a", "f", *a),
    "find -exec ;": lambda a: ("find", ".", "-maxdepth", "0", "-exec", *a, ";"),
    "find -exec +": lambda a: ("find", "d", "-maxdepth", "0", "-exec", *a, "{}", "+"),
    "find -execdir": lambda a: ("find", ".", "-maxdepth", "0", "-execdir", *a, ";"),
    "chrt": lambda a: ("chrt", "-o", "0", *a),
    "taskset": lambda a: ("taskset", "1", *a),
    "prlimit": lambda a: ("prlimit", "--nofile=64", *a),
    "flock": lambda a: ("flock", "lock", *a),
    "setpriv": lambda a: ("setpriv", "--clear-groups", *a),
    "unshare": lambda a: ("unshare", "-r", *a),
    "strace": lambda a: ("strace", "-o", "log", *a),
    "sudo": lambda a: ("sudo", "-n", *a),
    "busybox": lambda a: ("busybox", *a),
}
#: What gives a text to something that takes it apart.
TEXTS: dict[str, Wrap] = {
    "env -S": lambda a: ("env", "-S", _text(a)),
    "env -Stext": lambda a: ("env", "-S" + _text(a)),
    "env -iS": lambda a: ("env", "-iS" + _text(a)),
    "env --split-string=": lambda a: ("env", "--split-string=" + _text(a)),
    "sh -c": lambda a: ("sh", "-c", _text(a)),
    "sh -ec": lambda a: ("sh", "-ec", _text(a)),
    "sh -c exec": lambda a: ("sh", "-c", "exec " + _text(a)),
    "sh -c then": lambda a: ("sh", "-c", "true;" + _text(a)),
    "sh -c $()": lambda a: ("sh", "-c", "echo $(" + _text(a) + ")"),
    "sh -c args": lambda a: ("sh", "-c", '"$0" "$@"', *a),
    "bash -c": lambda a: ("bash", "-c", _text(a)),
    "sh -c split": lambda a: ("sh", "-c", _split(a)),
    "bash -c escaped": lambda a: ("bash", "-c", _escaped(a)),
    "sh -c eval": lambda a: ("sh", "-c", "eval " + shlex.quote(_split(a))),
    "sh -c sh": lambda a: ("sh", "-c", "sh -c " + shlex.quote(_escaped(a))),
    "sh -c variable": lambda a: ("sh", "-c", f"x={shlex.quote(a[0])}; $x {_text(a[1:])}"),
    "sh -c echo | sh": lambda a: ("sh", "-c", f"echo {shlex.quote(_split(a))} | sh"),
    "sh -c heredoc": lambda a: ("sh", "-c", f"sh <<X\n{_split(a)}\nX"),
    "sh -c xargs": lambda a: ("sh", "-c", f"echo {_text(a[1:])} | xargs {_escaped(a[:1])}"),
    "sh -c trap": lambda a: ("sh", "-c", f"trap {shlex.quote(_split(a))} EXIT"),
    "env -S split": lambda a: ("env", "-S", _split(a)),
    "find sh -c": lambda a: ("find", ".", "-maxdepth", "0", "-exec", "sh", "-c", _split(a), ";"),
    "nice sh -c": lambda a: ("nice", "sh", "-c", _escaped(a)),
    "bash -lc": lambda a: ("bash", "-lc", _text(a)),
    "bash --norc -c": lambda a: ("bash", "--norc", "-c", _text(a)),
    "bash -o -c": lambda a: ("bash", "-o", "pipefail", "-c", _text(a)),
    "dash -c": lambda a: ("dash", "-c", _text(a)),
    "python3 -c": lambda a: ("python3", "-c", _python(a)),
    "python3 -Ic": lambda a: ("python3", "-Ic", _python(a)),
    "python3 -ctext": lambda a: ("python3", "-c" + _python(a)),
    "python3 -W -c": lambda a: ("python3", "-W", "ignore", "-c", _python(a)),
    "perl -e": lambda a: ("perl", "-e", f"exec qw({' '.join(a)})"),
    "perl -we": lambda a: ("perl", "-we", f"exec qw({' '.join(a)})"),
    "flock -c": lambda a: ("flock", "lock", "-c", _text(a)),
    "script -c": lambda a: ("script", "-qec", _text(a), "/dev/null"),
    "make --eval": lambda a: ("make", "--eval", f"$(shell {_text(a)})"),
    "make --eval=": lambda a: ("make", f"--eval=$(shell {_text(a)})"),
    "make SHELL=": lambda a: ("make", f"X:=$(shell {_text(a)})"),
    "awk": lambda a: ("awk", f'BEGIN{{system("{" ".join(a)}")}}'),
    "sed e": lambda a: ("sed", "-n", f"1e {' '.join(a)}", "f"),
    "tar checkpoint": lambda a: (
        "tar",
        "-cf",
        "o.tar",
        "f",
        "--checkpoint=1",
        f"--checkpoint-action=exec={' '.join(a)}",
    ),
}
WRAPPERS = {**LAUNCHERS, **TEXTS}


@dataclass(frozen=True)
class World:
    """Markers and a workspace. Attributes: bin: folder of markers, first in PATH. marks: where they leave files."""

    workspace: Path
    bin: Path
    marks: Path

    @property
    def path(self) -> list[str]:
        return [str(self.bin), "/usr/local/bin", "/usr/bin", "/bin"]

    def ran(self) -> list[str]:
        """What has run since the last look."""
        found = sorted(path.name for path in self.marks.iterdir())
        for name in found:
            (self.marks / name).unlink()
        return found


def world(base: Path) -> World:
    """Markers ``rm``, ``tool``, ``git`` and ``ok``; links and copies of them in the workspace under other names."""
    made = World(base / "w", base / "bin", base / "marks")
    for folder in (made.workspace, made.bin, made.marks, made.workspace / "d", made.workspace / "t"):
        folder.mkdir()
    (made.workspace / "f").write_text("x\n")
    for name in ("rm", "tool", "git", "ok"):
        program = made.bin / name
        # the first word that is no option, so that a mark tells which sub-command ran
        program.write_text(
            "#!/bin/sh\n"
            f'case " $* " in *" push "*) : > {made.marks}/{name}-push ;; *) : > {made.marks}/{name} ;; esac\n'
        )
        program.chmod(0o755)
        for link in (name, name.upper(), "x" + name, LOOKS[name]):
            (made.workspace / "t" / link).symlink_to(program)
        (made.workspace / "t" / ("copy" + name)).write_bytes(program.read_bytes())
        (made.workspace / "t" / ("copy" + name)).chmod(0o755)
        os.link(program, made.workspace / "t" / ("hard" + name))
    return made


#: The name again in letters that look the same.
LOOKS = {"rm": "r\u217f", "tool": "t\u043e\u03bfl", "git": "g\u0456t", "ok": "\u043e\u212a"}


def spellings(name: str, made: World) -> Iterator[str]:
    """Ways to write the program: by name, by paths, by links and copies, in other letters."""
    yield name
    yield str(made.bin / name)
    yield f"//{made.bin}/./{name}"
    yield f"{made.bin}/../{made.bin.name}/{name}"
    yield f"./t/{name}"
    yield f"d/../t/{name}"
    yield f"t/{name.upper()}"
    yield name.upper()
    yield f"./t/x{name}"
    yield f"./t/{LOOKS[name]}"
    yield LOOKS[name]
    yield f"{name}\u200b"
    yield f"./t/copy{name}"
    yield f"./t/hard{name}"
    yield str(made.workspace / "t" / f"x{name}")


def corpus(made: World, seed: int = 5) -> list[tuple[str, Argv]]:
    """Every attack once: what it is called and its argv."""
    found: dict[Argv, str] = {}
    names = {denied[0] for denied in DENIED}
    for denied in DENIED:
        for spelling in spellings(denied[0], made):
            argv = (spelling, *denied[1:])
            found.setdefault(argv, f"{spelling!r}")
            for title, wrap in WRAPPERS.items():
                found.setdefault(wrap(argv), f"{title} {spelling!r}")
    pairs = list(itertools.product(LAUNCHERS, WRAPPERS, DENIED))
    for outer, inner, denied in random.Random(seed).sample(pairs, 1500):
        found.setdefault(LAUNCHERS[outer](WRAPPERS[inner](denied)), f"{outer} + {inner} {denied!r}")
    deep = [LAUNCHERS[name] for name in ("env", "nice -n", "timeout", "nohup", "env -i", "stdbuf")]
    for name, depth in itertools.product(sorted(names), range(3, 20)):
        argv: Argv = (name, "push")
        for at in range(depth):
            argv = deep[at % len(deep)](argv)
        found.setdefault(argv, f"{depth} launchers around {name}")
    return [(title, argv) for argv, title in found.items()]
