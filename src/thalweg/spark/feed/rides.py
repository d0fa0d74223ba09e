"""Taxi rides sent to gateways as they happen: generated, or replayed from official trip files.

The rides are numbered, no two with one number, over all sites and over restarts. A feed that was
killed may have sent a tick to some of its sites only. Generated rides then go on after the highest
number that any site has; those below it that were not sent have never happened. The rides of a file
have: there every site goes on after the last ride that it has itself.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from math import ceil

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.scenarios.rides import SCHEMA, generate_rides, read_rides
from thalweg.spark.feed.gateway import Gateway, require_gateways
from thalweg.spark.log import Log
from thalweg.spark.log.disk import LogError
from thalweg.spark.log.epoch import last_batch_of
from thalweg.spark.log.names import source_stream
from thalweg.spark.log.outage import is_of_disk
from thalweg.spark.log.segment import read_batches
from thalweg.spark.pipeline.kinds import Step, column_names

RIDE_COLUMNS = tuple(column_names(SCHEMA))
RIDE_TIME = "pickup_time"
TICK_S = 0.2
MOST_PER_S = 1e6
_RETRY_S = 0.5

Rate = float | Callable[[float], float]
"""Rides per second over all sites; or a function of the seconds since the feed began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The rides of a short span, and the moment up to which there are no others."""

    rides: pa.Table
    upto: datetime


def generate_ticks(
    rate_per_s: Rate,
    *,
    start: datetime,
    seed: int,
    first: int = 0,
    tick_s: float = TICK_S,
    speed_up: float = 1.0,
) -> Iterator[Tick]:
    """Rides without end: pick-ups begin at `start`, and their time goes `speed_up` times as fast.

    Each tick has a whole number of rides; what is left of one is carried over to the next, so the
    rate is right in the long run.
    """
    owed, number = 0.0, 0
    span = timedelta(seconds=tick_s * speed_up)
    while True:
        rate = rate_per_s(number * tick_s) if callable(rate_per_s) else rate_per_s
        owed += min(max(rate, 0.0), MOST_PER_S) * tick_s
        count, begin = int(owed), start + number * span
        rides = generate_rides(
            count, seed + number, start=begin, seconds=span.total_seconds(), first=first
        )
        yield Tick(rides=rides, upto=begin + span)
        owed, first, number = owed - count, first + count, number + 1


def replay_ticks(rides: pa.Table, rate_per_s: Rate, *, tick_s: float = TICK_S) -> Iterator[Tick]:
    """The rides of a table in its order, as many in a tick as the rate says.

    The table is sorted by pick-up, as `read_rides` gives it.
    """
    owed, number, at = 0.0, 0, 0
    while at < rides.num_rows:
        rate = rate_per_s(number * tick_s) if callable(rate_per_s) else rate_per_s
        owed += min(max(rate, 0.0), MOST_PER_S) * tick_s
        count = min(int(owed), rides.num_rows - at)
        part = rides.slice(at, count)
        # The next ride may be of the same moment as the last one here.
        ahead = at + count if at + count < rides.num_rows else rides.num_rows - 1
        yield Tick(rides=part, upto=rides[RIDE_TIME][ahead].as_py())
        owed, at, number = owed - count, at + count, number + 1


def split_rides(rides: pa.Table, sites: tuple[str, ...]) -> dict[str, pa.Table]:
    """The rides of each site: zone z belongs to site z modulo their number, now and later."""
    turn = _turns(rides, len(sites))
    return {site: rides.filter(pa.array(turn == k)) for k, site in enumerate(sites)}


def _turns(rides: pa.Table, sites: int) -> npt.NDArray[np.int64]:
    """Which of so many sites each ride belongs to."""
    return np.asarray(rides["zone"].to_numpy(), dtype=np.int64) % sites


def unsent_rides(rides: pa.Table, next_by_site: Sequence[int]) -> pa.Table:
    """The rides that their site has not got yet, given the number that each one goes on with."""
    due = np.asarray(next_by_site, dtype=np.int64)[_turns(rides, len(next_by_site))]
    return rides.filter(pa.array(rides["ride"].to_numpy() >= due))


def next_ride(log: Log, source: str, site: str | None = None) -> int:
    """The number after the last ride that a site, or any site, has in the log."""
    stream, last = source_stream(source), -1
    for place in log.places(stream, site):
        for segment in log.segments_at(place, last_batch_of(place) - 1):
            for batch in (b for file in segment.files for b in read_batches(file)):
                last = max(last, int(max(batch.column("ride").to_numpy(), default=-1)))
    return last + 1


def _send(gateway: Gateway, rides: pa.Table, upto: datetime) -> None:
    """Send the rides of a site; one without any is told that time goes on."""
    if rides.num_rows:
        gateway.send(rides)
    else:
        gateway.mark(upto)


def feed_rides(
    gateways: Mapping[str, Gateway],
    rate_per_s: Rate,
    seconds: float | None = None,
    seed: int = 0,
    *,
    start: datetime | None = None,
    speed_up: float = 1.0,
    close: bool = False,
) -> RideFeed:
    """Send generated rides every 200 ms in a thread, for so many seconds or until it is stopped.

    Pick-ups follow the clock of this machine unless `start` says where they begin. With `close`,
    the gateways say at the end that nothing will ever come again; a feed after that would be late.
    """
    defects = Defects()
    require_gateways(defects, "gateways", gateways)
    defects.raise_if_any()
    begin = start or datetime.now(UTC)
    # With a link every site has a log of its own: no one log knows all numbers that were given.
    logs = {(gateway.root, gateway.source) for gateway in gateways.values()}
    first = max(next_ride(Log(root), source) for root, source in logs)
    ticks = generate_ticks(
        rate_per_s, start=begin, seed=seed + first, first=first, speed_up=speed_up
    )
    return RideFeed(gateways, ticks, seconds=seconds, close=close)


def feed_trips(
    gateways: Mapping[str, Gateway],
    file: str | os.PathLike[str],
    rate_per_s: Rate,
    seconds: float | None = None,
    *,
    close: bool = True,
) -> RideFeed:
    """Send the rides of a trip file in the order of their pick-up, going on where a feed stopped.

    Every site goes on after its own last ride: none is left out, and none comes twice. It ends with
    the file, or after so many seconds.

    Raises:
        InvalidInput: if the file cannot be read or lacks columns.
    """
    defects = Defects()
    require_gateways(defects, "gateways", gateways)
    rides = defects.attempt("", lambda: read_rides(file))
    defects.raise_if_any()
    next_by_site = [next_ride(Log(g.root), g.source, g.site) for g in gateways.values()]
    ticks = replay_ticks(unsent_rides(rides, next_by_site), rate_per_s)
    return RideFeed(gateways, ticks, seconds=seconds, close=close)


class RideFeed:
    """A thread that sends ticks on time; it begins when it is made.

    What a log does not take because its disk is away or full is kept, and sent when it is back.
    """

    def __init__(
        self,
        gateways: Mapping[str, Gateway],
        ticks: Iterator[Tick],
        *,
        seconds: float | None = None,
        close: bool = False,
    ) -> None:
        self.sent = 0
        self.error: Exception | None = None
        self._gateways, self._ticks = dict(gateways), ticks
        self._seconds, self._close = seconds, close
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rides", daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Whether it still sends."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Send no more; what was begun is finished."""
        self._ending.set()
        self._thread.join()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until it has sent all; whether it has."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        begin = time.monotonic()
        try:
            # Counted in whole ticks: a sum of fractions of a second is now and then one too many.
            ticks = islice(self._ticks, _ticks_in(self._seconds))
            for count, tick in enumerate(ticks, start=1):
                for site, rides in split_rides(tick.rides, tuple(self._gateways)).items():
                    self._insist(partial(_send, self._gateways[site], rides, tick.upto))
                    self.sent += rides.num_rows
                # A feed that is late sends at once, until it has caught up.
                due = begin + count * TICK_S
                if self._ending.wait(max(0.0, due - time.monotonic())):
                    break
            if self._close and not self._ending.is_set():
                for gateway in self._gateways.values():
                    self._insist(gateway.close)
        except Exception as error:  # Told by whoever started the feed.
            self.error = error

    def _insist(self, send: Callable[[], None]) -> None:
        """Send until the log takes it; under its number a batch counts once, however often."""
        while True:
            try:
                return send()
            except (LogError, OSError) as error:
                if not is_of_disk(error) or self._ending.wait(_RETRY_S):
                    raise


def _ticks_in(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, ceil(round(seconds / TICK_S, 6)))


def require_ride_source(step: Step, path: str) -> None:
    """Raise `InvalidInput` unless rides fit into this source."""
    columns = tuple(column_names(step.schema or ""))
    if columns != RIDE_COLUMNS or step.time != RIDE_TIME:
        rule = f"a pipeline whose source has the columns {', '.join(RIDE_COLUMNS)}"
        hint = f"{step.name} has {', '.join(columns)}"
        raise InvalidInput([Defect(path=path, value="rides", rule=rule, hint=hint)])
