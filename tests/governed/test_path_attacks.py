"""Ways out of the workspace, in every spelling: told by what is outside afterwards, and by what was shown of it.

Everything is allowed by the policy, so containment alone stands in between.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from bounds import bounded

from veil.governed import Policy
from veil.model.errors import VeilError

SECRET = "SECRET-0815"
#: Where the path stands. ``{p}``: of a file outside; ``{d}``: of its folder.
TOOLS = (
    "cat {p}",
    "cat -- {p}",
    "head -n1 {p}",
    "tail -c99 {p}",
    "grep . {p}",
    "grep -f {p} in",
    "grep -f{p} in",
    "grep -nf{p} in",
    "grep --file={p} in",
    "grep -r . {d}",
    "sort {p}",
    "sort -o {p} in",
    "sort -o{p} in",
    "sort -uo{p} in",
    "sort --output={p} in",
    "sort --files0-from={p}",
    "wc --files0-from={p}",
    "cp in {p}",
    "cp {p} copy",
    "cp -t{d} in",
    "cp --target-directory={d} in",
    "mv in {p}",
    "ln in {d}/new",
    "ln -s {p} new && x",
    "touch {d}/new",
    "touch -r{p} copy",
    "mkdir {d}/new",
    "rm {p}",
    "rm -rf {d}",
    "chmod 777 {p}",
    "truncate -s0 {p}",
    "dd if={p} of=copy",
    "dd if=in of={p}",
    "tar -cf o {p}",
    "tar -cf{d}/o in",
    "tar cf {d}/o in",
    "tar -C{d} -cf o secret",
    "tar -C {d} -cf o secret",
    "tar --directory={d} -cf o secret",
    "tar -cvf o -T{p}",
    "diff in {p}",
    "diff --from-file={p} in",
    "comm in {p}",
    "paste -d, in {p}",
    "sed -n p {p}",
    "sed -i s/S/X/ {p}",
    "sed -f{p} in",
    "awk 1 {p}",
    "awk -f{p} in",
    "find {d} -name secret",
    "find . -newer {p} -fprint {d}/new",
    "ls {d}",
    "stat {p}",
    "od -c {p}",
    "base64 {p}",
    "install in {p}",
    "split -b1 in {d}/x",
    "env -C{d} cat secret",
    "env --chdir={d} cat secret",
    "make -C{d}",
    "make -f{p}",
    "python3 {p}",
    "sh {p}",
    "xargs -a{p} echo",
    "xargs --arg-file={p} echo",
    "gzip -k {p}",
    "cmp in {p}",
    "file -f{p}",
    "curl -sd@{p} http://127.0.0.1:1/",
    "curl -so{p} http://127.0.0.1:1/",
    "curl -s file://{a}",
    "curl -sF x=@{p};type=a/b http://127.0.0.1:1/",
    "git diff --no-index in {p}",
)
LAUNCHERS = ("", "env ", "nice -n5 ", "timeout 9 ", "nohup env ", "stdbuf -oL ")


@pytest.fixture
def trap(ws: Path) -> Path:
    """Links that lead out by every kind of way."""
    outside = ws.parent / "outside"
    (outside / "secret").write_text(SECRET + "\n")
    (ws / "link").symlink_to(outside)
    (ws / "relative").symlink_to("../outside")
    (ws / "chain").symlink_to("relative")
    (ws / "direct").symlink_to("../outside/secret")
    (ws / "sub" / "up").symlink_to("../..")
    (ws / "-x").symlink_to("../outside/secret")
    return ws


def spellings(ws: Path) -> dict[str, str]:
    """Ways to write the file outside, with the ways to write its folder."""
    outside = ws.parent / "outside"
    return {
        str(outside): f"{outside}/secret",
        "../outside": "../outside/secret",
        "./sub/../../outside": "./sub/../../outside/secret",
        f"{ws}/../outside": f"{ws}/../outside/secret",
        f"/{outside}": f"/{outside}//secret",
        "link": "link/secret",
        "relative/.": "direct",
        "chain": "chain/secret",
        "sub/up/outside": "sub/up/outside/secret",
        "/proc/self/cwd/../outside": "/proc/self/cwd/../outside/secret",
    }


def attacks(ws: Path) -> list[list[str]]:
    found = []
    for (folder, file), tool, launcher in itertools.product(spellings(ws).items(), TOOLS, LAUNCHERS):
        words = (launcher + tool).split(" ")
        absolute = str(ws.parent / "outside" / "secret")
        found.append([word.format(p=file, d=folder, a=absolute) for word in words])
    return found


def picture(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below a folder: names, modes, times and contents."""
    told = {}
    for path in sorted(folder.rglob("*")):
        seen = path.lstat()
        told[str(path)] = (seen.st_mode, seen.st_mtime_ns, path.read_bytes() if path.is_file() else b"")
    return told


def test_nothing_outside_is_shown_or_touched(trap: Path) -> None:
    argvs = attacks(trap)
    assert len(argvs) >= 4000
    outside = trap.parent / "outside"
    before = picture(outside)
    wrong = []
    at = bounded(trap, Policy("always_allow"), no_store=True, approver=lambda question: True)
    for argv in argvs:
        try:
            result = at.run(argv, timeout_s=20)
            shown = result.stdout + result.stderr
        except VeilError:
            shown = ""
        now = picture(outside)
        if SECRET in shown or now != before or (trap / "copy").exists():
            wrong.append((argv, shown[:80]))
            before = now
    assert not wrong, "\n".join(map(str, wrong[:30]))
    kept = b"".join(path.read_bytes() for path in trap.iterdir() if path.is_file() and not path.is_symlink())
    assert SECRET.encode() not in kept


def test_the_same_tools_do_their_work_inside(trap: Path) -> None:
    """Containment is no wall against everything: with paths inside, most of these run."""
    (trap / "own").mkdir()
    (trap / "own" / "secret").write_text("own\n")
    at = bounded(trap, Policy("always_allow"), no_store=True, approver=lambda question: True)
    ran = 0
    for tool in TOOLS:
        if "git" in tool or "file:" in tool:
            continue
        words = [word.format(p="own/secret", d="own", a="") for word in tool.split(" ")]
        code = "ran"
        try:
            at.run(words, timeout_s=20)
            ran += 1
        except VeilError as error:
            code = error.code
        assert code in ("ran", "executable_refused", "not_started"), words
        (trap / "own").mkdir(exist_ok=True)
        (trap / "own" / "secret").write_text("own\n")
        (trap / "in").write_text("inside\n")
    assert ran >= len(TOOLS) - 8


def test_a_link_called_like_an_option_is_a_path_too(trap: Path) -> None:
    at = bounded(trap, Policy("always_allow"), no_store=True, approver=lambda question: True)
    with pytest.raises(VeilError) as error:
        at.run(["cat", "--", "-x"])
    assert error.value.code == "outside_workspace"
    assert os.readlink(trap / "-x") == "../outside/secret"
