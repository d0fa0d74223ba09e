"""Rows that were taken out of a query's lots because an operator failed on them.

They lie beside the lots that they came in with, as dead letters, each with the place that the row
has in the log, if it is one of a source:

    FOLDER/INTAKE/rows/LOT.parquet          the lot, without them
    FOLDER/INTAKE/bad/LOT-ROWS.parquet      what was taken out of it when it had so many rows

First the letters are written, then the lot. So letters count once the lot has fewer rows than they
were taken out of; after a crash in between they do not, and the same are written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.spark.query.intake import write_rows
from thalweg.spark.query.left_out import PLACE_FIELDS, RowPlace

LETTER_SCHEMA = pa.schema([(name, pa.string()) for name in ("operator", "input", "reason", "row")])
ASIDE_SCHEMA = pa.schema([*LETTER_SCHEMA, *PLACE_FIELDS])


class SetAside:
    """What was taken out of the lots of one query."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, intake: str, lot: int, *, of_rows: int, letters: pa.Table) -> None:
        """Write down what is about to be taken out of a lot of so many rows."""
        folder = self._bad_folder(intake)
        folder.mkdir(exist_ok=True)
        for file in folder.glob(f"{lot}-*.parquet"):
            if int(file.stem.partition("-")[2]) < of_rows:
                # Of a lot that was laid down anew: their rows are in it again, and found again.
                file.unlink()
        write_rows(letters, folder / f"{lot}-{of_rows}.parquet")

    def count(self, intake: str, lot: int) -> int:
        """How many rows were taken out of a lot."""
        return sum(pq.read_metadata(file).num_rows for file in self._files(intake, lot))

    def between(self, before: Mapping[str, int], upto: Mapping[str, int]) -> pa.Table:
        """What was taken out of the lots after some up to others, each by the intake's name.

        In the order of intakes, of lots, and of when it was taken out. The columns are those of
        `ASIDE_SCHEMA`.
        """
        tables = [ASIDE_SCHEMA.empty_table()]
        for intake in sorted(upto):
            if self._bad_folder(intake).is_dir():
                for lot in range(before.get(intake, -1) + 1, upto[intake] + 1):
                    tables += [pq.ParquetFile(f).read() for f in self._files(intake, lot)]
        # What has no place was not born here.
        return pa.concat_tables(tables, promote_options="default")

    def places(self, intake: str, lot: int) -> set[RowPlace]:
        """Where in the log the rows are that were taken out of a lot."""
        taken = self.between({intake: lot - 1}, {intake: lot})
        epochs, batches, places = (taken[column.name].to_pylist() for column in PLACE_FIELDS)
        found = zip(epochs, batches, places, strict=True)
        return {(epoch, batch, place) for epoch, batch, place in found if place is not None}

    def forget(self, upto: Mapping[str, int]) -> None:
        """Remove what was taken out of lots that are finished, up to these."""
        for intake, last in upto.items():
            for file in self._bad_folder(intake).glob("*-*.parquet"):
                if int(file.stem.partition("-")[0]) <= last:
                    file.unlink(missing_ok=True)

    def _files(self, intake: str, lot: int) -> Iterator[Path]:
        sizes = [int(f.stem.partition("-")[2]) for f in self._bad_folder(intake).glob(f"{lot}-*")]
        left = pq.read_metadata(self._lot_file(intake, lot)).num_rows if sizes else 0
        for size in sorted(sizes, reverse=True):
            if size > left:
                yield self._bad_folder(intake) / f"{lot}-{size}.parquet"

    def _bad_folder(self, intake: str) -> Path:
        return self._folder / intake / "bad"

    def _lot_file(self, intake: str, lot: int) -> Path:
        return self._folder / intake / "rows" / f"{lot}.parquet"
