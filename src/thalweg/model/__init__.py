"""The vocabulary: applications, networks, workloads, placements, plans. No I/O, no decisions."""

from thalweg.model.application import Application, Limits, Stream
from thalweg.model.assembly import build_network
from thalweg.model.demand_curve import DemandCurve, spread_curve
from thalweg.model.deployment import Deployment, deploy, deploy_indices
from thalweg.model.links import LinkWan
from thalweg.model.mesh import CoordinateWan, MeshWan
from thalweg.model.network import Network, Tier
from thalweg.model.operator import CountWindow, Operator, Pin, TimeWindow, Window
from thalweg.model.placement import Instance, Placement
from thalweg.model.plan import Estimate, Plan, Reason, Violation
from thalweg.model.plan_diff import Move, PlanDiff
from thalweg.model.problem import Births, Problem
from thalweg.model.tree import TreeWan
from thalweg.model.views import Link, Node, Site
from thalweg.model.wan import Wan
from thalweg.model.workload import ALL_SITES, Tracks, Workload

__all__ = [
    "ALL_SITES",
    "Application",
    "Births",
    "CoordinateWan",
    "CountWindow",
    "DemandCurve",
    "Deployment",
    "Estimate",
    "Instance",
    "Limits",
    "Link",
    "LinkWan",
    "MeshWan",
    "Move",
    "Network",
    "Node",
    "Operator",
    "Pin",
    "Placement",
    "Plan",
    "PlanDiff",
    "Problem",
    "Reason",
    "Site",
    "Stream",
    "Tier",
    "TimeWindow",
    "Tracks",
    "TreeWan",
    "Violation",
    "Wan",
    "Window",
    "Workload",
    "build_network",
    "deploy",
    "deploy_indices",
    "spread_curve",
]
