"""Programs that start another one in ways of their own: none is allowed by its name to start a forbidden one."""

from __future__ import annotations

import shlex

import pytest
from policies import allow, answer, deny

from veil.policy.rules import Rule

#: In the manner of public lists of such tools. Each is allowed by its name, and ``rm`` is denied.
LINES = r"""
tar -I rm -cf o f
tar --use-compress-program=rm -cf o f
tar --use-compress-program rm -cf o f
tar -xf x --to-command=rm
tar -xf x --to-command rm
tar cf o f --checkpoint=1 --checkpoint-action=exec=rm
tar -cf o f -I "rm f"
tar -F rm -cf o f
tar --info-script=rm -cMf o f
tar --rsh-command=rm -cf h:o f
rsync -e rm a b:
rsync --rsh=rm a b:
ssh -o ProxyCommand=rm h
scp -S rm a b:
sort --compress-program=rm f
split --filter=rm f
man -P rm ls
man --pager=rm ls
vim -c !rm
view -c :!rm
ex -c !rm
emacs --batch --eval (shell-command"rm")
sqlite3 x ".shell rm"
psql -c "\! rm"
mysql -e "\! rm"
expect -c "spawn rm"
gdb -batch -ex "shell rm f"
dc -e "!rm"
zip o f -T --unzip-command "rm f"
zip o f -T -TT rm
cpio -o --rsh-command=rm
gcc -wrapper rm x.c
find . -ok rm ;
fd -x rm
fd . --exec rm
rg --pre rm x
rg --pre=rm x
npm exec rm
npx rm
go test -exec rm
go vet -vettool=rm
go build -toolexec rm
make CC=rm
cmake -E rm f
cmake -E env rm f
strace rm
ltrace rm
perf record rm
valgrind rm
gdb --args rm f
capsh -- -c rm
ip netns exec x rm
tcpdump -z rm
apt-get -o APT::x=rm update
systemd-run rm
docker run x rm
docker exec x rm
kubectl exec x -- rm
ssh h rm
screen rm
tmux new rm
dbus-launch rm
dbus-run-session rm
xvfb-run rm
catchsegv rm
unbuffer rm
eatmydata rm
fakeroot rm
proot rm
faketime x rm
proxychains rm
torsocks rm
tsocks rm
rlwrap rm
socat EXEC:rm -
socat - SYSTEM:rm
nc -e rm h 1
ncat -e rm h 1
wget --use-askpass=rm x
aria2c --on-download-complete=rm x
tex "\write18{rm}"
install -s --strip-program=rm a b
env -S rm
env -vS rm
watch rm
script -c rm
su -c rm
sudo rm
doas rm
pkexec rm
runuser -u x rm
setpriv rm
chroot . rm
unshare rm
nsenter rm
busybox rm
busybox sh -c rm
toybox rm
coreutils --coreutils-prog=rm f
xargs -a f rm
parallel rm ::: f
entr rm
nohup rm
hyperfine rm
time -f x rm
timeout --foreground 5 rm
chronic rm
ifne rm
sem rm
flock l rm
lckdo l rm
setlock l rm
envdir d rm
softlimit rm
chpst rm
s6-setuidgid x rm
su-exec x rm
gosu x rm
tini -- rm
dumb-init rm
firejail rm
bwrap rm
cgexec -g x rm
numactl rm
taskset 1 rm
chrt 1 rm
schedtool -e rm
trickle rm
linux64 rm
setarch x rm
i386 rm
stdbuf -o0 rm
unshare -r rm
ld.so rm
/lib64/ld-linux-x86-64.so.2 /bin/rm f
pwsh -c rm
zsh -c rm
fish -c rm
csh -c rm
nu -c rm
ksh -c rm
xonsh -c rm
elvish -c rm
hg --config alias.x=!rm x
svn x --diff-cmd rm
svn diff --diff-cmd=rm
ansible all -a rm
lftp -e "!rm"
qemu-x86_64 /bin/rm
lldb -o "shell rm"
bundle exec rm
poetry run rm
uv run rm
uvx rm
pipx run rm
pipenv run rm
conda run rm
pdm run rm
hatch run rm
nix-shell --run rm
direnv exec . rm
mise exec rm
asdf exec rm
rbenv exec rm
pyenv exec rm
dotenv rm
doppler run rm
op run rm
yarn exec rm
yarn dlx rm
pnpm exec rm
pnpm dlx rm
bunx rm
bun x rm
npm x rm
corepack rm
nodemon --exec rm
concurrently rm
lerna exec rm
"""
ARGV = [tuple(shlex.split(line)) for line in LINES.strip().splitlines()]


