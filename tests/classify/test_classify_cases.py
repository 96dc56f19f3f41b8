"""Faults that people met in gates of this kind, each by its id, with the answer that is right here."""

from __future__ import annotations

import pytest

from veil.classify import assess

CASES = [
    ("cls-01", "find . -name x -exec touch pwn {} \\;", "mutating"),
    ("cls-01", "find . -ok touch {} \\;", "mutating"),
    ("cls-01", "find . -name x -delete", "destructive"),
    *(("cls-01", f"find . {action} out", "mutating") for action in ("-fprint", "-fls", "-fprint0", "-fprintf")),
    ("cls-01", "find . -name x", "read-only"),
    ("cls-03", "sort -S 1k --compress-program ./prog big", "complex"),
    ("cls-04", "sed '1e touch pwn' f", "complex"),
    ("cls-04", "sed -n 's/a/b/w out' f", "mutating"),
    ("cls-04", "sed 's/a/id/e' f", "complex"),
    ("cls-04", "sed -n 1,5p f", "read-only"),
    *(("cls-04", f"sed {o} s/a/b/ f", "mutating") for o in ("-i", "-i.bak", "--in-place", "-ni", "-Ei", "-s -i")),
    ("cls-06", "tar -tf a.tar --checkpoint=1 --checkpoint-action=exec='touch pwn'", "complex"),
    ("cls-06", "tar -tf a.tar", "read-only"),
    ("cls-06", "tar -xf a.tar", "mutating"),
    ("cls-06", "tar -cf a.tar d", "mutating"),
    ("cls-07", "echo ok && touch pwn ; echo ok | tee t ; echo ok & touch z", "mutating"),
    *(("cls-07", f"echo ok {operator} touch pwn", "mutating") for operator in ("&&", "||", ";", "|", "|&", "&", "\n")),
    ("cls-09", "echo ok > >(cat > pwn)", "mutating"),
    ("cls-09", "diff <(touch p2) /dev/null", "mutating"),
    ("cls-10", 'echo "`touch a`" "$(touch b)" ${x:-$(touch c)}', "mutating"),
    ("cls-10", "echo '$(touch b)'", "read-only"),
    ("cls-12", "cat${IFS}f ; touch${IFS}pwn", "complex"),
    ("cls-13", "{touch,pwn}", "mutating"),
    ("cls-15", "env -S 'touch a'", "mutating"),
    ("cls-15", "timeout 5 touch b ; nice -n 5 touch c ; command touch d ; FOO=1 touch e", "mutating"),
    ("cls-15", "xargs touch < names", "mutating"),
    ("cls-15", "env", "read-only"),
    ("cls-16", "GIT_EXTERNAL_DIFF=./p git diff", "complex"),
    ("cls-16", "BASH_ENV=./p2 bash -c :", "complex"),
    ("cls-16", "GIT_PAGER=./p git -p log", "complex"),
    ("cls-17", "git ls-remote --upload-pack='touch pwn;git-upload-pack' .", "network"),
    ("cls-17", "git difftool -y -x 'touch p2;:'", "complex"),
    ("cls-17", "git branch -v -D b", "destructive"),
    ("cls-18", "git diff --no-index --output=pwn.txt a b", "mutating"),
    ("cls-18", "git log --output=l.txt", "mutating"),
    ("cls-18", "git log --outp=l.txt", "mutating"),
    ("cls-19", "git -c core.fsmonitor='touch pwn;false' status", "complex"),
    ("cls-19", "git -c alias.st='!touch p2' st", "complex"),
    ("cls-19", "git --exec-path=. status", "complex"),
    ("cls-19", "git -p log", "complex"),
    ("cls-19", "git log -p", "read-only"),
    ("cls-21", "rg --pre ./p x f", "complex"),
    ("cls-21", "man -P 'touch pwn;cat' ls", "complex"),
    ("cls-21", "base64 -d -o out f", "mutating"),
    ("cls-21", "less -o log f", "complex"),
    # what a repository's own settings run cannot be seen in a text: the docs say so
    ("cls-22", "git status", "read-only"),
    *(("cls-24", c, "mutating") for c in ("cat f 2> e", ": >| t", "echo x &> u", "cat <> v", "exec {fd}> w")),
    *(("cls-24", c, "read-only") for c in ("echo a 2>&1", "echo a >/dev/null", "cat <f")),
    ("cls-25", "cat f | tee out", "mutating"),
    ("cls-25", "dd if=f of=o2", "mutating"),
    ("cls-25", "truncate -s 0 f", "mutating"),
    ("cls-25", "date -s 2020-01-01", "mutating"),
    ("cls-25", "sysctl -w a=1", "mutating"),
    ("cls-25", "dd if=f of=/dev/sda", "destructive"),
    ("cls-27", "rm -rf victim --help", "destructive"),
    ("cls-27", 'python3 -c \'open("o","w")\' --version', "complex"),
    ("cls-28", "ls ; ls -la src ; git status ; git log -p -3 ; grep -rn 'a;b|c' . ; cat f 2>/dev/null", "read-only"),
    ("cls-28", "echo 'rm -rf /'", "read-only"),
    ("cls-30", 'git commit -m "run `touch pwn` first"', "complex"),
    ("cls-31", "exec 3<>/dev/tcp/127.0.0.1/9", "network"),
    ("cls-31", "git ls-remote origin", "network"),
    ("cls-31", "pip download x", "network"),
    ("cls-31", "ssh -G -o ProxyCommand=./p h", "network"),
    ("cls-31", "npm view x", "network"),
    ("cls-31", "docker pull x", "network"),
]


@pytest.mark.parametrize(("case", "command", "category"), CASES)
def test_case(case: str, command: str, category: str) -> None:
    found = assess(command)
    assert found.category == category, (case, found)


def test_the_substitution_in_a_message_is_a_segment_of_its_own() -> None:
    command = 'git commit -m "run `touch pwn` first"'
    found = assess(command)
    assert [(s.text, s.category) for s in found.segments] == [(command, "complex"), ("touch pwn", "mutating")]
    assert ("pwn", "write") in found.effects
