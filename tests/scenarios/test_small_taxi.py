"""The small taxi application in the small city: readable, and it fits into the cloud."""

from __future__ import annotations

import math

import pytest

from thalweg.model import Problem
from thalweg.scenarios import small_city, small_taxi
from thalweg.units import (
    BANDWIDTH,
    CPU_SPEED,
    DURATION,
    EVENT_RATE,
    SIZE,
    WORK,
    format_quantity,
)


def test_it_is_small_enough_to_read():
    app, city = small_taxi(), small_city()
    assert 6 <= len(app.operators) <= 9
    assert [site.tier for site in map(city.site, city.site_names)].count("fog") == 3
    assert city.node_count <= 10


def test_one_sink_is_in_the_cloud_and_one_at_the_edge():
    app, city = small_taxi(), small_city()
    problem = Problem(application=app, network=city)
    tiers = {
        sink.name: {
            city.site(int(city.node_site[node])).tier
            for node in problem.allowed_nodes(app.index[sink.name])
        }
        for sink in app.sinks
    }
    assert tiers == {"dashboard": {"cloud"}, "driver-display": {"edge"}}
    assert [city.site_names[site] for site in problem.births.site] == [
        "hub-west",
        "hub-centre",
        "hub-east",
    ]


def quantities():
    app, city = small_taxi(), small_city()
    for operator in app.operators:
        yield operator.cpu_per_event, WORK
        yield from ((value, SIZE) for value in (operator.memory, operator.state))
        if operator.kind == "source":
            yield operator.rate, EVENT_RATE
            yield operator.event_size, SIZE
        if operator.window is not None:
            yield from ((v, DURATION) for v in (operator.window.length, operator.window.slide))
    yield app.limits.response_time_s, DURATION
    yield app.limits.uplink_bps, BANDWIDTH
    for name in city.site_names:
        site = city.site(name)
        yield site.edge_delay_s, DURATION
        if site.parent is not None:
            link = city.link(name, site.parent)
            yield link.latency_s, DURATION
            yield link.bandwidth_bps, BANDWIDTH
        for node in site.nodes:
            yield node.cpu_ips, CPU_SPEED
            yield node.memory_bytes, SIZE
            yield node.lan_latency_s, DURATION
            if math.isfinite(node.lan_bandwidth_bps):
                yield node.lan_bandwidth_bps, BANDWIDTH


def test_every_quantity_is_short_when_written_with_its_unit():
    texts = [format_quantity(value, dimension) for value, dimension in quantities()]
    assert len(texts) > 50
    assert [text for text in texts if len(text.split()[0]) > 5] == []


def test_everything_in_the_cloud_fits_its_limits_by_far():
    """By hand: loads of the cloud's node and links when every transform runs there."""
    app, city = small_taxi(), small_city()
    rate, size = dict.fromkeys(app.index, 0.0), dict.fromkeys(app.index, 0.0)
    cpu = memory = 0.0
    for vertex in app.graph.order.tolist():
        operator = app.operators[vertex]
        name = operator.name
        if operator.kind == "source":
            rate[name], size[name] = operator.rate, operator.event_size
        else:
            inputs = [s.source for s in app.streams if s.target == name]
            arriving = sum(rate[i] for i in inputs)
            mean_size = sum(rate[i] * size[i] for i in inputs) / arriving
            rate[name] = arriving * operator.selectivity
            size[name] = mean_size * operator.compression
            window = operator.window
            passes = window.length / window.slide if window else 1.0
            cpu += arriving * operator.cpu_per_event * passes
            kept = window.length * arriving * mean_size if window else 0.0
            memory += operator.memory + operator.memory_factor * kept
    cloud = city.node("cloud/vm")
    assert cpu < 0.5 * cloud.cpu_ips
    assert memory < 0.5 * cloud.memory_bytes
    raw_bps = rate["rides"] * size["rides"] * 8
    assert raw_bps == pytest.approx(24e6)
    assert raw_bps < app.limits.uplink_bps
    for hub in ("hub-west", "hub-centre", "hub-east"):
        assert raw_bps / 3 < 0.5 * city.link(hub, "cloud").bandwidth_bps
        assert city.site(hub).edge_delay_s + city.link(hub, "cloud").latency_s < 0.1
    shown_bps = rate["busy-zones"] * size["busy-zones"] * 8
    assert shown_bps < 0.5 * city.link("cloud", "station-rank").bandwidth_bps


def test_nothing_is_drawn():
    assert small_taxi() == small_taxi()
    assert small_city().wan.latency.tobytes() == small_city().wan.latency.tobytes()
