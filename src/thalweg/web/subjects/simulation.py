"""A simulation that was kept, as a replay: queues over time, changes, moves and decisions."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from thalweg.errors import Defect, InvalidInput
from thalweg.files.model_folder import load_model
from thalweg.model import Placement, Problem
from thalweg.model.placement import Instance
from thalweg.web.picture import Picture, plain_number
from thalweg.web.stored_table import Sort, read_stored
from thalweg.web.subject import Plain
from thalweg.web.subjects.planned import PlannedSubject, Present
from thalweg.web.subjects.results import ResultsSubject

_TABLES: dict[str, dict[str, Sort]] = {
    "segments": {
        "begin_s": "moment",
        "end_s": "moment",
        "cause": "text",
        "events": "figure",
        "response_estimated_s": "number",
        "uplink_bps": "number",
        "usage": "number",
    },
    "moves": {
        "at_s": "moment",
        "operator": "text",
        "from": "text",
        "to": "text",
        "sent_bytes": "figure",
        "downtime_s": "figure",
    },
    "decisions": {"at_s": "moment", "reason": "text", "changed": "truth"},
    "queues": {"name": "text", "sort": "text", "time_s": "moments", "queue": "moments"},
    "links": {"name": "text", "throughput_per_s": "number"},
    "operators": {"name": "text", "throughput_per_s": "number"},
    "placements": {
        "application": "text",
        "begin_s": "moment",
        "operator": "text",
        "node": "text",
        "origin": "text",
    },
    "rates": {
        "application": "text",
        "begin_s": "moment",
        "source": "text",
        "site": "text",
        "rate_per_s": "figure",
    },
}
_FRAMES = 120


@dataclass(frozen=True, eq=False, kw_only=True)
class Stage:
    """A stretch of time with one placement and one set of rates."""

    begin_s: float
    problem: Problem
    placement: Placement

    @property
    def identity(self) -> str:
        """Its name among the stages of a run."""
        return f"s{self.begin_s!r}"

    @cached_property
    def node_of(self) -> dict[str, str]:
        """Where each instance runs in it, by the name that tables have for it."""
        return {
            i.operator if i.origin is None else f"{i.operator}@{i.origin}": i.node
            for i in self.placement
        }


class SimulationSubject(PlannedSubject):
    """The first run of a simulation, from the folder of `thalweg simulate --output`."""

    kind = "simulation"
    now_is = "as it began"
    views = ("map", "charts", "what-if", "compare", "results")

    def __init__(self, folder: Path) -> None:
        application, network, plan = load_model(folder)
        if plan is None:
            rule = "the folder of a simulation with its plan"
            raise InvalidInput([Defect(path="", value=str(folder), rule=rule)])
        self._plan = plan
        self._problem = Problem(application=application, network=network)
        self._tables = {name: _first_run(folder, name) for name in _TABLES}
        self._results = ResultsSubject(folder)
        self._drawn: dict[str, Picture] = {}
        super().__init__(f"simulation of {application.name} on {network.name}")

    def present(self) -> Present:
        """What the simulation began with."""
        return Present(
            problem=self._problem,
            placement=self._plan.placement,
            plan=self._plan,
            strategy=self._plan.strategy,
        )

    def find_placed(self, placement: str) -> Present | None:
        """What ran from a moment on; nobody kept why."""
        found = next((stage for stage in self._stages if stage.identity == placement), None)
        if found is None:
            return None
        same = found.placement.fingerprint == self._plan.placement.fingerprint
        return Present(
            problem=found.problem,
            placement=found.placement,
            plan=self._plan if same else None,
            strategy=self._plan.strategy,
            text=f"as it was from {found.begin_s:g} s on" if found.begin_s else "",
        )

    def results(self) -> Plain:
        """All tables."""
        return self._results.results()

    def image(self, name: str) -> Path:
        """A picture."""
        return self._results.image(name)

    @cached_property
    def _stages(self) -> list[Stage]:
        """What ran at which rates, from each moment at which either changed."""
        app, net = self._problem.application, self._problem.network
        placed: dict[float, list[Instance]] = {}
        for row in self._own("placements"):
            instance = Instance(operator=row["operator"], node=row["node"], origin=row["origin"])
            placed.setdefault(row["begin_s"], []).append(instance)
        born: dict[float, dict[tuple[str, str], float]] = {}
        for row in self._own("rates"):
            born.setdefault(row["begin_s"], {})[row["source"], row["site"]] = row["rate_per_s"]
        stages: list[Stage] = []
        placement, rates = self._plan.placement, self._problem.birth_rates
        for begin_s in sorted(placed.keys() | born.keys()):
            placement = Placement.of(placed[begin_s]) if begin_s in placed else placement
            rates = {**rates, **born.get(begin_s, {})}
            problem = Problem(application=app, network=net, rates=rates)
            stages.append(Stage(begin_s=begin_s, problem=problem, placement=placement))
        return stages or [Stage(begin_s=0.0, problem=self._problem, placement=placement)]

    def _own(self, table: str) -> list[Plain]:
        """The rows of the application that is shown."""
        name = self._problem.application.name
        return [row for row in self._tables[table] if row["application"] == name]

    def history(self) -> Plain:
        """A frame for each moment at which queues were looked at."""
        placements: dict[str, Plain] = {}
        before = None
        for stage in self._stages:
            picture = self._draw(stage)
            text = self._plan.headline if before is None else f"since {stage.begin_s:g} s"
            placements[stage.identity] = picture.describe(
                stage.identity,
                at_s=stage.begin_s,
                strategy=self._plan.strategy,
                text=text,
                before=before,
            )
            before = picture
        return {
            "frames": [self._frame(at_s) for at_s in self._moments],
            "placements": placements,
            "marks": self._marks(),
        }

    @cached_property
    def _moments(self) -> list[float]:
        queues = self._tables["queues"]
        end_s = max((row["end_s"] for row in self._tables["segments"]), default=0.0)
        if queues:
            return [0.0, *queues[0]["time_s"]]
        return [end_s * k / _FRAMES for k in range(_FRAMES + 1)]

    def _draw(self, stage: Stage) -> Picture:
        if stage.identity not in self._drawn:
            now = Present(problem=stage.problem, placement=stage.placement)
            self._drawn[stage.identity] = self.picture(now)
        return self._drawn[stage.identity]

    def _frame(self, at_s: float) -> Plain:
        starts = [stage.begin_s for stage in self._stages]
        stage = self._stages[max(bisect_right(starts, at_s) - 1, 0)]
        picture = self._draw(stage)
        segment = next(
            (row for row in self._tables["segments"] if row["begin_s"] <= at_s < row["end_s"]),
            self._tables["segments"][-1] if self._tables["segments"] else {},
        )
        length_s = segment.get("end_s", 0.0) - segment.get("begin_s", 0.0)
        out_per_s = segment["events"] / length_s if length_s > 0 else None
        gauges: dict[str, Any] = {
            **picture.gauges(),
            "response_time_s": plain_number(segment.get("response_estimated_s")),
            "uplink_bps": plain_number(segment.get("uplink_bps")),
            "usage": plain_number(segment.get("usage")),
            "events_out_per_s": plain_number(out_per_s),
        }
        sites = picture.sites()
        links = picture.links()
        for site, lag_s in self._lags(at_s, stage, "operator").items():
            if site in sites:
                sites[site]["lag_s"] = lag_s
        for ends, lag_s in self._lags(at_s, stage, "link").items():
            if ends in links:
                links[ends]["lag_s"] = lag_s
        return {
            "at_s": at_s,
            "placement": stage.identity,
            "gauges": gauges,
            "sites": sites,
            "links": links,
        }

    def _lags(self, at_s: float, stage: Stage, sort: str) -> dict[str, float]:
        """Seconds of work that wait at each site or link: queue over throughput (Little's law).

        An operator's queue is where it runs at that moment; tables know only where it ended.
        """
        table = "links" if sort == "link" else "operators"
        rate_of = {row["name"]: row["throughput_per_s"] for row in self._tables[table]}
        found: dict[str, float] = {}
        for queue in self._tables["queues"]:
            name, rate = queue["name"], rate_of.get(queue["name"]) or 0.0
            if queue["sort"] != sort or not 0.0 < rate < math.inf:
                continue
            node = stage.node_of.get(name, "")
            where = self._link_of(name) if sort == "link" else self._site_of(node)
            k = bisect_right(queue["time_s"], at_s) - 1
            waiting = queue["queue"][k] if 0 <= k < len(queue["queue"]) else 0
            lag_s = waiting / rate
            if where and math.isfinite(lag_s):
                found[where] = max(found.get(where, 0.0), round(lag_s, 6))
        return found

    def _site_of(self, node: str) -> str:
        index = self._problem.network.site_index.get(node.partition("/")[0])
        return "" if index is None else self.grouping.name_of(index)

    def _link_of(self, name: str) -> str:
        """Ends of a link as a page knows them; a LAN is none."""
        a, arrow, b = name.removeprefix("WAN ").partition(" → ")
        one, other = self._site_of(a), self._site_of(b)
        return f"{one}>{other}" if arrow and one and other and one != other else ""

    def _marks(self) -> list[Plain]:
        marks = [
            _mark(row["begin_s"], "change", row["cause"])
            for row in self._tables["segments"]
            if row["begin_s"] > 0 and row["cause"]
        ]
        for row in self._tables["moves"]:
            text = f"{row['sent_bytes']:,.0f} bytes, {_seconds(row['downtime_s'])} without it"
            title = f"{row['operator']} from {row['from']} to {row['to']}"
            marks.append(_mark(row["at_s"], "move", title, text))
        marks += [
            _mark(row["at_s"], "adapt", f"adapted: {row['reason']}")
            for row in self._tables["decisions"]
            if row["changed"]
        ]
        return sorted(marks, key=lambda mark: float(mark["at_s"]))


def is_simulation(folder: Path) -> bool:
    """Whether a simulation and what it was of are kept in a folder."""
    return (folder / "segments.parquet").is_file() and (folder / "plan.json").is_file()


def _mark(at_s: float, kind: str, title: str, text: str = "") -> Plain:
    return {"at_s": at_s, "kind": kind, "title": title, "text": text, "placement": None}


def _seconds(value: float) -> str:
    return "forever" if math.isinf(value) else f"{value:.3g} s"


def _first_run(folder: Path, name: str) -> list[Plain]:
    """The rows of the first run in a table; `InvalidInput` where it cannot be read."""
    rule = "a table as `thalweg simulate --output` writes it"
    columns: dict[str, Sort] = {"replication": "figure", **_TABLES[name]}
    table = read_stored(folder, folder / f"{name}.parquet", columns, rule)
    rows: list[Plain] = table.to_pylist()
    return [row for row in rows if row["replication"] == 0]
