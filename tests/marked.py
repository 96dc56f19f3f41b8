"""Finding what a test started, whatever became of its parents, groups and sessions."""

from __future__ import annotations

import os
import random
import shlex
import time

import psutil


class Marker:
    """A number that nobody else has: as the duration of a ``sleep`` it shows in the command line of who sleeps it, as a
    variable in the environment. ``alive`` finds both, whatever became of parents, groups and sessions."""

    def __init__(self) -> None:
        # not the seeded generator: workers with the same seed must not look for each other's processes
        self.text = f"4{random.SystemRandom().randrange(10**8, 10**9)}"

    def __str__(self) -> str:
        return self.text

    def alive(self) -> dict[int, str]:
        """Command line by pid of the living processes that carry it, this one apart."""
        found = {}
        for process in psutil.process_iter():
            try:
                told = process.as_dict(("cmdline", "environ", "status"), ad_value=None)
            except psutil.NoSuchProcess:
                continue
            words = [*(told["cmdline"] or ()), *(told["environ"] or {}).values()]
            if process.pid != os.getpid() and told["status"] != "zombie" and any(self.text in word for word in words):
                found[process.pid] = shlex.join(told["cmdline"] or ())
        return found

    def until(self, many: int, within: float = 30.0) -> dict[int, str]:
        """Waits until at least so many (0: none at all) are alive; fails the test when that does not come."""
        deadline = time.monotonic() + within
        while True:
            alive = self.alive()
            if len(alive) >= many if many else not alive:
                return alive
            assert time.monotonic() < deadline, f"wanted {many}, after {within} s there are {alive}"
            time.sleep(0.02)
