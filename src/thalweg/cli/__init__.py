"""The command line: `thalweg VERB …`, one file per verb."""

from __future__ import annotations


def main() -> None:
    """Run the command line and leave with its exit code."""
    from thalweg.cli.entry import run

    raise SystemExit(run())
