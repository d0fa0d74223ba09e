"""`thalweg init`: a small example to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.output import Format, FormatOption, print_json, say


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder for the example; made if missing.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Write a small runnable example: a taxi application and a city."""
    from thalweg.errors import Defects
    from thalweg.files.save import save
    from thalweg.model import Application, Network
    from thalweg.scenarios import small_city, small_taxi

    files: dict[Path, Application | Network] = {
        folder / "app.yaml": small_taxi(),
        folder / "network.yaml": small_city(),
    }
    defects = Defects()
    try:
        is_folder, is_new = folder.is_dir(), not folder.exists()
        there = [path for path in files if path.exists()]
        defects.require(is_folder or is_new, str(folder), "a file", "a folder, or nothing yet")
        for path in [] if force else there:
            defects.add(str(path), "a file", "a new file", "--force overwrites it")
        defects.raise_if_any()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        defects.add(str(folder), why, "a folder that can be made")
        defects.raise_if_any()
    for path, value in files.items():
        save(value, path)
        say(f"wrote {path}")
    if format is Format.JSON:
        print_json({"folder": str(folder), "files": [str(path) for path in files]})
    say(f"Next: thalweg plan {folder / 'app.yaml'} {folder / 'network.yaml'}")
