"""The one way of a run: plan, prepare, spawn, observe (these three are the executor's), judge, record."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from veil.cleaning import cleaned
from veil.executors.base import Running
from veil.host.orders import Controls
from veil.host.processes import TAG_VARIABLE
from veil.kit import Kit, Redaction
from veil.layers.base import Layer
from veil.model.command import Look, Request
from veil.model.errors import Refused
from veil.model.outcome import Findings, Observation, Outcome, Stream
from veil.model.plan import Decision, Launch, Place, Plan, Work, Wrap
from veil.model.record import Record
from veil.model.variation import varied
from veil.model.verdict import Verdict


def plan(kit: Kit, request: Request) -> Plan:
    """Which layers grant the wishes, in order. Touches nothing but cached probes.

    Raises:
        Refused: nobody grants a wish, or a needed layer cannot (code ``layer_unavailable``).
    """
    looks = tuple(path for name, expected in request.expect for path in kit.checks[name].paths(expected))
    if looks:
        request = varied(request, wishes=(*request.wishes, Look(looks)))
    draft = Plan(request, looks=looks)
    chosen: list[Layer] = []
    skipped: list[tuple[str, str]] = []
    for wish in request.wishes:
        layer = kit.wishes.get(type(wish))
        if layer is None:
            raise Refused(
                f"nothing here grants {type(wish).__name__}", code="layer_unavailable", wish=type(wish).__name__
            )
        reason = layer.unavailable(wish, draft)
        if reason is None:
            chosen.append(layer)
        elif layer.needed:
            raise Refused(f"{layer.name}: {reason}", code="layer_unavailable", layer=layer.name, reason=reason)
        else:
            skipped.append((layer.name, reason))
    superseded = [kit.wishes.get(wish) for layer in chosen for wish in layer.supersedes]
    names = tuple(layer.name for layer in kit.layers if layer in chosen and layer not in superseded)
    # whoever judged the request says so with a wish
    judged = (getattr(wish, "decision", None) for wish in request.wishes)
    decision = next((one for one in judged if isinstance(one, Decision)), draft.decision)
    return varied(draft, layers=names, skipped=tuple(skipped), decision=decision)


def launch_of(request: Request, environment: Mapping[str, str]) -> Launch:
    """What to ask the operating system for, before any layer has wrapped it.

    Args:
        environment: what the child would inherit.
    """
    command = request.command
    env = dict(environment)
    if command.text is not None:
        # a shell that is not interactive reads the file named here before anything else
        env.pop("BASH_ENV", None)
        env.pop("ENV", None)
    for name, value in command.env:
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    tag = request.tag or os.urandom(8).hex()
    outer = env.get(TAG_VARIABLE)
    # runs inside runs keep the tags of those around them; the chain has an end so that it cannot grow for ever
    env[TAG_VARIABLE] = ":".join([*outer.split(":")[-7:], tag]) if outer else tag
    return Launch(
        argv=command.argv,
        cwd=command.cwd,
        env=env,
        stdin=command.stdin,
        limits=request.limits,
        merge_stderr=request.merge_stderr,
        contain=request.contain,
        left_running=request.left_running,
        tag=tag,
        umask=request.umask,
        fixed_addresses=request.fixed_addresses,
    )


@dataclass(frozen=True)
class Begun:
    """A run that has begun, with what is needed to end it well."""

    plan: Plan
    running: Running
    started: float
    redaction: Redaction | None


def begin(kit: Kit, request: Request, environment: Mapping[str, str], controls: Controls) -> Begun:
    """Plan and start. Raises ``Refused`` when a needed layer cannot be granted."""
    made = plan(kit, request)
    launch = launch_of(request, environment)
    redaction = None
    if request.redact:
        redaction = kit.secrets(launch.env, request.secrets)
        controls = varied(controls, filters=redaction.filter)
    orders = controls.orders
    if orders is not None:
        launch = varied(launch, unwanted=lambda: orders.cancelled)
    outer: list[Wrap] = []
    inner: list[Wrap] = []
    by_name = {kit.wishes[type(wish)].name: wish for wish in made.request.wishes}
    for layer in kit.layers:
        if layer.name in made.layers:
            wrap: Wrap = functools.partial(layer.enter, by_name[layer.name], plan=made)
            (outer if layer.place <= Place.WATCH else inner).append(wrap)
    started = time.time()
    running = kit.executor.begin(Work(made, launch, tuple(outer), tuple(inner)), controls)
    return Begun(made, running, started, redaction)


def judge(kit: Kit, request: Request, seen: Observation) -> Verdict:
    """Every post-condition on what was seen; looks at nothing else."""
    return Verdict(tuple(kit.checks[name].judge(expected, seen) for name, expected in request.expect))


def draft(begun: Begun, seen: Observation, verdict: Verdict, status: str) -> Record:
    """The record of a run, not yet kept."""
    request = begun.plan.request
    command = request.command
    if begun.plan.skipped:
        skipped = Findings(notes={"skipped": dict(begun.plan.skipped)})
        seen = varied(seen, findings=seen.findings.merged(skipped))
    record = Record(
        id="",
        started=begun.started,
        command=command.display,
        argv=command.argv,
        cwd=command.cwd,
        observation=seen,
        text=command.text,
        verdict=verdict,
        layers=begun.plan.layers,
        decision=None if begun.plan.decision.policy is None else begun.plan.decision,
        background=request.background,
        status=status,
        full=request.full,
    )
    return record if begun.redaction is None else cleaned(record, begun.redaction)


def finish(kit: Kit, begun: Begun) -> Record:
    """See it through, judge it and keep it."""
    seen = begun.running.wait()
    request = begun.plan.request
    record = draft(begun, seen, judge(kit, request, seen), "exited")
    return (kit.memory if request.no_store else kit.store).add(record)


def run(kit: Kit, request: Request, environment: Mapping[str, str], controls: Controls) -> Record:
    """One command in the foreground, whole."""
    return finish(kit, begin(kit, request, environment, controls))


#: What a background run looks like while nothing of it has ended.
UNENDED = Observation(Outcome(ended="exited", exit=0, stdout=Stream(), stderr=Stream()))
