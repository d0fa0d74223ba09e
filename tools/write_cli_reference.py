"""Write docs/reference/cli.md from the commands themselves.

    python -m tools.write_cli_reference [--check]

What is written by hand is in tools/cli_reference.md. With `--check` nothing is written, and the
exit code is 1 where the page is out of date.
"""

from __future__ import annotations

import argparse
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import Any

from tools.cli_surface import Command, Parameter, read_commands

from thalweg.cli.concepts import CONCEPTS
from thalweg.cli.documents import FILES, SHAPES
from thalweg.cli.old_spellings import LAST_VERSION, OLD_SPELLINGS, OldSpelling

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "cli.md"
TEMPLATE = Path(__file__).with_name("cli_reference.md")

_GUIDES = {
    "demo": "running.md", "doctor": "recovery.md", "metrics": "monitoring.md",
    "mobility": "mobility.md", "plan": "placement.md", "profile": "profiling.md",
    "reproduce": "reproduce.md", "run": "running.md", "schedule": "adapting.md",
    "serve": "page.md", "simulate": "simulation.md", "compare": "choose-a-strategy.md",
}  # fmt: skip


def render() -> str:
    """The page as it should be."""
    commands, page = read_commands(), PAGE.read_text(encoding="utf-8")
    parts = {
        "commands": "\n".join(map(_summary_row, commands)),
        "strategies": _kept_example(page),
        "concepts": "\n".join(_concept_rows(commands)),
        "details": "\n\n".join(map(_details, commands)),
        "schemas": "\n".join(_schema_rows()),
        "old_spellings": "\n".join(_old_rows()),
        "last_version": LAST_VERSION,
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def _kept_example(page: str) -> str:
    """The list of strategies as the page shows it: a test of the page's examples keeps it true."""
    begin = page.index("```console\n$ thalweg strategies")
    return page[begin : page.index("```", begin + 3) + 3]


def _call(command: Command) -> str:
    """A command with its arguments, as it is typed."""
    words = [
        _shown_name(each) if each.required else f"[{_shown_name(each)}]"
        for each in command.arguments
    ]
    return " ".join(["thalweg", command.name, *words])


def _summary_row(command: Command) -> str:
    anchor = _anchor(command.name)
    return f"| [`{_cell(_call(command))}`](#{anchor}) | {_cell(_first(command.help))} |"


def _first(text: str) -> str:
    """The first paragraph, on one line."""
    return " ".join(text.split("\n\n")[0].split())


def _anchor(name: str) -> str:
    return f"thalweg-{name.replace(' ', '-')}"


def _concept_rows(commands: tuple[Command, ...]) -> list[str]:
    rows = []
    for concept in CONCEPTS:
        having = [c.name for c in commands if any(_is(p, concept.option) for p in c.options)]
        names = next(p.names for c in commands for p in c.options if _is(p, concept.option))
        shown = "every command" if len(having) == len(commands) else ", ".join(_grouped(having))
        options = ", ".join(f"`{name}`" for name in names)
        rows.append(f"| {_cell(concept.about)} | {options} | {concept.kind} | {shown} |")
    return rows


def _is(parameter: Parameter, option: str) -> bool:
    return parameter.names[0] == option


def _grouped(names: list[str]) -> list[str]:
    """Commands of one group, told together."""
    found = []
    for group, inner in groupby(names, key=lambda name: name.partition(" ")[0]):
        words = [name.partition(" ")[2] for name in inner]
        found.append(f"`{' '.join([group, '/'.join(words)]).strip()}`")
    return found


def _details(command: Command) -> str:
    """A command with all its arguments and options."""
    guide = _GUIDES.get(command.name.partition(" ")[0])
    text = command.help.strip()
    if guide:
        text += f" [More](../guides/{guide})."
    rows = [
        f"| `{_cell(_shown_name(each))}` | {_shown_default(each)} | {_cell(each.help)} |"
        for each in command.parameters
    ]
    head = f"### `thalweg {command.name}` {{#{_anchor(command.name)}}}"
    usage = f"```text\n{_call(command)}{' [OPTIONS]' if command.options else ''}\n```"
    table = "\n".join(["| | if left out | |", "|---|---|---|", *rows])
    return "\n\n".join([head, text, usage, table])


def _shown_name(parameter: Parameter) -> str:
    if not parameter.is_option:
        return f"{parameter.metavar}{'…' if parameter.is_repeatable else ''}"
    names = ", ".join(parameter.names)
    value = {"flag": "", "choice": "|".join(parameter.choices)}.get(parameter.kind)
    if value is None:
        value = parameter.metavar or {"path": "PATH", "text": "TEXT"}.get(parameter.kind, "N")
    return f"{names} {value}".strip()


def _shown_default(parameter: Parameter) -> str:
    default: Any = parameter.default
    if parameter.required:
        return "needed"
    if isinstance(default, Enum):
        default = default.value
    if parameter.kind == "flag":
        on, _, off = parameter.names[0].partition("/")
        return f"`{on if default else off}`" if off else ""
    return "" if default is None else f"`{_cell(str(default))}`"


def _schema_rows() -> list[str]:
    rows = [
        f"| `{kind}` | {'a file, and `plan`' if kind == 'plan' else 'a file'} |" for kind in FILES
    ]
    for kind, shape in SHAPES.items():
        shown = ", ".join(
            command if command.startswith("every") else f"`{command}`" for command in shape.commands
        )
        rows.append(f"| `{kind}` | {shown} |")
    return rows


def _old_rows() -> list[str]:
    return [
        f"| `{command}` | `{old.old}` | {_replacement(old)} |"
        for command, spellings in OLD_SPELLINGS.items()
        for old in spellings
    ]


def _replacement(old: OldSpelling) -> str:
    if old.kind == "drop":
        return "nothing: it is so"
    if old.kind == "position":
        return f"the argument `{old.new}`"
    return f"`{old.new}…`" if old.kind == "list" else f"`{old.new}`"


def _cell(text: str) -> str:
    """Text that is safe in a table."""
    return text.replace("|", "\\|")


def main() -> int:
    """Write the page, or say whether it is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked, text = parser.parse_args(), render()
    if asked.check:
        return int(text != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
