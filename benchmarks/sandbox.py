"""What a sandboxed run costs beside the same bubblewrap words under subprocess.run, and that a plain run costs no more.

python benchmarks/sandbox.py [ROUNDS]

The bare line is the one that veil itself starts, taken from the backend, without the channel through which veil learns
whether the command began. Rounds are interleaved, medians compared.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from run import line, medians

import veil
from veil.host.confine import seccomp
from veil.host.confine.backends import backend
from veil.host.confine.bounds import drawn
from veil.host.confine.bubblewrap import _NAMESPACES, _SYSTEM, mounts
from veil.model.command import Sandbox

TARGET = 1.3
CASES: dict[str, dict[str, Any]] = {
    "sandbox=True": {},
    "network=False": {"network": False},
    "protect_secrets=True": {"protect_secrets": True},
    "network=False, protect_secrets=True": {"network": False, "protect_secrets": True},
}
#: Files with a second hard link are looked for in it.
LARGE = "sandbox=True among 5,000 files"


def bare(cwd: Path, options: dict[str, Any]) -> Callable[[], None]:
    """The hardened line by itself, with everything but a fresh temporary folder made beforehand."""
    wish = Sandbox(**options)
    program = backend("bubblewrap").program  # type: ignore[attr-defined]
    temp = tempfile.mkdtemp(prefix="veil-bench-temp-")
    with drawn(wish, str(cwd), os.environ, (os.environ["VEIL_STATE_DIR"],), ()) as found:
        words = mounts(found.bounds)
        words[words.index(found.bounds.temp)] = temp
    network = () if wish.network else ("--unshare-net",)
    rules = seccomp.filter_program(network=wish.network, sockets=False, loopback=not wish.network)

    def run() -> None:
        fd = os.memfd_create("filter")
        os.write(fd, rules)
        os.lseek(fd, 0, os.SEEK_SET)
        argv = [program, *_NAMESPACES.split(), *network, *_SYSTEM.split(), *words, "--seccomp", str(fd)]
        command = ["--chdir", str(cwd), "--", "bash", "-c", "true"]
        subprocess.run([*argv, *command], capture_output=True, check=True, pass_fds=(fd,))
        os.close(fd)

    return run


def confined(cwd: Path, options: dict[str, Any]) -> None:
    result = veil.run("true", cwd=cwd, sandbox=options or True, effects=False)
    assert result.ok
    assert result.to_dict()["sandbox"]["backend"] == "bubblewrap"


def plain(cwd: Path) -> None:
    assert veil.run("true", cwd=cwd, effects=False).ok


def main(rounds: int) -> None:
    # a project does not lie in /tmp as a rule, where a sandbox has something else
    with tempfile.TemporaryDirectory(prefix="veil-bench-", dir="/var/tmp") as name:
        base = Path(name).resolve()
        os.environ["VEIL_STATE_DIR"] = str(base / "state")
        cwd = base / "tree"
        cwd.mkdir()
        os.chdir(base)
        confined(cwd, {"network": False})  # the probes, once per process
        cases: dict[str, Callable[[], object]] = {"plain": partial(plain, cwd)}
        many = base / "many"
        for number in range(5000):
            (many / str(number // 100)).mkdir(parents=True, exist_ok=True)
            (many / str(number // 100) / str(number)).touch()
        for text, options in CASES.items():
            cases[f"bare {text}"] = bare(cwd, options)
            cases[text] = partial(confined, cwd, options)
        cases[f"bare {LARGE}"] = bare(many, {})
        cases[LARGE] = partial(confined, many, {})
        took = medians(cases, rounds)
    print(f"plain run {took['plain']:.2f} ms")
    for text in (*CASES, LARGE):
        got = took[text] / took[f"bare {text}"]
        line(f"{text}: {took[text]:.2f} ms over {took[f'bare {text}']:.2f} ms", got, TARGET)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
