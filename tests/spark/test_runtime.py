"""When sites rehearse, and what for."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from thalweg.spark.deployment import runtime
from thalweg.spark.deployment.runtime import SparkRuntime, largest_cut
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.channel import SiteError

TAXI = "thalweg.spark.examples.taxi:taxi_fares"
SMALL, LARGE = ("parse",), ("parse", "clean")


class PlayedSite:
    alive = False
    queries = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.rehearsed: list[QuerySpec] = []
        self.rows_from: list[Path | None] = []
        self.asked = threading.Event()

    def rehearse(self, query: QuerySpec, rows_from: Path | None, patience_s: float) -> None:
        assert patience_s > 0
        self.rows_from.append(rows_from)
        self.rehearsed.append(query)
        self.asked.set()
        raise SiteError(self.name, "rehearse", "not today")


class PlayedSites(dict[str, PlayedSite]):
    def restart(self, site: str) -> None:
        self[site].asked.clear()


def play(folder: Path, rehearsed: tuple[str, ...]) -> tuple[SparkRuntime, PlayedSites]:
    sites = PlayedSites({name: PlayedSite(name) for name in ("fog-1", "fog-2", "cloud")})
    state = SimpleNamespace(cuts={})
    coordinator = SimpleNamespace(
        spec=DeploymentSpec(pipeline=TAXI, folder=folder, fogs=("fog-1", "fog-2")),
        state=state,
        go_to=lambda cuts: state.cuts.update(cuts) or (),
        forget_pace=lambda: None,
    )
    made: Any = SparkRuntime
    return made(sites, coordinator, rehearsed), sites


@pytest.mark.parametrize("busy", [False, True])
def test_a_site_rehearses_once_in_a_folder_of_its_own_and_again_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    monkeypatch.setattr(runtime, "is_busy", lambda: busy)
    made, sites = play(tmp_path, LARGE)
    made.go_to({"fog-1": SMALL, "fog-2": LARGE[::-1]})
    made.go_to({"fog-1": ()})
    assert sites["fog-1"].asked.wait(10)
    (query,) = sites["fog-1"].rehearsed
    assert (query.cut, query.role, query.site) == (LARGE, "fog", "fog-1")
    assert {query.log.parent, query.checkpoint.parent} == {tmp_path / "rehearsals" / "fog-1"}
    # What it would rehearse runs there; and the cloud always runs everything.
    assert not sites["fog-2"].rehearsed
    made.restart("fog-1")
    if busy:
        # Rows are waiting for it: it rehearses after the next change.
        assert not sites["fog-1"].asked.wait(0.1)
        made.go_to({"fog-1": ()})
    assert sites["fog-1"].asked.wait(10)
    made.restart("cloud")
    # With rows where they keep nobody waiting: not before anything runs, and not while it is busy.
    log = tmp_path / "log"
    assert sites["fog-1"].rows_from == [None, None if busy else log]
    assert not sites["cloud"].rehearsed


def test_without_operators_nothing_is_rehearsed(tmp_path: Path) -> None:
    made, sites = play(tmp_path, ())
    made.go_to({"fog-1": SMALL})
    assert not sites["fog-1"].rehearsed


def test_the_largest_cut_has_all_that_may_run_at_a_site() -> None:
    cut = largest_cut(TAXI)
    assert set(LARGE) < set(cut)
    assert {"speed-by-zone", "fares-by-zone"} < set(cut)
    assert "rides" not in cut
    assert "rank-zones" not in cut
