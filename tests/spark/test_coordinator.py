"""The coordinator on sites that are played: killed after any call, followed by another one."""

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.hand_over import Drain
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.margin import Margin
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.query.checkpoint import Stand
from thalweg.spark.site.channel import NO_QUERY, SiteError

FOGS = ("fog-0", "fog-1")
WISHES = st.lists(
    st.dictionaries(st.sampled_from(FOGS), st.sampled_from([(), ("a",), ("a", "b")]), min_size=1),
    min_size=1,
    max_size=5,
)


class Killed(Exception):
    """The coordinator died here."""


class PlayedSite:
    """Processes that die with the coordinator, checkpoints that do not."""

    def __init__(self, name, world):
        self.name, self.world = name, world
        self.checkpoints, self.running = {}, None

    def start(self, query):
        self.world.count()
        if query.role == "fog":
            begin = (query.start or {"rides": 0})["rides"]
            self.checkpoints.setdefault(
                query.name, {"batch": -1, "offset": begin, "cut": query.cut}
            )
            assert self.checkpoints[query.name]["cut"] == query.cut
            self.running = query
        self.world.count()

    def work(self, rows):
        if self.running is not None:
            stand = self.checkpoints[self.running.name]
            for _ in range(rows):
                stand["batch"] += 1
                self.world.publish(self.name, self.running.epoch, stand["batch"], stand["offset"])
                stand["offset"] += 1

    def prepare(self, query):
        self.world.count()

    def newest_ms(self, query):
        self.world.count()

    def drain(self, query):
        self.world.count()
        if query == "cloud@0":
            return Stand()
        if self.running is None or self.running.name != query:
            # As a site does with what it has ended before.
            raise SiteError(self.name, "drain", f"{NO_QUERY} {query}; known: ")
        stand = self.checkpoints[query]
        self.running = None
        self.world.count()
        if stand["batch"] < 0:
            return Stand()
        return Stand(batch=stand["batch"], offsets={"rides": stand["offset"]})


class World:
    """Sites, the log, and a clock that kills the coordinator at one of its calls."""

    def __init__(self):
        self.sites = {name: PlayedSite(name, self) for name in (*FOGS, "cloud")}
        self.fences, self.rows, self.left = {}, {name: [] for name in FOGS}, None

    def count(self):
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                self.left = None
                raise Killed

    def publish(self, site, epoch, batch, offset):
        if (site, epoch) not in self.fences and (epoch, batch, offset) not in self.rows[site]:
            self.rows[site].append((epoch, batch, offset))

    def fence(self, site, epoch, last_batch=None):
        self.count()
        assert self.fences.setdefault((site, epoch), last_batch) == last_batch
        self.count()

    def die(self):
        for site in self.sites.values():
            site.running = None


def interleave(sequences, random):
    """The steps of several sites in any order; whoever dies takes all along."""
    left = list(sequences)
    while left:
        sequence = random.choice(left)
        if next(sequence, None) is None:
            left.remove(sequence)


@settings(max_examples=150, deadline=None)
@given(WISHES, st.randoms(use_true_random=False))
def test_whatever_kills_the_coordinator_rows_arrive_once(tmp_path_factory, wishes, random):
    folder, world = tmp_path_factory.mktemp("run"), World()
    spec = DeploymentSpec(pipeline="a:b", folder=folder, fogs=FOGS)
    for wanted in wishes:
        world.left = random.choice([None, 1, 2, 3, 5, 8, 13])
        while True:
            try:
                with Coordinator(
                    spec,
                    world.sites,
                    world,
                    openings={},
                    run_all=lambda sequences: interleave(sequences, random),
                    on_step=lambda _: [s.work(random.randrange(3)) for s in world.sites.values()],
                ) as coordinator:
                    coordinator.go_to(wanted)
                    for site, cut in wanted.items():
                        assert coordinator.state.cuts[site] == cut
                        assert world.sites[site].running.cut == cut
                    for site in world.sites.values():
                        site.work(2)
                break
            except Killed:
                world.die()
    for site in FOGS:
        offsets = [offset for _, _, offset in world.rows[site]]
        assert sorted(offsets) == list(range(len(offsets)))


def test_steps_are_told_before_they_are_taken(tmp_path):
    world, told = World(), []
    spec = DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=FOGS)
    with Coordinator(spec, world.sites, world, openings={}, on_step=told.append) as coordinator:
        coordinator.go_to({"fog-0": ("a",), "fog-1": ()})
        outlined = coordinator.outline({"fog-0": ()})
        taken = coordinator.go_to({"fog-0": ()})
        assert [type(step).__name__ for step in taken] == [
            "Prepare",
            "Drain",
            "Fence",
            "StartEpoch",
        ]
        assert outlined[0] == str(taken[0])
        assert told[-4:] == list(taken)
        assert set(coordinator.stop()) == {"fog-0", "fog-1", "cloud"}


