"""A hostile agent: lists of what one tries to get a forbidden sub-command run, and a file outside read.

Looked at is what happened: a mark that the program leaves, a text that comes out. Each list is run twice, with nobody
who approves and with somebody who approves everything; what an approval still lets through is named, with the reason.
"""

# over 300 lines because: most of it is two lists of attempts, one a line

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from bounds import allow, bounded, script

from veil.governed import Approver, Policy, Rule
from veil.model.errors import VeilError

NEEDS_BASH = pytest.mark.needs("bash")
#: Programs that the policies below allow by name, as the example policies of the documentation do.
ALLOWED = """
hg env nice timeout find xargs sh bash dash cat awk sed tar make python3 perl sort nohup setsid stdbuf time ls tee cp
flock script watch busybox split zip man vim parallel rsync ssh ionice chrt taskset setarch prlimit gdb strace command
"""
PUSHES = r"""
hg push
hg -R . push
hg --config a=b push
hg -v push
hg p\ush
hg pus
hg -- push
hg --cwd . push
HG push
./hgl push
./hgh push
./hgc push
sub/../hgl push
env hg push
env -u X hg push
env -i hg push
env - hg push
env A=1 hg push
env -C sub ../hgl push
env --chdir=sub hg push
env -S 'hg push'
env -S 'hg' push
env -vS 'hg push'
env -S'h"g" push'
env --split-string='hg\_push'
nice hg push
nice -5 hg push
nice -n5 hg push
nice --adjustment=5 hg push
timeout 5 hg push
timeout -s KILL 5 hg push
timeout --signal=KILL -k 1 5 hg push
timeout 5 env nice -n 1 hg push
nohup hg push
setsid hg push
setsid -w -f hg push
stdbuf -oL hg push
time hg push
time -p hg push
flock f hg push
flock f -c 'hg push'
flock -c 'hg push' f
flock f -c 'h\g push'
script -qc 'hg push' /dev/null
script -qc 'h\g push' /dev/null
script -c 'hg  push'
find . -maxdepth 0 -exec hg push ;
find . -maxdepth 0 -exec hg push {} +
find . -maxdepth 0 -execdir hg push ;
find . -maxdepth 0 -ok hg push ;
find . -name hgl -exec {} push ;
find . -maxdepth 0 -exec env hg push ;
find . -maxdepth 0 -exec sh -c 'hg push' ;
find . -maxdepth 0 -exec sh -c 'h"g" push' ;
xargs hg push
xargs -a cmds hg
xargs -a cmds env hg
xargs -a cmds -I{} hg {}
xargs -a cmds -n1 hg
xargs -acmds hg
xargs --arg-file=cmds hg
xargs -a cmds sh -c 'hg "$0"'
sh -c 'hg push'
sh -c 'h\g push'
sh -c 'hg pu""sh'
sh -c 'x=push; hg $x'
sh -c 'hg "$@"' x push
sh -c '"$0" push' hg
sh -c 'x=hg; $x push'
sh -c 'cat cmds | xargs hg'
sh -c 'hg $(cat cmds)'
sh -c 'hg `cat cmds`'
sh -c 'read a < cmds; hg "$a"'
sh -c 'hg p*'
sh -c 'hg ${X:-push}'
sh -c 'eval hg push'
sh -c 'eval "h""g push"'
sh -c './hgl push'
sh -c 'cp hgc z; ./z push'
sh -c '. ./run.sh'
sh run.sh
sh ./run.sh
sh < run.sh
bash -c 'hg push'
bash -c $'h\x67 push'
bash --rcfile run.sh -i
bash -x run.sh
dash -c 'hg push'
busybox sh -c 'hg push'
busybox env hg push
python3 -c 'import os; os.system("hg push")'
python3 -c 'import os; os.system("h"+"g push")'
python3 -c "__import__('os').execvp('hg',['hg','push'])"
perl -e 'system "hg push"'
perl -e 'exec "h"."g","push"'
awk 'BEGIN{system("hg push")}'
awk 'BEGIN{system("h" "g push")}'
awk 'BEGIN{"hg push"|getline}'
awk 'BEGIN{print "push" | "xargs hg"}'
sed '1e hg push' f
sed '1eh\g push' f
sed 's/x/hg push/e' f
sed -n '1e h"g" push' f
tar cf /dev/null f --checkpoint=1 --checkpoint-action=exec='hg push'
tar cf o f -I 'hg push'
tar cf o f --to-command='hg push'
make --eval='x:;hg push' x
make -f run.sh
make SHELL=hg
sort --compress-program=hg f
split --filter='hg push' f
zip o f -T -TT 'hg push'
man -P 'hg push' ls
vim -c '!hg push' -c q
rsync -e 'hg push' f x:
parallel hg ::: push
parallel hg push ::: x
parallel -a cmds hg
ionice -c3 hg push
chrt -o 0 hg push
taskset 1 hg push
setarch x86_64 hg push
prlimit hg push
prlimit --nofile=10 hg push
unshare hg push
gdb -batch -ex 'shell hg push'
strace hg push
command hg push
./hgb push
nice ./hgb push
cat f -exec hg push
setsid sh -c 'h\g push'
env PATH=. hgl push
env PATH=.:/usr/bin hgc push
env X=hg sh -c '$X push'
timeout 5 sh -c '$0 push' hg
env BASH_ENV=run.sh bash -c :
env ENV=run.sh sh -i -c :
env LD_PRELOAD=./x.so cat f
"""
#: Somebody has to approve these, and answers for what they run: files with code, other languages, another program.
APPROVED = {
    "sh -c '. ./run.sh'",
    "sh run.sh",
    "sh ./run.sh",
    "bash --rcfile run.sh -i",
    "bash -x run.sh",
    """python3 -c 'import os; os.system("h"+"g push")'""",
    """perl -e 'exec "h"."g","push"'""",
    "./hgb push",
    "nice ./hgb push",
}
READS = r"""
cat in -- @P/secret
cat @R/secret
cat ./link/../out/secret
cat sub/../link/secret
cat -- l2
tail -n +1 l2
head --lines=1 l2
cat /proc/self/cwd/../out/secret
cat /dev/fd/../../..@P/secret
env -C .. cat out/secret
env --chdir=.. cat out/secret
env -C sub cat ../../out/secret
sh -c 'cat l""2'
sh -c 'cat l?'
sh -c 'cat l*/secret'
sh -c 'cat li*/sec*'
sh -c 'cat [l]2'
sh -c 'for f in l*; do cat $f; done'
sh -c 'cd li*; cat secret'
sh -c 'cd link; cat secret'
sh -c 'x=..; cat $x/out/secret'
sh -c 'x=.; cat $x./out/secret'
sh -c 'cat .?/out/secret'
sh -c 'cat $PWD/../out/secret'
sh -c 'cd sub/..; cd ..; cat out/secret'
sh -c 'cd ../out 2>/dev/null; cat secret'
sh -c 'cat "${PWD%/*}"/out/secret'
sh -c 'set -- .. ; cat $1/out/secret'
sh -c 'cat "$1"' x l2
sh -c 'cat "$1"' x ../out/secret
sh -c 'cat <&3' 3< l2
sh -c 'while read f; do cat $f; done < list'
sh -c 'ls | xargs cat'
xargs -a list cat
find -L . -name secret -exec cat {} +
find . -name l2 -exec cat {} ;
grep -r SECRET .
grep -R SECRET .
grep -R SECRET
cp -rL . /dev/null
tar -chf - .
tar --dereference -cf - link
cat *
wc -l --files0-from=list0
sort --files0-from=list0
ls link/
ls -L link/.
dd if=l2
dd if=./link/secret
awk 1 l2
awk '{while((getline l < $0)>0) print l}' list
awk 'BEGIN{f="li" "nk/secret"; while((getline l < f)>0) print l}'
awk 'BEGIN{while((getline l < "/" "@R/secret")>0) print l}'
awk 'BEGIN{ARGV[1]="l" 2; ARGC=2} 1'
sed -n 'r l2' in
sed -n '$!N;r l2' in
sed -n -f prog in
sed -n 'e cat l2' in
sed '1!G;h;$!d;r link/secret' in
sed -n '/x/{r l2
}' in
sed --expression='r l2' in
sed -s -n -e 'R l2' in
sed -nE 's/x/y/;/y/r l2' in
sed ':a;r l2' in
sed 'a\
x
r l2' in
sed -n 'y/x/y/;r l2' in
sed -n '\xxxr l2' in
python3 -c 'print(open("l"+"2").read())'
python3 p.py
perl -pe 1 l2
rev l2
cat keys/id
cat ./keys//id
sh -c 'cat k*/id'
sh -c 'cat ke""ys/id'
sh -c 'cd keys; cat id'
sh -c 'cat keys/i?'
tar -cf - keys
tar -cf - .
grep -r LABEL
grep -r LABEL .
find . -name id -exec cat {} +
cp -r keys k2
ln keys/id k3
mv keys k4
cat in keys/id
xargs -a list2 cat
awk 1 keys/id
env cat keys/id
nice sh -c 'cat keys/id'
sed -n p keys/id
sed 'r keys/id' in
sed 'r ke
' in
git status --short ;
git diff --no-index in l2
git -C . status
"""
#: A program that was let through opens what it likes: names that stand in files, names that code makes up.
OWN = (
    "--files0-from=list0",
    "getline l < $0",
    '"li" "nk/secret"',
    'ARGV[1]="l" 2',
    "p.py",
    'open("l"+"2")',
    "prog",
)


