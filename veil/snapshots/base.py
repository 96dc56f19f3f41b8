"""The words of checkpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from veil.model.errors import BadInput

#: The label under which the state is kept that a restore displaced.
BEFORE_RESTORE = "before-restore"
#: Characters of a label at most.
MAX_LABEL = 1000
_ID = re.compile(r"ckpt[1-9][0-9]*-[0-9a-f]{8}")


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of one folder.

    Attributes:
        id: ``ckpt<number>-<8 hex digits>``, unique across folders; later ones of a folder have larger numbers.
        label: as it was given; a label may have been given several times.
        created: seconds since the epoch.
        files: regular files in it. bytes: of all of them.
        left_out: path -> why it is in the checkpoint by name only (socket, device, other file system, an attribute).
        over_limit: why all checkpoints together have more bytes than they may; ``None`` when they have not, or when
            nobody looked.
    """

    id: str
    label: str | None
    created: float
    files: int
    bytes: int
    left_out: Mapping[str, str] = field(default_factory=dict)
    over_limit: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON view: ``label``, ``left_out`` and ``over_limit`` only when they say something."""
        data: dict[str, Any] = {"id": self.id}
        if self.label is not None:
            data["label"] = self.label
        data.update(created=self.created, files=self.files, bytes=self.bytes)
        if self.left_out:
            data["left_out"] = dict(self.left_out)
        if self.over_limit is not None:
            data["over_limit"] = self.over_limit
        return data

    @property
    def number(self) -> int:
        """Order among the checkpoints of one folder."""
        return int(self.id[4:].partition("-")[0])


@dataclass(frozen=True)
class Restored:
    """What a restore did.

    Attributes:
        checkpoint: that the tree now equals.
        counts: ``created``, ``replaced``, ``deleted``, ``adjusted`` (mode, owner, times or attributes only).
        before: the label of the checkpoint that holds what was there before. before_id: its id.
        left: path -> why it is not as it was (a socket cannot be made again, no right to give a file away ...).
    """

    checkpoint: Checkpoint
    counts: Mapping[str, int]
    before: str = BEFORE_RESTORE
    before_id: str = ""
    left: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The JSON view: the checkpoint's ``id`` and ``label``, what was done (numbers above 0 only), ``before`` and
        ``before_id``, and ``left`` when it says something."""
        data: dict[str, Any] = {"id": self.checkpoint.id}
        if self.checkpoint.label is not None:
            data["label"] = self.checkpoint.label
        data.update((word, count) for word, count in self.counts.items() if count)
        data.update(before=self.before, before_id=self.before_id)
        if self.left:
            data["left"] = dict(self.left)
        return data


def is_id(text: str) -> bool:
    """Whether ``text`` has the form of a checkpoint's id."""
    return _ID.fullmatch(text) is not None


def label_given(label: object) -> bytes | None:
    """A label for a new checkpoint, as it is stored. Any text is one; it never becomes a path.

    Raises:
        BadInput: no text, empty, too long, or one of the names that mean something already.
    """
    if label is None:
        return None
    text = check_label(label)
    if text == BEFORE_RESTORE:
        raise BadInput("label", label, f"another label: {BEFORE_RESTORE!r} is what a restore calls the displaced state")
    if is_id(text):
        raise BadInput("label", label, "a label that does not look like the id of a checkpoint")
    return text.encode("utf-8", "surrogatepass")


def check_label(label: object) -> str:
    """A label or id that is looked for. Raises ``BadInput`` for what cannot be one."""
    if not isinstance(label, str) or not label:
        raise BadInput("label", label, "a text that is not empty")
    if len(label) > MAX_LABEL:
        raise BadInput("label", label, f"at most {MAX_LABEL} characters")
    return label
