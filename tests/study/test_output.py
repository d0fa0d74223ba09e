"""A study on paper and in files: width of tables, JSON, CSV, Parquet, pandas, drawings."""

from __future__ import annotations

import json
import math

import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import validate
from pydantic import TypeAdapter

import thalweg as tw
from study.made_rows import LATENCIES, full, row, study
from thalweg.scenarios import cloud_edge, fog_cloud, random_application, taxi_fares
from thalweg.study.documents import StudyDocument
from thalweg.study.tables import MAX_WIDTH, _show_mean

NET = cloud_edge(2, 2, 3, seed=1)
APP = random_application("stats", NET, seed=6)
NAMES = ("aels", "aels-rp-la+improve", "cloud-only", "tsoo")

FIGURE = st.none() | st.just(math.inf) | st.floats(0, 1e15) | st.floats(0, 1e-9)
NAME = st.sampled_from(["a", "aels-rp-la+improve", "the-longest-name-of-a-strategy-there-is"])


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(st.lists(FIGURE, min_size=6, max_size=6), st.integers(1, 3), st.booleans(), NAME)
def test_no_table_is_wider_than_a_terminal(figures, seeds, feasible, name):
    rows = []
    for seed in range(seeds):
        for rates in (1, 2.5):
            each = row(name, seed, figures[0], rates=rates, feasible=feasible)
            each |= dict(zip(
                ("aggregate_latency_s", "uplink_bps", "usage", "response_time_s", "seconds"),
                [0.0 if figure is None else figure * (1 + seed) for figure in figures],
                strict=False,
            ), moved=12, violations="" if feasible else "cpu: " + "x" * 150)  # fmt: skip
            rows += [each, {**each, "strategy": "cloud-only"}]
    found = study(rows, vary={"rates": (1, 2.5)}, baseline="cloud-only")
    for line in str(found).splitlines():
        assert len(line) <= MAX_WIDTH, line


def test_a_single_problem_is_shown_with_every_figure_and_all_that_tie():
    text = str(tw.study(APP, NET, NAMES))
    head, names, *rows = text.splitlines()
    assert head == f"{APP.name} on {NET.name}: 3 strategies"
    for column in ("AL [", "vs best", "uplink [", "resp. [", "usage", "feasible"):
        assert column in names
    assert max(map(len, text.splitlines())) <= MAX_WIDTH
    assert [each.split()[0] for each in rows[:3]] == list(NAMES[:3])
    assert any(line.startswith("tsoo: no plan: ") for line in rows)


def test_json_is_of_the_schema_and_has_the_keys_of_a_comparison():
    schema = TypeAdapter(StudyDocument).json_schema()
    single = tw.study(APP, NET, NAMES).to_dict()
    several = tw.study(
        problems=[(APP, NET), (taxi_fares(), fog_cloud(2))],
        strategies=NAMES, seeds=3, vary={"rates": [1, 40]},
    ).to_dict()  # fmt: skip
    for told in (single, several):
        validate(json.loads(json.dumps(told, allow_nan=False)), schema)
        TypeAdapter(StudyDocument).validate_python(told)
    assert single["all_best"][0] == single["best"]
    assert {each["strategy"] for each in single["strategies"]} == set(NAMES) - {"tsoo"}
    assert "best" not in several
    assert several["tests"]


def test_the_rows_of_a_file_are_those_of_the_study(tmp_path):
    found = tw.study(APP, NET, NAMES, seeds=2, vary={"option.restarts": [0, 1]})
    for ending in ("csv", "parquet", "json"):
        found.save(tmp_path / f"study.{ending}")
    table = pyarrow.parquet.read_table(tmp_path / "study.parquet")
    assert table.to_pylist() == list(found.rows)
    read = pyarrow.csv.read_csv(tmp_path / "study.csv").to_pylist()
    for name in ("strategy", "seed", "option.restarts", "aggregate_latency_s", "candidates"):
        assert [r[name] for r in read] == [r[name] for r in found.rows]
    assert json.loads((tmp_path / "study.json").read_text()) == json.loads(
        json.dumps(found.to_dict())
    )
    with pytest.raises(tw.InvalidInput, match="ends in"):
        found.save(tmp_path / "study.txt")


