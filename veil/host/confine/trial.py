"""Whether a way to confine works on this machine, found by confining something that must succeed and fail by turns."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from veil.host import restricted
from veil.host.confine.base import Bounds, Wrapped
from veil.model.errors import VeilError
from veil.model.outcome import Outcome, Stream

#: Ends with 7 when a write inside goes through, one outside does not, and what is masked cannot be read.
_SCRIPT = "echo x >here && ! (echo x >../outside/there) 2>/dev/null && ! cat ../masked/file 2>/dev/null && exit 7"
_SECONDS = 30.0

#: ``Backend.confine`` as it is.
Confine = Callable[["tuple[str, ...]", Bounds], "AbstractContextManager[Wrapped]"]


class Trials:
    """What trials of one backend told, without and with a network. A reason why it cannot is asked for again after a
    while: the machine may have run out of namespaces for a moment."""

    _FORGET = 60.0

    def __init__(self, found_out: Callable[[bool], str | None]) -> None:
        """``found_out``: tries it, told whether there shall be a network; the reason why it cannot, or ``None``."""
        self._found_out = found_out
        self._known: dict[bool, tuple[str | None, float]] = {}

    def reason(self, network: bool) -> str | None:
        """Why it cannot confine with or without a network, found out by doing it: once when it works."""
        reason, asked = self._known.get(network, ("", 0.0))
        if reason == "" or (reason is not None and time.monotonic() > asked + self._FORGET):
            reason = self._found_out(network)
            self._known[network] = reason, time.monotonic()
        return reason

    def any(self) -> str | None:
        """Why it cannot confine at all. Who can take the network away can leave it: one trial tells both, where nothing
        is wrong."""
        return None if self.reason(False) is None else self.reason(True)


def tried(confine: Confine, *, network: bool) -> str | None:
    """Why it does not confine here, or ``None``.

    Args:
        network: ``False``: take the network away as well, which can fail where all else works.
    """
    with tempfile.TemporaryDirectory(prefix="veil-trial-") as made:
        base = os.path.realpath(made)
        inside, outside, temp, masked = (os.path.join(base, n) for n in ("inside", "outside", "temp", "masked"))
        for folder in (inside, outside, temp, masked):
            os.mkdir(folder)
        Path(masked, "file").write_text("masked", encoding="utf-8")
        bounds = Bounds(inside, temp, network=network, masked_folders=(masked,), shown=(outside, masked))
        try:
            outcome = _run(confine, bounds)
        except VeilError as error:
            return str(error.facts.get("reason", error))
        except OSError as error:
            return error.strerror or str(error)
        except subprocess.TimeoutExpired:
            return f"a trial command did not end within {_SECONDS:g} s"
        if os.path.exists(f"{outside}/there"):
            return "a write that had to be denied went through"
        if outcome.exit == 7 and os.path.exists(f"{inside}/here"):
            return None
    said = outcome.stderr.data.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
    return outcome.spawn_error or said or f"a trial command ended with {outcome.exit}"


def _run(confine: Confine, bounds: Bounds) -> Outcome:
    with confine(("/bin/sh", "-c", _SCRIPT), bounds) as wrapped:
        process = restricted.start(
            wrapped.restrict,
            lambda: subprocess.Popen(
                wrapped.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=wrapped.pass_fds,
                cwd=bounds.cwd,
            ),
        )
        try:
            if wrapped.started is not None:
                wrapped.started()
            _, words = process.communicate(timeout=_SECONDS)
        finally:
            process.kill()
            process.communicate()
        code = process.returncode
        ended = Outcome("exited", code) if code >= 0 else Outcome("signaled", 128 - code)
        outcome = Outcome(ended.ended, ended.exit, stderr=Stream(words, b"", len(words), words.count(b"\n")))
        return outcome if wrapped.settle is None else wrapped.settle(outcome)
