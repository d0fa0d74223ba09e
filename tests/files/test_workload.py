"""Workloads come out of files as they went in, and bad files are told what is wrong with them."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.cli.inputs import load_case
from thalweg.errors import Defect, InvalidInput
from thalweg.files import json_schema, load_workload, save, workload_arrow, workload_reader
from thalweg.files.load import load_any
from thalweg.files.workload_csv import LARGEST_CSV_BYTES, MOST_ROWS_TOLD
from thalweg.files.workload_curve import read_demand_curve
from thalweg.files.workload_reader import read_workload
from thalweg.files.workload_references import require_workload
from thalweg.files.workload_writer import workload_data
from thalweg.model import ALL_SITES, Application, Network, Tracks, Workload
from thalweg.model.names import is_name

TRICKY = ("1e3", "null", "true", "no", "0x1F", "12", "1.5", "y", "inf", "nan", "2024-01-01")
NAMES = st.one_of(
    st.sampled_from(TRICKY),
    st.builds(str.__add__, st.sampled_from("aZ09"), st.text("abXY01_.-", max_size=6)).filter(
        is_name
    ),
)
RATES = st.one_of(
    st.just(0.0), st.floats(0.0, 1e15).map(abs), st.integers(0, 5000).map(float), st.just(1 / 3)
)
PAIRS = st.tuples(NAMES, st.one_of(NAMES, st.just(ALL_SITES)))
MOMENTS = st.one_of(st.floats(0.0, 3.2e9).map(abs), st.integers(0, 10**5).map(float))


@st.composite
def workloads(draw: st.DrawFn, least_pairs: int = 0) -> Workload:
    moments = sorted(draw(st.sets(MOMENTS, min_size=1, max_size=4)))
    pairs = draw(st.lists(PAIRS, min_size=least_pairs, max_size=4, unique=True))
    rows = st.lists(RATES, min_size=len(pairs), max_size=len(pairs))
    rate = np.array([draw(rows) for _ in moments]).reshape(len(moments), len(pairs))
    return Workload(time_s=np.array(moments), births=tuple(pairs), rate=rate, name=draw(NAMES))


def contents(workload: Workload) -> list[tuple[float, dict[tuple[str, str], float]]]:
    return list(workload)


def refused(run: Callable[[], Any]) -> tuple[Defect, ...]:
    with pytest.raises(InvalidInput) as error:
        run()
    return error.value.defects


def write(folder: Path, text: str | bytes, name: str = "day.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- what goes in comes out


@pytest.mark.parametrize("ending", ["yaml", "json"])
@given(workloads())
def test_a_workload_comes_out_of_a_text_file_as_it_went_in(ending: str, workload: Workload) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"day.{ending}"
        save(workload, path)
        found = load_workload(path)
        assert contents(load_any(path)) == contents(found)  # type: ignore[arg-type]
    assert contents(found) == contents(workload)
    assert found.name == workload.name


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@given(workloads(least_pairs=1))
def test_a_workload_comes_out_of_a_table_as_it_went_in(ending: str, workload: Workload) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"busy-day.{ending}"
        save(workload, path)
        found = load_workload(path)
        assert contents(load_any(path)) == contents(found)  # type: ignore[arg-type]
    assert contents(found) == contents(workload)
    assert (found.name, found.births) == ("busy-day", workload.births)


@given(workloads())
def test_what_is_written_follows_the_schema(workload: Workload) -> None:
    validator = jsonschema.Draft202012Validator(json_schema("workload"))
    assert validator.is_valid(workload_data(workload))


def test_a_rate_for_all_sites_is_written_without_a_site() -> None:
    load = Workload.of({0.0: {("rides", "*"): 5.0}, 60.0: {("rides", "*"): 6.0, ("rides", "f"): 1}})
    assert workload_data(load)["steps"] == [
        {"at": "0 s", "rates": {"rides": "5 events/s"}},
        {"at": "60 s", "rates": {"rides": {"*": "6 events/s", "f": "1 events/s"}}},
    ]


@pytest.mark.parametrize(
    ("workload", "name", "words"),
    [
        (Workload.of({-1.0: {}}), "day.yaml", "need a duration >= 0"),
        (Workload.of({-1.0: {("a", "b"): 1.0}}), "day.csv", "need seconds from 0"),
        (Workload.of({0.0: {("a", "b"): 2e15}}), "day.json", "need an event rate >= 0"),
        (Workload.of({0.0: {("a", "b"): 2e15}}), "day.parquet", "need events/s from 0"),
        (Workload.of({0.0: {}}), "day.csv", "at least one pair of source and site"),
        (Workload.of({0.0: {}}), "day.txt", "or in .csv or .parquet for a table"),
        (
            Workload.of({float(k): {("a", "b"): 1.0} for k in range(7_000)}),
            "day.yaml",
            "save large workloads as .parquet or .csv",
        ),
    ],
)
def test_what_a_file_cannot_hold_is_refused_and_nothing_written(
    workload: Workload, name: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as error:
        save(workload, tmp_path / name)
    assert words in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["day.yaml", "day.csv", "day.parquet"])
def test_tracks_are_not_lost_but_refused(name: str, tmp_path: Path) -> None:
    none = np.empty(0)
    tracks = Tracks(user=none.astype(int), time_s=none, x_m=none, y_m=none)
    load = Workload(time_s=np.zeros(1), births=(("a", "b"),), rate=np.ones((1, 1)), tracks=tracks)
    assert [defect.path for defect in refused(lambda: save(load, tmp_path / name))] == ["tracks"]


# --- documents


def document(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"thalweg": 1, "workload": "day", "steps": list(steps)}


def test_what_a_step_leaves_out_is_zero() -> None:
    first = {"at": "0 s", "rates": {"rides": {"f0": "2 /s", "f1": "1 /min"}}}
    load = read_workload(document(first, {"at": "1 h", "rates": {"rides": "6 /s"}}))
    assert load.rates_at(0) == {("rides", "f0"): 2, ("rides", "f1"): 1 / 60, ("rides", "*"): 0}
    assert load.rates_at(3600) == {("rides", "f0"): 0, ("rides", "f1"): 0, ("rides", "*"): 6}


BAD_RATES: list[Any] = [
    None, 5, "5 /s", [], {"a b": "5 /s"}, {"rides": 5}, {"rides": None}, {"rides": []},
    {"rides": {}}, {"rides": {"f": 5}}, {"rides": {"f": "5 MB"}}, {"rides": {"../f": "5 /s"}},
    {"rides": {"a..b": "5 /s"}}, {"rides": "-5 /s"}, {"rides": {"f": {"g": "5 /s"}}},
]  # fmt: skip


@pytest.mark.parametrize("rates", BAD_RATES, ids=str)
def test_the_schema_and_the_reader_refuse_the_same_rates(rates: Any) -> None:
    data = document({"at": "0 s", "rates": rates})
    assert all(d.path.startswith("steps[0].rates") for d in refused(lambda: read_workload(data)))
    assert not jsonschema.Draft202012Validator(json_schema("workload")).is_valid(data)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_every_moment_that_does_not_rise_is_told(moments: list[int]) -> None:
    data = document(*({"at": f"{m} s", "rates": {"rides": "1 /s"}} for m in moments))
    falling = [k for k, m in enumerate(moments) if k and m <= max(moments[:k])]
    if not falling:
        assert read_workload(data).time_s.tolist() == moments
        return
    paths = [defect.path for defect in refused(lambda: read_workload(data))]
    assert paths == [f"steps[{k}].at" for k in falling]


def test_a_workload_of_too_many_rates_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workload_reader, "MOST_RATES", 5)
    steps = [{"at": f"{k} s", "rates": {"rides": {f"f{k}": "1 /s"}}} for k in range(3)]
    assert [d.path for d in refused(lambda: read_workload(document(*steps)))] == ["steps"]
    assert read_workload(document(*steps[:2])).rate.size == 4
    rows = "".join(f"{k},rides,f{k},1\n" for k in range(3))
    path = write(tmp_path, f"time_s,source,site,rate\n{rows}")
    (defect,) = refused(lambda: load_workload(path))
    assert defect.rule == "at most 5 rates (moments × pairs)"
    assert defect.file == str(path)


# --- tables


def read_slowly(text: str) -> list[tuple[float, dict[tuple[str, str], float]]]:
    """The oracle: row by row into a mapping."""
    rows = list(csv.DictReader(io.StringIO(text)))
    pairs = {(row["source"], row["site"]) for row in rows}
    found: dict[float, dict[tuple[str, str], float]] = {}
    for row in rows:
        step = found.setdefault(float(row["time_s"]), dict.fromkeys(pairs, 0.0))
        step[row["source"], row["site"]] = float(row["rate"])
    return sorted(found.items())


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    header = draw(st.permutations(["time_s", "source", "site", "rate"]))
    keys = st.tuples(
        st.integers(0, 3), st.sampled_from("ab"), st.sampled_from(["f", "g", ALL_SITES])
    )
    found = []
    for moment, source, site in draw(st.lists(keys, min_size=1, max_size=15, unique=True)):
        rate = repr(draw(RATES))
        cells = {"time_s": str(moment), "source": source, "site": site, "rate": rate}
        found.append([cells[name] for name in header])
    return header, found


def as_text(header: list[str], rows: list[list[str]]) -> str:
    return "".join(",".join(row) + "\n" for row in (header, *rows))


@given(tables())
@example((["time_s", "source", "site", "rate"], [["0", "a", "f", "1"]] * 1))
def test_rows_and_columns_may_stand_in_any_order(table: tuple[list[str], list[list[str]]]) -> None:
    header, rows = table
    text = as_text(header, rows)
    with tempfile.TemporaryDirectory() as folder:
        assert contents(load_workload(write(Path(folder), text))) == read_slowly(text)
        columns: dict[str, Any] = {
            name: [float(row[k]) if name in ("time_s", "rate") else row[k] for row in rows]
            for k, name in enumerate(header)
        }
        pq.write_table(pa.table(columns), Path(folder) / "day.parquet")
        assert contents(load_workload(Path(folder) / "day.parquet")) == read_slowly(text)


SPOILT = {
    "time_s": ["", "x", "-1", "nan", "inf", "1e300", "5 s", "1_0", "0x1", "4e9", "٣"],
    "rate": ["", "x", "-1", "nan", "-inf", "1e300", "5 /s", "1,5", "2e15"],
    "source": ["", "a b", "../x", "*", " a", "ä"],
    "site": ["", "a b", "a..b", "**", "f ", "x" * 65],
}


@given(tables(), st.data())
def test_every_spoilt_cell_is_told_with_its_line(
    table: tuple[list[str], list[list[str]]], data: st.DataObject
) -> None:
    header, rows = table
    places = st.tuples(st.integers(0, len(rows) - 1), st.sampled_from(header))
    spoilt = data.draw(st.sets(places, min_size=1, max_size=4))
    for row, name in spoilt:
        bad = data.draw(st.sampled_from(SPOILT[name]))
        rows[row][header.index(name)] = f'"{bad}"' if "," in bad else bad
    # Blank lines are no rows, but they count.
    blank = data.draw(st.integers(0, len(rows)))
    lines = as_text(header, rows).splitlines()
    text = "\n".join([*lines[: blank + 1], "", *lines[blank + 1 :]])
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), text)
        found = refused(lambda: load_workload(path))
    told = {(defect.line, defect.path) for defect in found}
    assert told == {(row + 2 + (row >= blank), name) for row, name in spoilt}
    assert {defect.file for defect in found} == {str(path)}


def test_of_many_bad_rows_the_first_are_told_and_all_are_counted(tmp_path: Path) -> None:
    rows = "".join(f"{k},rides,f0,{'x' if k % 2 else '1'}\n" for k in range(200))
    *first, last = refused(
        lambda: load_workload(write(tmp_path, f"time_s,source,site,rate\n{rows}"))
    )
    assert [defect.line for defect in first] == [3 + 2 * k for k in range(MOST_ROWS_TOLD)]
    assert last.value == "100 bad rows, the first 20 of them above"


def test_a_row_that_is_there_twice_is_told_with_the_first(tmp_path: Path) -> None:
    text = "time_s,source,site,rate\n0,a,f,1\n0,b,f,1\n0.0,a,f,2\n"
    (defect,) = refused(lambda: load_workload(write(tmp_path, text)))
    assert (defect.line, defect.hint) == (4, "line 2 has them already")
    columns = {"time_s": [0, 0, 0], "source": ["a", "b", "a"], "site": ["f"] * 3, "rate": [1, 1, 2]}
    pq.write_table(pa.table(columns), tmp_path / "day.parquet")
    (defect,) = refused(lambda: load_workload(tmp_path / "day.parquet"))
    assert (defect.path, defect.value) == ("[2]", "0.0, a, f")


def test_a_large_csv_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, b"0" * (LARGEST_CSV_BYTES + 1))
    (defect,) = refused(lambda: load_workload(path))
    assert defect.hint == "save large workloads as .parquet"


def table_of(**changes: Any) -> pa.Table:
    columns: dict[str, Any] = {
        "time_s": pa.array([0, 60], pa.int64()),
        "source": pa.array(["rides", "rides"]),
        "site": pa.array(["f0", "f0"]),
        "rate": pa.array([1.5, 2.5]),
    }
    given_columns = {
        name: column for name, column in (columns | changes).items() if column is not None
    }
    return pa.table(given_columns)


@pytest.mark.parametrize(
    "changes",
    [
        {"time_s": pa.array([0, 60], pa.int32())},
        {"time_s": pa.array([0.0, 60.0], pa.float32())},
        {"rate": pa.array([1.5, 2.5], pa.float32())},
        {"source": pa.array(["rides", "rides"], pa.large_string())},
        {"source": pa.array(["rides", "rides"]).dictionary_encode()},
        {"site": pa.chunked_array([["f0"], ["f0"]])},
    ],
    ids=lambda value: "+".join(value),
)
def test_parquet_files_of_other_programs_are_read(changes: dict[str, Any], tmp_path: Path) -> None:
    pq.write_table(table_of(**changes), tmp_path / "day.parquet", row_group_size=1)
    found = load_workload(tmp_path / "day.parquet")
    assert contents(found) == [(0.0, {("rides", "f0"): 1.5}), (60.0, {("rides", "f0"): 2.5})]


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"rate": None}, ["rate"]),
        ({"rate": None, "rat": pa.array([1.0, 2.0])}, ["rate", "rat"]),
        ({"rate": pa.array(["1", "2"])}, ["rate"]),
        ({"source": pa.array([1, 2])}, ["source"]),
        ({"rate": pa.array([1.0, None])}, ["rate[1]"]),
        ({"rate": pa.array([-1.0, float("nan")])}, ["rate[0]", "rate[1]"]),
        ({"site": pa.array([None, "f0"])}, ["site[0]"]),
        ({"site": pa.array(["f0", "f 0"]), "time_s": pa.array([0, -1])}, ["time_s[1]", "site[1]"]),
    ],
    ids=lambda value: "+".join(value),
)
def test_a_bad_parquet_file_is_told_column_and_row(
    changes: dict[str, Any], paths: list[str], tmp_path: Path
) -> None:
    pq.write_table(table_of(**changes), tmp_path / "day.parquet")
    found = refused(lambda: load_workload(tmp_path / "day.parquet"))
    assert [defect.path for defect in found] == paths
    assert {defect.file for defect in found} == {str(tmp_path / "day.parquet")}


def test_a_parquet_file_with_too_many_rows_or_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "day.parquet"
    pq.write_table(table_of().slice(0, 0), path)
    assert refused(lambda: load_workload(path))[0].rule == "at least one row"
    pq.write_table(table_of(), path)
    monkeypatch.setattr(workload_arrow, "MOST_ROWS", 1)
    assert refused(lambda: load_workload(path))[0].rule == "at most 1 rows"


@given(st.binary(max_size=400), st.integers(0, 10_000))
def test_no_bytes_bring_more_than_a_refusal(noise: bytes, at: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "day.parquet"
        pq.write_table(table_of(), path)
        whole = path.read_bytes()
        at %= len(whole)
        for name, text in (
            ("day.parquet", whole[:at] + noise + whole[at + len(noise) :]),
            ("day.csv", b"time_s,source,site,rate\n" + noise),
            ("other.csv", noise),
        ):
            try:
                load_workload(write(Path(folder), text, name))
            except InvalidInput as error:
                assert error.defects
                assert all(defect.file.endswith(name) for defect in error.defects)


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert refused(lambda: load_workload(tmp_path / "pipe.csv"))[0].rule == "a regular file"
    (tmp_path / "folder.csv").mkdir()
    assert refused(lambda: load_workload(tmp_path / "folder.csv"))[0].rule == "a file"
    write(tmp_path, "", "rush.csv")
    assert refused(lambda: load_workload(tmp_path / "rusch.csv"))[0].hint == (
        'did you mean "rush.csv"?'
    )


# --- against an application and a network

TAXI, CITY = tw.scenarios.small_taxi(), tw.scenarios.small_city()


def sites_of(source: str) -> list[str]:
    births = tw.Problem(application=TAXI, network=CITY).births
    pairs = zip(births.operator.tolist(), births.site.tolist(), strict=True)
    return [CITY.site_names[s] for o, s in pairs if TAXI.operators[o].name == source]


SOURCE = next(operator.name for operator in TAXI.operators if operator.kind == "source")
SITES = sites_of(SOURCE)


@given(st.data())
def test_every_site_of_a_named_source_has_its_rate(data: st.DataObject) -> None:
    figures = st.dictionaries(st.sampled_from([*SITES, ALL_SITES]), st.integers(0, 99), min_size=1)
    steps = data.draw(st.lists(figures, min_size=1, max_size=3))
    load = Workload.of(
        {float(k): {(SOURCE, site): rate for site, rate in s.items()} for k, s in enumerate(steps)}
    )
    found = require_workload(load, TAXI, CITY)
    assert found.births == tuple((SOURCE, site) for site in SITES)
    for moment, step in enumerate(steps):
        expected = {
            (SOURCE, site): step.get(site, 0) + step.get(ALL_SITES, 0) / len(SITES)
            for site in SITES
        }
        assert found.rates_at(moment) == pytest.approx(expected, rel=1e-12)
        assert tw.Problem(application=TAXI, network=CITY, rates=found.rates_at(moment))
    assert found.name == load.name


def test_a_workload_without_sources_stays_one() -> None:
    assert require_workload(Workload.of({0.0: {}}), TAXI, CITY).births == ()


def test_everything_that_does_not_fit_is_told_with_the_nearest_name() -> None:
    other = next(o.name for o in TAXI.operators if o.kind == "transform")
    away = next(site for site in CITY.site_names if site not in SITES)
    pairs = [(f"{SOURCE}x", SITES[0]), (other, "*"), (SOURCE, f"{SITES[0]}x"), (SOURCE, away)]
    load = Workload.of({0.0: dict.fromkeys([*pairs, (f"{SOURCE}x", SITES[1])], 1.0)})
    found = refused(lambda: require_workload(load, TAXI, CITY))
    assert [(d.path, d.value) for d in found] == [
        ("births[0].source", f"{SOURCE}x"),
        ("births[1].source", other),
        ("births[2].site", f"{SITES[0]}x"),
        ("births[3].site", away),
    ]
    assert found[0].hint == f'did you mean "{SOURCE}"?'
    assert found[1].hint == f"it is a transform; sources are {SOURCE}"
    assert f'did you mean "{SITES[0]}"?' in found[2].hint
    assert "the pin" in found[3].hint


@pytest.fixture
def case(tmp_path: Path) -> Callable[[str, str | bytes], tuple[Path, Path, Path]]:
    save(TAXI, tmp_path / "app.yaml")
    save(CITY, tmp_path / "net.yaml")
    return lambda name, text: (
        tmp_path / "app.yaml",
        tmp_path / "net.yaml",
        write(tmp_path, text, name),
    )


def test_a_command_gets_the_workload_for_its_problem(case: Any) -> None:
    text = f"thalweg: 1\nworkload: day\nsteps: [{{at: 0 s, rates: {{{SOURCE}: 12 /s}}}}]"
    files = case("day.yaml", text)
    problem, load = load_case(*files)
    assert isinstance(problem.application, Application)
    assert isinstance(problem.network, Network)
    assert load is not None
    assert load.rate.tolist() == [[12 / len(SITES)] * len(SITES)]
    assert load_case(*files[:2], None)[1] is None


@pytest.mark.parametrize(
    ("name", "text", "path", "line"),
    [
        (
            "day.yaml",
            "thalweg: 1\nworkload: day\nsteps:\n- {at: 0 s, rates: {}}\n- at: 1 s\n  rates:\n"
            f"    {SOURCE}:\n      mars: 1 /s\n",
            f"steps[1].rates.{SOURCE}.mars",
            8,
        ),
        ("day.csv", f"time_s,source,site,rate\n\n0,{SOURCE},*,1\n1,{SOURCE},mars,1", "site", 4),
    ],
)
def test_a_site_that_is_none_is_told_where_the_file_names_it(
    name: str, text: str, path: str, line: int, case: Any
) -> None:
    (defect,) = refused(lambda: load_case(*case(name, text)))
    assert (defect.path, defect.line, defect.value) == (path, line, "mars")
    assert defect.file.endswith(name)


def test_in_a_parquet_file_it_is_told_with_its_row(case: Any, tmp_path: Path) -> None:
    app, net, _ = case("any", "")
    columns = table_of(source=pa.array([SOURCE] * 2), site=pa.array([SITES[0], "mars"]))
    pq.write_table(columns, tmp_path / "day.parquet")
    (defect,) = refused(lambda: load_case(app, net, tmp_path / "day.parquet"))
    assert (defect.path, defect.value) == ("site[1]", "mars")


def test_problems_of_all_three_files_are_told_at_once(tmp_path: Path) -> None:
    paths = [write(tmp_path, "x: 1\n", name) for name in ("a.yaml", "n.yaml", "w.yaml")]
    found = refused(lambda: load_case(paths[0], paths[1], paths[2]))
    assert {Path(defect.file).name for defect in found} == {"a.yaml", "n.yaml", "w.yaml"}


# --- demand curves


def test_a_demand_curve_counts_from_its_first_moment(tmp_path: Path) -> None:
    text = "timestamp,value\n2014-07-01 00:00:00,10844\n2014-07-01 00:30:00,8127.5\n\n"
    curve = read_demand_curve(write(tmp_path, text))
    assert curve.time_s.tolist() == [0, 1800]
    assert curve.value.tolist() == [10844, 8127.5]
    assert curve.start == datetime(2014, 7, 1)


def test_bad_rows_of_a_demand_curve_are_told_with_their_lines(tmp_path: Path) -> None:
    rows = [
        "2014-07-01 00:00:00,1",
        "2014-07-01 00:00:00,2",
        "yesterday,3",
        "2014-07-01T01:00:00+02:00,4",
        "2014-07-01 02:00:00,-5",
        "2014-07-01 03:00:00,nan",
        "2014-07-01 04:00:00",
        "x,y",
    ]
    path = write(tmp_path, "timestamp,value\n" + "\n".join(rows))
    found = refused(lambda: read_demand_curve(path))
    assert [(defect.line, defect.path) for defect in found] == [
        (3, "timestamp"), (4, "timestamp"), (5, "timestamp"), (6, "value"), (7, "value"), (8, ""),
        (9, "timestamp"), (9, "value"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "the names of the columns, and rows below"),
        ("timestamp,value\n", "at least one row"),
        ("time,value\n1,2\n", "a column called timestamp"),
    ],
)
def test_what_is_no_demand_curve_is_refused(text: str, rule: str, tmp_path: Path) -> None:
    assert refused(lambda: read_demand_curve(write(tmp_path, text)))[0].rule == rule
