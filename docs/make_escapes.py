"""Writes the table of escapes into docs/sandbox.md, from what the battery expects: ``python docs/make_escapes.py``.

The expectations stand beside the attempts in ``tests/escapes``, and ``tests/escapes/test_escapes.py`` holds every one
of them, and this table, against what happens.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "escapes"))

from attempts import BACKENDS, FAMILIES, USERS, Attempt, everything  # noqa: E402

PAGE = ROOT / "docs" / "sandbox.md"
_BETWEEN = re.compile(r"(?<=<!-- escapes: begin -->\n).*?(?=<!-- escapes: end -->)", re.DOTALL)


def _cell(attempt: Attempt, backend: str) -> str:
    users = [user for user in USERS if attempt.passes(backend, user)]
    if not users:
        return (
            f"held from version {attempt.since} of its interface" if attempt.since and backend == "landlock" else "held"
        )
    return "**through**" if len(users) == len(USERS) else f"**through** ({', '.join(users)})"


def _row(attempt: Attempt) -> str:
    why = attempt.through.why if attempt.through is not None else ""
    cells = [attempt.name, *(_cell(attempt, backend) for backend in BACKENDS), why]
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def _counts(attempts: list[Attempt]) -> str:
    told = []
    for backend in BACKENDS:
        passed = sum(any(attempt.passes(backend, user) for user in USERS) for attempt in attempts)
        told.append(f"`{backend}` holds {len(attempts) - passed}")
    return ", ".join(told)


def table() -> str:
    """All of it, family by family."""
    attempts = everything()
    option = "`sandbox={'network': False, 'protect_secrets': True}`"
    lines = [
        f"{len(attempts)} attempts to get out of {option} (a few with the network on, as they say),",
        "each as root and as a user, and each judged by looking at the machine from outside wherever it can be seen.",
        "Without a sandbox they get through, as far as the machine itself does not hold them. With one,",
        f"{_counts(attempts)}. What gets through is told in `gaps` of the",
        "result, but for what the options themselves grant.",
        "",
    ]
    for module, title in FAMILIES.items():
        lines += [
            f"### {title}",
            "",
            f"| attempt | {' | '.join(BACKENDS)} | why |",
            "|---|" + "---|" * (len(BACKENDS) + 1),
        ]
        lines += [_row(attempt) for attempt in attempts if attempt.module == module]
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def remade(page: str) -> str:
    """The page with the table made anew."""
    made, times = _BETWEEN.subn(lambda _: table(), page)
    if times != 1:
        raise ValueError(f"the page has {times} places for the table")
    return made


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(remade(page), encoding="utf-8")


if __name__ == "__main__":
    main()