def test_a_column_of_mixed_values_is_text(tmp_path):
    rows = [{**each, "option.x": value} for each, value in zip(full(), ["a", 1] * 6, strict=True)]
    study(rows, vary={"option.x": ("a", 1)}).save(tmp_path / "study.parquet")
    read = pyarrow.parquet.read_table(tmp_path / "study.parquet")["option.x"].to_pylist()
    assert read[:2] == ["a", "1"]


def test_every_table_is_a_data_frame():
    pytest.importorskip("pandas")
    found = tw.study(APP, NET, NAMES, seeds=3)
    frame = found.to_pandas()
    assert len(frame) == 3 * len(NAMES)
    assert frame["aggregate_latency_s"].notna().sum() == 3 * (len(NAMES) - 1)
    for table in ("summary", "tests", "ranks"):
        assert len(found.to_pandas(table)) == len(getattr(found, table)) > 0


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"seeds": 3},
        {"seeds": 2, "vary": {"rates": [1, 2]}},
        {"vary": {"option.restarts": [0, 1], "latency": [1, 2]}},
    ],
    ids=["single", "seeds", "swept", "two"],
)
def test_a_study_is_drawn_as_wide_as_a_page(arguments, ending, tmp_path):
    pytest.importorskip("matplotlib")
    found = tw.study(APP, NET, NAMES, **arguments)
    found.plot(tmp_path / f"study.{ending}")
    begin = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert (tmp_path / f"study.{ending}").read_bytes().startswith(begin)
    drawing = found.draw()
    assert drawing.get_figwidth() == 7.16
    assert len(drawing.axes) == 3


def test_what_has_no_feasible_plan_is_drawn_too(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [{**each, "feasible": False} for each in full()]
    study(rows).plot(tmp_path / "a.png")
    study([each for each in rows if each["seed"] == 0], seeds=(0,)).plot(tmp_path / "b.png")


def test_the_axis_has_every_value_and_the_figure_says_what_is_fixed():
    pytest.importorskip("matplotlib")
    rows = [
        row(name, seed, 1.0, feasible=rate < 2, rates=rate, latency=latency)
        for rate in (1, 2, 3)
        for latency in (1, 2)
        for seed in range(2)
        for name in ("a", "b")
    ]
    drawing = study(rows, vary={"rates": (1, 2, 3), "latency": (1, 2)}).draw()
    for panel in drawing.axes:
        assert [label.get_text() for label in panel.get_xticklabels()] == ["1", "2", "3"]
    assert drawing.get_suptitle() == "at latency = 1"


@given(st.floats(1e-6, 1e6), st.floats(2e-9, 0.5))
def test_a_mean_is_shown_within_its_interval(mean, share):
    half = mean * share
    shown = _show_mean({"mean": mean, "low": mean - half, "high": mean + half}, 1.0)
    value, _, around = shown.partition(" ±")
    assert abs(float(value.replace(",", "")) - mean) <= max(half, float(around)) * 1.000001


def test_best_is_of_a_case_and_values_that_the_study_has():
    found = study(full())
    assert found.best() == found.best("net")
    with pytest.raises(tw.InvalidInput, match="case: got"):
        found.best("nowhere")
    with pytest.raises(tw.InvalidInput, match="a swept parameter"):
        found.best(rates=1)


def test_no_strategy_is_first_where_none_has_a_feasible_plan():
    rows = [*full(), *(row(name, 9, 1.0, feasible=False) for name in LATENCIES)]
    ranks = {each["strategy"]: each for each in study(rows).ranks
             if each["figure"] == "aggregate_latency_s"}  # fmt: skip
    assert {each["blocks"] for each in ranks.values()} == {5}
    assert (ranks["a"]["first"], ranks["b"]["first"], ranks["c"]["first"]) == (4, 0, 4)
