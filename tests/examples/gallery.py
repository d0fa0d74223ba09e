"""The commands of the gallery, run as its page shows them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PATIENCE_S = 420.0


def run_example(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """An example with a folder of its own for what it writes."""
    script, *rest = arguments
    return run_in(folder, sys.executable, str(EXAMPLES / script), *rest)


def run_in(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command, for as long as it takes on a busy machine."""
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONUTF8": "1", "PYTHONWARNINGS": "default"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )


def commands_of(page: Path) -> list[str]:
    """Every command of the gallery that a page shows: `python examples/…`, `jupyter execute …`."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"(?:python|jupyter execute) examples/[^`\n|]+", text)
    return [command.strip() for command in found]
