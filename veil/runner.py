"""What turns keywords into a run. The process has one; a recorded or replayed workspace has its own."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veil import elsewhere, pipeline, wiring
from veil.background import Handle
from veil.host.orders import Controls, Listener, Orders
from veil.kit import Kit
from veil.model.command import Request
from veil.model.errors import BadInput, CommandFailed, StoreFailed
from veil.model.record import Record
from veil.result import Result


@dataclass(frozen=True)
class Asked:
    """One call, understood.

    Attributes:
        environment: what the command would inherit.
        listener: called with the stream's name and each piece of output.
        check: raise when the command or a post-condition fails.
        place: among the runs of a recording, when it was given before the run began.
    """

    session: wiring.Session
    kit: Kit
    request: Request
    environment: Mapping[str, str]
    listener: Listener | None
    check: bool
    place: int | None = None


#: Threads of ``arun``: a loop that was closed without awaiting its tasks leaves them behind.
_running: dict[threading.Thread, Orders] = {}


@atexit.register
def _end_running() -> None:
    for thread, orders in list(_running.items()):
        orders.cancel()
        thread.join()


class Runner:
    """Runs commands for real, in this process's environment. Subclasses change ``ask`` and ``perform``."""

    def ask(self, command: str | Sequence[str], options: Mapping[str, Any], *, background: bool = False) -> Asked:
        """Understand a call. Raises ``BadInput`` or ``Refused``; nothing has run then."""
        environment = dict(os.environ)
        session = wiring.session(environment, options.get("project"))
        return self._asked(session, session.kit, environment, command, options, background=background)

    def _asked(
        self,
        session: wiring.Session,
        kit: Kit,
        environment: Mapping[str, str],
        command: str | Sequence[str],
        options: Mapping[str, Any],
        *,
        background: bool,
    ) -> Asked:
        request = session.request(command, options, background=background)
        listener, check = options.get("on_output"), options.get("check")
        if listener is not None and not callable(listener):
            raise BadInput("on_output", listener, "a function of a stream's name and bytes")
        if check is not None and not isinstance(check, bool):
            raise BadInput("check", check, "True or False")
        return Asked(session, kit, request, environment, listener, bool(check))

    def book(self, asked: Asked) -> Asked:
        """A run that begins on a thread of its own keeps its turn among others of its task."""
        return asked

    def perform(self, asked: Asked, controls: Controls) -> Record:
        """One foreground run, whole, on the calling thread."""
        return pipeline.run(asked.kit, asked.request, asked.environment, controls)

    def run(self, command: str | Sequence[str], options: Mapping[str, Any]) -> Result:
        """See ``veil.run``."""
        asked = self.ask(command, options)
        return checked(Result(self.perform(asked, Controls(listener=asked.listener))), asked.check)

    def plain(self, text: str) -> str:
        """The text as a recording would have it: here as it is."""
        return text

    async def arun(self, command: str | Sequence[str], options: Mapping[str, Any]) -> Result:
        """See ``veil.arun``."""
        asked = self.ask(command, options)
        return checked(Result(await self.aperform(asked)), asked.check)

    async def aperform(self, asked: Asked) -> Record:
        """One foreground run for asyncio, on a thread of its own. A task that is cancelled ends its tree first."""
        import asyncio

        asked = self.book(asked)
        orders = Orders()
        controls = Controls(listener=asked.listener, orders=orders)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def settle(value: Any, error: BaseException | None) -> None:
            if not done.done():
                if error is None:
                    done.set_result(value)
                else:
                    done.set_exception(error)

        def work() -> None:
            try:
                outcome, error = self.perform(asked, controls), None
            except BaseException as caught:  # raised again where the task awaits it
                outcome, error = None, caught
            finally:
                orders.close()
                _running.pop(thread, None)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody awaits it any more
                loop.call_soon_threadsafe(settle, outcome, error)

        thread = threading.Thread(target=work, name="veil-run", daemon=True)
        _running[thread] = orders
        thread.start()
        try:
            record: Record = await asyncio.shield(done)
        except asyncio.CancelledError:
            orders.cancel()
            while not done.done():
                try:
                    await asyncio.shield(done)
                except asyncio.CancelledError:
                    continue  # cancelled again: the tree still has to be gone first
                except BaseException:
                    break
            done.exception()  # looked at, so that nobody is told that it was not
            raise
        return record

    def start(self, command: str | Sequence[str], options: Mapping[str, Any]) -> Handle:
        """See ``veil.start``."""
        return self.started(self.ask(command, options, background=True))

    def started(self, asked: Asked) -> Handle:
        """One background run that was asked for."""
        return self.begin(asked)

    def begin(self, asked: Asked) -> Handle:
        """One background run."""
        with elsewhere.turn(asked.session, asked.kit.max_background):
            session = asked.session
            job = wiring.jobs.start(
                asked.kit, asked.request, asked.environment, session.mark, asked.listener, place=session.place
            )
            with contextlib.suppress(StoreFailed):  # then it is found by nobody else, and runs all the same
                elsewhere.announce(session, job.record.id, job.pid, served=False)
        return Handle(job)


def checked(result: Result, check: bool) -> Result:
    """The result itself; with ``check``, ``CommandFailed`` when the command or a post-condition failed."""
    if not check:
        return result
    wrong = []
    # an exit that was expected by name is no failure
    asked = any(judgement.check == "exit" for judgement in result.verdict.judgements)
    if not result.ok and not (asked and result.ended in ("exited", "signaled")):
        wrong.append(f"{result.ended} with {result.exit}" + (f" ({result.signal})" if result.signal else ""))
    wrong += [judgement.message for judgement in (*result.verdict.failed, *result.verdict.inconclusive)]
    if wrong:
        raise CommandFailed(
            f"{result.command}: {'; '.join(wrong)} [{result.id}]", result, id=result.id, exit=result.exit
        )
    return result
