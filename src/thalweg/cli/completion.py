"""What the shell offers when Tab is pressed after a strategy, a pipeline or a schema."""

from __future__ import annotations

from collections.abc import Iterable


def complete_strategy(incomplete: str) -> list[tuple[str, str]]:
    """The strategies that begin so, each with what it does."""
    from thalweg.strategy import strategies

    return [pair for pair in strategies().items() if pair[0].startswith(incomplete)]


def complete_strategies(incomplete: str) -> list[tuple[str, str]]:
    """A comma-separated list whose last name is completed."""
    before, comma, last = incomplete.rpartition(",")
    return [(f"{before}{comma}{name}", what) for name, what in complete_strategy(last)]


def complete_pipeline(incomplete: str) -> list[str]:
    """The example pipelines that begin so."""
    return _beginning(incomplete, pipelines())


def complete_schema(incomplete: str) -> list[str]:
    """The documents with a schema that begin so."""
    from thalweg.cli.documents import KINDS

    return _beginning(incomplete, KINDS)


def pipelines() -> tuple[str, ...]:
    """The names of the example pipelines, read without Spark."""
    from thalweg.spark.examples import EXAMPLES

    return tuple(EXAMPLES)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
