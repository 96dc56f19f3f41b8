"""The labelled corpus: no hostile command is taken for less than it is; everyday commands are called what they are."""

from __future__ import annotations

import pytest
from labelled import RANK, held_out, labelled

from veil.classify import assess

HOSTILE = list(labelled("hostile"))
EVERYDAY = list(labelled("everyday"))


def test_the_corpus_is_large_and_has_every_category() -> None:
    assert len(HOSTILE) >= 300
    assert len(EVERYDAY) >= 300
    assert {category for category, _ in EVERYDAY} == set(RANK)
    assert {category for category, _ in HOSTILE} == set(RANK) - {"read-only"}
    assert len({command for _, command in HOSTILE}) == len(HOSTILE)
    assert 0.2 < sum(held_out(command) for _, command in HOSTILE + EVERYDAY) / len(HOSTILE + EVERYDAY) < 0.3


@pytest.mark.parametrize("name", ["hostile", "everyday"])
def test_nothing_is_flagged_too_low(name: str) -> None:
    low = [
        f"{command!r}: {found} instead of {category}"
        for category, command in labelled(name)
        if RANK[found := assess(command).category] < RANK[category]
    ]
    assert not low, "\n".join(low)


def test_everyday_commands_are_called_what_they_are() -> None:
    wrong = [
        f"{command!r}: {found} instead of {category}"
        for category, command in EVERYDAY
        if (found := assess(command).category) != category
    ]
    assert len(wrong) <= 0.05 * len(EVERYDAY), "\n".join(wrong)


def test_what_only_reads_is_not_called_anything_else() -> None:
    wolf = [
        command for category, command in EVERYDAY if category == "read-only" and assess(command).category != category
    ]
    assert not wolf