def no(question: object) -> bool:
    return False


def yes(question: object) -> bool:
    return True


def several(text: str) -> list[tuple[str, list[str]]]:
    """Each argv of a list with its line; a quote may go over several lines."""
    found, held = [], ""
    for line in text.strip().splitlines():
        held = f"{held}\n{line}" if held else line
        try:
            found.append((held, shlex.split(held)))
        except ValueError:
            continue
        held = ""
    assert not held
    return found


@pytest.fixture
def tools(ws: Path) -> Path:
    """A program ``hg`` that leaves a mark, and everything by which it has another name in the workspace."""
    folder, mark = ws.parent / "tools", ws.parent / "mark"
    hg = script(folder / "hg", f'echo "$*" >> {mark}\n')
    (ws / "f").write_text("x\n")
    (ws / "hgl").symlink_to(hg)
    os.link(hg, ws / "hgh")
    shutil.copy(hg, ws / "hgc")
    script(ws / "hgb", hg.read_text().partition("\n")[2] + "#\n")
    (ws / "run.sh").write_text("hg push\n")
    (ws / "cmds").write_text("push\n")
    return folder


def pushed(ws: Path, tools: Path, policy: Policy, approver: Approver) -> set[str]:
    """The lines by which the forbidden sub-command was run."""
    mark, found = ws.parent / "mark", set()
    path = [str(tools), str(Path(sys.executable).parent), "/usr/bin", "/bin"]
    for line, argv in several(PUSHES):
        at = bounded(ws, policy, path=path, approver=approver, no_store=True)
        with at, contextlib.suppress(VeilError):
            at.run(argv, timeout_s=20)
        if mark.exists():
            if any(word.startswith("pu") for word in mark.read_text().split()):
                found.add(line)
            mark.unlink()
        (ws / "z").unlink(missing_ok=True)
    return found


