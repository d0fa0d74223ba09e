"""What a plan leaves open and a run needs: how CPU is shared, what a window is, how times vary."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from thalweg.errors import Defects, nearest
from thalweg.model.operator import Operator, TimeWindow
from thalweg.model.plan import Plan
from thalweg.simulate.arrivals import Arrivals, Poisson
from thalweg.simulate.service import Deterministic, Exponential, Service


@dataclass(frozen=True, kw_only=True)
class Physics:
    """How operators and links work.

    - `cpu`: "whole", every operator has all the CPU of its node that nobody else uses, as the
      latency of placements has it; "shared", operators share the CPU evenly, as the response time
      of schedules has it.
    - `windows`: "fill", events are worked on one by one and leave when their window is full;
      "work", a window is one piece of work, begun when it is full.
    - `ends_work`: whether sources and sinks take time, too.
    - `service`: how times of service vary; by the name of an operator, or for all. None: as the
      estimators have it (`placement_physics`, `scheduling_physics`).
    - `transfer`: the same for links. Events of one kind are of one size, so it is exact by default.
    - `arrivals`: how events are born; by (source, site), or for all.
    - `even`: whether the events that an operator lets through are every so many-th, not random.
    """

    cpu: Literal["whole", "shared"] = "whole"
    windows: Literal["fill", "work"] = "fill"
    ends_work: bool = True
    service: Service | Mapping[str, Service] | None = None
    transfer: Service = field(default_factory=Deterministic)
    arrivals: Arrivals | Mapping[tuple[str, str], Arrivals] = field(default_factory=Poisson)
    even: bool = False

    def __post_init__(self) -> None:
        defects = Defects()
        defects.require(self.cpu in ("whole", "shared"), "cpu", self.cpu, "whole or shared")
        defects.require(self.windows in ("fill", "work"), "windows", self.windows, "fill or work")
        services = self.service.values() if isinstance(self.service, Mapping) else [self.service]
        for service in services:
            good = service is None or isinstance(service, Service)
            defects.require(good, "service", service, "Exponential, Deterministic or Empirical")
        good = isinstance(self.transfer, Service)
        defects.require(good, "transfer", self.transfer, "Exponential, Deterministic or Empirical")
        given = self.arrivals
        for arrivals in given.values() if isinstance(given, Mapping) else [given]:
            rule = "Poisson, Periodic, OnOff, Trace, or what has a method begin"
            defects.require(hasattr(arrivals, "begin"), "arrivals", arrivals, rule)
        defects.raise_if_any()

    def service_of(self, operator: Operator) -> Service:
        """How the times of service of an operator vary."""
        service = self.service
        if isinstance(service, Mapping):
            service = service.get(operator.name)
        if service is not None:
            return service
        # M/M/1 for placements; for schedules D/M/1 for windows in time, M/D/1 for all others.
        in_time = isinstance(operator.window, TimeWindow)
        return Exponential() if self.windows == "fill" or in_time else Deterministic()

    def arrivals_of(self, source: str, site: str) -> Arrivals:
        """How the events of a source are born in a site."""
        if isinstance(self.arrivals, Mapping):
            return self.arrivals.get((source, site), Poisson())
        return self.arrivals

    def require_names(
        self, defects: Defects, names: Collection[str], births: Collection[tuple[str, str]]
    ) -> None:
        """Remember names that are of no operator, and of no source in one of its sites."""
        if isinstance(self.service, Mapping):
            for name in self.service:
                hint = nearest(str(name), names)
                defects.require(name in names, "service", name, "the name of an operator", hint)
        if isinstance(self.arrivals, Mapping):
            for source, site in self.arrivals:
                good = (source, site) in births
                rule = "a source and one of its sites"
                defects.require(good, "arrivals", f"{source} in {site}", rule)


def placement_physics() -> Physics:
    """As the aggregate latency of placements has it."""
    return Physics()


def scheduling_physics() -> Physics:
    """As the response time of schedules has it."""
    return Physics(cpu="shared", windows="work", ends_work=False)


def physics_of(plan: Plan) -> Physics:
    """As the estimate that the plan was made for has it."""
    latency = plan.objective_name in ("aggregate_latency_s", "worst_latency_s")
    return placement_physics() if latency else scheduling_physics()
