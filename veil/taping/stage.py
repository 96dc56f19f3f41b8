"""The world of one recorded test: a workspace, a home and a temporary folder, and the environment of its commands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from veil.cassettes.profile import Profile
from veil.cassettes.steps import entry_id
from veil.host.contents import Contents
from veil.host.removing import claim, empty
from veil.model.outcome import Kind
from veil.taping.scrubbing import Scrubbed

#: What a tag of a run reads like in every recording (sixteen hex digits like a real one).
REPLAYED_TAG = "0" * 16


@dataclass(frozen=True)
class Stage:
    """Where commands of one test run.

    Attributes:
        root: the workspace. home, tmp: HOME and TMPDIR of the commands.
        environment: the whole environment of commands, before the additions of a call.
        secrets: further values to keep out of recordings.
    """

    root: Path
    home: Path
    tmp: Path
    profile: Profile
    environment: Mapping[str, str]
    secrets: tuple[str, ...] = ()
    host_environment: Mapping[str, str] | None = None

    @classmethod
    def make(
        cls,
        base: Path,
        profile: Profile,
        environment: Mapping[str, str],
        *,
        root: Path | None = None,
        secrets: Sequence[str] = (),
        passed: Sequence[str] = (),
    ) -> Stage:
        """Fresh folders below ``base``, which is emptied first: ``w`` (unless ``root`` is given), ``home``, ``tmp``.

        Args:
            base: a folder that belongs to the caller alone; it gets veil's mark.
            environment: the process's own.
            passed: names of variables that go through to commands besides those of the profile.
        """
        claim(base)
        home, tmp = empty(base, "home"), empty(base, "tmp")
        workspace = empty(base, "w") if root is None else root
        for path, text in profile.home_files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)
        return cls(
            root=workspace.resolve(),
            home=home,
            tmp=tmp,
            profile=profile,
            environment=profile.environment(environment, str(home), str(tmp), passed),
            secrets=tuple(secrets),
            host_environment=dict(environment),
        )

    def environment_now(self) -> dict[str, str]:
        """The environment of a command that starts now: a profile that inherits follows the process's own."""
        return (
            self.profile.environment(os.environ, str(self.home), str(self.tmp))
            if self.profile.inherit
            else dict(self.environment)
        )

    def settle(self) -> None:
        """Give all files of the workspace the time stamps of the profile, so that listings repeat."""
        if self.profile.file_seconds is None:
            return
        when = (self.profile.file_seconds, self.profile.file_seconds)
        for folder, _, names in os.walk(self.root, topdown=False):
            for name in names:
                os.utime(os.path.join(folder, name), when, follow_symlinks=False)
            os.utime(folder, when)

    def hidden(self, *tags: str) -> Scrubbed:
        """What hides this stage's folders, the tags of runs and secrets."""
        return self.hidden_with([tag.encode("ascii") for tag in tags if tag])

    def hidden_with(self, tags: Sequence[bytes]) -> Scrubbed:
        """``hidden`` with tags that may become more."""
        folders = [("root", str(self.root)), ("home", str(self.home)), ("tmp", str(self.tmp))]
        for name, path in list(folders):
            real = os.path.realpath(path)
            if real != path:
                folders.append((name, real))
        source = self.environment if self.host_environment is None else self.host_environment
        hidden = Scrubbed.around(folders, source, self.secrets)
        return TaggedScrub(hidden.folders, hidden.secrets, tags)

    def contents(self, hidden: Scrubbed) -> Contents:
        """Looks at the workspace by content, as recordings know it."""

        def identify(kind: Kind | None, mode: int, data: bytes) -> str:
            return entry_id(kind, mode, hidden.hide(data) if data else data)

        return Contents(str(self.root), identify)


@dataclass(frozen=True)
class TaggedScrub(Scrubbed):
    """Also hides the marks of runs, which are others each time."""

    tags: Sequence[bytes] = ()

    def hide(self, data: bytes) -> bytes:
        for tag in self.tags:
            if tag in data:
                data = data.replace(tag, REPLAYED_TAG.encode("ascii"))
        return super().hide(data)
