"""What has come in and was not worked on yet, what waits to go over a link, what was set aside.

Read by `read_backlog`, judged by `judge_backlog`, which is a pure function.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from thalweg.errors import InvalidInput
from thalweg.model.names import is_name
from thalweg.spark.deployment.health.finding import GOOD, NOTE, PROBLEM, WARNING, Finding
from thalweg.spark.deployment.health.guarded_files import read_json
from thalweg.spark.deployment.health.stakes import RunPlaces, Stake
from thalweg.spark.link import parse_link
from thalweg.spark.link.kafka_address import parse_kafka_address
from thalweg.spark.link.link import KAFKA
from thalweg.spark.log import Log
from thalweg.spark.log.disk import LogError, names_in
from thalweg.spark.log.epoch import last_batch_of
from thalweg.spark.log.names import EDGES, SOURCES, EpochPlace, number_of
from thalweg.spark.log.plan import parse_offset
from thalweg.spark.log.reader import Offset
from thalweg.spark.pipeline.kinds import CLOCK, DEAD_LETTERS

_ANSWER_S = 2.0
_MOST_SERVERS = 5
_MANY_ROWS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """How far a fog's link is behind, in rows, and who answers at its address."""

    site: str
    unsent: int = 0
    """Published at the fog, and not safe with the link."""
    behind: int = 0
    """Published at the fog, and not in the cloud's log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Rows that wait, by the query that they wait for; links; dead letters."""

    waiting: Mapping[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    links: tuple[LinkFacts, ...] = ()
    link: str = ""
    """The address of the link, if the run has told it."""
    link_fault: str = ""
    read_edges: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The last batch of each epoch that the cloud has taken, by site."""
    faults: tuple[str, ...] = ()


def read_backlog(
    places: RunPlaces, stakes: Sequence[Stake], link: object, *, held: bool
) -> Backlog:
    """Count what waits; what cannot be counted is told as a fault.

    Whether somebody answers at the link is asked for a run that is `held` alone: its process talks
    to these servers anyway. Of other folders nobody knows who has written the address.
    """
    faults: list[str] = []
    waiting: dict[str, int] = {}
    read_edges: dict[str, dict[str, int]] = {}
    for stake in stakes:
        waiting[stake.name] = 0
        for stream, end in _taken_upto(stake, faults):
            site = stake.site if stream.startswith(f"{SOURCES}/") else None
            try:
                segments = Log(stake.log).segments(stream, site, after=end)
                waiting[stake.name] += sum(segment.rows for segment in segments)
            except (LogError, InvalidInput) as error:
                faults.append(f"{stake.name}: {error}")
            if stream.startswith(f"{EDGES}/"):
                _take_furthest(read_edges, end)
    address = link if isinstance(link, str) else ""
    return Backlog(
        waiting=waiting,
        dead_letters=sum(_count_letters(root) for root in places.logs.values()),
        links=tuple(_read_link(places, fog) for fog in places.fogs) if places.ships else (),
        link=address,
        link_fault=_reach(address) if held and places.ships and address else "",
        read_edges=read_edges,
        faults=tuple(faults),
    )


def judge_backlog(facts: Backlog, folder: Path, *, held: bool) -> Iterator[Finding]:
    """What is to be said of what waits."""
    for name, rows in facts.waiting.items():
        what = f"{rows:,} rows have come in and were not taken yet"
        if rows and not held:
            yield Finding(level=NOTE, where=name, what=f"{what}; the next start takes them")
        elif rows >= _MANY_ROWS:
            remedy = "it falls behind: give its site more cores, or move operators from it"
            yield Finding(level=WARNING, where=name, what=what, remedy=remedy)
        elif rows:
            yield Finding(level=NOTE, where=name, what=what)
    for fault in facts.faults:
        remedy = f"`thalweg doctor {folder} --deep` looks at all of the log, and says what to do"
        yield Finding(level=WARNING, where="lag", what=f"cannot be told: {fault}", remedy=remedy)
    if facts.link_fault:
        what = f"nobody answers at {facts.link}: {facts.link_fault}"
        remedy = "start the brokers; fogs go on and send what waits when they are there"
        level = PROBLEM if held else WARNING
        yield Finding(level=level, where="link", what=what, remedy=remedy)
    for link in facts.links:
        if link.unsent or link.behind:
            what = f"{link.unsent:,} rows are not sent yet, {link.behind:,} not in the cloud's log"
            yield Finding(level=NOTE, where=f"link of {link.site}", what=what)
    if facts.links and not facts.link_fault and not any(link.behind for link in facts.links):
        yield Finding(level=GOOD, where="link", what="all that was published has arrived")
    if facts.dead_letters:
        what = f"{facts.dead_letters:,} rows were set aside as dead letters"
        remedy = f"they are in `{folder}/log/sinks/{DEAD_LETTERS}`, each with its reason"
        yield Finding(level=NOTE, where="dead letters", what=what, remedy=remedy)


def _taken_upto(stake: Stake, faults: list[str]) -> Iterator[tuple[str, Offset]]:
    """How far each stream was laid down for a query."""
    folder = stake.checkpoint.with_name(stake.checkpoint.name + ".intake")
    for label in sorted(names_in(folder)):
        kind, colon, name = label.partition(":")
        if not colon or name == CLOCK or not all(map(is_name, (kind, *name.split("+")))):
            continue
        numbers = [number_of(Path(lot).stem) for lot in names_in(folder / label / "lots")]
        last = max((n for n in numbers if n is not None), default=-1)
        if last < 0:
            yield f"{kind}/{name}", {}
            continue
        try:
            lot = read_json(folder / label / "lots" / f"{last}.json")
            yield f"{kind}/{name}", parse_offset(lot["end"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError, InvalidInput):
            faults.append(f"{stake.name}: lot {last} of {label} cannot be read")


def _take_furthest(found: dict[str, dict[str, int]], end: Offset) -> None:
    for site, epochs in end.items():
        for epoch, batch in epochs.items():
            known = found.setdefault(site, {})
            known[epoch] = max(batch, known.get(epoch, -1))


def _count_letters(root: Path) -> int:
    rows = 0
    for kind in filter(is_name, names_in(root)):
        try:
            rows += sum(segment.rows for segment in Log(root).segments(f"{kind}/{DEAD_LETTERS}"))
        except (LogError, InvalidInput):
            continue
    return rows


def _read_link(places: RunPlaces, fog: str) -> LinkFacts:
    own, unsent, behind = Log(places.log_of(fog)), 0, 0
    position = _read_position(places.log_of(fog) / ".links", fog)
    for stream in own.streams(EDGES):
        for place in own.places(stream, fog):
            there = EpochPlace(root=places.log, stream=stream, site=fog, epoch=place.epoch)
            arrived, sent = last_batch_of(there), position.get((stream, place.epoch), -1)
            try:
                for segment in own.segments_at(place, min(arrived, sent)):
                    unsent += segment.rows if segment.batch > sent else 0
                    behind += segment.rows if segment.batch > arrived else 0
            except LogError:
                # Told with the log itself.
                continue
    return LinkFacts(site=fog, unsent=unsent, behind=behind)


def _read_position(folder: Path, fog: str) -> dict[tuple[str, int], int]:
    """What is safe with the link; of several addresses, the furthest."""
    found: dict[tuple[str, int], int] = {}
    for name in names_in(folder):
        if not (name.startswith(f"{fog}-") and name.endswith(".json")):
            continue
        try:
            noted = read_json(folder / name)
            for stream, epochs in noted.items():
                for epoch, batch in epochs.items():
                    key = (str(stream), int(epoch))
                    found[key] = max(int(batch), found.get(key, -1))
        except (OSError, ValueError, ArithmeticError, AttributeError, TypeError, RecursionError):
            continue
    return found


def _reach(address: str) -> str:
    """Why nobody answers at a link; nothing where somebody does, or it is a folder."""
    try:
        if parse_link(address).kind != KAFKA:
            return ""
        servers = parse_kafka_address(address).servers
    except InvalidInput as error:
        return str(error)
    fault = "it names no server"
    for server in servers[:_MOST_SERVERS]:
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
        except (OSError, ValueError, OverflowError) as error:
            fault = str(error)
        else:
            return ""
    return fault
