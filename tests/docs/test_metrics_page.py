"""The page on metrics names every figure that the code reports, and none that it does not.

Each kind of figure has a section of its own; names stand in the first column of its tables.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from thalweg.adapt.record import Replay
from thalweg.estimate.coordinates import FitReport
from thalweg.migration.drive import Effort
from thalweg.migration.hit_rate import HitRate
from thalweg.migration.plan import MigrationPlan
from thalweg.model.plan import Estimate

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
HEADING = re.compile(r"^#{2,3} (.+)$", flags=re.MULTILINE)
NAME = re.compile(r"`([^`]+)`")


def read_sections() -> dict[str, str]:
    text = PAGE.read_text(encoding="utf-8")
    starts = list(HEADING.finditer(text))
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return {
        start[1].strip("`"): text[start.end() : end]
        for start, end in zip(starts, ends, strict=True)
    }


SECTIONS = read_sections()


def names_in(section: str) -> list[str]:
    """What the first columns of the section's tables name."""
    rows = [line for line in SECTIONS[section].splitlines() if line.startswith("| `")]
    return [name for row in rows for name in NAME.findall(row.split(" | ")[0])]


def field_names(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]


@pytest.mark.parametrize(
    ("section", "kind", "derived"),
    [
        ("Estimates of a plan", Estimate, ()),
        ("A migration plan", MigrationPlan, ()),
        ("Hit rates", HitRate, ()),
        ("Coordinates", FitReport, ("coordinates",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_section_names_every_field(section: str, kind: type, derived: tuple[str, ...]) -> None:
    assert sorted(names_in(section)) == sorted(set(field_names(kind)) - set(derived))


def test_replay_names_every_sum() -> None:
    replay = Replay(application="a", network="n", strategy="s", steps=())
    assert sorted(names_in("A workload replayed")) == sorted(replay.summary())


def test_approach_names_every_figure_of_execution_and_effort() -> None:
    import thalweg as tw
    from thalweg.migration import Brokers, Connections, MobileGraph, draw_city, drive_static
    from thalweg.scenarios import broker_tree
    from thalweg.scenarios.vehicles import city_vehicles
    from thalweg.simulate.moving import execute

    brokers = Brokers.of(broker_tree())
    vehicles, _ = city_vehicles(5, 60, seed=1)
    connections = Connections.of(vehicles.names, vehicles.tracks, brokers)
    graph = MobileGraph.of(tw.scenarios.nearby_friends())
    city = draw_city(graph, brokers, connections, np.random.default_rng(0), instances=1)
    executed = set(execute(drive_static(city)).to_dict()) - {"approach", "mean_bdp_bytes"}
    wanted = [*executed, *field_names(Effort)]
    assert sorted(names_in("An approach, executed")) == sorted(wanted)
    assert "`mean_bdp_bytes`" in SECTIONS["An approach, executed"]


def test_prometheus_names_are_those_that_are_scraped_in_their_order() -> None:
    from thalweg.web.monitoring.families import FAMILIES

    assert names_in("Prometheus") == [family.name for family in FAMILIES]
    rows = [line for line in SECTIONS["Prometheus"].splitlines() if line.startswith("| `")]
    for row, family in zip(rows, FAMILIES, strict=True):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[2] == ", ".join(family.labels), family.name
        meaning = family.meaning.rstrip(".").removesuffix(", Unix time")
        assert cells[3] == meaning[0].lower() + meaning[1:], family.name


def test_stored_records_of_a_monitor_have_every_column() -> None:
    from thalweg.spark.monitor.store import SCHEMA

    assert sorted(names_in("The monitor")) == sorted(SCHEMA.names)


def test_hand_over_names_every_field() -> None:
    from thalweg.spark.mobility.report import MoveReport

    assert sorted(names_in("A hand-over between two Sparks")) == sorted(field_names(MoveReport))


def test_files_of_a_run_name_every_field(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from thalweg.spark.deployment.folder import RunFolder
    from thalweg.spark.deployment.loop import DeploymentLoop
    from thalweg.spark.deployment.parts import RunParts
    from thalweg.spark.deployment.tally import Tally
    from thalweg.spark.log import Log

    code = ("code", "code_since_s")
    about = dict.fromkeys(("pipeline", "network", *code, "strategy", "interval_s", "link"))
    parts = RunParts(
        runtime=SimpleNamespace(cuts={}),  # type: ignore[arg-type]
        folder=RunFolder(tmp_path),
        tally=Tally(Log(tmp_path / "log"), ["rides"]),
        require_cuts=lambda _cuts: None,
        watcher=SimpleNamespace(comparison=[], take=list),  # type: ignore[arg-type]
        about=about,
    )
    loop = DeploymentLoop(parts, 0.0)
    status = loop.status("running", 0.0)
    assert sorted(names_in("status.json")) == sorted(status)
    loop._write_decision(0.0, "look", "kept", {})
    (decision,) = parts.folder.read_decisions()
    assert sorted(names_in("decisions.jsonl")) == sorted(decision)
    report = loop.report("ended", 1.0)
    named = names_in("report.json")
    assert set(report) - set(named) <= set(status)
    assert set(named) <= set(report)
    assert set(report) - set(status) <= set(named)


def test_every_prometheus_name_on_any_page_is_known() -> None:
    known = set(names_in("Prometheus"))
    for page in (PAGE.parents[2] / "README.md", *PAGE.parents[1].rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        told = set(re.findall(r"\bthalweg_\w+(?:_seconds|_total|_ratio|_bytes)\b", text))
        assert told <= known, page


def test_the_timeline_section_names_every_field_of_a_frame(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from thalweg.spark.deployment.timeline import Timeline, read_timeline

    Timeline(tmp_path).write_frame(
        1.0, seen={}, rates=None, rows_out=0, sites={}, measured=None, cores={}
    )
    (frame,) = read_timeline(tmp_path)
    told = names_in("timeline.jsonl")
    assert set(frame) - {"kind"} <= set(told)
