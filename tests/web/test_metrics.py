"""The metrics of a run, from what its folder says to what a scrape reads."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client")
pytest.importorskip("pyspark")

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse_plain
from tools.provide import PROMTOOL

from property.spoiling import fuzzed, spoilt
from thalweg.model import Limits
from thalweg.web.metrics import Exposition, RunCollector, read_last_frame
from thalweg.web.monitoring.families import FAMILIES
from thalweg.web.monitoring.samples import RunReading, find_samples
from web.measured_run import AT_S, BEGAN_S, FRAME, STATUS, held_run, write_measured_run

Found = dict[tuple[str, frozenset[tuple[str, str]]], float]
OPEN_METRICS = "application/openmetrics-text;version=1.0.0"
TIMES = {name for name in (family.name for family in FAMILIES) if "timestamp" in name}


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    with held_run(tmp_path / "town") as folder:
        yield folder


def scrape(*folders: Path) -> Found:
    """What Prometheus reads, without the label `run` where there is one run."""
    content, _ = Exposition(folders).render("")
    found: Found = {}
    for family in parse_plain(content.decode()):
        for sample in family.samples:
            shown = {k: v for k, v in sample.labels.items() if k != "run" or len(folders) > 1}
            key = (sample.name, frozenset(shown.items()))
            assert key not in found
            found[key] = sample.value
    return found


def at(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return (f"thalweg_{name}", frozenset(labels.items()))


def states(name: str, among: tuple[str, ...], now: str, **labels: str) -> Found:
    return {at(name, state=state, **labels): float(state == now) for state in among}


RUN_STATES = ("starting", "running", "waiting", "stopping", "ended", "failed", "killed")
SITE_STATES = ("up", "down", "restarting", "ended")
OF_THE_WHOLE_RUN: Found = {
    at("run_info", pipeline="fares", network="town", strategy="atsoo"): 1,
    at("run_start_timestamp_seconds"): BEGAN_S,
    at("run_heartbeat_timestamp_seconds"): AT_S + 1,
    at("run_figures_timestamp_seconds"): AT_S,
    at("rows_in_total", source="rides"): 72_000,
    at("rows_out_total", sink="board"): 4_200,
    at("dead_letter_rows_total"): 3,
    at("sent_bytes_total", site="fog-0"): 1_000_000,
    at("sent_bytes_total", site="fog-1"): 0,
    at("changes_total", cause="first"): 1,
    at("changes_total", cause="adapt"): 2,
    at("last_change_timestamp_seconds"): AT_S - 100,
    at("last_change_duration_seconds"): 6.5,
    at("site_restarts_total", site="fog-0"): 0,
    at("site_restarts_total", site="fog-1"): 2,
    at("site_restarts_total", site="cloud"): 0,
    at("uplink_limit_bytes_per_second"): 10_000,
    at("response_time_limit_seconds"): 2.0,
    at("usage_limit_ratio"): 0.9,
}
OF_NOW: Found = {
    **states("site_state", SITE_STATES, "up", site="fog-0"),
    **states("site_state", SITE_STATES, "restarting", site="fog-1"),
    **states("site_state", SITE_STATES, "up", site="cloud"),
    at("site_state_since_timestamp_seconds", site="fog-0"): BEGAN_S + 10,
    at("site_state_since_timestamp_seconds", site="fog-1"): AT_S - 4,
    at("site_state_since_timestamp_seconds", site="cloud"): BEGAN_S + 11,
    at("under_way", kind="change"): 0,
    at("under_way", kind="restart"): 1,
    at("under_way_since_timestamp_seconds", kind="restart"): AT_S - 4,
    at("site_cpu_ratio", site="fog-0"): 0.5,
    at("site_cpu_ratio", site="cloud"): 0.0,
    at("site_memory_bytes", site="fog-0"): 4096,
    at("site_memory_bytes", site="cloud"): 8192,
    at("site_load_ratio", site="fog-0"): 0.25,
    at("site_load_ratio", site="cloud"): 0.0,
    at("site_lag_seconds", site="fog-0"): 1.75,
    at("site_lag_seconds", site="cloud"): 0.0,
    at("site_figures_timestamp_seconds", site="fog-0"): AT_S - 1,
    at("source_rows_per_second", source="rides", site="fog-0"): 120,
    at("source_rows_per_second", source="rides", site="fog-1"): 0,
    at("operator_rows_in_per_second", operator="clean", site="fog-0"): 120,
    at("operator_rows_out_per_second", operator="clean", site="fog-0"): 60,
    at("link_bytes_per_second", site="fog-0"): 4_500,
    at("link_lag_seconds", site="fog-0"): 0.5,
    at("link_figures_timestamp_seconds", site="fog-0"): AT_S - 2,
    at("uplink_bytes_per_second"): 5_000,
    at("uplink_estimated_bytes_per_second"): 4_000,
    at("uplink_measured_bytes_per_second"): 4_500,
    at("uplink_passing_bytes_per_second"): 100,
    at("uplink_measured_timestamp_seconds"): AT_S - 3,
    at("response_time_seconds"): 1.5,
    at("response_time_estimated_seconds"): 1.25,
    at("usage_ratio"): 0.31,
    at("usage_estimated_ratio"): 0.25,
    at("broken_constraints"): 1,
    at("deviation_ratio", operator="rides", site="", figure="event_size"): 3.0,
}


def test_every_figure_of_a_run_that_goes_on_can_be_scraped(held: Path) -> None:
    running = states("run_state", RUN_STATES, "running")
    assert scrape(held) == {**OF_THE_WHOLE_RUN, **OF_NOW, **running, at("run_up"): 1}


def test_the_sample_run_has_every_metric_that_there_is(held: Path) -> None:
    assert {name for name, _ in scrape(held)} == {family.name for family in FAMILIES}


def test_a_run_that_ended_has_what_is_of_the_whole_run_only(tmp_path: Path) -> None:
    over = {"alive": False, "state": "ended", "queries": []}
    sites = dict.fromkeys(("fog-0", "fog-1", "cloud"), over)
    write_measured_run(tmp_path, status={**STATUS, "state": "ended", "sites": sites})
    ended: Found = states("run_state", RUN_STATES, "ended")
    for site in sites:
        ended |= states("site_state", SITE_STATES, "ended", site=site)
    assert scrape(tmp_path) == {**OF_THE_WHOLE_RUN, **ended, at("run_up"): 0}


def test_a_run_that_was_killed_says_so_and_its_sites_are_down(tmp_path: Path) -> None:
    killed = states("run_state", RUN_STATES, "killed")
    for site in STATUS["sites"]:
        killed |= states("site_state", SITE_STATES, "down", site=site)
        # When the run was last heard of.
        killed[at("site_state_since_timestamp_seconds", site=site)] = AT_S + 1
    found = scrape(write_measured_run(tmp_path))
    assert found == {**OF_THE_WHOLE_RUN, **killed, at("run_up"): 0}


@pytest.mark.parametrize("state", ["down", "restarting"])
@pytest.mark.parametrize("told_by", ["status", "frame"])
def test_a_site_that_is_not_up_has_a_state_and_no_figures(state: str, told_by: str) -> None:
    """Whichever of the two files says so first; what arrives there is known all the same."""
    away = {"state": state, "alive": False, "since_s": AT_S}
    status, frame = deepcopy(STATUS), deepcopy(FRAME)
    (status if told_by == "status" else frame)["sites"]["fog-0"] |= away
    samples = find_samples(RunReading(is_live=True, status=status, frame=frame))
    of_site = {s.name.removeprefix("thalweg_") for s in samples if "fog-0" in s.labels}
    whole = {"sent_bytes_total", "site_restarts_total", "source_rows_per_second"}
    assert of_site == whole | {"site_state", "site_state_since_timestamp_seconds"}


def test_what_is_not_known_has_no_sample(tmp_path: Path) -> None:
    with held_run(tmp_path / "a", status={"state": "starting"}, frames=[]) as folder:
        found = scrape(folder)
    names = {name.removeprefix("thalweg_") for name, _ in found}
    limits = {"uplink_limit_bytes_per_second", "response_time_limit_seconds", "usage_limit_ratio"}
    assert names == {"run_up", "run_state", *limits}


def test_a_limit_that_is_none_has_no_sample() -> None:
    names = {sample.name for sample in find_samples(RunReading(is_live=True, limits=Limits()))}
    assert names == {"thalweg_run_up"}


@pytest.mark.parametrize("damage", ["{", "[]", '{"sites": 7}', ""])
def test_a_status_that_cannot_be_read_is_one_that_is_not_known(held: Path, damage: str) -> None:
    (held / "status.json").write_text(damage)
    assert {name.removeprefix("thalweg_") for name, _ in scrape(held)} == {
        "run_up",
        "uplink_limit_bytes_per_second",
        "response_time_limit_seconds",
        "usage_limit_ratio",
    }


def test_a_frame_of_the_run_before_the_last_start_is_none_of_this_one(tmp_path: Path) -> None:
    before = {**FRAME, "at_s": BEGAN_S - 1}
    with held_run(tmp_path / "a", frames=[before]) as folder:
        names = {name for name, _ in scrape(folder)}
    assert not names & {"thalweg_uplink_bytes_per_second", "thalweg_run_figures_timestamp_seconds"}


def test_lines_of_older_versions_have_what_they_have() -> None:
    """No state of sites, no estimates, nothing under way; a lag since 1970 is an unknown one."""
    site = {"memory_bytes": 1, "lag_s": 1_795_061_662.0}
    old = {"kind": "frame", "at_s": AT_S, "figures": {"usage": 0.5}, "sites": {"fog-0": site}}
    status = {"state": "running", "sites": {"fog-0": {"alive": True, "queries": []}}}
    reading = RunReading(is_live=True, status=status, frame=old)
    found = {(s.name.removeprefix("thalweg_"), s.labels): s.value for s in find_samples(reading)}
    assert found["site_state", ("fog-0", "up")] == 1
    assert found["site_memory_bytes", ("fog-0",)] == 1
    absent = {"site_lag_seconds", "under_way", "usage_estimated_ratio", "broken_constraints"}
    assert not absent & {name for name, _ in found}


def test_a_response_time_without_bound_is_above_every_limit() -> None:
    figures = {"usage": 0.5, "uplink_bps": 8.0, "broken": ["response time: no bound, at most 2 s"]}
    reading = RunReading(is_live=True, frame={"at_s": AT_S, "figures": figures})
    found = {sample.name: sample.value for sample in find_samples(reading)}
    assert found["thalweg_response_time_seconds"] == math.inf


@fuzzed(200)
@given(spoilt([FRAME]), spoilt([STATUS]), st.booleans())
def test_whatever_the_files_hold_a_scrape_can_be_read(frame: Any, status: Any, live: bool) -> None:
    known = {family.name: family.labels for family in FAMILIES}
    for sample in find_samples(RunReading(is_live=live, status=status, frame=frame)):
        assert len(sample.labels) == len(known[sample.name])
        assert not math.isnan(sample.value)


@given(st.text(), st.text())
def test_names_can_be_read_back_from_labels(tmp_path_factory: Any, site: str, other: str) -> None:
    samples = find_samples(RunReading(is_live=False, status={"sent_bytes": {site: 1, other: 2}}))
    values = {sample.labels: sample.value for sample in samples if sample.labels}
    assert values == {(other,): 2, (site,): 1} if site != other else {(site,): 2}


NAMES = ['a "b" \\ c', "two\nlines", "fog-ü", "{}", "\\n", ""]


def test_names_with_any_character_are_read_back(tmp_path: Path) -> None:
    sent = {name: number for number, name in enumerate(NAMES, start=1)}
    with held_run(tmp_path / "a", status={**STATUS, "sent_bytes": sent}) as folder:
        found = scrape(folder)
        content, _ = Exposition([folder]).render(OPEN_METRICS)
    assert [found[at("sent_bytes_total", site=name)] for name in NAMES] == [1, 2, 3, 4, 5, 6]
    shown = {f.name: f for f in parse_open(content.decode())}["thalweg_sent_bytes"]
    assert {sample.labels["site"]: sample.value for sample in shown.samples} == sent


def test_the_same_folder_is_told_in_the_same_words(held: Path) -> None:
    exposition = Exposition([held])
    first, again = exposition.render("")[0], exposition.render("")[0]
    assert first == again
    shown = [line.split()[2] for line in first.decode().splitlines() if line.startswith("# TYPE")]
    assert shown == [family.name for family in FAMILIES]


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "text/plain; version=0.0.4"),
        ("*/*", "text/plain; version=0.0.4"),
        ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0"),
        (OPEN_METRICS, "application/openmetrics-text; version=1.0.0"),
        (f"{OPEN_METRICS},text/plain;version=0.0.4;q=0.5", "application/openmetrics-text"),
        ("application/openmetrics-text;version=what", ""),
        ("application/openmetrics-text;version=", ""),
        ("text/plain;version=" + "9" * 5000, ""),
    ],
)
def test_a_scraper_gets_the_format_that_it_asks_for(
    held: Path, accept: str, media_type: str
) -> None:
    content, told = Exposition([held]).render(accept)
    assert told.startswith(media_type)
    parse = parse_open if told.startswith("application/openmetrics-text") else parse_plain
    families = {family.name: family for family in parse(content.decode())}
    assert len(families) == len(FAMILIES)
    assert families["thalweg_sent_bytes"].type == "counter"
    assert families["thalweg_usage_ratio"].type == "gauge"


def test_runs_of_one_page_are_told_apart(tmp_path: Path) -> None:
    folders = [write_measured_run(tmp_path / name) for name in ("a/town", "b/town", "b/port")]
    found = scrape(*folders)
    names = {dict(labels)["run"] for name, labels in found if name == "thalweg_run_up"}
    assert names == {str(folders[0]), str(folders[1]), "port"}


def test_limits_are_those_of_the_model_that_the_folder_has_now(held: Path) -> None:
    collector = RunCollector([held])
    assert limit_of(collector) == 10_000
    text = (held / "application.json").read_text()
    model = json.loads(text)
    model["limits"]["uplink"] = "8 kbps"
    (held / "application.json").write_text(json.dumps(model))
    assert limit_of(collector) == 1_000


def limit_of(collector: RunCollector) -> float:
    families = {family.name: family for family in collector.collect()}
    return float(families["thalweg_uplink_limit_bytes_per_second"].samples[0].value)


# The newest frame


def first_of(folder: Path) -> dict[str, Any] | None:
    """The newest frame, found by reading everything."""
    from thalweg.spark.deployment.timeline import read_timeline

    frames = [line for line in read_timeline(folder) if line["kind"] == "frame"]
    return frames[-1] if frames else None


@fuzzed(60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["frame", "mark", "cuts", "half", "other"]), st.integers(0, 3)),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_the_newest_frame_is_the_one_that_reading_all_finds(
    tmp_path_factory: Any, lines: list[tuple[str, int]], split: int
) -> None:
    folder: Path = tmp_path_factory.mktemp("run")
    # Padding moves the newest frame beyond the first tail that is read.
    pads = ["", "x", "x" * 5_000, "x" * 70_000]
    shown = [
        '{"kind": "fra\n'
        if kind == "half"
        else json.dumps({"kind": kind, "at_s": 1.0 + i, "pad": pads[p]}) + "\n"
        for i, (kind, p) in enumerate(lines)
    ]
    (folder / "timeline.1.jsonl").write_text("".join(shown[:split]))
    (folder / "timeline.jsonl").write_text("".join(shown[split:]))
    assert read_last_frame(folder) == first_of(folder)


def test_a_timeline_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "timeline.jsonl").write_text(json.dumps(FRAME) + "\n")
    (tmp_path / "run" / "timeline.jsonl").symlink_to(tmp_path / "timeline.jsonl")
    assert read_last_frame(tmp_path / "run") is None


# Names


def test_names_have_base_units_and_counters_end_with_total() -> None:
    for family in FAMILIES:
        assert family.name.startswith("thalweg_")
        assert not {"milli", "bps", "bits", "percent"} & set(family.name.split("_"))
        assert family.meaning.endswith(".")
        assert family.unit in ("", *family.name.removesuffix("_total").split("_"))
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    assert {"thalweg_run_heartbeat_timestamp_seconds"} <= TIMES


def test_promtool_finds_nothing_wrong_with_the_metrics(held: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip(PROMTOOL.missing)
    content, _ = Exposition([held]).render("")
    check = subprocess.run([promtool, "check", "metrics"], input=content, capture_output=True)
    assert (check.returncode, check.stdout, check.stderr) == (0, b"", b"")
