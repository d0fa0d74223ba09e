"""Plans for one instance over its whole life, made again whenever they have to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from thalweg.migration.city import City
from thalweg.migration.compiled.driving import plan_in_turns
from thalweg.migration.compiled.pricing import price_hosts
from thalweg.migration.drive import Effort, state_bytes, stream_ends
from thalweg.migration.fan import Fan
from thalweg.migration.mobility import Predictor
from thalweg.migration.outlook import Flags, Outlook, Tie
from thalweg.migration.policies import Choice, KShortest, Policy, cost_of, weighted_sum
from thalweg.migration.reservations import Reservations
from thalweg.migration.settings import Settings
from thalweg.migration.stability import Horizon, cannot_be_better, hold, leave_factor
from thalweg.migration.time_graph import Moves, MoveTime
from thalweg.model.graph import Floats, Index

_EPSILON = 1e-9


@dataclass(slots=True)
class Pilot:
    """Decides for one instance; the hosts of its life so far are in `hosts`."""

    city: City
    instance: int
    predictor: Predictor
    policy: Policy
    settings: Settings
    moves: tuple[Moves, ...]
    reservations: Reservations | None
    hosts: Index
    plans: Index
    """The plan of each operator from tick `planned_at` on, a column for each step."""
    choices: list[Choice]
    fans: list[Fan]
    place: Floats
    rates: Floats
    horizon: Horizon
    reserved: Index
    """What each operator has reserved from tick `reserved_at` on."""
    planned_at: int = 0
    reserved_at: int = 0
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
        operators = len(city.graph.operators)
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
            plans=np.empty((operators, 0), dtype=np.int32),
            choices=[],
            fans=[],
            reserved=np.empty((operators, 0), dtype=np.int32),
            place=np.empty((operators, 0, city.brokers.count)),
            rates=city.carried_bytes(instance)[:, 0],
            horizon=Horizon(least=min(least, settings.horizon), most=settings.horizon),
        )

    @property
    def life(self) -> int:
        """Ticks that the instance lives."""
        return int(self.hosts.shape[1])

    def plan(self, at: int) -> int:
        """Plan at a tick of its life, go by that plan, and say when to plan again."""
        settings = self.settings
        measured = self.city.carried_bytes(self.instance)[:, at]
        self.rates = hold(self.rates, measured, settings.rate_threshold)
        steps = self.horizon.steps
        first = int(self.city.life[self.instance, 0])
        fans = [
            self.predictor.predict(int(vehicle), first + at, steps, settings.step_ticks)
            for vehicle in self.city.vehicles[self.instance]
        ]
        if self._keeps_plan(at, fans):
            self.effort += Effort(kept=1)
            return self._go(at)
        before = self._so_far(at, steps)
        self.fans, self.planned_at = fans, at
        if self._is_plain(fans):
            self._plan_in_turns(before)
        else:
            self._plan_with_policy(before)
            self._count_waste(before)
        return self._go(at)

    @property
    def _due(self) -> int:
        """The tick at which enough of the plan is used up for the next one."""
        steps = int(self.plans.shape[1] * self.settings.refresh)
        return self.planned_at + max(1, steps) * self.settings.step_ticks

    def _so_far(self, at: int, steps: int) -> Index:
        """The rest of the plans as they are, each operator staying where its plan ends."""
        stride = self.settings.step_ticks
        done = (at - self.planned_at) // stride
        left = self.plans[:, done : done + steps]
        last = left[:, -1:] if left.shape[1] else self.hosts[:, at : at + 1]
        return np.concatenate([left, np.repeat(last, steps - left.shape[1], axis=1)], axis=1)

    def _carried(self, fans: Sequence[Fan]) -> Floats:
        """What each stream carries in each step; nothing once one of the users has gone."""
        alive = np.ones(fans[0].steps)
        for fan in fans:
            alive *= fan.weight @ (fan.hosts >= 0)
        return np.asarray((self.rates * self.settings.step_ticks)[:, None] * alive)

    def _is_plain(self, fans: Sequence[Fan]) -> bool:
        """Whether the compiled turns do: one sequence for each operator, no limit but range."""
        one_path = self.policy is weighted_sum or (
            not isinstance(self.policy, KShortest) and all(fan.is_certain for fan in fans)
        )
        unlimited = np.isinf([self.city.graph.latency_s, self.settings.decay_s]).all()
        return bool(
            one_path
            and self.reservations is None
            and unlimited
            and all(moves.time is MoveTime.ONE_STEP for moves in self.moves)
        )

    def _barred(self, start: Index) -> Flags:
        brokers = self.city.brokers
        demand = np.array([operator.demand_ips for operator in self.city.graph.operators])
        barred = brokers.capacity_ips[None, :] < np.maximum(demand, 1e-300)[:, None]
        if np.isfinite(self.settings.range_m):
            far = np.stack([brokers.distance_m(int(host)) for host in start])
            barred = barred | (far > self.settings.range_m)
        return np.asarray(barred)

    def _plan_in_turns(self, before: Index) -> None:
        city, start = self.city, before[:, 0].copy()
        steps = before.shape[1]
        self.plans = np.ascontiguousarray(before)
        self.place = np.empty((len(start), steps, city.brokers.count))
        state = state_bytes(city.graph)
        made, taken = plan_in_turns(
            np.concatenate([fan.weight for fan in self.fans]),
            np.concatenate([fan.hosts for fan in self.fans]),
            np.cumsum([0, *(len(fan.weight) for fan in self.fans)]).astype(np.int32),
            stream_ends(city.graph),
            self._carried(self.fans),
            city.brokers.parent,
            state[:, None] * city.brokers.link_delay_s,
            state,
            city.brokers.delay_s,
            start,
            self._barred(start),
            self.settings.most_turns,
            self.plans,
            self.place,
        )
        self.choices = []
        self.effort += Effort(coordinations=1, plans=made, changes=taken)

    def _plan_with_policy(self, before: Index) -> None:
        """The same with any policy and limit, one operator after the other."""
        graph, operators = self.city.graph, len(self.city.graph.operators)
        start, steps = before[:, 0].copy(), before.shape[1]
        fans = dict(zip(graph.users, self.fans, strict=True)) | {
            o.name: Fan.certain(before[k]) for k, o in enumerate(graph.operators)
        }
        # All but the last word is on the cheapest path alone: k paths are wanted only at the end.
        answer = weighted_sum if isinstance(self.policy, KShortest) else self.policy
        self._release(self.planned_at)
        plans: list[Choice | None] = [None] * operators
        places = np.empty((operators, steps, self.city.brokers.count))
        made, taken, quiet = 0, 0, 0
        while quiet < operators and made < self.settings.most_turns * operators:
            k = made % operators
            made += 1
            outlook = self._outlook(k, fans, int(start[k]), steps)
            choice = answer(outlook)
            places[k] = outlook.place_cost()
            old = cost_of(outlook, places[k], fans[graph.operators[k].name].hosts[0])
            known = plans[k]
            better = choice.cost < old - _EPSILON * (1.0 + abs(old))
            if (
                known is None
                or better
                or (known.late_s, known.crowded) > (choice.late_s, choice.crowded)
            ):
                moved = known is not None or better
                plans[k], fans[graph.operators[k].name] = choice, choice.fan
                taken, quiet = taken + moved, (0 if better else quiet + 1)
            else:
                quiet += 1
        if answer is not self.policy:
            for k in range(operators):
                plans[k] = self.policy(self._outlook(k, fans, int(start[k]), steps))
        self.choices = [choice for choice in plans if choice is not None]
        self.plans = np.stack([choice.fan.hosts[0] for choice in self.choices])
        self.place = places
        self._reserve()
        self.effort += Effort(
            coordinations=1,
            plans=made,
            changes=taken,
            left_out=max(choice.left_out for choice in self.choices),
            late=sum(choice.late_s > 0 for choice in self.choices),
            crowded=sum(choice.crowded for choice in self.choices),
        )

    def _count_waste(self, before: Index) -> None:
        """State that was on its way by the old plans, which the new ones do not wait for."""
        for k, old in enumerate(before):
            arrive = int(np.argmax(old != old[0]))
            if not arrive:
                continue
            source = np.array([old[0]], dtype=np.int32)
            takes = int(self.moves[k].steps_from(source)[0, old[arrive]])
            sent = takes - arrive
            if sent > 0 and (self.plans[k, : arrive + 1] != old[: arrive + 1]).any():
                wasted = self.moves[k].state_bytes * sent / takes
                self.effort += Effort(wasted_bytes=wasted, wasted_transfers=1)

    def outlook(self, operator: int) -> Outlook:
        """What an operator knew when it last planned, its neighbours' plans as they came out."""
        graph = self.city.graph
        fans = dict(zip(graph.users, self.fans, strict=True)) | {
            o.name: Fan.certain(self.plans[k]) for k, o in enumerate(graph.operators)
        }
        start, steps = int(self.plans[operator, 0]), self.plans.shape[1]
        return self._outlook(operator, fans, start, steps)

    def _outlook(self, k: int, fans: dict[str, Fan], start: int, steps: int) -> Outlook:
        graph = self.city.graph
        carried = self._carried([fans[user] for user in graph.users])
        operator = graph.operators[k]
        ties = []
        for stream in graph.streams_of[k]:
            other = graph.other_end(stream, k)
            incoming = graph.streams[stream].target == operator.name
            ties.append(
                Tie(
                    neighbour=other,
                    fan=fans[other],
                    carried_bytes=carried[stream],
                    incoming=incoming,
                    most_delay_s=self._reserved(other, fans) if not incoming else None,
                )
            )
        room = None
        barred = self._barred(np.full(len(graph.operators), start))[k]
        if self.reservations is not None or barred.any():
            room = np.repeat(~barred[None, :], steps, axis=0)
        if self.reservations is not None and room is not None:
            first = int(self.city.life[self.instance, 0]) + self.planned_at
            ticks = first + np.arange(steps) * self.settings.step_ticks
            beside = [
                (fans[o.name].hosts[0], o.demand_ips) for o in graph.operators if o is not operator
            ]
            room &= self.reservations.room(ticks.astype(np.int32), operator.demand_ips, beside)
        stayed = self._stayed_s(k)
        return Outlook(
            operator=operator,
            moves=self.moves[k],
            ties=tuple(ties),
            start=start,
            latency_share_s=graph.latency_s * operator.share,
            room=room,
            leave_factor=leave_factor(stayed, self.settings.decay_s),
        )

    def _stayed_s(self, k: int) -> float:
        before = self.hosts[k, : self.planned_at + 1]
        elsewhere = np.flatnonzero(before != before[-1])
        since = elsewhere[-1] + 1 if elsewhere.size else 0
        return float((self.planned_at - since) * self.city.tick_s)

    def _reserved(self, other: str, fans: dict[str, Fan]) -> Floats | None:
        """What a neighbour downstream has left for its stream from here."""
        graph = self.city.graph
        if other not in graph.number or np.isinf(graph.latency_s):
            return None
        k = graph.number[other]
        brokers, operator = self.city.brokers, graph.operators[k]
        hosts = fans[other].hosts[0]
        with np.errstate(divide="ignore"):
            work = operator.instructions / brokers.speed_ips[hosts]
        rest = np.zeros(hosts.size)
        for stream in graph.streams_of[k]:
            target = graph.streams[stream].target
            if target in graph.users:
                leaf = fans[target].hosts[0]
                far = np.where(leaf >= 0, brokers.delay_s[hosts, leaf], 0.0)
                rest = np.maximum(rest, far)
        return np.asarray(graph.latency_s * operator.share - work - rest)

    def _release(self, at: int) -> None:
        """Give back what is reserved from a tick on."""
        if self.reservations is not None:
            left = self.reserved[:, at - self.reserved_at :]
            first = int(self.city.life[self.instance, 0]) + at
            for hosts, operator in zip(left, self.city.graph.operators, strict=True):
                self.reservations.take(first, hosts, -operator.demand_ips)

    def _reserve(self) -> None:
        """Reserve the plans as far as they go and the instance lives."""
        if self.reservations is not None:
            left = self.life - self.planned_at
            self.reserved = np.repeat(self.plans, self.settings.step_ticks, axis=1)[:, :left]
            self.reserved_at = self.planned_at
            first = int(self.city.life[self.instance, 0]) + self.planned_at
            for hosts, operator in zip(self.reserved, self.city.graph.operators, strict=True):
                self.reservations.take(first, hosts, operator.demand_ips)

    def _keeps_plan(self, at: int, fans: Sequence[Fan]) -> bool:
        """Whether what is new cannot have made another plan better; then the old one goes on."""
        done = (at - self.planned_at) // self.settings.step_ticks
        left = self.plans.shape[1] - done
        # Once it is due, a plan is made that looks further ahead.
        if at >= self._due or left < 1 or self.reservations is not None:
            return False
        users = dict(zip(self.city.graph.users, fans, strict=True))
        both = min(left, *(fan.steps for fan in fans))
        cut = {
            name: Fan(weight=fan.weight, hosts=np.ascontiguousarray(fan.hosts[:, :both]))
            for name, fan in users.items()
        }
        plans = {
            o.name: Fan.certain(self.plans[k, done : done + both])
            for k, o in enumerate(self.city.graph.operators)
        }
        for k in range(len(self.city.graph.operators)):
            outlook = self._outlook(k, cut | plans, int(self.plans[k, done]), both)
            ahead = slice(done, done + both)
            now = outlook.place_cost()
            if not cannot_be_better(self.place[k, ahead], now, self.plans[k, ahead]):
                return False
        self.fans = [
            Fan(
                weight=fan.weight,
                hosts=np.concatenate(
                    [np.repeat(fan.hosts[:, :1], done, axis=1), fan.hosts], axis=1
                ),
            )
            for fan in fans
        ]
        return True

    def _go(self, at: int) -> int:
        """Follow the plans until the next one is due; gives when that is."""
        stride = self.settings.step_ticks
        due = self._due
        failed = self._first_failure(at)
        changed = self._first_change(at)
        until = min(max(due, at + stride), failed, changed, self.life)
        if failed <= min(due, changed) and failed < self.life:
            self.effort += Effort(failed_predictions=1)
            if self.settings.adaptive:
                self.horizon = self.horizon.failed()
        elif self.settings.adaptive:
            self.horizon = self.horizon.held()
        self._follow(at, until)
        return until

    def _follow(self, at: int, until: int) -> None:
        stride = self.settings.step_ticks
        several = any(not choice.fan.is_certain for choice in self.choices)
        # Room is reserved for the first sequence alone.
        if several and self.reservations is None:
            self._follow_branches(at, until)
            return
        steps = (np.arange(at, self.life) - self.planned_at) // stride
        steps = np.minimum(steps, self.plans.shape[1] - 1)
        # To the end of its life, so that wherever it stops it is where its plan says.
        self.hosts[:, at:] = self.plans[:, steps]

    def _first_failure(self, at: int) -> int:
        """The first tick after this one at which a user is where hardly anybody expected it."""
        stride, life = self.settings.step_ticks, self.life
        leaf = self.city.leaves_of(self.instance)
        first = life
        for user, fan in enumerate(self.fans):
            done = (at - self.planned_at) // stride
            ticks = np.arange(self.planned_at + (done + 1) * stride, life, stride)
            ticks = ticks[: fan.steps - done - 1]
            expected = fan.hosts[:, done + 1 : done + 1 + ticks.size]
            odds = fan.weight @ (expected == leaf[user, ticks])
            wrong = np.flatnonzero(odds < self.settings.doubt)
            if wrong.size:
                first = min(first, int(ticks[wrong[0]]))
        return first

    def _first_change(self, at: int) -> int:
        """The first tick after this one at which a rate is off by more than the threshold."""
        if self.city.factor is None:
            return self.life
        rates = self.city.carried_bytes(self.instance)[:, at + 1 :]
        off = (
            np.abs(rates - self.rates[:, None]) > self.settings.rate_threshold * self.rates[:, None]
        )
        changed = np.flatnonzero(off.any(axis=0))
        if not changed.size:
            return self.life
        stride = self.settings.step_ticks
        tick = at + 1 + int(changed[0])
        return min(-(-(tick - self.planned_at) // stride) * stride + self.planned_at, self.life)

    def _follow_branches(self, at: int, until: int) -> None:
        """At every step go by the sequences that are cheapest by what is known then."""
        stride, graph = self.settings.step_ticks, self.city.graph
        leaf = self.city.leaves_of(self.instance)
        carried = self.city.carried_bytes(self.instance)
        current = [int(host) for host in self.hosts[:, at]]
        following = [0] * len(self.choices)
        known: tuple[object, ...] = ()
        steps = self.plans.shape[1]
        plans = self.plans.copy()
        for tick in range(at, until, stride):
            done = (tick - self.planned_at) // stride
            seen = (*leaf[:, tick].tolist(), *carried[:, tick].tolist())
            if seen != known and tick > at:
                fans = self._fans_as_seen(done, leaf[:, tick], plans)
                self.rates = carried[:, tick]
                for k, choice in enumerate(self.choices):
                    outlook = self._outlook(k, fans, current[k], steps)
                    following[k] = self._cheapest_now(outlook, choice.fan, current[k], done)
                    plans[k] = choice.fan.hosts[following[k]]
                    fans[graph.operators[k].name] = Fan.certain(plans[k])
            known = seen
            for k, choice in enumerate(self.choices):
                current[k] = int(choice.fan.hosts[following[k], done])
                self.hosts[k, tick : tick + stride] = current[k]
        self.hosts[:, until:] = np.array(current)[:, None]
        self.plans = plans

    def _fans_as_seen(self, done: int, leaf: Index, plans: Index) -> dict[str, Fan]:
        """What users may still do, given where they are now; where nothing fits, all of it."""
        graph = self.city.graph
        fans = {o.name: Fan.certain(plans[k]) for k, o in enumerate(graph.operators)}
        for user, fan in enumerate(self.fans):
            fits = fan.hosts[:, done] == leaf[user]
            if fits.any() and not fits.all():
                weight = fan.weight[fits] / fan.weight[fits].sum()
                fan = Fan(weight=weight, hosts=np.ascontiguousarray(fan.hosts[fits]))
            fans[graph.users[user]] = fan
        return fans

    def _cheapest_now(self, outlook: Outlook, fan: Fan, current: int, done: int) -> int:
        """The sequence whose rest costs least from where the operator is; ties: the first."""
        place = outlook.place_cost()
        state = outlook.moves.state_bytes
        costs = []
        for hosts in fan.hosts:
            row_of, delay = outlook.moves.brokers.rows_from(hosts)
            costs.append(price_hosts(place, hosts, current, done, state, row_of, delay))
        return int(np.argmin(costs))
