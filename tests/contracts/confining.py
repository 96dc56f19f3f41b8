"""Which backends of the sandbox there are to be tried."""

from __future__ import annotations

from veil.host.confine.backends import BACKENDS

#: Those of this platform.
HERE = [name for name in BACKENDS if name != "seatbelt"]
