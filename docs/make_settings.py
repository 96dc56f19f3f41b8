"""Write ``docs/settings.md`` from the table in ``veil.settings``: ``python docs/make_settings.py``."""

from __future__ import annotations

from pathlib import Path

from veil.settings import TABLE, Settings

HEAD = """\
# Settings

<!-- made by `python docs/make_settings.py` from the table in veil/settings: change it there -->

A setting has one value per project. Later lines of this list win over earlier ones:

1. the default;
2. `[tool.veil]` in the nearest `pyproject.toml`: that of the project's root, else one above it, no higher than the top
   of a git work tree or the home folder, and above the project only a file of the same owner;
3. the `VEIL_*` variable. Set but empty counts as not set, and blanks around the value are dropped;
4. the argument of the call.

```toml
[tool.veil]
timeout_ms = 600000
effects = "all"
```

A value outside its range, an unknown key, or a variable whose name is nearly one of these (`VEIL_TIMEOUT`) stops the
call with an error that names the variable or the file, what it found and what it expects. Other `VEIL_*` names are left
alone: a newer version may know them. In a file, numbers are TOML integers, switches are `true` and `false`, and words
are strings.

| variable | key in `[tool.veil]` | default | values |
|---|---|---|---|
"""


def render() -> str:
    """The whole page."""
    defaults = Settings()
    rows, meanings = [], []
    for name, line in TABLE.items():
        default = line.kind.to_text(getattr(defaults, name))
        key = f"`{line.key}`" if line.in_project else "(not in a project)"
        rows.append(f"| `{line.variable}` | {key} | {f'`{default}`' if default else 'unset'} | {line.kind.range} |")
        meanings.append(f"- `{line.variable}`: {line.meaning}")
    return f"""{HEAD}{chr(10).join(rows)}

What each does:

{chr(10).join(meanings)}

A project cannot choose the shell, the place of the records or the room for checkpoints: a checkout that somebody else
wrote would then decide which program reads your commands, where your output is written, and which checkpoints of your
other folders go.
"""


if __name__ == "__main__":
    Path(__file__).with_name("settings.md").write_text(render(), encoding="utf-8")
