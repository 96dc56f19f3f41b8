"""What is hidden before anything of a run is written: folders behind tokens, known secrets, credential-shaped text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from veil.cassettes.roots import Roots
from veil.secrets.redactor import SecretSet
from veil.secrets.shapes import redact_shapes


@dataclass(frozen=True)
class Scrubbed(Roots):
    """``Roots`` that also take secrets out on the way in. What was taken out never comes back with ``show``."""

    secrets: SecretSet = field(default_factory=SecretSet)

    @classmethod
    def around(
        cls, folders: Sequence[tuple[str, str]], environment: Mapping[str, str], extra: Sequence[str] = ()
    ) -> Scrubbed:
        """For a workspace: ``environment`` is that of the process, ``extra`` are values the user named.

        Raises ``BadInput`` for an extra value too short or too common to be replaced safely.
        """
        return cls(tuple(folders), SecretSet.of(environment, extra, argument="veil_secrets"))

    def hide(self, data: bytes) -> bytes:
        """``data`` without secrets and with tokens for folders."""
        return super().hide(redact_shapes(self.secrets.redact(data)))
