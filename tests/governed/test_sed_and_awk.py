"""Programs of sed and awk as people write them run; none is a way out of the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest
from bounds import bounded, kinds

from veil.governed import Denied, Policy


@pytest.mark.parametrize(
    "text",
    [
        "w ../outside/new",
        "w../outside/new",
        "1w../outside/new",
        "$!w../outside/new",
        "/in/w../outside/new",
        "/in/{w../outside/new\n}",
        "s/i/o/gw../outside/new",
        "s,i,o,w ../outside/new",
        "w{top}/outside/new",
        "w {top}/outside/new",
        "s/i/o/w{top}/outside/new",
        "w/new-in-the-root",
        "r../outside/secret",
        "r {top}/outside/secret",
        "wlink",
        "1w link",
        "r link",
        "s/i/o/\nw link",
    ],
)
def test_files_that_a_script_of_sed_names_stay_inside(ws: Path, text: str) -> None:
    (ws / "link").symlink_to("../outside/secret")
    at = bounded(ws, Policy("always_allow"), approver=lambda question: True)
    script = text.replace("{top}", str(ws.parent))
    for argv in (["sed", "-n", script, "in"], ["env", "sed", "-ne", script, "in"], ["sed", "-n", "-e" + script, "in"]):
        with pytest.raises(Denied) as error:
            at.run(argv)
        assert error.value.code == "outside_workspace"
    assert kinds(at) == ["request"] * 3
    assert (ws / "../outside/secret").read_text() == "secret\n"


SEDS = [
    "s/bar/raw/",
    "s/w/x/g",
    "s/r/w/",
    "s/in/out/w new",
    "wnew",
    "$r in",
    "s,/in,/out,w sub/new",
    "y/rw/wr/",
    "/in/p",
    "/in/,/out/p",
    "s|/usr/lib|/opt|",
    "/^#/d;s,/,_,g",
    "/in/{s/i/~/;s/x/$y\\//}",
    "$!d",
    "\\,/in,p",
]


@pytest.mark.parametrize("text", SEDS)
def test_usual_scripts_of_sed_run(ws: Path, text: str) -> None:
    at = bounded(ws, Policy("always_allow"))
    assert at.run(["sed", text, "in"]).returncode == 0
    assert at.run(["nice", "sed", "-n", "-e", text, "-e", "p", "in"]).returncode == 0
    assert at.run(["timeout", "60", "sed", f"--expression={text}", "in"]).returncode == 0
    assert at.run(["sed", "-i.bak", "-E", text, "in"]).returncode == 0


@pytest.mark.parametrize(
    "argv",
    [
        ["awk", "/in/", "in"],
        ["awk", "/in/,/out/ {print $1/2}", "in"],
        ["awk", "-F", ":", '!/x/ && $1 !~/foo/ {print "x"}', "in"],
        ["awk", "-F/", "-vx=1", "($1/$2) {n++} END {print n}", "in"],
        ["nice", "awk", "--", "/a/", "in"],
    ],
)
def test_usual_programs_of_awk_run(ws: Path, argv: list[str]) -> None:
    (ws / "in").write_text("4/2\n")
    assert bounded(ws, Policy("always_allow")).run(argv).returncode == 0


@pytest.mark.parametrize(
    "argv",
    [
        ["sed", "-n", "sxinxonxw{top}/outside/new", "in"],
        ["sed", "-n", "\\xinxw{top}/outside/new", "in"],
        ["sed", "-n", "yxaxbx;w{top}/outside/new", "in"],
        ["sed", "-n", "/in/p", "{top}/outside/secret"],
        ["sed", "-n", "/in/p", "in", "-e", "r{top}/outside/secret"],
        ["sed", "-n", "-e", "/in/p", "-e", "w {top}/outside/new", "in"],
        ["sed", "-n", "-e", "/in/p", "{top}/outside/secret"],
        ["sed", "-n", "-e", "i\\", "-e", "x", "-e", "w{top}/outside/new", "in"],
        ["sed", "--what", "{top}/outside/secret", "in"],
        ["sed", "-n", "-f", "{top}/outside/secret", "in"],
        ["sed", "-s", "-l", "5", "{top}/outside/secret", "in"],
        ["sed", "-n", "s/in/x/w~/new", "in"],
        ["cat", "sed", "{top}/outside/secret"],
        ["xargs", "cat", "sed", "{top}/outside/secret"],
        ["env", "-S", "x", "sed", "{top}/outside/secret"],
        ["awk", '{print > "{top}/outside/new"}', "in"],
        ["awk", '/in/ {while ((getline x < "{top}/outside/secret") > 0) print x}', "in"],
        ["awk", "-f", "{top}/outside/secret", "in"],
        ["awk", "-vx={top}/outside/secret", "BEGIN {getline y < x; print y}"],
        ["awk", "/in/", "{top}/outside/secret"],
        ["awk", "-e", "/in/", "-f", "{top}/outside/secret"],
        ["awk", "/in/", "x={top}/outside/secret", "in"],
    ],
)
def test_programs_of_sed_and_awk_open_no_way_out(ws: Path, argv: list[str]) -> None:
    at = bounded(ws, Policy("always_allow"), approver=lambda question: True)
    (ws / "x").write_text("1\n")
    words = [word.replace("{top}", str(ws.parent)) for word in argv]
    with pytest.raises(Denied) as error:
        at.run(words)
    assert error.value.code == "outside_workspace"
    assert not (ws.parent / "outside" / "new").exists()


def test_a_script_of_sed_carries_the_file_that_it_reads(ws: Path) -> None:
    (ws / "key").write_text("key\n")
    at = bounded(ws, Policy("always_allow", labels=(("key", "secret"),)))
    for argv in (["sed", "rkey", "in"], ["sed", "-n", "1rkey", "in"], ["env", "sed", "$rkey", "in"]):
        with pytest.raises(Denied) as error:
            at.run(argv)
        assert error.value.code == "data_flow_denied"
