"""What is hidden before anything of a run is written: folders behind tokens, known secrets, credential-shaped text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from veil.cassettes.roots import Roots
from veil.cassettes.steps import Step, TreeChange
from veil.model.errors import Refused
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

    def name(self, text: str) -> str:
        """The name of a file or a test without secrets; folders stay."""
        return redact_shapes(self.secrets.redact_text(text))

    def hide(self, data: bytes) -> bytes:
        """``data`` without secrets and with tokens for folders."""
        return super().hide(redact_shapes(self.secrets.redact(data)))


def ended_with(step: Step, row: TreeChange, hidden: Scrubbed) -> Step:
    """The step with that row in the place of the one of the same path."""
    path = hidden.name(row.path)

    def put(had: TreeChange) -> TreeChange:
        return replace(row, path=path, old=had.old) if had.path == path else had

    return replace(
        step,
        changes=None if step.changes is None else tuple(map(put, step.changes)),
        quiet=tuple(map(put, step.quiet)),
    )


def unnamed(step: Step, hidden: Scrubbed) -> Step:
    """The step without secrets in the names of its files. A replay makes and tells them under the names that are left.

    Raises ``Refused`` (``secret_in_names``) when two files would be left with one name.
    """

    def clean(change: TreeChange) -> TreeChange:
        old = None if change.old is None else hidden.name(change.old)
        return replace(change, path=hidden.name(change.path), old=old)

    changes = None if step.changes is None else tuple(map(clean, step.changes))
    quiet = tuple(map(clean, step.quiet))
    if changes == step.changes and quiet == step.quiet and all(hidden.name(path) == path for path in step.files):
        return step
    names = [change.path for change in (*(changes or ()), *quiet)]
    if len(set(names)) < len(names):
        raise Refused(
            "files of this step differ only in the secrets of their names, so it cannot be recorded",
            code="secret_in_names",
        )
    files = {hidden.name(path): fact for path, fact in step.files.items()}
    return replace(step, changes=changes, quiet=quiet, files=files)
