"""Where a sandboxed command works: repositories, shared memory, overlays, other layouts, another sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandboxes import tree

import veil
from veil.host.confine import repositories
from veil.host.pictures import GIT_FIRST

__all__ = ["tree"]

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash", "an interpreter outside /tmp")]
NEEDS_BWRAP = pytest.mark.needs("bubblewrap")
NEEDS_GIT = pytest.mark.needs("git")


# --- git -------------------------------------------------------------------------------------------------------------


@NEEDS_GIT
def test_changed_hooks_and_configuration_are_told_and_never_run_by_veil(tree: Path, tmp_path: Path) -> None:
    for number in range(GIT_FIRST + 10):
        (tree / f"file{number}").touch()
    veil.run("git init -q . && echo x >f && git add .", cwd=tree, check=True)
    planted = tmp_path / "ran"
    script = f"#!/bin/sh\ntouch {planted}\n"
    # by every road on which git starts a program when it only looks
    text = f"""
    printf %s {script!r} >.git/hooks/post-index-change; chmod +x .git/hooks/post-index-change
    git config core.fsmonitor 'touch {planted};false'
    git config core.pager 'touch {planted}'
    git config diff.external 'touch {planted}'
    git config filter.x.clean 'touch {planted}; cat'
    git config filter.x.process 'touch {planted}'
    echo '* filter=x diff=x' >.gitattributes
    git config diff.x.textconv 'touch {planted}; cat'
    git config core.sshCommand 'touch {planted}'
    echo y >>f
    """
    result = veil.run(text, cwd=tree, sandbox=True)
    assert result.ok, result.stderr
    assert result.sandbox is not None
    assert result.sandbox["git_changed"] == [".git/config", ".git/hooks/post-index-change"]
    assert "git runs programs" in str(result.advice)
    # a run that git is asked about, one in a small folder that is looked at by hand, a checkpoint and its way back
    asked = veil.run("echo z >>f", cwd=tree)
    assert (asked.effects_source, [change.path for change in asked.files_changed]) == ("git", ["f"])
    (tree / "small").mkdir()
    assert veil.run("echo z >>g", cwd=tree / "small").files_changed
    veil.checkpoint("before", dir=tree)
    veil.run("echo more >>f", cwd=tree, effects=False)
    veil.restore("before", dir=tree)
    assert not planted.exists()
    # and it was no blunt weapon: whoever asks git without care runs it
    subprocess.run(["git", "status"], cwd=tree, capture_output=True, check=False, timeout=60)
    assert planted.exists()


@NEEDS_GIT
def test_what_git_keeps_for_a_linked_work_tree_is_protected_too(tree: Path, tmp_path: Path) -> None:
    me = "-c user.name=t -c user.email=t@example.org"
    main = tmp_path / "main"
    main.mkdir()
    veil.run(
        f"git init -q . && git {me} commit -q --allow-empty -m m && git worktree add -q ../linked", cwd=main, check=True
    )
    linked = tmp_path / "linked"
    kept = repositories.of([str(linked)])
    assert str(linked / ".git") in kept.readonly
    assert {str(main / ".git" / "config"), str(main / ".git" / "hooks")} <= set(kept.readonly)
    text = "git config a.b c; echo x >../main/.git/hooks/h; mv .git gone; echo 'gitdir: /x' >.git; git status --short"
    options = {"protect_git": True, "writable": [str(main)]}
    result = veil.run(text, cwd=linked, sandbox={"backend": "bubblewrap", **options})
    assert result.exit == 0
    assert result.sandbox is not None
    assert "git_changed" not in result.sandbox
    assert (linked / ".git").read_text().startswith(f"gitdir: {main}")
    assert not (main / ".git" / "hooks" / "h").exists()


def test_only_hooks_that_run_count_as_changed(tree: Path) -> None:
    (tree / ".git" / "hooks").mkdir(parents=True)
    (tree / ".git" / "config").write_text("a")
    before = repositories.signature([str(tree)])
    (tree / ".git" / "hooks" / "x.sample").touch()
    assert repositories.changed(before, repositories.signature([str(tree)])) == []
    (tree / ".git" / "hooks" / "x").touch()
    assert repositories.changed(before, repositories.signature([str(tree)])) == [str(tree / ".git" / "hooks" / "x")]


# --- places ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_memory() -> Iterator[Path]:
    made = Path("/dev/shm") / f"veil-test-{os.getpid()}-{os.urandom(4).hex()}"
    made.mkdir()
    yield made
    shutil.rmtree(made)


@NEEDS_BWRAP
@pytest.mark.needs("root")
def test_root_can_write_to_no_setting_of_the_kernel(tree: Path) -> None:
    code = (
        "import os\n"
        "for place, folders, files in os.walk('/proc'):\n"
        "    if place == '/proc':\n"
        "        folders[:] = [f for f in folders if not f.isdigit() and f not in ('self', 'thread-self')]\n"
        "    for path in (os.path.join(place, name) for name in files):\n"
        "        if not os.path.islink(path) and os.access(path, os.W_OK):\n"
        "            print(path)\n"
    )
    command = [sys.executable, "-c", code]
    assert veil.run(command, cwd=tree).stdout.count("\n") > 100
    assert veil.run(command, cwd=tree, sandbox={"backend": "bubblewrap"}).stdout == ""


def test_a_working_folder_in_shared_memory(in_memory: Path) -> None:
    result = veil.run("touch x && ls", cwd=in_memory, sandbox=True)
    assert (result.stdout, result.exit) == ("x\n", 0)
    assert (in_memory / "x").exists()


@NEEDS_BWRAP
def test_a_working_folder_where_nothing_counts_what_is_written(in_memory: Path) -> None:
    text = "for i in $(seq 500); do head -c 1000000 /dev/zero >f$i; sleep 0.02; done; sleep 60"
    result = veil.run(text, cwd=in_memory, sandbox={"max_disk": 10_000_000}, timeout=60)
    assert result.limit == "max_disk"


@NEEDS_BWRAP
@pytest.mark.needs("root", "pivot_root")
@pytest.mark.parametrize(
    "kind", ["/run is a link", "/var/run is a folder", "/tmp is a link", "resolv.conf lies in /run"]
)
def test_systems_that_are_laid_out_otherwise(kind: str, tree: Path) -> None:
    """In a private mount of this machine's root: links and folders where a distribution has them otherwise."""
    prepare = {
        "/run is a link": "mkdir -p $T/var/realrun && mv $T/run $T/run.old && ln -s var/realrun $T/run",
        "/var/run is a folder": "rm -f $T/var/run; mkdir -p $T/var/run/secrets; echo TOP >$T/var/run/secrets/x",
        "/tmp is a link": "mkdir -p -m 1777 $T/var/realtmp; mv $T/tmp $T/tmp.old; ln -s var/realtmp $T/tmp",
        "resolv.conf lies in /run": "mkdir -p $T/run/systemd; echo nameserver 9.9.9.9 >$T/run/systemd/resolv.conf;"
        " rm -f $T/etc/resolv.conf; ln -s /run/systemd/resolv.conf $T/etc/resolv.conf",
    }[kind]
    text = "cat /etc/resolv.conf >resolv; echo x >$TMPDIR/f && cat $TMPDIR/f; ls /run/; ls /var/run/; "
    text += "cat /var/run/secrets/x; ! touch /run/x 2>/dev/null"
    code = (
        f"import veil; r = veil.run({text!r}, cwd='/work-here', sandbox={{'backend': 'bubblewrap'}}, no_store=True); "
        "print(r.exit, r.stdout, r.stderr); print(open('/work-here/resolv').read())"
    )
    root = tree / "root"
    root.mkdir()
    script = f"""
    set -e
    T={root}
    mount -t tmpfs none $T
    for d in /*; do
        n=${{d#/}}
        case $n in
            proc|sys|dev) mkdir $T/$n; mount --rbind $d $T/$n;;
            run|tmp) mkdir -p -m 1777 $T/$n;;
            etc) cp -a /etc $T/etc;;
            var) mkdir -p $T/var/tmp $T/var/lib; mount --bind /var/tmp $T/var/tmp; ln -s /run $T/var/run;;
            *) if [ -L $d ]; then cp -P $d $T/$n; elif [ -d $d ]; then mkdir $T/$n; mount --rbind $d $T/$n; fi;;
        esac
    done
    mkdir $T/work-here
    {prepare}
    cd $T
    mkdir .old
    pivot_root . .old
    umount -l /.old
    exec env HOME=/root VEIL_STATE_DIR=/var/lib/veil PYTHONPATH={":".join(filter(None, sys.path))} \\
        {sys.executable} -B -c "$CODE"
    """
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "bash", "-c", script],
        env={**os.environ, "CODE": code},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0 x\n"), done.stdout + done.stderr
    assert "TOP" not in done.stdout
    if kind.startswith("resolv"):
        assert "9.9.9.9" in done.stdout


