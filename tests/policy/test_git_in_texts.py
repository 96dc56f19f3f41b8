"""Raw git stays refused however a shell would come to its name, at every level and whatever a rule allows.

Each of these is run by hand in ``test_the_texts_do_start_git``: the attack is real, only the guard is in its way.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from policies import allow, judged

from veil.policy.rules import Rule

#: Texts that start a program called git in a usual shell, without its name standing there as one word.
TEXTS = [
    r"g\it push",
    'gi""t push',
    "gi''t push",
    "'git' push",
    "g=gi; ${g}t push",
    'x="g"; y="it"; "$x$y" push',
    "$(printf 'g%s' it) push",
    "`echo g``echo it` push",
    "echo 'g''it push' | sh",
    "printf 'Z2l0IHB1c2gK' | base64 -d | sh",
    "eval 'g''it push'",
    "eval g\\\\it push",
    "set -- g it push; a=$1$2; $a $3",
    "f() { \"$@\"; }; f g''it push",
    "exec g\\it push",
    "command g\\it push",
    "env g\\it push",
    "nice g\\it push",
    "echo push | xargs g\\it",
    "echo it | xargs -I% env g% push",
    "trap 'g\\it push' EXIT",
    ". ./sub/../fake",
    "PATH=$PWD/bin:$PATH; g push",
    "cd bin; ./g push",
    "./bin/g push",
    "export P=bin; $P/g push",
    "echo g | while read x; do ${x}it push; done",
    "for x in git; do $x push; done",
    'case it in *) y=it;; esac; "g$y" push',
    "if :; then g\\\nit push; fi",
    "(g\\it push)",
    "{ g\\it push; }",
    "true && ! g\\it push",
    ": $(g\\it push)",
    "x=`g\\it push`",
    ': "${x:=$(g\\it push)}"',
    "sh -c 'g\\it push'",
    "sh <<X\ng''it push\nX",
    "sh -c \"sh -c 'g\\\\it push'\"",
    "timeout 9 sh -c 'g\\it push'",
    "find . -maxdepth 0 -exec sh -c 'g\\it push' ';'",
    "cat bin/name | { read a; $a push; }",
    "bin/gi[t] push",
    "bin/?it push",
]
#: Only bash reads these so.
BASH = [
    r"$'\x67it' push",
    "gi$'t' push",
    "g{i,}t push; git=1",
    "x=git y=x; ${!y} push",
    "declare -n n=c; c=git; $n push",
    'a=(git push); "${a[@]}"',
    "hash -p bin/git foo; foo push",
    "shopt -s expand_aliases\nalias g=g\\it\ng push",
    "sh <<< 'g\\it push'",
    "printf -v c g%s it; $c push",
    "mapfile -t c < bin/name; $c push",
    "source <(echo g\\\\it push)",
    "coproc g\\it push; wait",
    "x=gitter; ${x%ter} push",
    "x=GIT; ${x,,} push",
]
#: Other ways, as argv.
ARGV = [
    ["env", "-S", 'g"i"t push'],
    ["env", "-S", r"git\_push"],
    ["env", "-vS", "g''it push"],
    ["env", "-S", "${X}git push"],
    ["env", "sh", "-c", r"g\it push"],
    ["nice", "-n", "1", "timeout", "9", "sh", "-c", r"g\it push"],
    ["timeout", "--what", "9", "sh", "-c", r"g\it push"],
    [*["env"] * 100, "sh", "-c", r"g\it push"],
    ["find", ".", "-name", "g", "-exec", "{}", "push", ";"],
    ["find", ".", "-name", "g", "-exec", "env", "{}", "push", ";"],
    ["find", ".", "-exec", "sh", "-c", "{}", ";"],
    ["find", ".", "-name", "g", "-execdir", "./g", "push", ";"],
    ["xargs", "-a", "f", "env"],
    ["xargs", "-a", "f", "sh", "-c"],
    ["xargs", "-a", "f", "-I%", "%", "push"],
    ["parallel", "{}", "push", ":::", r"g\it"],
    ["watch", r"g\it push"],
    ["su", "-c", r"g\it push"],
    ["script", "-c", r"g\it push", "/dev/null"],
    ["flock", "l", "-c", r"g\it push"],
    ["hyperfine", r"g\it push"],
    ["hyperfine", "$X push"],
    ["busybox", "sh", "-c", r"g\it push"],
    ["fish", "-c", "set x git; $x push"],
    ["csh", "-c", r"\git push"],
    ["zsh", "-c", "=git push"],
    ["dash", "-c", r"ls &>x g\it push"],
    ["sh", "-c", r"((g\it push))"],
    ["sh", "-c", r"[[ a || g\it push ]]"],
    ["sh", "-c", r"echo $'a\'; g\it push #'"],
    ["sh", "-c", '"$@"', "x", "g", "push"],
    ["sh", "-c", "$0 push", "g"],
    ["sed", r"1e g\it push", "f"],
    ["sed", "s/.*/g''it push/e", "f"],
    ["sed", "s/x/y/e", "f"],
    ["awk", r'BEGIN { system("g\\it push") }'],
    ["awk", 'BEGIN { system("g" "it push") }'],
    ["awk", """BEGIN { system("g''it push") }"""],
    ["awk", """{ print | "g''it push" }""", "f"],
    ["awk", '{ print | "sh" }', "f"],
    ["awk", 'BEGIN { c = "g" "it"; c | getline }'],
    ["nice", "awk", "{ system($0) }", "f"],
    ["tar", "-xf", "x", r"--to-command=g\it push"],
    ["tar", "-cf", "o", "f", "--checkpoint-action=exec=g''it push"],
    ["split", r"--filter=g\it push", "f"],
    ["zip", "o", "f", "-T", "-TT", r"g\it push"],
    ["ssh", r"-oProxyCommand=g\it push", "h"],
    ["ssh", "-o", r"ProxyCommand=g\it push", "h"],
    ["rsync", "-e", r"g\it push", "f", "h:"],
    ["rsync", "--rsh=g''it push", "f", "h:"],
    ["tmux", "new", r"g\it push"],
    ["gdb", "-batch", "-ex", r"shell g\it push"],
    ["make", r"CC=g\it", "x"],
    ["man", "-P", r"g\it push", "ls"],
]
WAYS = [*(["sh", "-c", text] for text in TEXTS), *(["bash", "-c", text] for text in (*TEXTS, *BASH)), *ARGV]
#: A file that is run by name is not read; whoever lets it run answers for it.
FILES = {". ./sub/../fake"}


@pytest.mark.parametrize("argv", [way for way in WAYS if way[-1] not in FILES], ids=repr)
def test_no_way_to_git_is_open(argv: list[str]) -> None:
    for level in ("allowlist", "blocklist", "always_allow"):
        for rules in ((), (allow(argv[0]),), (Rule("all", "allow", exact=tuple(argv)),)):
            made = judged(argv, *rules, level=level)
            # a program in the workspace is known by its file, which ``test_git_hardened`` has
            if ("bin/g" in argv[-1] or "./g" in argv[-1]) and made.decision.answer != "deny":
                continue
            assert made.decision.answer == "deny", (level, rules)
            assert made.final


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_texts_do_start_git(tmp_path: Path, shell: str) -> None:
    """Each text does what it is here for, where nothing stands in its way."""
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "git"
    fake.write_text(f"#!/bin/sh\necho ran >> {shlex.quote(str(tmp_path / 'mark'))}\n")
    fake.chmod(0o755)
    (tmp_path / "bin" / "g").symlink_to("git")
    (tmp_path / "bin" / "name").write_text("git\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "fake").write_text("g\\it push\n")
    environment = {"PATH": f"{fake.parent}{os.pathsep}{os.environ['PATH']}"}
    texts = [*TEXTS, *(BASH if shell == "bash" else [])]
    idle = []
    for text in texts:
        (tmp_path / "mark").unlink(missing_ok=True)
        subprocess.run(
            [shell, "-c", text],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        if not (tmp_path / "mark").exists():
            idle.append(text)
    assert idle == []


@pytest.mark.parametrize(
    "program",
    ['{ print | "sort -u" }', 'BEGIN { system("date") }', '{ "wc -l < f" | getline n; print n }', "/a|b/ { print $1 }"],
)
def test_texts_of_awk_that_can_be_read_are_left_to_the_policy(program: str) -> None:
    assert judged(["awk", program, "f"], Rule("awk", "allow", exact=("awk", program, "f"))).decision.answer == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "ls | wc -l",
        'for f in *; do wc -l "$f"; done',
        'grep "$x" f > "$o"',
        'x=$(date); echo "$x"',
        "find . -name '*.pyc' | xargs rm",
        "find . -name x -exec grep -l y {} +",
        "CFLAGS=-O2 make",
        'set -e; cp a b && rm "$a"',
        'while read -r l; do echo "$l"; done < f',
        "trap 'rm -f x' EXIT; sort f",
        "case $x in a) ls;; *) pwd;; esac",
        'timeout 5 sort "$f"',
        'f() { ls "$1"; }; f x',
        "test -f x && cat x || echo none",
        "cat <<X > f\nplain\nX",
        "cd src; make",
        "echo 'digit, legit and gitter'",
        "sh build.sh",
    ],
)
def test_texts_that_can_be_read_are_left_to_the_policy(text: str) -> None:
    for shell in ("sh", "bash"):
        exact = Rule("named", "allow", exact=(shell, "-c", text))
        assert judged([shell, "-c", text]).decision.answer == "ask"
        assert judged([shell, "-c", text], exact).decision.answer == "allow"
        assert judged([shell, "-c", text], level="always_allow").decision.answer in ("allow", "ask")
