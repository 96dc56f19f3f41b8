"""What is asked now, as the key that a recorded step has."""

from __future__ import annotations

from collections.abc import Callable

from veil.cassettes.matching import Key, confinement, key_from
from veil.cassettes.recording import each_text, wish_data
from veil.model.command import Carry, Preview, Request, Sandbox
from veil.taping.stage import Stage


def chosen(request: Request, stage: Stage) -> tuple[tuple[str, str | None], ...]:
    """The additions to the environment that are part of a step."""
    return tuple(pair for pair in request.command.env if stage.profile.recorded(pair[0]))


def confined(request: Request, word: Callable[[str], str]) -> tuple[str, ...]:
    """How what is asked now is confined, as ``Key`` has it."""
    if not request.wishes:
        return ()
    safety = [wish_data(wish) for wish in request.wishes if isinstance(wish, (Sandbox, Preview))]
    return confinement((name, each_text(options, word)) for name, options in safety)


def key_for(
    request: Request,
    stage: Stage,
    word: Callable[[str], str],
    hidden: Callable[[bytes], bytes],
    confined: tuple[str, ...] = (),
) -> Key:
    """The key of what is asked now, made by the same rules as that of a recorded step.

    ``word`` and ``hidden`` as ``Roots.hide_text`` and ``Roots.hide``; ``confined`` of the request as it was asked.
    """
    command = request.command
    env = tuple(sorted((k, None if v is None else word(v)) for k, v in chosen(request, stage))) if command.env else ()
    return key_from(
        tuple(map(word, command.argv)),
        None if command.text is None else word(command.text),
        word(command.cwd),
        None if command.stdin is None else hidden(command.stdin),
        env,
        merged=request.merge_stderr,
        background=request.background,
        session=next(((wish.session, wish.state) for wish in request.wishes if isinstance(wish, Carry)), ()),
        confined=confined,
    )
