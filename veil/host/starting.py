"""Starting a command as the kind of child that its launch asks for."""

from __future__ import annotations

import signal

from veil.host.children import Child, PlainChild
from veil.host.supervised import SupervisedChild
from veil.model.plan import Launch


def start(launch: Launch, stdin: int, stdout: int, stderr: int) -> Child:
    """Start the command of ``launch`` with these descriptors.

    It gets a new session and process group and no other descriptor than those and ``launch.pass_fds``.

    Raises:
        CannotStart: the program is not there, not executable, or the arguments are too long.
    """
    # an ignored SIGCHLD makes the kernel throw exit codes away; the supervisor's own disposition is sane
    if launch.contain or signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        return SupervisedChild(launch, stdin, stdout, stderr)
    return PlainChild(launch, stdin, stdout, stderr)
