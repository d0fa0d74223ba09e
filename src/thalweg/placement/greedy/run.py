"""One run of a greedy strategy, from the problem to the plan with its reasons."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

from thalweg.estimate.evaluate import make_plan
from thalweg.model.plan import Plan, Reason
from thalweg.model.problem import Problem
from thalweg.placement.compiled.pools import NO_ROOM, ROOM_ON_NODE
from thalweg.placement.greedy.misses import name_miss
from thalweg.placement.greedy.neighbourhood import Neighbourhood
from thalweg.placement.greedy.scopes import Scope, Scopes
from thalweg.placement.greedy.search import Choice, Search
from thalweg.placement.greedy.steps import (
    HALVING,
    NEAR,
    ROUNDS,
    Stage,
    Step,
    no_results,
    write_steps,
)
from thalweg.placement.sequence import deployment_sequence

_COST = "added latency [s]"


class _Answer(NamedTuple):
    choice: Choice
    why: str


class Run:
    """Steps are noted first and taken all together: one operator after the other gets a node.

    Where no node has room, the operator is put on the node of least added latency among those
    with CPU and memory for it and queues that do not grow, or else among all. Ties: the lower
    node index. The plan says what that violates, the reason what came closest to having room.
    """

    def __init__(self, problem: Problem, strategy: str) -> None:
        self._start = perf_counter()
        self.problem, self.strategy = problem, strategy
        self.search = Search(problem)
        self.near = Neighbourhood(self.scopes.everywhere())
        self._steps: list[Step] = []

    @property
    def scopes(self) -> Scopes:
        """Where nodes can be looked for."""
        return self.search.scopes

    def sequence(self) -> list[int]:
        """All operators but sources, every one after all that send to it."""
        is_source = self.problem.application.columns.is_source.tolist()
        return [k for k in deployment_sequence(self.problem.application) if not is_source[k]]

    def is_pinned(self, operator: int) -> bool:
        """Whether a pin says where the operator may run."""
        return self.problem.application.operators[operator].pin is not None

    def put(self, operator: int, *stages: Stage, scope: Scope | None = None) -> None:
        """Note that an operator goes where the first of these stages that finds a node says.

        If none does, it goes where it misses least in the scope, or in that of the first stage.
        """
        self._steps.append(Step(operator, stages, scope or stages[0].scope))

    def put_in(self, operator: int, scope: Scope) -> None:
        """Note that an operator goes to the node of least added latency in a scope."""
        self.put(operator, Stage(scope, f"least added latency of {{looked}} in {scope.name}"))

    def put_where_pinned(self, operator: int) -> None:
        """Note that an operator goes to the node of least added latency that its pin allows."""
        pin = self.problem.application.operators[operator].pin
        if pin is not None:
            self.put_in(operator, self.scopes.allowed(pin))

    def plan(self) -> Plan:
        """Take all steps and make the plan."""
        reasons = [
            Reason(operator=source.name, why=f"born in {source.pin}")
            for source in self.problem.application.sources
        ]
        reasons += [
            self._reason(step, *answer)
            for step, answer in zip(self._steps, self._take_steps(), strict=True)
        ]
        seconds = perf_counter() - self._start
        return make_plan(
            self.problem,
            self.search.placement(),
            strategy=self.strategy,
            reasons=reasons,
            seconds=seconds,
            candidates=self.search.candidates,
        )

    def _take_steps(self) -> list[_Answer]:
        if not self.search.own_links:
            return [self._take(step) for step in self._steps]
        steps, held = write_steps(self.search, self._steps)
        results = no_results(len(self._steps))
        alone = {
            k: self._take(self._steps[k], held[k], int(results.looked[k]))
            for k in self.search.advance(steps, results)
        }
        found = zip(
            *results.node.tolist()[:1],
            *results.cost_s.tolist()[:1],
            *results.node.tolist()[1:],
            *results.cost_s.tolist()[1:],
            results.looked.tolist(),
            strict=True,
        )
        stages = results.stage.tolist()
        return [
            alone.get(k) or _Answer(Choice(*choice), self._steps[k].stages[stages[k]].why)
            for k, choice in enumerate(found)
        ]

    def _take(self, step: Step, tried: int = 0, looked: int = 0) -> _Answer:
        """Find a node for one operator in the stages not tried yet, and settle it there."""
        instance = self.search.instance_of[step.operator]
        for stage in step.stages[tried:]:
            choice = self._look(instance, stage)
            if choice is not None:
                choice = choice._replace(looked=looked + choice.looked)
                self.search.settle(instance, choice.node)
                return _Answer(choice, stage.why)
        choice = self.search.look(instance, step.scope, ROOM_ON_NODE)
        choice = choice or self.search.look(instance, step.scope, NO_ROOM)
        if choice is None:
            raise IndexError(f"{step.scope.name} has no node")
        miss = name_miss(self.search, instance, step.scope, choice.node)
        why = f"no node in {step.scope.name} has room; least added latency of {choice.looked}"
        self.search.settle(instance, choice.node)
        return _Answer(choice, f"{why}; nearest miss: {miss}")

    def _look(self, instance: int, stage: Stage) -> Choice | None:
        search, scope = self.search, stage.scope
        if stage.mode == HALVING:
            return search.halve(instance, scope.index.by_cpu)
        if stage.mode == NEAR:
            groups = self.near.groups_around(search.sites_around(instance), stage.sinks)
            return search.look(instance, scope, groups=groups, one_per_site=True)
        if stage.mode == ROUNDS:
            rounds = self.near.rounds(search.sites_around(instance))
            return search.look(instance, scope, priority=rounds, one_per_site=True)
        return search.look(instance, scope, priority=stage.priority)

    def _reason(self, step: Step, choice: Choice, why: str) -> Reason:
        node_name = self.problem.network.node_name
        has_next = choice.runner_up >= 0
        if "{looked}" in why:
            why = why.format(looked=choice.looked)
            scope = step.stages[0].scope
            if scope.node >= 0:
                why = f"pinned to {scope.name}"
            elif choice.looked == 1 and why.endswith(f" in {scope.name}"):
                why = f"the only node in {scope.name}"
        return Reason(
            operator=self.problem.application.operators[step.operator].name,
            why=why,
            cost=choice.cost_s,
            cost_name=_COST,
            considered=choice.looked,
            runner_up=node_name(choice.runner_up) if has_next else None,
            runner_up_cost=choice.runner_up_cost_s if has_next else None,
        )
