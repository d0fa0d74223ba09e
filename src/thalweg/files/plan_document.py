"""A plan as it stands in a file: the fields, what each needs, and what it means."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from thalweg.files.fields import (
    Flag,
    MayLack,
    Name,
    NodeName,
    TierName,
    Version,
    figure,
    text,
    whole,
)
from thalweg.files.validation import Entry

_MOST_COUNTED = 10**15

Words = Annotated[str, text(2000)]
Label = Annotated[str, text(200)]
AnyFigure = Annotated[float, figure()]
Figure = Annotated[float, figure(least=0)]
FigureOrNull = Annotated[float | None, figure(null=True)]
Count = Annotated[int, whole(0, _MOST_COUNTED)]


class InstanceEntry(Entry):
    """One running copy of an operator."""

    model_config = ConfigDict(title="Instance")
    noun: ClassVar[str] = "an instance"
    plural: ClassVar[str] = "instances"

    operator: Name = Field(description="The operator that runs.")
    node: NodeName = Field(description="The node it runs on.")
    site: Name = Field(description="The site of the node.")
    tier: TierName = Field(description="The tier of the site.")
    origin: MayLack[Name] = Field(
        None, description="The site whose events it works on; all events if not given."
    )
    why: Words = Field(description="Why it runs there.")


class EstimateEntry(Entry):
    """What the deployment costs by the formulas; "inf" means that something cannot keep up."""

    model_config = ConfigDict(title="Estimate")
    noun: ClassVar[str] = "an estimate"

    aggregate_latency_s: Figure = Field(description="Latency, summed over source→sink paths.")
    worst_latency_s: Figure = Field(description="Latency of the slowest path.")
    path_count: Figure = Field(description="How many source→sink paths there are.")
    response_time_s: Figure = Field(description="Slowest way from a device to a sink.")
    uplink_bps: Figure = Field(description="What all sites send up to the clouds.")
    usage: Figure = Field(description="Weighted share of fog memory and uplinks taken.")
    delay_product_bits: Figure = Field(description="Bandwidth × delay, over all flows.")


class ViolationEntry(Entry):
    """One constraint that the plan breaks."""

    model_config = ConfigDict(title="Violation")
    noun: ClassVar[str] = "a violation"
    plural: ClassVar[str] = "violations"

    constraint: Label = Field(description="Which constraint.")
    place: Words = Field(description="Where.")
    resource: Words = Field(description="Of what there is too little.")
    need: AnyFigure = Field(description="How much is needed.")
    have: AnyFigure = Field(description="How much is there.")
    unit: Label = Field(description="The unit of both.")
    operators: list[Words] = Field(description="Who is concerned.")


class ReasonEntry(Entry):
    """Why an operator is where it is."""

    model_config = ConfigDict(title="Reason")
    noun: ClassVar[str] = "a reason"
    plural: ClassVar[str] = "reasons"

    operator: Name = Field(description="Which operator.")
    why: Words = Field(description="The rule that put it there.")
    cost: FigureOrNull = Field(description="What it costs there.")
    cost_name: Label = Field(description="What that cost is called.")
    considered: Count = Field(description="How many nodes were considered.")
    runner_up: Annotated[str | None, text(2000, null=True)] = Field(
        description="The next best node."
    )
    runner_up_cost: FigureOrNull = Field(description="What it would cost there.")


class PlanDocument(Entry):
    """A placement with what it is estimated to cost, what it violates, and how it was found."""

    model_config = ConfigDict(title="Thalweg plan")
    noun: ClassVar[str] = "a plan"

    thalweg: Version = Field(description="The version of the format.")
    application: Name = Field(description="The application that is placed.")
    network: Name = Field(description="The network it is placed on.")
    strategy: Label = Field(description="The strategy that found the plan.")
    feasible: Flag = Field(description="Whether no constraint is violated.")
    objective_name: Label = Field(description="What the strategy made small.")
    objective: AnyFigure = Field(description="How small it got.")
    seconds: Figure = Field(description="How long the strategy took.")
    candidates: Count = Field(description="How many (operator, node) pairs were evaluated.")
    gap: FigureOrNull = Field(description="Proven bound of (objective − optimum) / optimum.")
    placement: list[InstanceEntry] = Field(description="What runs where.")
    estimate: EstimateEntry = Field(description="What it costs by the formulas.")
    violations: list[ViolationEntry] = Field(description="Which constraints it breaks.")
    reasons: list[ReasonEntry] = Field(description="Why everything is where it is.")
