"""Recording, replaying and verifying runs: the public door for test runners (``pytest_veil`` is one).

A ``Stage`` is the world of one test. On it stand a ``StageRunner`` (live), a ``Recorder`` (live, and leaves steps
behind) or a ``Player`` (answers from a tape); all three run, await and start commands in the same words as ``veil``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# a handle needs it late, perhaps while a test has put a fake disk in place of the real one
from veil import waiting  # noqa: F401
from veil.cassettes.codec import decode, encode
from veil.cassettes.errors import CassetteDamaged, CassetteMiss, CassetteVersion
from veil.cassettes.families import standard
from veil.cassettes.matching import Key, Tape, key_of
from veil.cassettes.names import SUFFIX, file_name, file_stem
from veil.cassettes.normalise import Normaliser, Registry, erased, numbered
from veil.cassettes.profile import DETERMINISTIC, INHERIT, PROFILES, Profile
from veil.cassettes.recording import FACTS_SUFFIX, Facts, StepFacts, decode_facts, encode_facts
from veil.cassettes.steps import Cassette, Header, Step, Workspace
from veil.cassettes.verdicts import (
    SAME,
    WORDS,
    Rules,
    StepVerdict,
    Trajectory,
    compare,
    fired,
    propose,
    settle,
    trajectory,
)
from veil.host.applying import Put, apply
from veil.host.fingerprint import fingerprint
from veil.host.saving import save
from veil.host.slots import Slot
from veil.host.slots import take as take_slot
from veil.model.outcome import Fact
from veil.taping.alone import (
    InOrder,
    Played,
    play,
    record_again,
    refreshed,
    replay,
    run_cassette,
)
from veil.taping.player import Player
from veil.taping.recorder import Recorder, Refusal, StageRunner
from veil.taping.scrubbing import Scrubbed
from veil.taping.stage import Stage
from veil.taping.workspaces import new_header, stage_for, taken_in

if TYPE_CHECKING:
    from veil.snapshots import Checkpoints

__all__ = [
    "DETERMINISTIC",
    "FACTS_SUFFIX",
    "INHERIT",
    "PROFILES",
    "SAME",
    "SUFFIX",
    "WORDS",
    "Cassette",
    "CassetteDamaged",
    "CassetteMiss",
    "CassetteVersion",
    "Checkpoints",
    "Fact",
    "Facts",
    "Header",
    "InOrder",
    "Key",
    "Normaliser",
    "Played",
    "Player",
    "Profile",
    "Put",
    "Recorder",
    "Refusal",
    "Registry",
    "Rules",
    "Scrubbed",
    "Slot",
    "Stage",
    "StageRunner",
    "Step",
    "StepFacts",
    "StepVerdict",
    "Tape",
    "Trajectory",
    "Workspace",
    "apply",
    "compare",
    "decode",
    "decode_facts",
    "encode",
    "encode_facts",
    "erased",
    "file_name",
    "file_stem",
    "fingerprint",
    "fired",
    "key_of",
    "new_header",
    "numbered",
    "play",
    "propose",
    "record_again",
    "refreshed",
    "replay",
    "run_cassette",
    "save",
    "settle",
    "stage_for",
    "standard",
    "take_slot",
    "taken_in",
    "trajectory",
]


def __getattr__(name: str) -> object:
    if name != "Checkpoints":  # for the few tests that want them
        raise AttributeError(f"module 'veil.taping' has no attribute {name!r}")
    from veil.snapshots import Checkpoints

    return Checkpoints