@pytest.mark.parametrize("argv", ARGV, ids=" ".join)
def test_no_program_is_allowed_to_start_a_forbidden_one(argv: tuple[str, ...]) -> None:
    assert answer(argv, deny("rm"), allow(argv[0])) in ("ask", "deny")
    assert answer(argv, deny("rm"), allow(argv[0]), level="blocklist") in ("ask", "deny")
    assert answer(argv, deny("rm"), level="always_allow") in ("ask", "deny")


def test_a_rule_that_names_the_word_answers_for_it() -> None:
    assert answer(["docker", "rm", "x"], deny("rm"), allow("docker")) == "ask"
    assert answer(["docker", "rm", "x"], deny("rm"), allow("docker", "rm")) == "allow"
    assert answer(["mytool", "rm"], deny("rm"), allow("mytool", "rm")) == "allow"


@pytest.mark.parametrize("argv", [["grep", "rm", "f"], ["cat", "rm"], ["echo", "rm"], ["ls", "d/rm"], ["sort", "rm"]])
def test_programs_that_are_known_to_leave_their_words_alone_may_have_them(argv: list[str]) -> None:
    assert answer(argv, deny("rm"), allow(argv[0])) == "allow"
    assert answer(["timeout", "9", *argv], deny("rm"), allow(argv[0])) == "allow"


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["sh", "-c", "shred x"], "deny"),
        (["bash", "-c", "cd . && /usr/bin/shred x"], "deny"),
        (["launches", "--with", "shred"], "ask"),
        (["launches", "root", "shred x"], "ask"),
    ],
)
@pytest.mark.parametrize("level", ["blocklist", "always_allow"])
def test_a_program_that_is_forbidden_by_its_path_is_looked_for_in_texts_too(
    level: str, argv: list[str], expected: str
) -> None:
    rule = Rule("no-shred", "deny", executable="/usr/bin/shred")
    assert answer(argv, rule, level=level) == expected


@pytest.mark.parametrize(
    "line", ["uclampset -m 1 rm f", "systemd-cat rm f", "sg root 'rm f'", "switch_root . rm f", "agetty -l rm tty1"]
)
def test_more_programs_that_run_another_one(line: str) -> None:
    assert answer(shlex.split(line), deny("rm"), level="blocklist") == "deny"
    assert answer(["run-parts", "."], deny("rm"), level="always_allow") == "ask", "which programs it runs is not told"


@pytest.mark.parametrize(
    "line",
    [
        "xargs hg",
        "xargs -a f env hg",
        "xargs -I% hg % x",
        "xargs sh -c 'hg \"$0\"'",
        "sh -c 'hg $x'",
        "sh -c 'hg \"$x\"'",
        "sh -c 'hg -v \"$@\"' x push",
        "sh -c 'hg $(cat f)'",
        "sh -c 'hg pu$x'",
        "sh -c 'hg p*'",
        "sh -c 'hg p?sh'",
        "sh -c 'hg -R $x'",
        "sh -c 'cat f | xargs hg'",
        "bash -c 'hg {$x,y}'",
        "sh -c 'h\\g pu\"\"sh'",
        "awk 'BEGIN { system(\"hg push\") }'",
        "sed 's/x/hg push/e' f",
        "tar -cf o f -I 'hg push'",
        "zip o f -T -TT 'hg push'",
    ],
)
def test_what_may_become_a_forbidden_sub_command_is_one(line: str) -> None:
    argv = tuple(shlex.split(line))
    exact = Rule("all", "allow", exact=argv)
    for level in ("allowlist", "blocklist", "always_allow"):
        assert answer(argv, deny("hg", "push"), exact, level=level) == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "sh -c 'hg status $x'",
        "sh -c 'hg log pu$x'",
        "xargs hg status",
        "sh -c 'hg pull$x'",
        "sh -c 'cat $x'",
        "sh -c 'hg log p*'",
    ],
)
def test_what_cannot_become_one_is_none(line: str) -> None:
    argv = tuple(shlex.split(line))
    rules = (deny("hg", "push"), Rule("all", "allow", exact=argv), allow("hg"))
    assert answer(argv, *rules) == "allow"


def test_an_argument_that_is_not_known_may_be_a_forbidden_option() -> None:
    rule = deny("cp", options=("--force", "-f"))
    for text in ('cp "$x" y', "cp $x y", "cp * y", "cp -$x y", "cp --f$x y", "cp -v$x y"):
        assert answer(["sh", "-c", text], rule, Rule("all", "allow", exact=("sh", "-c", text))) == "deny", text
    for text in ('cp "./$x" y', "cp ./* y", "cp x y"):
        assert answer(["sh", "-c", text], rule, Rule("all", "allow", exact=("sh", "-c", text))) == "allow", text
