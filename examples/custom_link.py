"""A link of one's own: rows go from the fogs to the cloud through an SQLite database.

    python examples/custom_link.py

A link is one class with six methods and two attributes. It has to deliver every envelope at least
once, and those of a site in order; the log makes exactly once of that. Here it carries a split taxi
application on Spark, is down for three seconds in the middle, and what came out is compared
row by row with a run in one place.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.spark.link import LinkError, LinkSpec
from thalweg.spark.link.envelope import Envelope

if TYPE_CHECKING:
    from thalweg.spark.deployment import Deployment

RIDES_PER_S = 300.0
ROWS_PER_BATCH = 500
OUTAGE_S = 3.0
ENVELOPES_AT_ONCE = 100
TABLES = """
    CREATE TABLE IF NOT EXISTS envelopes (
        number INTEGER PRIMARY KEY AUTOINCREMENT, site TEXT, bytes BLOB
    );
    CREATE TABLE IF NOT EXISTS readers (name TEXT PRIMARY KEY, upto INTEGER);
"""


class SqliteLink:
    """Carries envelopes in the database that the address names, `sqlite:///path/of/the.db`.

    Rows are numbered by whoever writes them, one writer at a time, so that a reader which asks for
    all above the last number that it has seen misses none.
    """

    def __init__(self, spec: LinkSpec) -> None:
        self.address, self.problem = spec.address, ""
        path = spec.address.removeprefix("sqlite://")
        try:
            # Opened in one thread, used in another, never in two at once.
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(TABLES)
        except sqlite3.Error as error:
            raise LinkError(f"{spec.address}: {error}") from error
        self._unsent: list[tuple[str, bytes]] = []
        self._reader, self._at = "", 0

    def send(self, envelope: Envelope) -> None:
        """Take an envelope; `flush` writes it."""
        self._unsent.append((envelope.site, bytes(envelope.to_bytes())))

    def flush(self, timeout_s: float) -> bool:
        """Write all that was taken in one transaction: all of it is there, or nothing."""
        if not self._unsent:
            return True
        try:
            self._db.execute(f"PRAGMA busy_timeout = {int(1000 * timeout_s)}")
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT INTO envelopes (site, bytes) VALUES (?, ?)", self._unsent)
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self.problem = str(error)  # An outage: it is waited out.
            return False
        self._unsent, self.problem = [], ""
        return True

    def listen(self, reader: str) -> None:
        """Begin after what this reader has acknowledged."""
        found = self._db.execute("SELECT upto FROM readers WHERE name = ?", [reader]).fetchone()
        self._reader, self._at = reader, found[0] if found else 0

    def receive(self, timeout_s: float) -> Sequence[Envelope]:
        """The next envelopes, in the order in which they were written."""
        deadline = time.monotonic() + timeout_s
        query = "SELECT number, bytes FROM envelopes WHERE number > ? ORDER BY number LIMIT ?"
        while not (rows := self._db.execute(query, [self._at, ENVELOPES_AT_ONCE]).fetchall()):
            if time.monotonic() > deadline:
                return ()
            time.sleep(0.02)
        self._at = rows[-1][0]
        return [Envelope.from_bytes(data) for _, data in rows]

    def acknowledge(self) -> None:
        """Note how far this reader is; unnoted, it would only be delivered again."""
        try:
            self._db.execute(
                "INSERT INTO readers VALUES (?, ?) ON CONFLICT DO UPDATE SET upto = excluded.upto",
                [self._reader, self._at],
            )
        except sqlite3.OperationalError as error:
            self.problem = str(error)

    def close(self) -> None:
        """Let go of the database."""
        self._db.close()


def register(folder: Path) -> None:
    """Make addresses that begin with `sqlite://` known, here and in the processes of the sites.

    A package says the same in its pyproject.toml, and `pip install` does what is done here:

        [project.entry-points."thalweg.links"]
        sqlite = "custom_link:SqliteLink"
    """
    about = folder / "custom_link-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: custom-link\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[thalweg.links]\nsqlite = custom_link:SqliteLink\n")
    sys.path.append(str(folder))


def main() -> int:
    """Run it and print what came out; 0 where that is the same as in one place."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fogs", type=int, default=2, help="how many sites have the link")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long rides come in")
    wanted = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="custom-link-") as temporary:
        register(Path(temporary) / "installed")
        same = run_taxis(Path(temporary), wanted.fogs, wanted.seconds)
    print(f"took {time.monotonic() - began:.0f} s")
    return 0 if same else 1


def run_taxis(folder: Path, fogs: int, seconds: float) -> bool:
    """Taxi rides at fogs that reach the cloud over the link alone."""
    from taxi_pipeline import city

    from thalweg.spark.deployment import Deployment
    from thalweg.spark.deployment.one_place import await_last_row, compare_with_one_place
    from thalweg.spark.feed.rides import feed_rides

    database = folder / "link.db"
    run = Deployment(
        "taxi_pipeline:taxi",
        city(fogs),
        folder=folder / "run",
        link=f"sqlite://{database}",
        adapt=None,
        rows_per_batch=ROWS_PER_BATCH,
        feed=lambda gateways: feed_rides(gateways, RIDES_PER_S, seconds, close=True),
    )
    print(f"starting {fogs + 1} Sparks, linked by sqlite://{database.name} …")
    with run, closing(sqlite3.connect(database, isolation_level=None)) as other:
        print(f"running; rides come in for {seconds:g} s")
        lock_for_a_while(run, other)
        await_last_row(run)
        carried = other.execute(
            "SELECT site, count(*), sum(length(bytes)) FROM envelopes GROUP BY 1"
        )
        for site, count, size in carried:
            print(f"{site}: {count} envelopes, {size / 1e3:,.0f} kB over the link")
    compared = compare_with_one_place(run)
    print(compared)
    return compared.same


def lock_for_a_while(run: Deployment, database: sqlite3.Connection) -> None:
    """Take the link away once something has come over it; nobody else can write then."""
    while run.is_active and not count_envelopes(database):
        time.sleep(0.05)
    database.execute("PRAGMA busy_timeout = 10000")
    database.execute("BEGIN IMMEDIATE")
    before = count_envelopes(database)
    time.sleep(OUTAGE_S)
    database.execute("ROLLBACK")
    print(f"after {before} envelopes the database was locked for {OUTAGE_S:g} s")


def count_envelopes(database: sqlite3.Connection) -> int:
    """How many have come so far."""
    (count,) = database.execute("SELECT count(*) FROM envelopes").fetchone()
    return int(count)


if __name__ == "__main__":
    sys.exit(main())