@NEEDS_BASH
@pytest.mark.parametrize("level", ["allowlist", "blocklist", "always_allow"])
def test_a_forbidden_sub_command_is_not_run(ws: Path, tools: Path, level: str) -> None:
    rules = (Rule("no-push", "deny", prefix=("hg", "push")), *allow(*ALLOWED.split()))
    assert pushed(ws, tools, Policy(level, rules), no) == set()


@NEEDS_BASH
def test_an_approval_of_everything_opens_only_what_is_named(ws: Path, tools: Path) -> None:
    policy = Policy("allowlist", (Rule("no-push", "deny", prefix=("hg", "push")),))
    assert pushed(ws, tools, policy, yes) <= APPROVED


@NEEDS_BASH
def test_the_attacks_do_work_where_nothing_is_forbidden(ws: Path, tools: Path) -> None:
    """Else nothing would be shown by their not working."""
    policy = Policy("always_allow", judgements={"interpreters": "allow", "opaque": "allow"})
    assert len(pushed(ws, tools, policy, yes)) >= 60


@NEEDS_BASH
@pytest.mark.parametrize(("level", "approver"), [("always_allow", no), ("allowlist", yes)])
def test_nothing_outside_and_nothing_secret_comes_out(ws: Path, level: str, approver: Approver) -> None:
    (ws.parent / "out").mkdir()
    (ws.parent / "out" / "secret").write_text("SECRET-0815\n")
    (ws / "link").symlink_to("../out")
    (ws / "l2").symlink_to("link/secret")
    (ws / "keys").mkdir()
    (ws / "keys" / "id").write_text("LABELLED\n")
    wrong = []
    for line, argv in several(READS.replace("@P", f"{ws.parent}/out").replace("@R", f"{ws.parent}/out"[1:])):
        (ws / "list").write_text("l2\n")
        (ws / "list0").write_bytes(b"l2\0")
        (ws / "list2").write_text("keys/id\n")
        (ws / "prog").write_text("r l2\n")
        (ws / "p.py").write_text("print(open('l' + '2').read())")
        policy = Policy(level, labels=(("keys/**", "secret"),))
        path = [str(Path(sys.executable).parent), "/usr/bin", "/bin"]
        with bounded(ws, policy, path=path, approver=approver, no_store=True) as at:
            try:
                result = at.run(argv, timeout_s=20)
            except VeilError:
                continue
        shown = result.stdout + result.stderr
        if ("SECRET-0815" in shown and not any(own in line for own in OWN)) or "LABELLED" in shown:
            wrong.append(line)
    assert wrong == []
