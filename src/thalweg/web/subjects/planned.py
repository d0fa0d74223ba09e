"""Whatever has a problem and a placement: it has a scene and reasons, and can be asked what if."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

import numpy as np

from thalweg.estimate.evaluate import make_plan
from thalweg.model import Network, Placement, Plan, Problem
from thalweg.study.comparison import compare as compare_strategies
from thalweg.units import BANDWIDTH, CPU_SPEED, DURATION, EVENT_RATE, SIZE
from thalweg.web.grouping import Grouping
from thalweg.web.picture import Picture, sites_in_use
from thalweg.web.question import Answer, Question, answer_question, compare_gauges
from thalweg.web.scene import describe_links, describe_scene, show
from thalweg.web.subject import Plain, Subject, UnknownName

_KEPT_ANSWERS = 20
Facts = list[list[str]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Present:
    """What runs, or would: a placement at the rates of a problem, and the plan behind it."""

    problem: Problem
    placement: Placement
    plan: Plan | None = None
    strategy: str = ""
    text: str = ""
    measured: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    """Rows in and out per second by site and operator, where that is known of now."""
    at_s: float | None = None
    """When it was decided, on a clock of the run; None where there is no time."""
    rates_at_s: float | None = None
    """When the rates of its problem were measured; None where they were declared or chosen."""


class PlannedSubject(Subject, ABC):
    """A subject with a problem; those that derive from it say what is at present."""

    now_is = "as it is"
    """What its present placement is called beside those of strategies."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._numbers = count(1)
        self._answers: dict[str, Answer] = {}

    @abstractmethod
    def present(self) -> Present:
        """What runs now, or is planned."""

    def placed(self, placement: str) -> Present:
        """What ran, or would, under a placement's name; `UnknownName` where there is none."""
        found = self.find_placed(placement)
        if found is not None:
            return found
        if placement in self._answers:
            answer = self._answers[placement]
            return Present(
                problem=answer.problem, placement=answer.plan.placement, plan=answer.plan
            )
        raise UnknownName("there is no such placement here")

    def find_placed(self, placement: str) -> Present | None:  # noqa: ARG002
        """What ran under a placement's name; None where nothing did."""
        return self.present()

    @cached_property
    def grouping(self) -> Grouping:
        """How sites are shown, for as long as the page is."""
        now = self.present()
        return Grouping.of(now.problem.network, sites_in_use(now.problem, now.placement))

    def picture(self, now: Present) -> Picture:
        """A placement as the page draws it."""
        return Picture(problem=now.problem, placement=now.placement, grouping=self.grouping)

    def scene(self) -> Plain:
        """What stands still."""
        now = self.present()
        return {"clock": "simulated", **describe_scene(now.problem, self.grouping, now.strategy)}

    # Why

    def why(self, *, operator: str, site: str, link: str, placement: str) -> Plain:
        """Why an operator is where it is, or what a site or a link has to do."""
        now = self.placed(placement) if placement else self.present()
        if link:
            return self._why_link(now, link)
        if operator:
            return self._why_operator(now, operator, site)
        if site:
            return self._why_site(now, site)
        raise UnknownName("say which operator, site or link")

    def _why_operator(self, now: Present, name: str, site: str) -> Plain:
        app = now.problem.application
        if name not in app.index:
            raise UnknownName(f"there is no operator {name}")
        lines = []
        if now.plan is not None and name in now.plan.placement.operator_names:
            lines += now.plan.explain(name).splitlines()
        if now.text:
            lines.append(now.text)
        # What is declared of it stands in the scene.
        where = f"{name} at {site}" if site else name
        facts = self._load(now, name, site)
        return {"title": where, "why": lines, "decided_at_s": now.at_s, "facts": facts}

    def _load(self, now: Present, name: str, site: str) -> Facts:
        """What the formulas say of an operator's instances at a site."""
        picture = self.picture(now)
        evaluation, deployment = picture.evaluation, picture.evaluation.deployment
        here = deployment.operator == now.problem.application.index[name]
        if site:
            members = self._members(site)
            here &= np.isin(now.problem.network.node_site[deployment.node], members)
        if not here.any():
            return []
        flow = now.measured.get(site, {}).get(name)
        measured = [] if flow is None else [["measured in", f"{flow[0]:g} rows/s"]]
        measured += [] if flow is None else [["measured out", f"{flow[1]:g} rows/s"]]
        return [
            *measured,
            ["instances", f"{int(here.sum()):,}"],
            ["planned in", show(float(evaluation.rates.events_in[here].sum()), EVENT_RATE)],
            ["planned out", show(float(evaluation.rates.events_out[here].sum()), EVENT_RATE)],
            ["CPU needed", show(float(evaluation.demand.cpu_ips[here].sum()), CPU_SPEED)],
            ["memory needed", show(float(evaluation.demand.memory_bytes[here].sum()), SIZE)],
            ["time in it", _seconds(float(evaluation.latencies.service_s[here].max()))],
        ]

    def _why_site(self, now: Present, name: str) -> Plain:
        self._members(name)
        picture = self.picture(now)
        chips = [operator for operator, site in picture.chips if site == name]
        told = picture.sites()[name]
        shares = [
            [f"{label} of its fullest node", _share(told[key])]
            for label, key in (("CPU", "cpu"), ("memory", "memory"))
        ]
        lines = [f"runs {', '.join(chips)}" if chips else "nothing of this runs here"]
        lines += [
            str(v)
            for v in picture.plan.violations
            if v.place.partition("/")[0] == name or v.place.startswith(f"{name} →")
        ][:10]
        return {"title": name, "why": lines, "facts": shares}

    def _why_link(self, now: Present, link: str) -> Plain:
        a, _, b = link.partition(">")
        one, other = self._members(a), self._members(b)
        picture, net = self.picture(now), now.problem.network
        facts: Facts = []
        if one.size == other.size == 1 and frozenset((a, b)) not in self._scene_links:
            facts += _way_facts(net, a, b)
        told = picture.links().get(f"{a}>{b}")
        if told:
            facts.append(["planned", _bandwidth(told["bps"])])
            facts.append(["load", _share(told["load"])])
        lines = [
            f"{flow['source']} → {flow['target']}: {_bandwidth(flow['bps'])}"
            for flow in picture.flows()
            if (flow["a"], flow["b"]) == (a, b)
        ]
        return {"title": f"{a} → {b}", "why": lines or ["nothing is planned there"], "facts": facts}

    @cached_property
    def _scene_links(self) -> set[frozenset[str]]:
        """The links whose figures stand in the scene."""
        return {frozenset((link["a"], link["b"])) for link in describe_links(self.grouping)}

    def _members(self, name: str) -> np.ndarray:
        try:
            return self.grouping.members(name)
        except KeyError:
            raise UnknownName(f"there is no site {name}") from None

    # What if

    def ask(self, question: Question) -> Plain:
        """What would be planned if; the answer is kept, so that it can be applied."""
        now = self.present()
        identity = f"w{next(self._numbers)}"
        answer = answer_question(identity, question, now.problem, now.placement, now.strategy)
        self._answers[identity] = answer
        for old in list(self._answers)[:-_KEPT_ANSWERS]:
            del self._answers[old]
        why_not = self.why_not(answer)
        told = answer.describe(self.grouping)
        dated = {"rates_at_s": now.rates_at_s}
        return {**told, **dated, "applicable": not why_not, "why_not": why_not}

    def answer(self, identity: str) -> Answer:
        """An answer that was given before."""
        if identity not in self._answers:
            raise UnknownName("that question is forgotten; ask again")
        return self._answers[identity]

    def why_not(self, answer: Answer) -> str:  # noqa: ARG002
        """Why an answer cannot be applied; empty where it can."""
        return "nothing runs here: this is a plan, and plans are applied by `thalweg run`"

    def compare(self, strategies: tuple[str, ...]) -> Plain:
        """What runs now and several strategies, on the same problem."""
        now = self.present()
        app, net = now.problem.application, now.problem.network
        # Beside what runs stands what a strategy would make of it; on paper it begins anew.
        current = now.placement if self.kind == "run" else None
        found = compare_strategies(app, net, strategies, rates=now.problem.rates, current=current)
        running = make_plan(
            now.problem, now.placement, strategy=self.now_is, objective_name="usage"
        )
        rows = [{**self._compared(now, "c-now", running), "seconds": None, "candidates": None}]
        rows[0]["running"] = True
        best = {plan.strategy for plan in found.all_best}
        rows += [
            {**self._compared(now, f"c{k}", plan), "best": plan.strategy in best}
            for k, plan in enumerate(found.plans)
        ]
        empty = {**dict.fromkeys(rows[0], None), "running": False, "best": False}
        rows += [
            {**empty, "strategy": name, "feasible": False, "violations": [], "refusal": why}
            for name, why in found.refusals.items()
        ]
        first = None if found.best is None else found.best.strategy
        return {"best": first, "rates_at_s": now.rates_at_s, "rows": rows}

    def _compared(self, now: Present, identity: str, plan: Plan) -> Plain:
        """A plan as a row of a comparison."""
        picture = Picture(problem=now.problem, placement=plan.placement, grouping=self.grouping)
        told = picture.describe(identity, strategy=plan.strategy, text=plan.headline)
        return {
            "strategy": plan.strategy,
            "running": False,
            "best": False,
            "feasible": plan.feasible,
            **compare_gauges(plan),
            "seconds": plan.seconds,
            "candidates": plan.candidates,
            "violations": told["violations"],
            "refusal": None,
            "placement": told,
        }


def _way_facts(net: Network, a: str, b: str) -> Facts:
    way = net.link(a, b)
    free = way.bandwidth_available_bps
    return [
        ["latency", show(way.latency_s, DURATION)],
        ["bandwidth", show(way.bandwidth_bps, BANDWIDTH)],
        ["free", show(way.bandwidth_bps if free is None else free, BANDWIDTH)],
    ]


def _number(value: float | str | None) -> float:
    if value is None:
        return math.nan
    return math.inf if value == "inf" else float(value)


def _share(value: float | str | None) -> str:
    found = _number(value)
    if math.isnan(found):
        return "unknown"
    return "more than there is" if math.isinf(found) else f"{found:.1%}"


def _bandwidth(value: float | str | None) -> str:
    found = _number(value)
    return "unknown" if math.isnan(found) else show(found, BANDWIDTH)


def _seconds(value: float) -> str:
    return "grows without end" if math.isinf(value) else show(value, DURATION)
