"""Plans for one instance over its whole life, made again whenever they have to be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from thalweg.migration.branches import follow_branches
from thalweg.migration.city import City
from thalweg.migration.drive import Effort
from thalweg.migration.fan import Fan
from thalweg.migration.mobility import Predictor
from thalweg.migration.outlook import Outlook
from thalweg.migration.policies import Policy
from thalweg.migration.reservations import Reservations
from thalweg.migration.settings import Settings
from thalweg.migration.situation import Situation
from thalweg.migration.stability import Horizon, cannot_be_better, hold
from thalweg.migration.time_graph import Moves, MoveTime
from thalweg.migration.turns import Agreement, agree
from thalweg.model.graph import Floats, Index


@dataclass(slots=True, kw_only=True)
class Pilot:
    """Decides for one instance; ticks count from the beginning of its life."""

    city: City
    instance: int
    predictor: Predictor
    policy: Policy
    settings: Settings
    moves: tuple[Moves, ...]
    reservations: Reservations | None
    hosts: Index
    """Where each operator is at each tick, as far as is known."""
    tick_bytes: Floats
    """What each stream is taken to carry."""
    horizon: Horizon
    reserved: Index
    """What each operator has reserved from tick `planned_at` on."""
    situation: Situation | None = None
    agreement: Agreement | None = None
    planned_at: int = 0
    effort: Effort = field(default_factory=Effort)

    @classmethod
    def of(
        cls,
        city: City,
        instance: int,
        predictor: Predictor,
        policy: Policy,
        settings: Settings,
        moves: tuple[Moves, ...],
        reservations: Reservations | None,
    ) -> Pilot:
        """Before its first plan: every operator is where it starts."""
        first, end = city.life[instance].tolist()
        operators = city.graph.operators
        hosts = np.repeat(city.start[instance][:, None], end - first, axis=1)
        least = settings.least_horizon if settings.adaptive else settings.horizon
        return cls(
            city=city,
            instance=instance,
            predictor=predictor,
            policy=policy,
            settings=settings,
            moves=moves,
            reservations=reservations,
            hosts=np.ascontiguousarray(hosts),
            tick_bytes=city.carried_bytes(instance)[:, 0],
            horizon=Horizon(least=min(least, settings.horizon), most=settings.horizon),
            reserved=np.empty((len(operators), 0), dtype=np.int32),
        )

    @property
    def life(self) -> int:
        """How many ticks the instance lives."""
        return int(self.hosts.shape[1])

    def plan(self, at: int, *, anew: bool = False) -> int:
        """Plan at a tick, go by that plan, and say at which tick to plan again.

        Unless it is to be made anew, a plan that cannot be bettered is kept.
        """
        measured = self.city.carried_bytes(self.instance)[:, at]
        self.tick_bytes = hold(self.tick_bytes, measured, self.settings.rate_threshold)
        situation = self._look(at)
        if not anew and self._is_kept(at, situation):
            self.effort += Effort(kept=1)
            return self._go(at)
        before = self._so_far(at, situation.steps)
        self._release(at)
        self.agreement = agree(situation, before, self.policy)
        self.situation, self.planned_at = situation, at
        self._reserve()
        self.effort += self.agreement.effort
        return self._go(at)

    def outlook(self, operator: int) -> Outlook:
        """What an operator knew when it last planned, its neighbours' plans as they came out."""
        situation, plans = self._planned
        return situation.outlook(operator, situation.with_operators(plans), int(plans[operator, 0]))

    @property
    def _planned(self) -> tuple[Situation, Index]:
        if self.situation is None or self.agreement is None:
            raise RuntimeError("no plan has been made yet")
        return self.situation, self.agreement.plans

    @property
    def _due(self) -> int:
        """The tick at which enough of the plan is used up for the next one."""
        if self.agreement is None:
            return self.planned_at
        steps = int(self.agreement.plans.shape[1] * self.settings.refresh)
        return self.planned_at + max(1, steps) * self.settings.step_ticks

    def _look(self, at: int) -> Situation:
        first = int(self.city.life[self.instance, 0]) + at
        fans = tuple(
            self.predictor.predict(
                int(vehicle), first, self.horizon.steps, self.settings.step_ticks
            )
            for vehicle in self.city.vehicles[self.instance]
        )
        return Situation(
            city=self.city,
            settings=self.settings,
            moves=self.moves,
            reservations=self.reservations,
            first_tick=first,
            fans=fans,
            tick_bytes=self.tick_bytes,
            stayed_s=tuple(self._stayed_s(row[: at + 1]) for row in self.hosts),
        )

    def _stayed_s(self, hosts: Index) -> float:
        elsewhere = np.flatnonzero(hosts != hosts[-1])
        since = int(elsewhere[-1]) + 1 if elsewhere.size else 0
        return (hosts.size - 1 - since) * self.city.tick_s

    def _so_far(self, at: int, steps: int) -> Index:
        """The rest of the plans as they are, each operator staying where its plan ends."""
        left = self.hosts[:, at : at + 1]
        if self.agreement is not None and self.agreement.is_certain:
            done = (at - self.planned_at) // self.settings.step_ticks
            rest = self.agreement.plans[:, done : done + steps]
            left = rest if rest.shape[1] else left
        last = np.repeat(left[:, -1:], steps - left.shape[1], axis=1)
        return np.concatenate([left, last], axis=1)

    def _is_kept(self, at: int, situation: Situation) -> bool:
        """Whether what is new cannot have made another plan better; then the old one goes on."""
        # Once it is due, a plan is made that looks further ahead.
        if self.agreement is None or at >= self._due or self.reservations is not None:
            return False
        plans, place = self.agreement.plans, self.agreement.place
        done = (at - self.planned_at) // self.settings.step_ticks
        both = min(plans.shape[1] - done, situation.steps)
        if both < 1 or not self.agreement.is_certain:
            return False
        ahead, known = slice(done, done + both), situation.cut(both)
        others = known.with_operators(plans[:, ahead])
        for k, hosts in enumerate(plans[:, ahead]):
            outlook = known.outlook(k, others, int(hosts[0]))
            late = outlook.excess_s is not None and (outlook.excess_s[:, hosts[0]] > 0).any()
            if late or not cannot_be_better(place[k, ahead], outlook.place_cost(), hosts):
                return False
        self.situation = _moved_back(situation, done, plans.shape[1])
        return True

    def _release(self, at: int) -> None:
        """Give back what is reserved from a tick on."""
        if self.reservations is not None:
            first = int(self.city.life[self.instance, 0]) + at
            left = self.reserved[:, at - self.planned_at :]
            for hosts, operator in zip(left, self.city.graph.operators, strict=True):
                self.reservations.take(first, hosts, -operator.demand_ips)

    def _reserve(self) -> None:
        """Reserve the plans as far as they go and the instance lives."""
        if self.reservations is not None:
            _, plans = self._planned
            left = self.life - self.planned_at
            # A step longer than it goes: the next plan begins where this one ends.
            longer = np.concatenate([plans, plans[:, -1:]], axis=1)
            self.reserved = np.repeat(longer, self.settings.step_ticks, axis=1)[:, :left]
            first = int(self.city.life[self.instance, 0]) + self.planned_at
            for hosts, operator in zip(self.reserved, self.city.graph.operators, strict=True):
                self.reservations.take(first, hosts, operator.demand_ips)

    def _go(self, at: int) -> int:
        """Follow the plans until the next one is due; gives when that is."""
        due = max(self._due, at + self.settings.step_ticks)
        failed, changed = self._first_failure(at), self._first_change(at)
        until = min(due, failed, changed, self.life)
        if failed == until < self.life:
            self.effort += Effort(failed_predictions=1)
        if self.settings.adaptive:
            self.horizon = self.horizon.failed() if failed == until else self.horizon.held()
        until = self._after_transfers(until)
        self._follow(at, until)
        return until

    def _after_transfers(self, until: int) -> int:
        """When nothing is on its way any more: a transfer that has begun is finished."""
        _, plans = self._planned
        stride, waits = self.settings.step_ticks, True
        while waits and until < self.life:
            waits, done = False, (until - self.planned_at) // stride
            for moves, hosts in zip(self.moves, plans, strict=True):
                if moves.time is MoveTime.ONE_STEP:
                    continue
                arrive = done + 1 + np.flatnonzero(np.diff(hosts[done:]))[:1]
                if arrive.size and hosts.size > arrive[0]:
                    source = hosts[done : done + 1].astype(np.int32)
                    takes = int(moves.steps_from(source)[0, hosts[arrive[0]]])
                    if arrive[0] - takes < done:
                        until, waits = self.planned_at + int(arrive[0]) * stride, True
        return min(until, self.life)

    def _follow(self, at: int, until: int) -> None:
        """Say where operators are, to the end of the life: wherever it stops, that is true."""
        situation, plans = self._planned
        stride = self.settings.step_ticks
        # Room is reserved for the first sequence alone.
        if self.agreement and not self.agreement.is_certain and self.reservations is None:
            seen = np.arange(at, until, stride)
            hosts, wasted = follow_branches(
                situation,
                self.agreement,
                (at - self.planned_at) // stride,
                self.city.leaves_of(self.instance)[:, seen],
                self.city.carried_bytes(self.instance)[:, seen],
            )
            self.effort += wasted
            # The last column is where they go on at `until`, when the next plan is made.
            steps = np.minimum((np.arange(at, self.life) - at) // stride, hosts.shape[1] - 1)
            self.hosts[:, at:] = hosts[:, steps]
            return
        steps = (np.arange(at, self.life) - self.planned_at) // stride
        self.hosts[:, at:] = plans[:, np.minimum(steps, plans.shape[1] - 1)]

    def _first_failure(self, at: int) -> int:
        """The first tick after this one at which a user is where hardly anybody expected it."""
        situation, _ = self._planned
        stride = self.settings.step_ticks
        done = (at - self.planned_at) // stride + 1
        leaf = self.city.leaves_of(self.instance)
        ticks = np.arange(self.planned_at + done * stride, self.life, stride)
        ticks = ticks[: max(situation.steps - done, 0)]
        first = self.life
        for user, fan in enumerate(situation.fans):
            expected = fan.hosts[:, done : done + ticks.size]
            odds = fan.weight @ (expected == leaf[user, ticks])
            wrong = np.flatnonzero(odds < self.settings.doubt)
            if wrong.size:
                first = min(first, int(ticks[wrong[0]]))
        return first

    def _first_change(self, at: int) -> int:
        """The first step after this tick at which a rate is off by more than the threshold."""
        if self.city.factor is None:
            return self.life
        held, stride = self.tick_bytes[:, None], self.settings.step_ticks
        rates = self.city.carried_bytes(self.instance)[:, at + 1 :]
        off = np.abs(rates - held) > self.settings.rate_threshold * held
        changed = np.flatnonzero(off.any(axis=0))
        if not changed.size:
            return self.life
        late = at + 1 + int(changed[0]) - self.planned_at
        return min(self.planned_at - (-late // stride) * stride, self.life)


def _moved_back(situation: Situation, done: int, steps: int) -> Situation:
    """As if what is known now had been known `done` steps before, for a plan of so many steps."""
    # Before: where users are now. After what is known: where that ends.
    column = np.clip(np.arange(steps) - done, 0, situation.steps - 1)
    fans = tuple(
        Fan(weight=fan.weight, hosts=np.ascontiguousarray(fan.hosts[:, column]))
        for fan in situation.fans
    )
    return replace(situation, fans=fans)
