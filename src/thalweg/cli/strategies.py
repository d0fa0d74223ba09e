"""`thalweg strategies`: what can plan?"""

from __future__ import annotations

from thalweg.cli.output import Format, FormatOption, print_json, print_table, say


def strategies(format: FormatOption = Format.TABLE) -> None:  # noqa: A002 - the option's name
    """List every strategy, built in or installed, with what it does."""
    from thalweg.strategy import broken_strategies
    from thalweg.strategy import strategies as known

    if format is Format.JSON:
        print_json({"strategies": known(), "broken": broken_strategies()})
    else:
        print_table(["strategy", "what it does"], [list(pair) for pair in known().items()])
    for name, why in broken_strategies().items():
        say(f"warning: the strategy {name} cannot be loaded: {why}")
