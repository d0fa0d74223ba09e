"""Observing, deciding, moving: rates and links that flap, the adapter, and the hand-over after it.

The adapter, with its trigger and a strategy, is that of a run; the loop around it is this world's
own. What is decided is carried out by the coordinator of `campaign.control.hand_over`, with the
same faults. A coordinator that dies takes what its trigger remembers with it, so that what a
trigger promises is promised for each life of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property

import thalweg as tw
from campaign.control import invariants
from campaign.control.hand_over import CALM_S, FOGS, Cuts, HandOverWorld
from campaign.control.invariants import require
from thalweg.adapt import Observation, Trigger
from thalweg.adapt.controller import Controller
from thalweg.adapt.state import ControllerState
from thalweg.model import Limits, Placement, Plan
from thalweg.scenarios import fog_cloud
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.decisions import Adapter, Rates, Verdict
from thalweg.spark.deployment.plan import find_sites

LEVELS = (200.0, 1_000.0, 3_000.0, 6_000.0, 10_000.0)
"""Events per second at a fog: from much room to far too many."""
WIDE_BPS, NARROW_BPS = 100e6, 3e6
MOST_AND_MARGIN: tuple[tuple[float | None, float], ...] = ((None, 0.05), (0.0105, 0.5))
"""Of the usage: as usual, and so that what it comes down to often lies within the margin."""
REMEMBERED = 16
"""How many questions a trigger remembers."""
_NOISE = (1.0, 1.01)
_QUIET_S = 15.0


def taxi_like() -> tw.Application:
    """Three operators in a row; the middle one has windows and needs most of the work."""
    window = tw.TimeWindow(10.0, 5.0)
    return tw.Application(
        name="rows",
        operators=[
            tw.Operator(
                name="rides", kind="source", rate=500.0, event_size=200.0, pin=tw.Pin(tier="fog")
            ),
            tw.Operator(name="x", selectivity=0.5, cpu_per_event=1e4, replicable=True),
            tw.Operator(
                name="o",
                selectivity=0.1,
                cpu_per_event=1e6,
                memory=1e5,
                window=window,
                replicable=True,
            ),
            tw.Operator(name="p", selectivity=0.5, cpu_per_event=1e4, replicable=True),
            tw.Operator(name="sink", kind="sink", pin=tw.Pin(tier="cloud")),
        ],
        streams=[
            tw.Stream(source=a, target=b)
            for a, b in (("rides", "x"), ("x", "o"), ("o", "p"), ("p", "sink"))
        ],
        limits=Limits(response_time_s=5.0, uplink_bps=9e6, usage=0.002),
    )


class RememberingController(Controller):
    """The same answers, found once for the same question: both are pure."""

    def evaluate(self, problem: tw.Problem, placement: Placement) -> Plan:
        """What a placement costs."""
        key = (problem.network.name, _key(problem.birth_rates), placement.fingerprint)
        if key not in _seen:
            _seen[key] = super().evaluate(problem, placement)
        return _seen[key]

    def find(self, problem: tw.Problem, running: Placement | None) -> Plan:
        """What the strategy says."""
        deployed = None if running is None else running.fingerprint
        key = (problem.network.name, _key(problem.birth_rates), deployed)
        if key not in _plans:
            _plans[key] = super().find(problem, running)
        return _plans[key]


class RememberingAdapter(Adapter):
    """An adapter with such a controller."""

    @cached_property
    def controller(self) -> Controller:
        """What decides."""
        plain = super().controller
        return RememberingController(**{f.name: getattr(plain, f.name) for f in fields(plain)})


_plans: dict[object, Plan] = {}
_seen: dict[object, Plan] = {}


@cache
def adapter_on(bandwidth_bps: float) -> RememberingAdapter:
    """Two fogs with links of this bandwidth."""
    network = fog_cloud(
        len(FOGS),
        seed=1,
        name=f"links-of-{bandwidth_bps:.0f}",
        fog_bandwidth_bps=(bandwidth_bps, bandwidth_bps),
    )
    application = taxi_like()
    sites = find_sites(tw.Problem(application=application, network=network))
    return RememberingAdapter(application=application, network=network, sites=sites)


@dataclass
class TriggerLife:
    """What one trigger has decided, from its first look on."""

    trigger: Trigger
    state: ControllerState = field(default_factory=ControllerState)
    optional_s: list[float] = field(default_factory=list)
    optional_levels: list[tuple[bool, float]] = field(default_factory=list)
    """Of each optional answer, whether the usage had crossed its limit, and usage by limit."""
    asked: list[tuple[object, bool]] = field(default_factory=list)
    """Each question, and whether the answer was to stay."""
    bad_looks: list[int] = field(default_factory=list)
    """How many looks in a row were bad at each answer."""
    _bad_in_a_row: int = 0
    _has_crossed: bool = False
    """Whether the usage was above its limit at an answer, and not clearly below it since."""

    def take(
        self, verdict: Verdict, state: ControllerState, question: object, now_s: float
    ) -> None:
        """Remember what came of a look."""
        self.state = state
        usage = self.usage_by_limit(verdict.seen)
        is_high = usage > 1.0
        is_bad = is_high or (verdict.seen is not None and bool(verdict.seen.broken))
        self._bad_in_a_row = self._bad_in_a_row + 1 if is_bad else 0
        self._has_crossed = self._has_crossed and usage > 1.0 - self.trigger.clear_margin
        if state.trigger.adapted_s != now_s:
            return
        self.asked.append((question, not verdict.adapt))
        self.bad_looks.append(self._bad_in_a_row)
        if verdict.reason.removeprefix("kept: ").startswith("usage "):
            self.optional_s.append(now_s)
            self.optional_levels.append((self._has_crossed, usage))
        self._has_crossed = self._has_crossed or is_high

    def usage_by_limit(self, seen: Observation | None) -> float:
        """How high the usage is, by the most that is wanted; 0 where nothing was seen."""
        if seen is None:
            return 0.0
        most = self.trigger.usage_most
        return seen.usage / (seen.limits.usage if most is None else most)

    @property
    def in_vain(self) -> Counter[object]:
        """How often each of the questions that a trigger remembers was asked in vain."""
        return Counter(question for question, stayed in self.asked[-REMEMBERED:] if stayed)


class AdaptationWorld(HandOverWorld):
    """One run: the loop from what is measured to what runs."""

    name = "adaptation"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        random = self.scheduler.random
        most, margin = MOST_AND_MARGIN[seed % len(MOST_AND_MARGIN)]
        self.trigger = Trigger(
            patience=random.randint(1, 2),
            rest_s=random.choice((4.0, 10.0)),
            usage_most=most,
            clear_margin=margin,
            change_least=0.1,
        )
        self.sides = {fog: random.sample(LEVELS, 2) for fog in FOGS}
        self.levels = {fog: sides[0] for fog, sides in self.sides.items()}
        self.bandwidth_bps = WIDE_BPS
        self.flap_s = random.choice((0.7, 2.0, 6.0))
        self.trigger_life = TriggerLife(self.trigger)
        self.checked_life = (-1, 0, 0)
        self.changed_s = 0.0
        _, cuts = self.adapter.plan(self.rates())
        self.wanted = dict(cuts)

    @property
    def adapter(self) -> Adapter:
        """What decides, on the network as it is now."""
        return replace(adapter_on(self.bandwidth_bps), trigger=self.trigger)

    def rates(self) -> Rates:
        """What is measured now: never twice the same."""
        random = self.scheduler.random
        return {("rides", fog): level * random.choice(_NOISE) for fog, level in self.levels.items()}

    def plan_wishes(self) -> None:
        """Nobody wants anything by hand: rates and links go to and fro instead."""
        self.scheduler.after(self.flap_s, "", self.flap)

    def flap(self) -> None:
        """A rate goes to the other side, or all links do."""
        if self.network.is_calm:
            return
        random = self.scheduler.random
        if random.random() < 0.2:
            narrow = self.bandwidth_bps == WIDE_BPS
            self.bandwidth_bps = NARROW_BPS if narrow else WIDE_BPS
            self.scheduler.fault("flapping link", f"links have {self.bandwidth_bps:.0f} bps")
        else:
            fog = random.choice(FOGS)
            a, b = self.sides[fog]
            self.levels[fog] = b if self.levels[fog] == a else a
            self.scheduler.fault("flapping rate", f"{fog} has {self.levels[fog]:.0f} events/s")
        self.changed_s = self.scheduler.now_s
        self.scheduler.after(random.uniform(0.5, 1.5) * self.flap_s, "", self.flap)

    def check(self) -> None:
        """What holds for every hand-over, and what the trigger promises."""
        super().check()
        life = self.trigger_life
        stamp = (self.term, len(life.asked), len(life.optional_s))
        if stamp == self.checked_life:
            return
        self.checked_life = stamp
        require(invariants.optional_ones_rest, life.optional_s, self.trigger.rest_s)
        require(invariants.answers_are_patient, life.bad_looks, self.trigger.patience)
        require(invariants.crossed_ones_are_clear, life.optional_levels, self.trigger.clear_margin)
        require(invariants.in_vain_once, life.in_vain)

    def coordinate(self) -> None:
        """One life of a coordinator, which begins with nothing in mind."""
        self.trigger_life = TriggerLife(self.trigger)
        super().coordinate()
        self.check_answers()

    def tend(self, coordinator: Coordinator) -> None:
        """Look at how it goes, have it adapted if that is better, then wait as ever."""
        cuts = coordinator.state.cuts
        if set(cuts) == set(FOGS) and not self.sites[FOGS[0]].is_ending:
            self.look(cuts)
        super().tend(coordinator)

    def look(self, cuts: Cuts) -> None:
        """What the trigger and the strategy say about the cuts that run."""
        now_s, rates = self.scheduler.now_s, self.rates()
        life = self.trigger_life
        verdict, state = self.adapter.look(life.state, now_s, cuts, rates)
        causes = frozenset(e.name for e in verdict.seen.broken) if verdict.seen else frozenset()
        high = life.usage_by_limit(verdict.seen) > 1.0
        question = (_key(cuts), _key(self.levels), self.bandwidth_bps, causes, high)
        life.take(verdict, state, question, now_s)
        self.scheduler.note(f"look: {verdict.reason}")
        if verdict.cuts is not None:
            self.changed_s = now_s
            self.want(verdict.cuts)

    def has_arrived(self, coordinator: Coordinator) -> bool:
        """Whether what is wanted runs, and the loop has been quiet for longer than it rests."""
        quiet_s = self.scheduler.now_s - max(self.changed_s, CALM_S)
        return quiet_s > _QUIET_S and super().has_arrived(coordinator)

    def check_answers(self) -> None:
        """In the end nothing is violated that other cuts would mend."""
        rates = {("rides", fog): level for fog, level in self.levels.items()}
        now_s = self.scheduler.now_s
        seen = self.adapter.observe(ControllerState(), now_s, self.wanted, rates)
        _, better = self.adapter.plan(rates, self.wanted)
        broken = [excess.text for excess in seen.observation.broken] if seen else []
        require(invariants.violations_are_answered, broken, self.wanted, better)


def _key(values: Cuts | Rates | Mapping[str, float]) -> object:
    return tuple(sorted(values.items()))
