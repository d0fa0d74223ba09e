"""A Spark session in this process, set up as that of a site: quick to start, quick at a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thalweg.spark.class_archive import archive_options
from thalweg.spark.java import find_java
from thalweg.spark.session import open_session
from thalweg.spark.site.config import site_config

MANY_PLANS = {
    "spark.sql.adaptive.enabled": "false",
    # Few rows, many plans: compiling each would take longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@contextmanager
def site_session(
    folder: Path, config: Mapping[str, str] | None = None, *, master: str = "local[1]"
) -> Iterator[Any]:
    """The session, with its files in a folder."""
    settings = site_config(master, folder, 1024, archive_options(find_java())) | dict(config or {})
    with open_session(master, config=settings, log=folder / "log") as session:
        yield session
