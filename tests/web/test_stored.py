"""Stored results on the page: simulations, schedules, cities, tables and pictures."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thalweg as tw
from thalweg.cli.entry import run
from thalweg.errors import InvalidInput
from thalweg.web.opening import open_subjects
from thalweg.web.subject import UnknownName
from thalweg.web.subjects.city import read_city
from thalweg.web.subjects.results import ResultsSubject

CHANGES = """
thalweg: 1
changes:
  - at: 4 s
    rates: [{source: rides, site: hub-west, rate: 5000 events/s}]
  - {at: 6 s, plan: later.json}
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    for name, value in (("app.yaml", app), ("net.yaml", net)):
        tw.save(value, folder / name)
    tw.save(tw.plan(app, net), folder / "plan.json")
    tw.save(tw.plan(app, net, "tcep"), folder / "later.json")
    (folder / "changes.yaml").write_text(CHANGES)
    files = [str(folder / name) for name in ("app.yaml", "net.yaml", "plan.json")]
    more = ["--changes", str(folder / "changes.yaml"), "--for", "10", "--replications", "2"]
    assert run(["simulate", *files, *more, "--output", str(folder / "out")]) == 0
    return folder / "out"


def rows_of(folder: Path, table: str) -> list[dict]:
    rows = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return [row for row in rows if row["replication"] == 0]


def test_a_simulation_is_replayed_with_its_changes(simulated: Path):
    (subject,) = open_subjects([simulated])
    assert subject.kind == "simulation"
    history = json.loads(json.dumps(subject.history(), allow_nan=False))
    assert list(history["placements"]) == ["s0.0", "s4.0", "s6.0"]
    assert history["placements"]["s6.0"]["changed"]
    assert not history["placements"]["s4.0"]["changed"]
    assert [m["kind"] for m in history["marks"]].count("change") == 2
    assert len(history["frames"]) > 50
    early, late = history["frames"][1], history["frames"][-1]
    assert (early["placement"], late["placement"]) == ("s0.0", "s6.0")
    calm = early["links"]["hub-west>cloud"]["bps"]
    surge = next(f for f in history["frames"] if f["placement"] == "s4.0")
    assert surge["links"]["hub-west>cloud"]["bps"] > calm
    segments = pq.read_table(simulated / "segments.parquet").to_pylist()
    assert early["gauges"]["uplink_bps"] == pytest.approx(segments[0]["uplink_bps"])
    rate_of = {row["name"]: row["throughput_per_s"] for row in rows_of(simulated, "operators")}
    for number, begin_s in ((20, 0.0), (-1, 6.0)):
        waits: dict[str, float] = {}
        for row in rows_of(simulated, "placements"):
            for queue in rows_of(simulated, "queues"):
                if (row["begin_s"], row["operator"]) == (begin_s, queue["name"]):
                    # The first frame is before any moment at which queues were looked at.
                    waiting = queue["queue"][number - 1 if number > 0 else number]
                    site = row["node"].partition("/")[0]
                    waits[site] = max(waits.get(site, 0.0), waiting / rate_of[queue["name"]])
        assert max(waits.values()) > 0
        for site, told in history["frames"][number]["sites"].items():
            assert told.get("lag_s", 0.0) == pytest.approx(waits.get(site, 0.0), abs=1e-6)
    assert subject.why(operator="clean", site="cloud", link="", placement="s0.0")["why"]
    with pytest.raises(UnknownName):
        subject.why(operator="clean", site="cloud", link="", placement="s5.0")


def test_results_are_tables_with_their_size_and_the_manifest(simulated: Path):
    (subject,) = open_subjects([simulated])
    told = json.loads(json.dumps(subject.results(), allow_nan=False))
    tables = {table["name"]: table for table in told["tables"]}
    assert {"operators", "links", "segments", "placements", "rates"} <= set(tables)
    rows = pq.read_table(simulated / "operators.parquet").num_rows
    assert tables["operators"]["total"] == rows
    assert '"seed": 0' in told["text"]


