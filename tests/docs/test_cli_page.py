"""The page on the command line is what the commands say of themselves."""

from __future__ import annotations

from tools.cli_surface import read_commands
from tools.write_cli_reference import PAGE, render


def test_the_page_is_up_to_date() -> None:
    hint = "run `python -m tools.write_cli_reference`"
    assert PAGE.read_text(encoding="utf-8") == render(), hint


def test_every_command_and_option_is_on_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for command in read_commands():
        _, found, rest = text.partition(f"### `thalweg {command.name}` ")
        assert found, command.name
        section = rest.partition("\n### ")[0]
        for option in command.options:
            assert f"| `{option.names[0]}" in section, (command.name, option.names)
