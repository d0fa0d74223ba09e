"""What keeps a keyed operator going, on sites that are played; on Spark the campaign kills it."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark.keyed_specs import spec_in
from spark.threaded_site import ThreadedSite
from thalweg.spark.deployment.lines import append_durably
from thalweg.spark.deployment.restarts import DeploymentFailed, RestartBudget
from thalweg.spark.keyed.keeper import KeyedKeeper
from thalweg.spark.keyed.mover import MoveFailed
from thalweg.spark.site.channel import SiteError
from thalweg.spark.site.site import SiteEvent


class PlayedSites(dict[str, Any]):
    """Sites without Spark that can be killed, and may not come back."""

    def __init__(self, *names: str) -> None:
        super().__init__({name: ThreadedSite() for name in names})
        self.restarted: list[str] = []
        self.stays_dead = False
        self.events: list[SiteEvent] = []

    def kill(self, name: str) -> None:
        self[name].alive = False
        self[name].die()
        self.events.append(SiteEvent(site=name, kind="died", detail="killed", query=None))

    def restart(self, name: str) -> None:
        self.restarted.append(name)
        if self.stays_dead:
            raise SiteError(name, "start", "it does not start")
        self[name].alive = True

    def next_event(self, timeout_s: float) -> SiteEvent | None:
        return self.events.pop(0) if self.events else None


class MortalSite(ThreadedSite):
    """A site whose queries end when it dies."""

    def die(self) -> None:
        for query in list(self._queries):
            self._queries.pop(query).end()

    def start(self, query: Any) -> None:
        if not self.alive:
            raise SiteError("x", "start", "its process has ended")
        if query.name in self._queries and self._queries[query.name].error:
            self._queries.pop(query.name).end()
        if query.name not in self._queries:
            # All that counts is in the log, so every start is a new one.
            for folder in (str(query.checkpoint), f"{query.checkpoint}.lots"):
                shutil.rmtree(folder, ignore_errors=True)
        super().start(query)


def sites_of(*names: str) -> PlayedSites:
    sites = PlayedSites(*names)
    sites.update({name: MortalSite() for name in names})
    return sites


def keep(folder: Path, sites: PlayedSites, **options: Any) -> KeyedKeeper:
    return KeyedKeeper(spec_in(folder), cast("Any", sites), **options)


def test_a_target_that_is_dead_is_started_and_the_move_goes_on(tmp_path: Path) -> None:
    sites = sites_of("a", "b")
    with keep(tmp_path, sites) as keeper:
        keeper.go_to("a")
        sites.kill("b")
        keeper.go_to("b")
        assert keeper.site == "b"
        assert sites.restarted == ["b"]
        sites["b"].die()


def test_what_dies_while_nothing_moves_is_started_with_its_query(tmp_path: Path) -> None:
    sites = sites_of("a")
    with keep(tmp_path, sites) as keeper:
        keeper.go_to("a")
        sites.kill("a")
        assert keeper.tend()
        assert not keeper.tend()
        assert sites.restarted == ["a"]
        assert [query.name for query in sites["a"].status().queries] == ["tally.a@0"]
        assert keeper.restarts == 1
        sites["a"].die()


def test_a_site_that_does_not_stay_is_given_up_with_the_reason(tmp_path: Path) -> None:
    sites = sites_of("a", "b")
    with keep(tmp_path, sites, budget=RestartBudget(most=3, within_s=60.0)) as keeper:
        keeper.go_to("a")
        sites.kill("b")
        sites.stays_dead = True
        with pytest.raises(DeploymentFailed, match="it does not start"):
            keeper.go_to("b")
        assert sites.restarted == ["b"] * 3
        assert keeper.site == "a"
        sites["a"].die()


def test_a_failure_that_no_restart_can_mend_is_told(tmp_path: Path) -> None:
    sites = sites_of("a", "b")
    with keep(tmp_path, sites) as keeper:
        keeper.go_to("a")
        keeper._mover._wait = _fail  # type: ignore[method-assign]
        with pytest.raises(MoveFailed, match="in vain"):
            keeper.go_to("b")
        assert sites.restarted == []
        for site in sites.values():
            site.die()


def _fail(*_: object) -> None:
    raise MoveFailed("waited in vain")


def test_other_events_are_left_alone(tmp_path: Path) -> None:
    sites = sites_of("a")
    sites.events.append(cast("Any", SimpleNamespace(site="a", kind="silent", detail="")))
    with keep(tmp_path, sites) as keeper:
        assert not keeper.tend()


class PlayedDisk:
    """A disk with a log that comes back when it was looked for often enough."""

    def __init__(self, log: Path, looks: int) -> None:
        self.log, self.away = log, log.with_name("away")
        self.looks = looks
        self.told: list[str] = []

    def go(self) -> None:
        self.log.rename(self.away)

    def sleep(self, _seconds: float) -> None:
        self.looks -= 1
        if self.looks == 0:
            shutil.rmtree(self.log, ignore_errors=True)
            self.away.rename(self.log)


@pytest.mark.parametrize("leaves_a_folder", [False, True])
def test_a_move_waits_while_the_log_is_away(tmp_path: Path, leaves_a_folder: bool) -> None:
    sites, disk = sites_of("a", "b"), PlayedDisk(tmp_path / "log", looks=8)
    with keep(tmp_path, sites, sleep=disk.sleep, on_outage=disk.told.append) as keeper:
        keeper.go_to("a")
        disk.go()
        if leaves_a_folder:
            disk.log.mkdir()
        keeper.go_to("b")
        assert keeper.site == "b"
        assert disk.looks == 0
        assert ["there is no log" in told for told in disk.told] == [True]
        # It is no fault of a site, however long it takes.
        assert keeper.restarts <= 1
        for site in sites.values():
            site.die()


def test_a_disk_that_does_not_come_back_is_given_up_with_the_reason(tmp_path: Path) -> None:
    sites, disk = sites_of("a", "b"), PlayedDisk(tmp_path / "log", looks=1_000)
    with keep(tmp_path, sites, sleep=disk.sleep, outage_patience_s=3.0) as keeper:
        keeper.go_to("a")
        disk.go()
        with pytest.raises(DeploymentFailed, match=r"waited 3 s in vain.*there is no log"):
            keeper.go_to("b")
        assert keeper.site == "a"
        for site in sites.values():
            site.die()


def test_a_move_waits_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites, left = sites_of("a", "b"), [3]

    def find_outage(*_: object) -> str | None:
        return "full" if left[0] else None

    def gain_room(_seconds: float) -> None:
        left[0] -= 1

    def write(number: int, line: bytes) -> None:
        if left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        append_durably(number, line)

    with keep(tmp_path, sites, sleep=gain_room) as keeper:
        keeper.go_to("a")
        monkeypatch.setattr("thalweg.spark.keyed.keeper.find_outage_at", find_outage)
        monkeypatch.setattr("thalweg.spark.keyed.mover.append_durably", write)
        keeper.go_to("b")
        assert keeper.site == "b"
        assert left == [0]
        assert keeper.restarts == 0
        for site in sites.values():
            site.die()