def test_a_first_start_that_was_not_written_down_is_done_again_whatever_is_wanted_then(tmp_path):
    world = World()
    spec = DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=FOGS)
    world.left = 4  # The cloud has started, and so has the fog.
    with (
        pytest.raises(Killed),
        Coordinator(spec, world.sites, world, openings={}) as coordinator,
    ):
        coordinator.go_to({"fog-0": ("a",)})
    world.sites["fog-0"].work(3)
    world.die()
    with Coordinator(spec, world.sites, world, openings={}) as coordinator:
        assert coordinator.state.cuts == {"fog-0": ("a",)}
        coordinator.go_to({"fog-0": ("a", "b")})
        assert coordinator.state.cuts == {"fog-0": ("a", "b")}
        world.sites["fog-0"].work(2)
    assert [offset for _, _, offset in world.rows["fog-0"]] == [0, 1, 2, 3, 4]


def test_a_drain_that_was_done_and_not_written_down_can_be_done_again(tmp_path):
    """A full disk stops the journal, not the site: it has forgotten the query by then."""
    world = World()
    spec = DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=FOGS)

    def fill(step):
        if isinstance(step, Drain) and fill.times:
            fill.times -= 1
            raise OSError(28, "No space left on device")

    fill.times = 2
    with Coordinator(spec, world.sites, world, openings={}, on_done=fill) as coordinator:
        coordinator.go_to({"fog-0": ("a",)})
        world.sites["fog-0"].work(3)
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                coordinator.go_to({"fog-0": ()})
        coordinator.go_to({"fog-0": ()})
        assert coordinator.state.cuts["fog-0"] == ()
        world.sites["fog-0"].work(2)
    offsets = [offset for _, _, offset in world.rows["fog-0"]]
    assert sorted(offsets) == list(range(5))


def test_bad_deployments_are_told_all_at_once(tmp_path):
    with pytest.raises(tw.InvalidInput) as told:
        DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=("../etc", "cloud"), cloud="cloud")
    assert len(told.value.defects) == 2
    spec = DeploymentSpec(pipeline="a:b", folder=Path(tmp_path), fogs=FOGS)
    with pytest.raises(tw.InvalidInput, match="a site that was started"):
        Coordinator(spec, {}, World())


def both_at_once(monkeypatch, step):
    """Let no site do this before the other one is at it, too."""
    meeting = threading.Barrier(len(FOGS))
    act = getattr(PlayedSite, step)

    def meet(site, *given):
        meeting.wait(60.0)
        return act(site, *given)

    monkeypatch.setattr(PlayedSite, step, meet)


def test_sites_change_at_the_same_time(tmp_path, monkeypatch):
    world, lock, told = World(), threading.Lock(), []

    def tell(step):
        assert lock.acquire(blocking=False), "steps are told one at a time"
        told.append((type(step).__name__, step.site))
        lock.release()

    spec = DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=FOGS)
    with Coordinator(
        spec, world.sites, world, openings={}, on_step=tell, on_done=tell
    ) as coordinator:
        coordinator.go_to(dict.fromkeys(FOGS, ("a",)))
        both_at_once(monkeypatch, "prepare")
        both_at_once(monkeypatch, "drain")
        told.clear()
        taken = coordinator.go_to(dict.fromkeys(FOGS, ("a", "b")))
        assert coordinator.state.cuts == dict.fromkeys(FOGS, ("a", "b"))
    for fog in FOGS:
        steps = ["Prepare", "Drain", "Fence", "StartEpoch"]
        assert [type(step).__name__ for step in taken if step.site == fog] == steps
        # Of each: when it begins, and when it is done.
        assert [kind for kind, site in told if site == fog] == [s for s in steps for _ in range(2)]
    with Journal(spec.journal) as journal:
        assert journal.state(FOGS).cuts == dict.fromkeys(FOGS, ("a", "b"))


def test_a_site_that_fails_leaves_the_others_to_their_end(tmp_path, monkeypatch):
    world = World()
    spec = DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=FOGS)
    with Coordinator(spec, world.sites, world, openings={}) as coordinator:
        coordinator.go_to(dict.fromkeys(FOGS, ("a",)))
        drain = PlayedSite.drain

        def fail(site, query):
            if site.name == "fog-0":
                raise SiteError(site.name, "drain", "its process has ended")
            return drain(site, query)

        with monkeypatch.context() as broken:
            broken.setattr(PlayedSite, "drain", fail)
            with pytest.raises(SiteError, match="fog-0: drain"):
                coordinator.go_to(dict.fromkeys(FOGS, ()))
        assert coordinator.state.cuts == {"fog-0": ("a",), "fog-1": ()}
        coordinator.go_to(dict.fromkeys(FOGS, ()))
        assert coordinator.state.cuts == dict.fromkeys(FOGS, ())


@given(st.lists(st.integers(0, 20_000), max_size=6), st.floats(0.0, 10.0))
def test_the_margin_follows_how_far_time_went_on(went_on_ms, most_s):
    margin, newest_ms = Margin(most_s=most_s), 1_000_000
    for step_ms in went_on_ms:
        ahead_ms = margin.begin("fog-0", newest_ms)
        assert newest_ms <= ahead_ms <= newest_ms + round(most_s * 1000)
        newest_ms += step_ms
        margin.end("fog-0", newest_ms)
        # Were the next one to take as long, its bounds would not be overtaken, if that may be.
        assert margin.seconds >= min(most_s, step_ms / 1000)
    assert went_on_ms or margin.seconds == most_s
    slowest_s = max(went_on_ms, default=0) / 1000
    assert margin.seconds >= min(most_s, slowest_s)
    margin.end("fog-1", 5)
    margin.end("fog-0", None)
    margin.forget()
    assert margin.seconds == most_s
