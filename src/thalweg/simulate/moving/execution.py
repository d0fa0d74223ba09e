"""A city's hosts executed: every event through operators that move under it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import Defect, InvalidInput
from thalweg.migration.city import City
from thalweg.migration.drive import Drive
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats
from thalweg.simulate.moving.instance_run import InstanceRun, run_instance
from thalweg.simulate.moving.operator_pass import (
    AT_S,
    DELAYED,
    DOWNTIME_S,
    MUTABLE_BYTES,
    SOURCE,
    TAKES_S,
    TARGET,
)

MOVES = pa.schema(
    {
        "instance": pa.int64(),
        "operator": pa.string(),
        "at_s": pa.float64(),
        "from": pa.string(),
        "to": pa.string(),
        "sent_bytes": pa.float64(),
        "mutable_bytes": pa.float64(),
        "transfer_s": pa.float64(),
        "downtime_s": pa.float64(),
        "delayed_events": pa.int64(),
    }
)
"""The table of moves, by column."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Execution:
    """What every event and every move of a drive came to."""

    drive: Drive
    latency_s: Floats
    """Of each event that reached a consumer, from its birth to there."""
    born: int
    """Events that users sent."""
    delivered: int
    """Events that reached a consumer."""
    lost: int
    """Events that an operator was sent and never served."""
    duplicated: int
    """Events that an operator served more than once."""
    short: int
    """Events for which a moved operator did not hold the whole window any more."""
    placement_cost: float
    """Bytes × delay of every event on every stream."""
    migration_cost: float
    """Bytes × delay of all state that was sent."""
    moves: pa.Table
    wasted_bytes: float = field(default=0.0)

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def total(self) -> float:
        """C_tot as it came out, in byte · s."""
        return self.placement_cost + self.migration_cost

    @property
    def mean_bdp_bytes(self) -> float:
        """Bytes on their way at any moment of an instance's life."""
        return self.total / lifetime_s(self.drive.city)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        downtime = self.moves["downtime_s"].to_numpy()
        sent = self.moves["sent_bytes"].to_numpy()
        late = self.latency_s
        return {
            "approach": self.drive.approach,
            "mean_bdp_bytes": self.mean_bdp_bytes,
            "placement_cost": self.placement_cost,
            "migration_cost": self.migration_cost,
            "moves": self.moves.num_rows,
            "sent_bytes": float(sent.sum()),
            "wasted_bytes": self.wasted_bytes,
            "downtime_mean_s": float(downtime.mean()) if downtime.size else 0.0,
            "downtime_max_s": float(downtime.max(initial=0.0)),
            "born": self.born,
            "delivered": self.delivered,
            "lost": self.lost,
            "duplicated": self.duplicated,
            "short_of_state": self.short,
            "latency_mean_s": float(late.mean()) if late.size else None,
            "latency_p50_s": float(np.quantile(late, 0.50)) if late.size else None,
            "latency_p95_s": float(np.quantile(late, 0.95)) if late.size else None,
            "latency_p99_s": float(np.quantile(late, 0.99)) if late.size else None,
        }

    def save(self, folder: Path) -> list[Path]:
        """Write the moves, and where each operator was from when on, as Parquet; gives the files.

        Raises:
            InvalidInput: where the folder cannot be written.
        """
        tables = {"moves": self.moves, "stays": stays(self.drive)}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files = []
            for name, table in tables.items():
                draft, path = folder / f".{name}.parquet", folder / f"{name}.parquet"
                pq.write_table(table, draft)
                draft.replace(path)
                files.append(path)
        except OSError as error:
            rule = f"a folder that can be written ({(error.strerror or str(error)).lower()})"
            raise InvalidInput([Defect(path="", value=str(folder), rule=rule)]) from error
        return files


def lifetime_s(city: City) -> float:
    """How long all instances live together."""
    return float((city.life[:, 1] - city.life[:, 0]).sum()) * city.tick_s


def execute(drive: Drive, *, seed: int = 0) -> Execution:
    """Send every event of every instance through the operators where the drive has them.

    Events of a user are evenly spaced, the first one at a moment that `seed` decides. An operator
    puts out as many events as its streams carry for each that it takes in, evenly.
    """
    city = drive.city
    rng = np.random.default_rng(seed)
    phases = rng.uniform(0.0, 1.0, (city.instances, len(city.graph.streams)))
    everyone = np.arange(city.brokers.count, dtype=np.int32)
    bandwidth = city.brokers.bandwidths_from(everyone)
    runs = [run_instance(drive, k, phases[k], bandwidth) for k in range(city.instances)]
    return Execution(
        drive=drive,
        latency_s=np.concatenate([run.latency_s for run in runs]),
        born=sum(run.born for run in runs),
        delivered=sum(run.latency_s.size for run in runs),
        lost=sum(run.lost for run in runs),
        duplicated=sum(run.duplicated for run in runs),
        short=sum(run.short for run in runs),
        placement_cost=float(sum(run.placement_cost for run in runs)),
        migration_cost=float(sum(run.migration_cost for run in runs)),
        moves=_moves(city, runs),
        wasted_bytes=drive.effort.wasted_bytes,
    )


def _moves(city: City, runs: list[InstanceRun]) -> pa.Table:
    names = np.array(city.brokers.names, dtype=object)
    tables = []
    for k, run in enumerate(runs):
        start_s = city.connections.start_s + float(city.life[k, 0]) * city.tick_s
        for operator, rows in zip(city.graph.operators, run.moves, strict=True):
            count = len(rows)
            if not count:
                continue
            columns = {
                "instance": np.full(count, k),
                "operator": [operator.name] * count,
                "at_s": start_s + rows[:, AT_S],
                "from": names[rows[:, SOURCE].astype(int)],
                "to": names[rows[:, TARGET].astype(int)],
                "sent_bytes": operator.immutable_bytes + rows[:, MUTABLE_BYTES],
                "mutable_bytes": rows[:, MUTABLE_BYTES],
                "transfer_s": rows[:, TAKES_S],
                "downtime_s": rows[:, DOWNTIME_S],
                "delayed_events": rows[:, DELAYED].astype(np.int64),
            }
            tables.append(pa.table(columns, schema=MOVES))
    return pa.concat_tables(tables) if tables else MOVES.empty_table()


def stays(drive: Drive) -> pa.Table:
    """Where each operator was, from when to when: a row for each stay."""
    city, rows = drive.city, []
    for k, (first, end) in enumerate(city.life.tolist()):
        for number, operator in enumerate(city.graph.operators):
            hosts = drive.hosts[k, number, first:end]
            begins = np.flatnonzero(np.concatenate([[True], np.diff(hosts) != 0]))
            for begin, until in zip(begins, [*begins[1:], hosts.size], strict=True):
                rows.append(
                    (k, operator.name, city.brokers.names[hosts[begin]], begin, until, first)
                )
    start_s, tick_s = city.connections.start_s, city.tick_s
    schema = pa.schema(
        {
            "instance": pa.int64(),
            "operator": pa.string(),
            "broker": pa.string(),
            "from_s": pa.float64(),
            "to_s": pa.float64(),
        }
    )
    return pa.Table.from_pylist(
        [
            {
                "instance": k,
                "operator": name,
                "broker": broker,
                "from_s": start_s + (first + int(begin)) * tick_s,
                "to_s": start_s + (first + int(until)) * tick_s,
            }
            for k, name, broker, begin, until, first in rows
        ],
        schema=schema,
    )
