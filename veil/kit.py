"""Everything a run needs, gathered once and frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from veil.checks.base import Check
from veil.executors.base import Executor
from veil.host.capture import Filter
from veil.layers.base import Layer
from veil.store.base import Store


class Redaction(Protocol):
    """What replaces secrets in one run."""

    def filter(self) -> Filter:
        """A fresh filter for one stream."""

    def text(self, text: str) -> str:
        """The text without secrets."""


class Secrets(Protocol):
    """Makes the redaction of a run from the environment its command gets."""

    def __call__(self, environment: Mapping[str, str], extra: Sequence[str]) -> Redaction:
        """``extra``: values given for this run. Raises ``BadInput`` for one that cannot be replaced safely."""


@dataclass(frozen=True)
class Kit:
    """The parts of one process and project.

    Attributes:
        layers: in the order of entering: by place, and within one place as they were gathered.
        wishes: which layer grants a wish, by the wish's type.
        memory: where runs go that leave nothing on disk.
        max_background: background runs alive at once.
    """

    executor: Executor
    layers: tuple[Layer, ...]
    wishes: Mapping[type, Layer]
    checks: Mapping[str, Check]
    store: Store
    memory: Store
    secrets: Secrets
    max_background: int = 16
