"""What a simulation tells: the same for the same seed, conserved, and ready to be kept."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

import thalweg as tw
from generators.small import chain_problem, place
from thalweg.errors import InvalidInput
from thalweg.model import CountWindow, Limits, Operator
from thalweg.simulate import (
    Control,
    Deterministic,
    Exponential,
    Periodic,
    Physics,
    PlanChange,
    RateChange,
    SpeedChange,
    prepare,
)
from thalweg.simulate.plot import plot_simulation
from thalweg.simulate.report import balance, headline, report, warnings
from thalweg.simulate.saving import (
    MANIFEST,
    TABLES,
    run_from_json,
    run_to_json,
    save_simulation,
    to_arrow,
)
from thalweg.simulate.simulation import average, half_interval

CPU = {"cpu_ips": 1e9}
HOSTS = {"t": "f1/n", "z": "dc/n"}


def problem_of(load=0.5, **figures):
    """100 events/s in f1 for an operator with this load, and a link to the sink."""
    transform = Operator(**{"name": "t", "cpu_per_event": load * 1e7, **figures})
    return chain_problem(transform, rate=100.0, event_size=125.0, fogs=1, fog=CPU, cloud=CPU)


def simulate(problem=None, **options):
    problem = problem or problem_of()
    return tw.simulate(
        problem.application,
        problem.network,
        place(problem, HOSTS),
        **{"seconds": 20.0, **options},
    )


def row_of(found, name, table="operators"):
    return next(row for row in found.rows(table) if row["name"] == name)


def told(found):
    plain = found.to_dict()
    del plain["wall_s"]
    return plain


def everything():
    """A simulation with all that can be told in it: changes, moves, a strategy that looks."""
    problem = problem_of(state=1e4)
    changes = [
        RateChange(at_s=4.0, rates={("s", "f1"): 150.0}),
        PlanChange(at_s=8.0, plan=place(problem, {"t": "dc/n", "z": "dc/n"})),
        SpeedChange(at_s=12.0, link=("f1", "dc"), loses=True),
        SpeedChange(at_s=14.0, link=("f1", "dc"), speed=1.0),
    ]
    return simulate(problem, changes=changes, control=Control(interval_s=5.0), replications=2)


@pytest.fixture(scope="module")
def rich():
    return everything()


def test_the_same_seed_gives_the_same_to_the_last_bit(rich):
    assert told(everything()) == told(rich)
    assert told(simulate(seed=3)) == told(simulate(seed=3))


def test_another_seed_gives_something_else():
    one, other = simulate(seed=3), simulate(seed=4)
    assert one.latency_s != other.latency_s
    assert one.totals["born"] != other.totals["born"]
    again = simulate(seed=3, replications=2)
    assert again.runs[0].totals == one.runs[0].totals
    assert again.runs[1].totals != one.runs[0].totals


def test_a_run_depends_on_its_number_alone():
    problem = problem_of()
    experiment = prepare(
        problem.application, problem.network, place(problem, HOSTS), seconds=5.0, replications=3
    )
    whole = tw.simulate(
        problem.application, problem.network, place(problem, HOSTS), seconds=5.0, replications=3
    )
    backwards = [experiment.run(number) for number in (2, 1, 0)][::-1]
    assert told(experiment.summarise(backwards)) == told(whole)


def test_progress_is_told_and_rises_to_all():
    heard = []
    simulate(replications=3, on_progress=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 1.0


def test_intervals_are_student_t_over_the_runs():
    found = simulate(replications=5)
    values = np.array([row_of_run(run)["latency_s"] for run in found.runs])
    row = row_of(found, "t")
    assert row["latency_s"] == pytest.approx(values.mean())
    half = stats.t.ppf(0.975, 4) * values.std(ddof=1) / math.sqrt(5)
    assert row["latency_s_ci"] == pytest.approx(half)
    assert "latency_s_ci" not in row_of(simulate(), "t")


def row_of_run(run):
    return next(row for row in run.operators if row["name"] == "t")


def test_a_figure_that_some_runs_lack_is_the_mean_of_the_others():
    tables = [[{"name": "a", "x": 1.0}], [{"name": "a", "x": math.nan}], [{"name": "a", "x": 3.0}]]
    (row,) = average(tables, ("name",))
    assert row["x"] == 2.0
    assert row["x_ci"] == half_interval(np.array([1.0, 3.0]))
    assert math.isnan(half_interval(np.array([1.0])))
    assert math.isnan(half_interval(np.array([1.0, math.inf])))


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """M/M/1 at half load: 10 ms in the mean; 20 intervals of 95 %."""
    inside = 0
    for seed in range(20):
        found = simulate(seed=seed, replications=10, physics=Physics(service=Exponential()))
        row = row_of(found, "t")
        inside += abs(row["latency_s"] - 0.01) <= row["latency_s_ci"]
    assert inside >= 16


def test_it_is_plain_data_for_json(rich):
    text = json.dumps(rich.to_dict(), allow_nan=False)
    back = json.loads(text)
    assert back["replications"] == 2
    assert back["conserved"] is True
    assert len(back["moves"]) == len(rich.runs[0].moves) > 0
    assert len(back["decisions"]) == 3
    assert {"operators", "links", "nodes", "paths", "latency", "comparison"} <= set(back)
    down = simulate(changes=[SpeedChange(at_s=0.0, node="f1/n")])
    assert down.to_dict()["latency"][0]["latency_s"] == "nan"
    json.dumps(down.to_dict(), allow_nan=False)


def test_a_run_as_text_gives_the_very_same_run_back(rich):
    for run in rich.runs:
        back = run_from_json(run_to_json(run))
        for name in ("operators", "moves", "decisions", "segments", "queues", "histogram"):
            np.testing.assert_equal(getattr(back, name), getattr(run, name))
        assert back.totals == run.totals


def test_tables_are_kept_and_give_the_rows_back(rich, tmp_path):
    files = save_simulation(rich, tmp_path / "new" / "folder", inputs={"a": "b"}, command="do it")
    assert {path.name for path in files} == {*(f"{t}.parquet" for t in TABLES), MANIFEST}
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(
        path.name for path in files
    )
    for path in files[:-1]:
        rows = pq.read_table(path).to_pylist()
        expected = [
            {"replication": number, **row}
            for number, run in enumerate(rich.runs)
            for row in getattr(run, path.stem)
        ]
        np.testing.assert_equal(rows, expected)
        assert rows, path
    manifest = json.loads(files[-1].read_text())
    assert manifest["seed"] == 0
    assert manifest["totals"] == rich.totals
    assert manifest["inputs"] == {"a": "b"}
    assert {"thalweg", "python", "numpy", "numba"} <= set(manifest["versions"])


def test_a_table_without_rows_can_be_kept_too():
    assert to_arrow(simulate(), "moves").num_rows == 0


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(InvalidInput, match="a folder that can be written"):
        save_simulation(simulate(), tmp_path / "taken")


def test_every_event_is_accounted_for(rich):
    assert rich.conserved
    total = rich.totals
    assert total["lost"] > 0
    assert total["born"] + total["made"] == (
        total["ended"] + total["filtered"] + total["queued"] + total["under_way"] + total["lost"]
    )
    assert "=" in balance(rich)
    assert "DOES NOT" not in balance(rich)


def test_an_event_that_is_missing_is_told():
    found = simulate()
    found.runs[0].totals["ended"] -= 1
    assert not found.conserved
    assert "DOES NOT EQUAL" in balance(found)


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
def test_a_queue_is_as_busy_as_its_load(load):
    found = simulate(problem_of(load), seconds=200.0)
    row = row_of(found, "t")
    assert row["utilisation"] == pytest.approx(load, rel=0.05)
    assert row["load"] == pytest.approx(load, rel=0.05)
    assert row["throughput_per_s"] == pytest.approx(100.0, rel=0.03)
    # Little's law, on figures that are counted apart.
    there = row["throughput_per_s"] * row["latency_s"]
    assert row["queue_mean"] == pytest.approx(there, rel=0.02)
    assert found.unstable == []
    assert warnings(found) == []
    node = row_of(found, "f1/n", "nodes")
    assert node["utilisation"] == pytest.approx(row["utilisation"])


def test_queues_that_grow_are_named_the_worst_first():
    transforms = [
        Operator(name="a", cpu_per_event=2e7),
        Operator(name="b", cpu_per_event=2.5e7),
        Operator(name="c", cpu_per_event=5e6),
    ]
    problem = chain_problem(*transforms, rate=100.0, event_size=125.0, fogs=1, fog=CPU, cloud=CPU)
    hosts = {"a": "f1/n", "b": "f1/n", "c": "f1/n", "z": "f1/n"}
    found = tw.simulate(problem.application, problem.network, place(problem, hosts), seconds=100.0)
    assert [row["name"] for row in found.unstable] == ["a", "b"]
    a, b = found.unstable
    assert a["load"] == pytest.approx(2.0, rel=0.05)
    assert b["load"] == pytest.approx(1.25, rel=0.05)
    assert a["growth_per_s"] == pytest.approx(50.0, rel=0.1)
    assert row_of(found, "a")["utilisation"] == pytest.approx(1.0, abs=1e-3)
    assert found.conserved
    assert len(warnings(found)) == 2


def overloaded(**options):
    """100 events/s come and 25 are served; a run of 200 s with little room."""
    plain = {"seconds": 200.0, "most_events": 1000, "warm_up_s": 0.0}
    return simulate(problem_of(4.0), **{**plain, **options})


@pytest.mark.parametrize("most", [100, 1000])
def test_a_run_ends_early_where_more_wait_than_there_is_room_for(most):
    found = overloaded(most_events=most)
    assert found.stopped_s is not None
    held = found.totals["queued"] + found.totals["under_way"]
    assert most < held <= 1.5 * most + 50
    assert found.conserved
    assert found.unstable[0]["name"] == "t"
    assert found.unstable[0]["load"] == pytest.approx(4.0, rel=0.25)
    assert row_of(found, "t")["utilisation"] <= 1.0 + 1e-9
    assert "ended early" in warnings(found)[-1]
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_run_ends_as_soon_as_more_wait_than_there_is_room_for():
    """75 more wait every second: 1,000 after 13.3 s."""
    assert overloaded().stopped_s == pytest.approx(13.3, abs=3.0)


def test_the_sinks_of_a_run_that_ended_early_get_what_was_served():
    row = overloaded().rows("applications")[0]
    assert row["throughput_per_s"] == pytest.approx(25.0, rel=0.1)


def test_a_queue_of_a_run_that_ended_early_has_grown_by_what_was_not_served():
    assert overloaded().unstable[0]["growth_per_s"] == pytest.approx(75.0, rel=0.1)


def test_a_run_that_ends_before_anything_counts_is_told_without_rates():
    found = overloaded(warm_up_s=150.0)
    assert found.stopped_s < found.warm_up_s
    assert row_of(found, "z")["throughput_per_s"] == 0.0
    assert found.unstable[0]["load"] == pytest.approx(4.0, rel=0.5)
    json.dumps(found.to_dict(), allow_nan=False)
    assert headline(found)
    assert report(found)


def test_what_comes_in_the_warm_up_does_not_count():
    exact = Physics(service=Deterministic(), arrivals=Periodic())
    for warm_up_s, expected in ((0.0, 2000), (15.0, 500), (None, 1800)):
        found = simulate(physics=exact, warm_up_s=warm_up_s)
        row = row_of(found, "t")
        assert found.totals["born"] == pytest.approx(2000, abs=2)
        assert row["throughput_per_s"] == pytest.approx(100.0, rel=0.01)
        assert found.rows("applications")[0]["events"] == pytest.approx(expected, abs=14)
        assert row["utilisation"] == pytest.approx(0.5, abs=1e-3)
        assert found.warm_up_s == (2.0 if warm_up_s is None else warm_up_s)


def test_a_warm_up_that_ends_with_the_run_but_for_a_moment_counts_a_moment():
    found = simulate(warm_up_s=20.0 - 1e-9)
    assert found.rows("applications")[0]["events"] == 0
    assert 0.0 <= row_of(found, "t")["utilisation"] <= 1.0 + 1e-6


def test_figures_that_have_an_estimate_are_beside_it():
    found = simulate(problem_of(0.5), seconds=400.0, warm_up_s=10.0)
    rows = {row["name"]: row for row in found.rows("comparison")}
    assert rows["uplink_bps"]["measured"] == pytest.approx(
        rows["uplink_bps"]["estimated"], rel=0.02
    )
    assert rows["usage"]["measured"] == pytest.approx(rows["usage"]["estimated"], rel=0.02)
    # M/M/1 in the operator; the link is exact where the estimate has it random.
    assert rows["aggregate_latency_s"]["measured"] == pytest.approx(
        rows["aggregate_latency_s"]["estimated"], rel=0.03
    )
    assert found.measured("usage") == rows["usage"]["measured"]
    assert row_of(found, "t")["estimated_s"] == pytest.approx(0.01)
    with pytest.raises(KeyError):
        found.measured("speed")


def test_quantiles_rise_and_lie_within_the_extremes():
    found = simulate(problem_of(0.8), seconds=100.0)
    row = found.rows("applications")[0]
    shares = [row[f"latency_{name}_s"] for name in ("p50", "p95", "p99", "max")]
    assert shares == sorted(shares)
    histogram = found.runs[0].histogram
    assert sum(part["events"] for part in histogram) == row["events"]
    # An exponential stay of 50 ms: ln 2 of it, and about three times, and 101.8 ms of link.
    stay = row_of(found, "t")
    assert stay["latency_p50_s"] == pytest.approx(stay["latency_s"] * math.log(2), rel=0.1)
    assert stay["latency_p95_s"] == pytest.approx(stay["latency_s"] * math.log(20), rel=0.15)


def test_windows_that_hold_events_are_no_sign_of_too_much_work():
    found = simulate(problem_of(0.5, window=CountWindow(1500)), seconds=20.0)
    assert row_of(found, "t")["window_end"] > 0
    assert found.unstable == []


def test_nothing_is_born_and_all_is_told():
    problem = problem_of()
    found = simulate(problem, rates={("s", "f1"): 0.0})
    assert found.totals["born"] == 0
    assert found.conserved
    assert math.isnan(found.latency_s)
    json.dumps(found.to_dict(), allow_nan=False)
    assert report(found)


def test_report_and_headline_tell_what_was_run(rich):
    assert headline(rich).startswith("app on net: 20 s (2 s of warm-up) × 2 runs, seed 0: ")
    titles = [table.title for table in report(rich)]
    assert titles[0] == "at the sinks, after the warm-up"
    assert {"what changed (first run)", "what moved (first run)"} <= set(titles)
    assert "what the strategy saw (first run)" in titles
    for table in report(rich):
        assert all(len(row) == len(table.names) for row in table.rows)


def test_links_have_no_interval_of_their_application():
    assert "application_ci" not in simulate(replications=2).rows("links")[0]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_simulation_is_drawn(rich, tmp_path, ending):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"found.{ending}"
    plot_simulation(rich, path)
    head = path.read_bytes()[:5]
    assert head == (b"\x89PNG\r" if ending == "png" else b"<?xml")


def test_a_simulation_in_which_nothing_arrives_is_drawn_too(tmp_path):
    pytest.importorskip("matplotlib")
    plot_simulation(overloaded(), tmp_path / "early.png")
    plot_simulation(simulate(rates={("s", "f1"): 0.0}), tmp_path / "silent.png")
    assert (tmp_path / "silent.png").stat().st_size > 1000


def test_limits_do_not_matter_to_a_run():
    plain = problem_of()
    limited = tw.model.Application(
        name="app",
        operators=plain.application.operators,
        streams=plain.application.streams,
        limits=Limits(response_time_s=1e-6),
    )
    found = tw.simulate(limited, plain.network, place(plain, HOSTS), seconds=5.0)
    assert found.latency_s == simulate(plain, seconds=5.0).latency_s


def test_saved_tables_have_a_column_for_every_figure():
    """A row's figure without a column would be left out without a word."""
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    plan, other = tw.plan(app, net, strategy="cloud-only"), tw.plan(app, net, strategy="aels-rp")
    found = tw.simulate(app, net, plan, seconds=4, changes=[PlanChange(at_s=2, plan=other)])
    for table, schema in TABLES.items():
        for row in getattr(found.runs[0], table):
            assert {"replication", *row} == {*schema.names}, table
    assert found.runs[0].moves
