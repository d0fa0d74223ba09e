"""What the benchmarks rely on to give a true answer."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bad_input import find_fault
from benchmarks.bad_input.cases import find_kept_cases, make_hostile_cases
from benchmarks.coordinates import generate_round_trips
from benchmarks.foundation.paths import sum_over_paths
from benchmarks.measure import Run
from thalweg.estimate.latency import Latencies
from thalweg.model import Application, Operator, Pin, Placement, Problem, Stream
from thalweg.model.deployment import deploy
from thalweg.scenarios import cloud_edge


def test_walking_adds_up_every_path() -> None:
    network = cloud_edge(clouds=1, sites=1, devices_per_site=1)
    edge, cloud = (network.node_name(k) for k in range(2))
    middle = ["left", "right"]
    app = Application(
        name="diamond",
        operators=[
            Operator(name="in", kind="source", rate=1.0, event_size=1.0, pin=Pin(tier="edge")),
            *(Operator(name=name) for name in middle),
            Operator(name="out", kind="sink", pin=Pin(tier="cloud")),
        ],
        streams=[
            *(Stream(source="in", target=name) for name in middle),
            Stream(source="left", target="right"),
            *(Stream(source=name, target="out") for name in middle),
        ],
    )
    problem = Problem(application=app, network=network)
    births = problem.births
    placement = Placement.from_indices(
        problem,
        np.arange(4),
        [int(births.node[0]), *[network.node_index(cloud)] * 3],
        [int(births.site[0]), -1, -1, -1],
    )
    assert edge != cloud
    deployment = deploy(problem, placement)
    service = np.array([1.0, 10.0, 100.0, 1000.0])
    transfer = np.arange(1.0, 6.0) / 8
    latencies = Latencies(service, transfer)
    # in→left, in→right, left→right, left→out, right→out carry 1/8, 2/8, 3/8, 4/8, 5/8.
    paths = [
        1 + 10 + 1000 + (1 + 4) / 8,
        1 + 100 + 1000 + (2 + 5) / 8,
        1 + 10 + 100 + 1000 + (1 + 3 + 5) / 8,
    ]
    assert sum_over_paths(deployment, latencies) == sum(paths)


def test_generated_round_trips_are_symmetric_with_an_empty_diagonal() -> None:
    rtt_s = generate_round_trips(20, np.random.default_rng(1))
    assert np.array_equal(rtt_s, rtt_s.T)
    assert (np.diag(rtt_s) == 0).all()
    assert (rtt_s[~np.eye(20, dtype=bool)] > 0).all()
    again = generate_round_trips(20, np.random.default_rng(1))
    assert np.array_equal(rtt_s, again)


@pytest.mark.parametrize(
    ("exit_code", "stderr", "timed_out", "fault"),
    [
        (2, "city.yaml: got 1, need 2", False, ""),
        (0, "fine", False, "exit code 0, need 2"),
        (-9, "", True, "no answer within 10 s"),
        (2, "Traceback (most recent call last):\n…", False, "a traceback"),
        (2, "", False, "no message"),
    ],
)
def test_an_answer_is_right_only_with_exit_code_2_and_a_message(
    exit_code: int, stderr: str, timed_out: bool, fault: str
) -> None:
    run = Run(
        exit_code=exit_code,
        seconds=0.1,
        cpu_s=0.1,
        peak_bytes=1,
        timed_out=timed_out,
        stdout="",
        stderr=stderr,
    )
    assert find_fault(run) == fault


@pytest.mark.slow
def test_hostile_files_are_as_hostile_as_they_say(tmp_path: Path) -> None:
    cases = {case.name: case for case in make_hostile_cases(tmp_path)}
    assert all(Path(case.arguments[1]).parent == tmp_path for case in cases.values())
    assert (tmp_path / "four-gigabytes-of-nothing.json").stat().st_size == 4 * 1024**3
    for name in ("many-typing-errors", "many-dangling-streams", "many-twins", "a-cycle-of-6000"):
        document = json.loads((tmp_path / f"{name}.json").read_text())
        assert len(document["operators"]) >= 4_000
    streams = json.loads((tmp_path / "a-cycle-of-6000.json").read_text())["streams"]
    followed = {stream["source"]: stream["target"] for stream in streams}
    walk = "operator-0"
    for _ in itertools.repeat(None, len(streams)):
        walk = followed[walk]
    assert walk == "operator-0"
    assert (tmp_path / "matrix-bomb.npz").stat().st_size < 1_000_000


def test_every_kept_case_is_asked_about_as_it_wants_to_be(tmp_path: Path) -> None:
    names = [
        "application/cycle.yaml",
        "pair/alone/app.yaml",
        "pair/alone/network.yaml",
        "pair/changed/newer.json",
        "pair/changed/older.json",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "expected.yaml").write_text(
        "application/cycle.yaml: {problems: 1}\n"
        "pair/alone: {problems: 1}\n"
        "pair/changed: {problems: 1, command: [diff, older.json, newer.json]}\n"
    )
    cycle, app, network, newer, older = (str(tmp_path / name) for name in names)
    assert {case.name: case.arguments for case in find_kept_cases(tmp_path)} == {
        "application/cycle.yaml": ("validate", cycle),
        "pair/alone": ("validate", app, network),
        "pair/changed": ("diff", older, newer),
    }
