"""Generators of networks and applications: pure functions, the same seed gives the same bytes."""

from thalweg.scenarios.adaptive_tree import adaptive_brokers
from thalweg.scenarios.broker_tree import BrokerFigures, broker_tree, flat_brokers
from thalweg.scenarios.cloud_edge import cloud_edge
from thalweg.scenarios.demand_curve import DemandFigures, demand_figures, taxi_demand_curve
from thalweg.scenarios.device_rates import device_rates, split_devices
from thalweg.scenarios.devices import DEVICE_CLASSES, DeviceClass
from thalweg.scenarios.fog_cloud import fog_cloud
from thalweg.scenarios.friends import nearby_friends
from thalweg.scenarios.graph_shape import GraphShape
from thalweg.scenarios.graphs import GRAPHS
from thalweg.scenarios.industrial import IndustrialFigures, industrial
from thalweg.scenarios.layered_application import layered_application
from thalweg.scenarios.random_application import (
    OperatorRanges,
    applications,
    random_application,
)
from thalweg.scenarios.random_graph import grow_shape
from thalweg.scenarios.small_taxi import small_city, small_taxi
from thalweg.scenarios.taxi import TaxiFigures, taxi_demand, taxi_fares
from thalweg.scenarios.topologies import TOPOLOGIES, Topology, topology
from thalweg.scenarios.urban import UrbanFigures, urban

__all__ = [
    "DEVICE_CLASSES",
    "GRAPHS",
    "TOPOLOGIES",
    "BrokerFigures",
    "DemandFigures",
    "DeviceClass",
    "GraphShape",
    "IndustrialFigures",
    "OperatorRanges",
    "TaxiFigures",
    "Topology",
    "UrbanFigures",
    "adaptive_brokers",
    "applications",
    "broker_tree",
    "cloud_edge",
    "demand_figures",
    "device_rates",
    "flat_brokers",
    "fog_cloud",
    "grow_shape",
    "industrial",
    "layered_application",
    "nearby_friends",
    "random_application",
    "small_city",
    "small_taxi",
    "split_devices",
    "taxi_demand",
    "taxi_demand_curve",
    "taxi_fares",
    "topology",
    "urban",
]
