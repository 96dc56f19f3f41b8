"""The texts by which bash begins in a state and tells the one it ends in.

bash reads the file named in ``BASH_ENV`` before the command, so the text of the command stays what it was: its ``$0``,
its line numbers, what it means where it is wrong. What it ends in is told by a trap on ``EXIT``.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

from veil.layers.session.quoting import decoded, entries
from veil.layers.session.state import MOMENTARY, UNCARRIED, State, Variable

BEGUN, MARK, END = b"begun\0", b"\0veil\0", b"end\0"
#: Told at the beginning: everything of before is there again; or not, and then of which part.
READY, LOST = b"ready\0", b"lost\0"

#: bash has these from the start, unless a command of the session took one away.
_FROM_THE_START = frozenset(
    {"HOSTNAME", "HOSTTYPE", "IFS", "MACHTYPE", "OLDPWD", "OPTERR", "OPTIND", "OSTYPE", "PATH", "PS4", "SHELL", "TERM"}
)
#: Nothing could ever switch these off again, or they belong to how bash was started.
_FIXED_OPTIONS = frozenset({"noexec", "onecmd", "privileged", "restricted", "interactive"})
_FIXED_SWITCHES = frozenset({"login_shell", "restricted_shell", "expand_aliases"})
#: Of a bash that runs a command.
_USUAL_OPTIONS = frozenset({"braceexpand", "hashall", "interactive-comments"})
#: These show what is executed: set last and in one breath.
_LOUD = ("verbose", "xtrace")

_DECLARED = re.compile(r"declare -(\S+) ([A-Za-z_]\w*)(?:=(.*))?\Z", re.DOTALL)

#: A variable that switches POSIX mode on, in which some names of functions that bash takes otherwise end the shell.
_STRICT = "POSIXLY_CORRECT"

#: A function called ``builtin`` that is in the way goes, by the one way in which no function can be: in POSIX mode
#: ``unset`` is always the shell's own, and an assignment is no command. What the mode switches is put back. Behind
#: ``||`` no failure of it ends a shell under ``set -e``.
_OWN = r"""{ \builtin printf -v __veil_t own; [[ ${__veil_t-} == own ]] || {
__veil_b=:${BASHOPTS-}: __veil_p=${POSIXLY_CORRECT+__veil_x}; POSIXLY_CORRECT=${POSIXLY_CORRECT-1};
\unset -f builtin; \unset -v "${__veil_p:-POSIXLY_CORRECT}";
for __veil_t in inherit_errexit interactive_comments shift_verbose sourcepath; do
if [[ $__veil_b == *":$__veil_t:"* ]]; then \builtin shopt -s $__veil_t; else \builtin shopt -u $__veil_t; fi; done;
}; } || [[ x ]];"""

#: On one line, so that what stands behind it counts its lines as before; ``\builtin``, since an alias may be called so.
#: Options are told first, and those that would show or end what follows are switched off. At the end of a function its
#: locals can be seen: then what is global is marked (``-t`` means nothing for variables), and a local that hides
#: something global is taken away.
_DUMP = r"""builtin trap '' XFSZ; builtin printf '\0veil\0';
builtin set +o; builtin printf '\0';
builtin set +exvu; builtin trap - DEBUG ERR RETURN;
builtin shopt -p; builtin printf '\0'; builtin alias -p; builtin printf '\0'; builtin umask; builtin printf '\0';
builtin pwd; builtin printf '\0'; builtin printf '%s\0' "${#DIRSTACK[@]}" "${DIRSTACK[@]}";
if [[ ${#FUNCNAME[@]} -gt 0 ]]; then
builtin printf -- '-1\0';
builtin mapfile -t __veil_names < <(builtin compgen -v);
__veil_reveal() { builtin local __veil_n __veil_i __veil_d=${#FUNCNAME[@]};
builtin declare -gt "${__veil_names[@]}";
for __veil_n in "${__veil_names[@]}"; do for ((__veil_i = 1; __veil_i < __veil_d; __veil_i++)); do
[[ ${!__veil_n@a} == *t* ]] && builtin break; builtin unset -v "$__veil_n"; done; done; };
__veil_reveal; builtin unset -f __veil_reveal;
else builtin printf '%s\0' "$#" "$@"; fi;
builtin declare -p; builtin printf '\0'; builtin declare -f; builtin printf '\0';
builtin declare -F; builtin printf '\0end\0'; builtin trap - XFSZ;"""
_OWN, _DUMP = _OWN.replace("\n", " "), _DUMP.replace("\n", " ").replace("builtin ", "\\builtin ")


def dump(out: int) -> str:
    """Tells the state to the descriptor ``out``; silent, also under ``set -x``."""
    return f"{{ {_OWN} {_DUMP} }} 2>/dev/null >&{out}"


#: Behind ours: the command's own trap finds the status and the options that it would have found.
_AS_IT_WAS = (
    "; { [[ $__veil_o == *u* ]] && builtin set -u; [[ $__veil_o == *x* ]] && builtin set -x; "
    "(builtin exit $__veil_s); } 2>/dev/null; "
)


def _first(out: int) -> str:
    """What stands in front of the command's own trap on EXIT."""
    return f"{{ __veil_s=$? __veil_o=$-; }} 2>/dev/null; {dump(out)}{_AS_IT_WAS}"


def shown(out: int) -> tuple[str, ...]:
    """What ``set -v`` shows of all this at the end: bash prints every trap as it reads it."""
    return _first(out) + "\n", _first(out), dump(out) + "\n"


def _watched(out: int) -> str:
    """A ``trap`` that keeps ours in front of the command's own trap on EXIT, and shows it to nobody."""
    return f"""trap() {{
{{ builtin local - && builtin set +x; }} 2>/dev/null
if [[ $# != 0 && $1 != -p && ( $BASH_SUBSHELL != 0 || " $* " != *' 0 '* && " $* " != *[Ee][Xx][Ii][Tt]* ) ]]; then
builtin trap "$@"
else
builtin local __veil_ours={shlex.quote(dump(out))} __veil_q="'" __veil_r="'\\''" __veil_t __veil_e=0
builtin local __veil_first={shlex.quote(_first(out))}
if [[ $# == 0 || $1 == -p ]]; then
__veil_t=$(builtin trap "$@"); __veil_e=$?
__veil_first=${{__veil_first//"$__veil_q"/"$__veil_r"}} __veil_ours=${{__veil_ours//"$__veil_q"/"$__veil_r"}}
__veil_t=${{__veil_t//"$__veil_first"/}}; __veil_t=${{__veil_t//"trap -- '$__veil_ours' EXIT"/}}
__veil_t=${{__veil_t#$'\\n'}}
if [[ -n $__veil_t ]]; then builtin printf '%s\\n' "$__veil_t"; fi
else
builtin trap "$@"; __veil_e=$?
__veil_t=$(builtin trap -p EXIT)
if [[ -z $__veil_t ]]; then builtin trap "$__veil_ours" EXIT
elif [[ $__veil_t != *__veil_reveal* ]]; then
builtin eval "set $__veil_t" 2>/dev/null; builtin trap "$__veil_first$3" EXIT
fi
fi
builtin return $__veil_e
fi
}}"""


def beginning(
    state: State | None, env: Mapping[str, str], into: int, out: int, moved: Mapping[str, str], *, traps: bool
) -> str:
    """The file of ``BASH_ENV``.

    Args:
        state: None to begin like any command; then the state of the beginning is told as well.
        env: what the environment says. moved: what it should say and cannot; said here.
        into: the descriptor this is read from. traps: whether the command may set traps.
    """
    lines = [f"builtin exec {into}<&-", f"builtin printf 'begun\\0' >&{out}", "builtin unset BASH_ENV"]
    if state is None:
        lines.append(f"{{ {_DUMP} }} 2>/dev/null >&{out}")
    # in front of the aliases, which could mean anything by the words of this
    if traps:
        lines.append(_watched(out))
    lines.append(f"builtin trap {shlex.quote(dump(out))} EXIT")
    lines.append("{ :")
    steps = [] if state is None else [*_switching(state), *_defining(state, env)]
    # POSIXLY_CORRECT, which may be among them, changes how everything after it is read
    declared = {variable.name for variable in state.variables} if state is not None else set()
    steps += [
        ("variables", f"builtin export {name}={shlex.quote(moved[name])}") for name in sorted(moved.keys() - declared)
    ]
    if state is not None:
        steps += _options(state, loud=False)
    for part, step in steps:
        lost = f"builtin printf 'lost\\0{part}\\0' >&{out}; builtin trap - EXIT; builtin exit 125"
        lines.append(f"{step} || {{ {lost}; }}")
    lines.append(f"builtin printf 'ready\\0' >&{out}")
    if state is not None:
        lines += [step for _, step in _options(state, loud=True)]
    lines.append("} 2>/dev/null")
    return "\n".join(lines) + "\n"


#: What is restored, by the word for it, and how.
_Step = tuple[str, str]


def _switching(state: State) -> list[_Step]:
    switches = (("-s", state.switches_on), ("-u", state.switches_off))
    return [("options", f"builtin shopt {sign} {' '.join(sorted(names))}") for sign, names in switches if names]


def _defining(state: State, env: Mapping[str, str]) -> list[_Step]:
    steps = []
    there = state.exported.keys() | {variable.name for variable in state.variables}
    if missing := _FROM_THE_START - there:
        steps.append(("variables", f"builtin unset -v {' '.join(sorted(missing))}"))
    again = ((variable.name, _again(variable, state, env)) for variable in state.variables)
    declared = {name: text for name, text in again if text}
    strict = declared.pop(_STRICT, None)
    if declared:
        steps.append(("variables", "builtin eval " + shlex.quote(" &&\n".join(declared.values()))))
    if state.functions:
        # they may be from a time when this was on; as bash prints functions, it makes no difference to others
        steps.append(("functions", "builtin shopt -s extglob"))
        steps.append(("functions", f"builtin eval {shlex.quote(state.functions)}"))
        if "extglob" in state.switches_off:
            steps.append(("functions", "builtin shopt -u extglob"))
        steps += [("functions", f"builtin declare -fx {shlex.quote(name)}") for name in state.exported_functions]
    if state.aliases:
        steps.append(("aliases", f"builtin eval {shlex.quote(state.aliases)}"))
        steps.append(("aliases", "builtin shopt -s expand_aliases"))
    if state.umask is not None:
        steps.append(("umask", f"builtin umask {state.umask:04o}"))
    steps += [("folders", f"builtin pushd -n {shlex.quote(to)} >/dev/null") for to in reversed(state.directories[1:])]
    if state.arguments:
        steps.append(("arguments", f"builtin set -- {shlex.join(state.arguments)}"))
    if strict is not None:
        steps.append(("variables", f"builtin eval {shlex.quote(strict)}"))
    return steps


def _again(variable: Variable, state: State, env: Mapping[str, str]) -> str | None:
    """An exported one is in the environment, which has the last word of its value and of whether it is there."""
    if "x" not in variable.flags or variable.name not in state.exported:
        return variable.text
    if variable.name not in env:
        return None
    if env[variable.name] == state.exported[variable.name]:
        return variable.text
    return f"declare -{variable.flags} {variable.name}"


def _options(state: State, *, loud: bool) -> list[_Step]:
    """``loud``: those that show what is executed, which come last of all."""
    words = [f"-o {name}" for name in sorted(state.options - _USUAL_OPTIONS) if (name in _LOUD) is loud]
    if not loud:
        words += [f"+o {name}" for name in sorted(_USUAL_OPTIONS - state.options)]
    return [("options", f"builtin set {' '.join(words)}")] if words else []


def told(data: bytes, before: State | None) -> State | None:
    """The state in the last telling of ``data``; ``None`` when there is no whole one.

    ``before`` is kept where the telling says nothing.
    """
    _, mark, rest = data.rpartition(MARK)
    if not mark or not rest.endswith(END):
        return None
    parts = os.fsdecode(rest).split("\0")
    try:
        return _state(parts, before)
    except (ValueError, IndexError):  # the command wrote to the descriptor as well
        return None


def _state(parts: list[str], before: State | None) -> State:
    options, switches, aliases, umask, folder = parts[:5]
    at = 5
    stack, at = _counted(parts, at)
    within = parts[at] == "-1"
    arguments, at = ((before.arguments if before else ()), at + 1) if within else _counted(parts, at)
    declared, functions, named, *end = parts[at:]
    # a shell whose ``declare`` is switched off says nothing, and no shell has nothing to say
    if end != ["end", ""] or not folder.startswith("/") or not (options and switches and declared):
        raise ValueError("not what a shell told")
    exported, variables = _variables(declared, within=within)
    return State(
        cwd=folder.removesuffix("\n"),
        exported=exported,
        variables=variables,
        functions=_without_ours(functions),
        exported_functions=tuple(line.split(" ")[2] for line in named.splitlines() if line.startswith("declare -fx")),
        aliases=aliases,
        options=_named(options, "set -o ") - _FIXED_OPTIONS,
        switches_on=_named(switches, "shopt -s ") - _FIXED_SWITCHES,
        # switching one of these off sets BASH_COMPAT
        switches_off=frozenset(
            name for name in _named(switches, "shopt -u ") - _FIXED_SWITCHES if not name.startswith("compat")
        ),
        umask=int(umask, 8),
        directories=stack,
        arguments=arguments,
    )


#: As ``declare -f`` prints a function called ``trap``: its end is the first line that is a brace alone.
_TRAP = re.compile(r"^trap \(\) \n\{ \n.*?^\}\n", re.DOTALL | re.MULTILINE)


def _without_ours(functions: str) -> str:
    """The functions without the ``trap`` that watches; one of the command's own stays."""
    found = _TRAP.search(functions) if "__veil_ours" in functions else None
    return functions if found is None or "__veil_ours" not in found[0] else functions.replace(found[0], "", 1)


def _named(text: str, beginning: str) -> frozenset[str]:
    return frozenset(line.split()[2] for line in text.splitlines() if line.startswith(beginning))


def _counted(parts: list[str], at: int) -> tuple[tuple[str, ...], int]:
    after = at + 1 + int(parts[at])
    return tuple(parts[at + 1 : after]), after


def _variables(text: str, *, within: bool) -> tuple[dict[str, str], tuple[Variable, ...]]:
    exported: dict[str, str] = {}
    others: list[Variable] = []
    for entry in entries(text):
        found = _DECLARED.match(entry)
        if found is None:
            continue
        flags, name, value = found.groups()
        if name in MOMENTARY or name in UNCARRIED or name.startswith("__veil_"):
            continue
        if within:
            if "t" not in flags:
                continue  # a local of a function that the command was left from
            flags = flags.replace("t", "") or "-"
            entry = f"declare -{flags} {name}" + ("" if value is None else f"={value}")
        array = "a" in flags or "A" in flags
        if "x" in flags and value is not None and not array:
            exported[name] = decoded(value)
            if flags == "x":
                continue
        others.append(Variable(name, flags, entry))
    return exported, tuple(others)