def test_a_schedule_is_shown_step_by_step(tmp_path: Path):
    app, net = tw.scenarios.taxi_demand(), tw.scenarios.fog_cloud(3)
    tw.save(app, tmp_path / "app.yaml")
    tw.save(net, tmp_path / "net.yaml")
    rows = ["time_s,source,site,rate"]
    for step, factor in enumerate((1.0, 1.0, 4.0, 4.0, 1.0)):
        rows += [f"{step * 600},rides,fog-{k},{5000 * factor}" for k in range(3)]
    (tmp_path / "days.csv").write_text("\n".join(rows) + "\n")
    files = [str(tmp_path / name) for name in ("app.yaml", "net.yaml")]
    workload, steps = str(tmp_path / "days.csv"), str(tmp_path / "steps.parquet")
    assert run(["schedule", *files, "--workload", workload, "--output", steps]) == 0
    wanted = pq.read_table(steps).to_pylist()
    table = str(tmp_path / "days.parquet")
    tw.save(tw.load_workload(workload), table)
    for more in ([], [workload], [table]):
        (subject,) = open_subjects([*files, steps, *more])
        assert subject.kind == "schedule"
        history = json.loads(json.dumps(subject.history(), allow_nan=False))
        assert [f["at_s"] for f in history["frames"]] == [row["time_s"] for row in wanted]
        shown = [f["gauges"]["uplink_bps"] for f in history["frames"]]
        assert shown == pytest.approx([row["uplink_bps"] for row in wanted])
        changed = sum(a["cuts"] != b["cuts"] for a, b in pairwise(wanted))
        assert len(history["placements"]) == changed + 1
    with pytest.raises(InvalidInput, match="one file with the steps"):
        open_subjects([*files, steps, steps])
    born = [f["gauges"]["events_in_per_s"] for f in history["frames"]]
    assert born == pytest.approx([15e3, 15e3, 60e3, 60e3, 15e3])


def test_a_city_is_shown_from_its_folder_and_from_its_page(tmp_path: Path):
    folder, page = str(tmp_path / "city"), str(tmp_path / "city.html")
    asked = ["mobility", "run", "--vehicles", "40", "--for", "60", "--approach", "static"]
    assert run([*asked, "--approach", "greedy", "--output", folder, "--plot", page]) == 0
    for place in (folder, page):
        (subject,) = open_subjects([place])
        assert subject.kind == "city"
        city = subject.city()
        assert [a["name"] for a in city["approaches"]] == ["static", "greedy"]
    whole = read_city(tmp_path / "city" / "city.json")
    assert whole == read_city(tmp_path / "city.html")
    (subject,) = open_subjects([folder])
    assert {"static/costs", "greedy/costs"} <= {t["name"] for t in subject.results()["tables"]}


def test_a_page_with_many_scripts_that_never_begin_is_refused_after_one_look(tmp_path: Path):
    # With a pattern that looks for the end of each of them, this would take an hour.
    (tmp_path / "city.html").write_bytes(b"<script " * 500_000)
    with pytest.raises(InvalidInput, match="no page of a city"):
        read_city(tmp_path / "city.html")


def test_much_that_is_made_of_little_by_its_depth_is_cut(tmp_path: Path):
    deep = "[" * 900 + ",".join(["0"] * 99_000) + "]" * 900
    (tmp_path / "manifest.json").write_text(deep)
    (tmp_path / "report.json").write_text('{"seed": 7}')
    (subject,) = open_subjects([tmp_path])
    text = subject.results()["text"]
    assert len(text) < 500_000
    assert '"seed": 7' in text


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"title": 1', "nan", "{" * 100_000])
def test_what_is_no_city_is_refused(tmp_path: Path, text: str):
    (tmp_path / "city.json").write_text(text)
    with pytest.raises(InvalidInput, match="a city as"):
        open_subjects([tmp_path])


def test_pictures_are_given_by_name_and_nothing_else_is(tmp_path: Path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "plot.png").write_bytes(b"\x89PNG")
    (tmp_path / "secret.txt").write_text("secret")
    subject = ResultsSubject(tmp_path)
    (name,) = subject.results()["images"]
    assert subject.image(name).read_bytes() == b"\x89PNG"
    (tmp_path / "link.png").symlink_to("/etc/hostname")
    assert ResultsSubject(tmp_path).results()["images"] == [name]
    for wrong in (
        "link.png",
        "secret.txt",
        "../secret.txt",
        "inner/../secret.txt",
        "/etc/passwd",
        "",
    ):
        with pytest.raises(UnknownName):
            subject.image(wrong)


def test_cells_of_any_type_are_plain_data(tmp_path: Path):
    table = pa.table(
        {
            "nan": pa.array([float("nan"), float("inf")]),
            "list": pa.array([[1] * 500, []]),
            "bytes": pa.array([b"\x00", None]),
            "when": pa.array([0, 1], pa.timestamp("us")),
            "text": pa.array(["<script>alert(1)</script>", None]),
        }
    )
    pq.write_table(table, tmp_path / "odd.parquet")
    (subject,) = open_subjects([tmp_path / "odd.parquet"])
    (shown,) = json.loads(json.dumps(subject.results(), allow_nan=False))["tables"]
    assert shown["total"] == 2
    assert shown["rows"][0][4] == "<script>alert(1)</script>"
