"""What an attempt to get out of the sandbox is, and where each is expected to get.

Attempts are functions of the modules ``escape_*`` (run by a Python that has nothing but its standard library) or lines
of shell. What is expected of each in each backend is said beside it; the table in docs/sandbox.md is made from that.
This module is imported inside the sandbox, thousands of times: it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Modules of attempts, and what the page calls them.
FAMILIES = {
    "escape_writes": "Writing elsewhere",
    "escape_metadata": "Changing what files are",
    "escape_races": "Races",
    "escape_mounts": "Mounts and namespaces",
    "escape_privileges": "Privileges and the kernel",
    "escape_processes": "Other processes",
    "escape_descriptors": "Descriptors",
    "escape_sockets": "Sockets",
    "escape_secrets": "Secrets",
    "escape_shared": "Terminal, keys, shared memory",
    "escape_git": "Programs for later",
}
BACKENDS = ("bubblewrap", "namespaces", "landlock")
USERS = ("root", "user")
#: Backends that have mounts.
MOUNTS = ("bubblewrap", "namespaces")
LANDLOCK = ("landlock",)
#: What older versions of Landlock's interface leave open: the first version that does not, words of the gap.
SINCE = {6: "signals reach processes outside"}


class Through:
    """Where an attempt gets through.

    Attributes:
        backends: names. users: of ``root`` and ``user``.
        why: for the page.
        gap: words of the line of ``gaps`` by which the result of such a run says so; ``None``: what was asked for is
            no protection from this, as the page says.
        tells: names of the secrets that may come out by this (see ``scene``); no other may.
    """

    def __init__(
        self,
        backends: tuple[str, ...],
        why: str,
        *,
        gap: str | None,
        users: tuple[str, ...] = USERS,
        tells: tuple[str, ...] = (),
    ) -> None:
        self.backends, self.why, self.gap, self.users, self.tells = backends, why, gap, users, tells


class Attempt:
    """One attempt.

    Attributes:
        name: what is tried, for the page.
        module, function: where it stands; the function of a line of shell is the empty text.
        code: the line of shell.
        through: where it is expected to get through; everywhere else it has to be held.
        bare: users for whom it need not get through without a sandbox either, and why: then the machine holds it.
        harmless: ``False``: without a sandbox it would change the machine, so it is never tried there.
        network: what ``sandbox`` says of the network.
        since: the version of Landlock's interface that holds it; under an older one it gets through, and ``gaps`` has a
            line with ``SINCE[since]``.
        later: after the run, veil and git look at the working folder, and nothing that was left there may run.
    """

    def __init__(
        self,
        name: str,
        *,
        module: str,
        function: str = "",
        code: str = "",
        through: Through | None = None,
        bare: Mapping[str, str] | None = None,
        harmless: bool = True,
        network: bool = False,
        since: int = 0,
        later: bool = False,
    ) -> None:
        self.name, self.module, self.function, self.code = name, module, function, code
        self.through, self.bare, self.harmless = through, dict(bare or {}), harmless
        self.network, self.since, self.later = network, since, later

    def __repr__(self) -> str:
        return f"<{self.module}: {self.name}>"

    @property
    def id(self) -> str:
        words = "".join(letter if letter.isalnum() else " " for letter in self.name.lower())
        return "-".join(words.split())

    def passes(self, backend: str, user: str) -> bool:
        """Whether it is expected to get through there."""
        return self.through is not None and backend in self.through.backends and user in self.through.users


class Family:
    """The attempts of one module, in their order."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.attempts: list[Attempt] = []

    def attempt(
        self,
        name: str,
        *,
        through: Through | None = None,
        bare: Mapping[str, str] | None = None,
        harmless: bool = True,
        network: bool = False,
        since: int = 0,
    ) -> Callable[[Callable[[], None]], Callable[[], None]]:
        """Decorates a function that tries. See ``calls`` for how it tells what it cannot leave for others to see."""

        def found(function: Callable[[], None]) -> Callable[[], None]:
            self.attempts.append(
                Attempt(
                    name,
                    module=self.module,
                    function=function.__name__,
                    through=through,
                    bare=bare,
                    harmless=harmless,
                    network=network,
                    since=since,
                )
            )
            return function

        return found

    def shell(
        self,
        name: str,
        code: str,
        *,
        through: Through | None = None,
        bare: Mapping[str, str] | None = None,
        harmless: bool = True,
        later: bool = False,
    ) -> None:
        """A line of shell that tries."""
        self.attempts.append(
            Attempt(
                name,
                module=self.module,
                code=code,
                through=through,
                bare=bare,
                harmless=harmless,
                later=later,
            )
        )


def everything() -> list[Attempt]:
    """All attempts, family by family."""
    return [one for module in FAMILIES for one in __import__(module).FAMILY.attempts]
