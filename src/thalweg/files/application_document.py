"""An application as it stands in a file: the fields, what each needs, and what it means."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from thalweg.files.fields import (
    Chance,
    Flag,
    MayLack,
    Name,
    NodeName,
    Ratio,
    TierName,
    Version,
    choice,
    whole,
)
from thalweg.files.quantities import Bandwidth, Duration, EventRate, Size, Work, WorkPerByte
from thalweg.files.validation import Entry

KINDS = ("source", "transform", "sink")


class WindowEntry(Entry):
    """The events that an operator works on together: a number of them, or those of a time."""

    model_config = ConfigDict(
        title="Window",
        json_schema_extra={
            "oneOf": [
                {"required": ["events"], "maxProperties": 1},
                {"required": ["length"], "not": {"required": ["events"]}},
            ]
        },
    )
    noun: ClassVar[str] = "a window"

    events: MayLack[Annotated[int, whole(1, 10**12)]] = Field(
        None, description="Work on this many events together."
    )
    length: MayLack[Duration] = Field(None, description="Work on the events of this long.")
    slide: MayLack[Duration] = Field(
        None, description="How often; as often as the window is long where it is not given."
    )


class PinEntry(Entry):
    """Where an operator must run: on one node, within one site, or somewhere in one tier."""

    model_config = ConfigDict(
        title="Pin", json_schema_extra={"minProperties": 1, "maxProperties": 1}
    )
    noun: ClassVar[str] = "a pin"

    node: MayLack[NodeName] = Field(None, description='A node, such as "fog-1/gw".')
    site: MayLack[Name] = Field(None, description="Any node of this site.")
    tier: MayLack[TierName] = Field(None, description="Any node of this tier.")


class OperatorEntry(Entry):
    """One operator: what it does to the events that pass, what it needs, where it may run."""

    model_config = ConfigDict(
        title="Operator",
        json_schema_extra={
            "if": {"properties": {"kind": {"const": "source"}}, "required": ["kind"]},
            "then": {"required": ["rate", "event_size", "pin"]},
            "else": {"properties": {"rate": False, "event_size": False}},
        },
    )
    noun: ClassVar[str] = "an operator"
    plural: ClassVar[str] = "operators"

    name: Name = Field(description="What streams, plans and people call it.")
    kind: Annotated[str, choice(KINDS)] = Field(
        "transform", description="Where events are born, changed, or end."
    )
    rate: MayLack[EventRate] = Field(
        None, description="Sources only: events born in all sites of the pin together."
    )
    event_size: MayLack[Size] = Field(None, description="Sources only: size of one event.")
    selectivity: Ratio = Field(1.0, description="Events out / events in.")
    compression: Ratio = Field(1.0, description="Event size out / event size in.")
    cpu_per_event: Work = Field(0.0, description="Instructions for each event.")
    cpu_per_byte: WorkPerByte = Field(0.0, description="Instructions for each byte of events.")
    memory: Size = Field(0.0, description="Memory that it needs by being there.")
    memory_factor: Ratio = Field(1.0, description="Memory per size of the data in its window.")
    window: MayLack[WindowEntry] = Field(None, description="The events it works on together.")
    state: Size = Field(0.0, description="Read-only state that travels with it when it moves.")
    replicable: Flag = Field(
        False, description="It may run once in each site, on that site's events alone."
    )
    pin: MayLack[PinEntry] = Field(None, description="Where it must run; sources need it.")


class StreamEntry(Entry):
    """Events flow from one operator to another."""

    model_config = ConfigDict(title="Stream")
    noun: ClassVar[str] = "a stream"
    plural: ClassVar[str] = "streams"

    source: Name = Field(description="The operator that puts the events out.")
    target: Name = Field(description="The operator that takes them in.")
    probability: Chance = Field(1.0, description="The chance that an event goes along here.")


class LimitsEntry(Entry):
    """What a deployment must keep; a limit that is not given is none."""

    model_config = ConfigDict(title="Limits")
    noun: ClassVar[str] = "the limits"

    response_time: MayLack[Duration] = Field(None, description="The longest response time.")
    uplink: MayLack[Bandwidth] = Field(None, description="The most that goes up to the cloud.")
    uplink_least: Bandwidth = Field(0.0, description="The least that goes up to the cloud.")
    usage: MayLack[Ratio] = Field(None, description="The usage cost that calls for adaptation.")


class ApplicationDocument(Entry):
    """A stream-processing application: operators, the streams between them, and its limits."""

    model_config = ConfigDict(title="Thalweg application")
    noun: ClassVar[str] = "an application"

    thalweg: Version = Field(description="The version of the format.")
    application: Name = Field(description="The name of the application.")
    operators: list[OperatorEntry] = Field(description="What the application does.")
    streams: list[StreamEntry] = Field(description="Which operator feeds which.")
    limits: MayLack[LimitsEntry] = Field(None, description="What a deployment must keep.")
