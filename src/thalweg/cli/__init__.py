"""The command line: `thalweg VERB …`, one file per verb."""

from __future__ import annotations


def main() -> None:
    """Run the command line and leave with its exit code."""
    import os

    # pydantic would look for plug-ins in all that is installed: none may take part in checks.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from thalweg.cli.entry import run

    raise SystemExit(run())
