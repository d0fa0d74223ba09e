"""Agrees on migration plans among operators and brokers (MigCEP, Algorithm 5)."""

from thalweg.migration.coordination.broker import BrokerLedger
from thalweg.migration.coordination.channel import Channel, Letter, Packet, Receipt
from thalweg.migration.coordination.delivery import (
    Acceptance,
    Coordination,
    CoordinationGoesOn,
    coordinate,
    first_sent,
    holding,
    in_random_order,
    last_sent,
    run,
    trigger,
)
from thalweg.migration.coordination.messages import (
    HostPlan,
    Message,
    PlanPublished,
    ProtocolBroken,
    Trigger,
    Vertex,
)
from thalweg.migration.coordination.operator import OperatorMachine, Phase, Planner, step

__all__ = [
    "Acceptance",
    "BrokerLedger",
    "Channel",
    "Coordination",
    "CoordinationGoesOn",
    "HostPlan",
    "Letter",
    "Message",
    "OperatorMachine",
    "Packet",
    "Phase",
    "PlanPublished",
    "Planner",
    "ProtocolBroken",
    "Receipt",
    "Trigger",
    "Vertex",
    "coordinate",
    "first_sent",
    "holding",
    "in_random_order",
    "last_sent",
    "run",
    "step",
    "trigger",
]
