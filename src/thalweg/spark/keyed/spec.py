"""What has to be known to run a keyed operator, wherever it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from thalweg.errors import Defects
from thalweg.model.names import require_name
from thalweg.spark.keyed.log import writer_name
from thalweg.spark.keyed.move import Run
from thalweg.spark.keyed.operator import load_operator
from thalweg.spark.log.names import require_stream
from thalweg.spark.query.spec import QuerySpec


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedSpec:
    """A keyed operator to be run: what it is, what it reads, and where it publishes."""

    operator: str
    """`package.module:attribute` of what `@keyed` made."""
    folder: Path
    """For its journal and the files of its queries."""
    log: Path
    input: str
    output: str
    input_site: str | None = None
    trigger: str = "100 ms"
    rows_per_batch: int | None = None
    durable: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder).absolute())
        object.__setattr__(self, "log", Path(self.log).absolute())
        defects = Defects()
        require_stream(defects, "input", self.input)
        require_stream(defects, "output", self.output)
        defects.require(self.input != self.output, "output", self.output, "not what it reads")
        if self.input_site is not None:
            require_name(defects, "input_site", self.input_site)
        defects.attempt("", lambda: load_operator(self.operator))
        defects.raise_if_any()

    @property
    def name(self) -> str:
        """The operator's name."""
        return load_operator(self.operator).name

    @property
    def journal(self) -> Path:
        """Where steps are written down."""
        return self.folder / f"{self.name}.jsonl"

    def query(self, run: Run) -> QuerySpec:
        """What a site runs in an epoch."""
        follows = None
        if run.follows is not None:
            site, epoch = run.follows
            follows = [writer_name(self.name, site), epoch]
        writer = writer_name(self.name, run.site)
        return QuerySpec(
            site=writer,
            epoch=run.epoch,
            role="own",
            pipeline="thalweg.spark.keyed.query:start",
            log=self.log,
            checkpoint=self.folder / "checkpoints" / f"{writer}@{run.epoch}",
            trigger=self.trigger,
            rows_per_batch=self.rows_per_batch,
            durable=self.durable,
            options={
                "operator": self.operator,
                "input": self.input,
                "output": self.output,
                "input_site": self.input_site,
                "follows": follows,
            },
        )