@NEEDS_BWRAP
@pytest.mark.needs("root")
def test_a_working_folder_on_an_overlay(tree: Path) -> None:
    script = f"""
    set -e
    cd {tree}
    mkdir lower upper work merged
    mount -t tmpfs none upper && mkdir upper/u upper/w
    echo low >lower/f
    mount -t overlay overlay -o lowerdir=lower,upperdir=upper/u,workdir=upper/w merged
    cd /
    exec {sys.executable} -B -c "$CODE"
    """
    code = (
        f"import veil; r = veil.run('cat f && echo new >g && echo more >>f && cat f', cwd='{tree}/merged',"
        " sandbox={'backend': 'bubblewrap', 'protect_secrets': True, 'network': False}); print(r.exit, repr(r.stdout))"
    )
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "bash", "-c", script],
        env={**os.environ, "CODE": code, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "0 'low\\nlow\\nmore\\n'\n", done.stdout + done.stderr


def test_a_sandbox_within_a_sandbox_works_or_refuses(tree: Path) -> None:
    code = (
        "import veil\n"
        "try:\n"
        "    r = veil.run('touch inner; ! touch ../out 2>/dev/null', sandbox=True, no_store=True)\n"
        "    print('ran', r.exit, r.sandbox['backend'])\n"
        "except veil.Refused as error:\n"
        "    print('refused', error.code)\n"
    )
    env = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "VEIL_STATE_DIR": str(tree / "state")}
    result = veil.run([sys.executable, "-B", "-c", code], cwd=tree, sandbox=True, env=env)
    words = result.stdout.split()
    assert words[:2] in (["ran", "0"], ["refused", "sandbox_unavailable"]), result.stdout + result.stderr
    assert (tree / "inner").exists() == (words[0] == "ran")
    assert not (tree.parent / "out").exists()
