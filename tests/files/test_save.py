"""What is saved can be loaded, exactly as it was; and a file is there completely or not at all."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import stat
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.files import json_schema, load_application, load_network, load_plan, save
from thalweg.files.application_writer import application_data
from thalweg.files.network_writer import network_data
from thalweg.files.yaml_writer import write_yaml
from thalweg.model import (
    Application,
    CoordinateWan,
    CountWindow,
    Estimate,
    Limits,
    Link,
    LinkWan,
    MeshWan,
    Network,
    Node,
    Operator,
    Pin,
    Placement,
    Plan,
    Reason,
    Site,
    Stream,
    TimeWindow,
    TreeWan,
    Violation,
    Wan,
    build_network,
)
from thalweg.model.names import is_name

GOLDEN = Path(__file__).parent.parent / "golden"

# --- Random values, within what a file can hold ---------------------------------------------------

TRICKY_NAMES = ("1e3", "null", "true", "no", "0x1F", "12", "1.5", "007", "y", "inf", "2024-01-01")
NAMES = st.one_of(
    st.sampled_from(TRICKY_NAMES),
    st.builds(str.__add__, st.sampled_from("aZ09"), st.text("abcXYZ0189_.-", max_size=10)).filter(
        is_name
    ),
)


def amounts(largest: float) -> st.SearchStrategy[float]:
    """Numbers from 0 on, down to the last bit; round ones often."""
    return st.one_of(
        st.floats(0.0, largest).map(abs),
        st.integers(0, int(min(largest, 10**15))).map(float),
        st.sampled_from([0.0, 1.0, 0.1, 0.005, 1e6, 2.0**30]).filter(lambda x: x <= largest),
    )


@st.composite
def applications(draw: st.DrawFn) -> Application:
    kinds = ["source"] * draw(st.integers(1, 2)) + ["transform"] * draw(st.integers(0, 4))
    kinds += ["sink"] * draw(st.integers(1, 2))
    names = draw(st.lists(NAMES, min_size=len(kinds), max_size=len(kinds), unique=True))
    places = range(len(kinds))
    pairs = set()
    for k in places:
        if kinds[k] != "source":
            pairs.add((draw(st.sampled_from([j for j in places[:k] if kinds[j] != "sink"])), k))
        if kinds[k] != "sink":
            after = [j for j in places[k + 1 :] if kinds[j] != "source"]
            pairs.add((k, draw(st.sampled_from(after))))
    streams = [
        Stream(
            source=names[a],
            target=names[b],
            probability=draw(st.one_of(st.just(1.0), st.floats(0, 1, exclude_min=True))),
        )
        for a, b in draw(st.permutations(sorted(pairs)))
    ]
    operators = [draw(operators_of(name, kind)) for name, kind in zip(names, kinds, strict=True)]
    return Application(
        name=draw(NAMES),
        operators=draw(st.permutations(operators)),
        streams=streams,
        limits=draw(limits()),
    )


@st.composite
def operators_of(draw: st.DrawFn, name: str, kind: Any) -> Operator:
    born = {}
    if kind == "source":
        born = {
            "rate": draw(amounts(1e15)),
            "event_size": draw(amounts(1e15).filter(lambda size: size > 0)),
        }
    pins = st.one_of(
        st.sampled_from(["edge", "fog", "cloud"]).map(lambda tier: Pin(tier=tier)),  # type: ignore[arg-type]
        NAMES.map(lambda site: Pin(site=site)),
        st.tuples(NAMES, NAMES).map(lambda pair: Pin(node="/".join(pair))),
    )
    length = draw(st.floats(1e-9, 3.2e9))
    windows = st.one_of(
        st.none(),
        st.integers(1, 10**12).map(CountWindow),
        st.just(TimeWindow(length)),
        st.floats(1e-9, length).map(lambda slide: TimeWindow(length, slide)),
    )
    return Operator(
        name=name,
        kind=kind,
        selectivity=draw(amounts(1e9)),
        compression=draw(amounts(1e9)),
        cpu_per_event=draw(amounts(1e18)),
        cpu_per_byte=draw(amounts(1e12)),
        memory=draw(amounts(1e18)),
        memory_factor=draw(amounts(1e9)),
        window=draw(windows),
        state=draw(amounts(1e18)),
        replicable=draw(st.booleans()),
        pin=draw(pins if kind == "source" else st.one_of(st.none(), pins)),
        **born,
    )


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    uplink = draw(st.one_of(st.just(math.inf), amounts(1e18)))
    return Limits(
        response_time_s=draw(st.one_of(st.just(math.inf), amounts(3.2e9))),
        uplink_bps=uplink,
        uplink_least_bps=min(uplink, draw(amounts(1e18))),
        usage=draw(st.one_of(st.just(math.inf), amounts(1e9))),
    )


def capacities(draw: st.DrawFn, shape: Any, largest: float = 1e18) -> tuple[Any, Any]:
    """A few different capacities, and as much or less of each available."""
    pool = draw(st.lists(st.one_of(st.just(math.inf), amounts(largest)), min_size=1, max_size=2))
    count = math.prod(shape)
    picks = st.lists(st.sampled_from(pool), min_size=count, max_size=count)
    capacity = np.array(draw(picks)).reshape(shape)
    if draw(st.booleans()):
        return capacity, capacity
    return capacity, np.minimum(capacity, np.array(draw(picks)).reshape(shape))


def durations(draw: st.DrawFn, count: int) -> Any:
    return np.array(draw(st.lists(amounts(3.2e9), min_size=count, max_size=count)), dtype=float)


@st.composite
def networks(draw: st.DrawFn, *, tree_as_links: bool = False) -> Network:
    count = draw(st.integers(1, 4))
    nodes_of = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count).filter(any))
    total = sum(nodes_of)
    cpu, cpu_free = capacities(draw, (total,))
    memory, memory_free = capacities(draw, (total,))
    lan, lan_free = capacities(draw, (total,))
    latency = draw(st.lists(st.sampled_from([0.0, 0.001]), min_size=total, max_size=total))
    parent = [draw(st.integers(k, count)) for k in range(count)]
    return Network(
        name=draw(NAMES),
        site_names=tuple(draw(st.lists(NAMES, min_size=count, max_size=count, unique=True))),
        site_tier=np.array([draw(st.integers(0, 2)) for _ in range(count)], dtype=np.uint8),
        # A site's parent comes after it, so parents do not go round.
        site_parent=np.array(
            [-1 if p in (k, count) else p for k, p in enumerate(parent)], dtype=np.int32
        ),
        site_edge_delay_s=durations(draw, count),
        site_area_m=draw(areas(count)),
        node_site=np.repeat(np.arange(count, dtype=np.int32), nodes_of),
        node_cpu_ips=cpu,
        node_cpu_available_ips=cpu_free,
        node_memory_bytes=memory,
        node_memory_available_bytes=memory_free,
        node_lan_latency_s=np.array(latency),
        node_lan_bandwidth_bps=lan,
        node_lan_available_bps=lan_free,
        node_operators=np.array([draw(st.integers(0, 1)) for _ in range(total)], dtype=np.int32),
        node_names=draw(node_names(nodes_of)),
        wan=draw(wans(count, tree_as_links)),
    )


@st.composite
def areas(draw: st.DrawFn, count: int) -> Any:
    if draw(st.booleans()):
        return None
    edges = st.floats(-1e9, 1e9)
    made = np.full((count, 4), np.nan)
    for site in {draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))}:
        (west, east), (south, north) = (
            sorted(draw(st.tuples(edges, edges).filter(lambda pair: pair[0] != pair[1])))
            for _ in range(2)
        )
        made[site] = west, south, east, north
    return made


@st.composite
def node_names(draw: st.DrawFn, nodes_of: list[int]) -> tuple[str, ...] | None:
    """Numbered names in and out of order, with gaps and with leading zeros, or none at all."""
    if draw(st.booleans()):
        return None
    pool = ["gw", "gw-0", "gw-1", "gw-2", "gw-3", "gw-01", "gw-0-0", "gw-0-1", "-".join("gw"), "0"]
    chosen: list[str] = []
    for count in nodes_of:
        start = draw(st.sampled_from([1, 1, 2, 6]))
        if draw(st.booleans()):
            chosen += pool[start : start + count]
        else:
            chosen += draw(st.permutations(pool))[:count]
    return tuple(chosen)


@st.composite
def wans(draw: st.DrawFn, count: int, tree_as_links: bool) -> Wan:
    shapes = ["mesh", "tree", "coordinates"] + (["links"] if count > 2 or tree_as_links else [])
    shape = draw(st.sampled_from(shapes))
    if shape == "mesh":
        latency = durations(draw, count * count).reshape(count, count)
        bandwidth, available = capacities(draw, (count, count))
        latency[np.diag_indices(count)] = 0.0
        return MeshWan(latency=latency, bandwidth=bandwidth, available=available)
    if shape == "coordinates":
        dimensions = draw(st.integers(1, 3))
        signed = st.floats(-3.2e9, 3.2e9)
        places = [(a, b) for a in range(count) for b in range(count) if a != b]
        taken = draw(st.lists(st.sampled_from(places), unique=True, max_size=3)) if places else []
        ways = sorted(a * count + b for a, b in taken)
        return CoordinateWan(
            position_s=np.array(
                [[draw(signed) for _ in range(dimensions)] for _ in range(count)]
            ).reshape(count, dimensions),
            height_s=durations(draw, count),
            capacity_bps=draw(st.one_of(st.just(math.inf), amounts(1e18))),
            taken_links=np.array(ways, dtype=np.int64),
            taken_bps=np.array([draw(amounts(1e18)) for _ in ways], dtype=float),
        )
    if shape == "tree":
        return draw(trees(count))
    ends = [(k, k + 1) for k in range(count - 1)] + ([] if tree_as_links else [(count - 1, 0)])
    ends = draw(st.permutations([draw(st.permutations(pair)) for pair in ends]))
    bandwidth, available = capacities(draw, (len(ends), 2))
    return LinkWan(
        site_count=count,
        a=np.array([a for a, _ in ends], dtype=np.int32),
        b=np.array([b for _, b in ends], dtype=np.int32),
        latency=durations(draw, len(ends)),
        bandwidth=bandwidth.max(axis=1, initial=0.0),
        available=available,
    )


@st.composite
def trees(draw: st.DrawFn, count: int) -> TreeWan:
    order = draw(st.permutations(range(count)))
    parent = np.full(count, -1, dtype=np.int32)
    for k in range(1, count):
        parent[order[k]] = order[draw(st.integers(0, k - 1))]
    latency = durations(draw, count)
    bandwidth, available = capacities(draw, (count, 2))
    capacity = bandwidth.max(axis=1)
    # The root has no link; this is what the model writes in its place.
    latency[order[0]], capacity[order[0]], available[order[0]] = 0.0, np.inf, np.inf
    return TreeWan(parent=parent, latency=latency, bandwidth=capacity, available=available)


TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["C"]), max_size=20),
    st.sampled_from(["", " ", "no", "- a: b", "#", 'it\'s "x"', "tab\tand\nline", "→ ☁ 🚕", "1e3"]),
)
FIGURES = st.one_of(st.just(math.inf), st.floats(0, 1e300).map(abs), st.integers(0, 10**9))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    operators = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    sites = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    nodes = [site if draw(st.booleans()) else f"{site}/{draw(NAMES)}" for site in sites]
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, len(operators) - 1),
                st.integers(0, len(nodes) - 1),
                st.integers(-1, len(sites) - 1),
            ),
            min_size=1,
            max_size=12,
            unique_by=lambda row: (row[0], row[2]),
        )
    )
    operator, node, origin = (
        np.array(column, dtype=np.int32) for column in zip(*rows, strict=True)
    )
    placed = sorted({operators[row[0]] for row in rows})
    tiers = [draw(st.sampled_from(["edge", "fog", "cloud"])) for _ in sites]
    hosts = {nodes[row[1]]: (sites[row[1]], tiers[row[1]]) for row in rows}
    nullable = st.one_of(st.none(), FIGURES)
    return Plan(
        application=draw(NAMES),
        network=draw(NAMES),
        strategy=draw(NAMES),
        placement=Placement(
            operator_names=tuple(operators),
            node_names=tuple(nodes),
            origin_names=tuple(sites),
            operator=operator,
            node=node,
            origin=origin,
        ),
        hosts=hosts,
        objective_name=draw(TEXTS),
        objective=draw(FIGURES),
        estimate=Estimate(**{f.name: draw(FIGURES) for f in dataclasses.fields(Estimate)}),
        violations=tuple(
            Violation(
                constraint=draw(TEXTS),
                place=draw(TEXTS),
                resource=draw(TEXTS),
                need=draw(FIGURES),
                have=draw(st.floats(-1e300, 1e300)),
                unit=draw(TEXTS),
                operators=tuple(draw(st.lists(TEXTS, max_size=2))),
            )
            for _ in range(draw(st.integers(0, 2)))
        ),
        reasons=tuple(
            Reason(
                operator=name,
                why=draw(TEXTS),
                cost=draw(nullable),
                cost_name=draw(TEXTS),
                considered=draw(st.integers(0, 10**6)),
                runner_up=draw(st.one_of(st.none(), TEXTS)),
                runner_up_cost=draw(nullable),
            )
            for name in draw(st.lists(st.sampled_from(placed), max_size=3))
        ),
        seconds=draw(st.floats(0, 1e6).map(abs)),
        candidates=draw(st.integers(0, 10**12)),
        gap=draw(nullable),
    )


def assert_same(found: Any, expected: Any) -> None:
    """Equal to the last bit, and of the same types."""
    assert type(found) is type(expected)
    for field in dataclasses.fields(expected):
        if field.name.startswith("_"):
            continue
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(other, np.ndarray):
            assert one.dtype == other.dtype, field.name
            assert one.shape == other.shape, field.name
            assert np.array_equal(one, other, equal_nan=True), field.name
        elif field.name == "wan":
            assert_same(one, other)
        else:
            assert one == other, field.name


# --- There and back -------------------------------------------------------------------------------

ENDINGS = st.sampled_from(["yaml", "yml", "json"])


@settings(max_examples=60, deadline=None)
@given(application=applications(), ending=ENDINGS)
def test_an_application_comes_back_exactly(application: Application, ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"app.{ending}")
        save(application, file)
        assert load_application(file) == application


@settings(max_examples=150, deadline=None)
@given(network=networks(), ending=ENDINGS)
def test_a_network_comes_back_exactly_from_text(network: Network, ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"net.{ending}")
        save(network, file)
        assert_same(load_network(file), network)


@settings(max_examples=100, deadline=None)
@given(network=st.one_of(networks(), networks(tree_as_links=True)))
def test_a_network_comes_back_exactly_from_a_folder(network: Network) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "net")
        save(network, file)
        assert_same(load_network(file), network)


@settings(max_examples=100, deadline=None)
@given(plan=plans(), ending=ENDINGS)
def test_a_plan_comes_back_exactly(plan: Plan, ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"plan.{ending}")
        save(plan, file)
        loaded = load_plan(file)
    assert loaded == plan
    assert loaded.seconds == plan.seconds
    # Also the order of rows, and whole numbers as whole numbers.
    assert loaded.to_json() == plan.to_json()


@cache
def validator(kind: Any) -> Any:
    return jsonschema.Draft202012Validator(json_schema(kind))


@settings(max_examples=25, deadline=None)
@given(application=applications(), network=networks(), plan=plans())
def test_what_is_saved_follows_the_schema(
    application: Application, network: Network, plan: Plan
) -> None:
    validator("application").validate(application_data(application))
    validator("network").validate(network_data(network))
    validator("plan").validate(json.loads(plan.to_json()))


def test_links_that_form_a_tree_come_back_from_text_as_a_tree() -> None:
    wan = LinkWan(
        site_count=2,
        a=np.array([0], dtype=np.int32),
        b=np.array([1], dtype=np.int32),
        latency=np.array([0.25]),
        bandwidth=np.array([8e6]),
        available=np.array([[8e6, 4e6]]),
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "net.yaml")
        save(small_network(wan=wan), file)
        found = load_network(file).wan
    assert isinstance(found, TreeWan)
    assert found.latency_s(0, 1) == 0.25
    assert found.available_bps(1, 0) == 4e6


# --- How it looks ---------------------------------------------------------------------------------


def small_network(**changes: Any) -> Network:
    figures: dict[str, Any] = {
        "name": "small",
        "site_names": ("fog", "cloud"),
        "site_tier": np.array([1, 2], dtype=np.uint8),
        "site_parent": np.array([1, -1], dtype=np.int32),
        "site_edge_delay_s": np.array([0.01, 0.0]),
        "node_site": np.array([0, 0, 0, 1], dtype=np.int32),
        "node_cpu_ips": np.array([4e8, 4e8, 8e8, np.inf]),
        "node_cpu_available_ips": np.array([4e8, 4e8, 6e8, np.inf]),
        "node_memory_bytes": np.array([2e9, 2e9, 2e9, 1e12]),
        "node_memory_available_bytes": np.array([2e9, 2e9, 2e9, 1e12]),
        "node_lan_latency_s": np.array([0.0002, 0.0002, 0.0, 0.0]),
        "node_lan_bandwidth_bps": np.array([1e8, 1e8, 1e8, np.inf]),
        "node_lan_available_bps": np.array([1e8, 1e8, 5e7, np.inf]),
        "node_operators": np.array([0, 0, 2, 0], dtype=np.int32),
        "node_names": ("gw-0", "gw-1", "gw-2", "vm"),
        "wan": TreeWan(
            parent=np.array([1, -1], dtype=np.int32),
            latency=np.array([0.035, 0.0]),
            bandwidth=np.array([2e8, np.inf]),
            available=np.array([[2e8, 1.5e8], [np.inf, np.inf]]),
        ),
    }
    return Network(**{**figures, **changes})


def small_application() -> Application:
    return Application(
        name="taxi",
        operators=[
            Operator(
                name="rides", kind="source", rate=3000.0, event_size=120.0, pin=Pin(tier="fog")
            ),
            Operator(
                name="clean",
                selectivity=0.9,
                cpu_per_event=2000.0,
                cpu_per_byte=1.2,
                memory=1e7,
                memory_factor=1.3,
                window=TimeWindow(60.0, 30.0),
                state=5e6,
                replicable=True,
            ),
            Operator(name="no", window=CountWindow(100)),
            Operator(name="store", kind="sink", pin=Pin(node="cloud/vm")),
        ],
        streams=[
            Stream(source="rides", target="clean"),
            Stream(source="clean", target="no", probability=0.25),
            Stream(source="no", target="store"),
        ],
        limits=Limits(response_time_s=1.0, uplink_bps=1e9, usage=0.8),
    )


def small_plan() -> Plan:
    return Plan(
        application="taxi",
        network="small",
        strategy="by-hand",
        placement=Placement.of({"rides": "fog/gw-0", "store": "cloud/vm"}),
        hosts={"fog/gw-0": ("fog", "fog"), "cloud/vm": ("cloud", "cloud")},
        objective_name="aggregate_latency_s",
        objective=math.inf,
        estimate=Estimate(
            aggregate_latency_s=math.inf,
            worst_latency_s=0.1,
            path_count=1.0,
            response_time_s=1 / 3,
            uplink_bps=2.88e6,
            usage=0.5,
            delay_product_bits=1e5,
        ),
        violations=(
            Violation(
                constraint="stability",
                place="fog/gw-0",
                resource="service rate",
                need=3000.0,
                have=2500.5,
                unit="events/s",
                operators=("rides",),
            ),
        ),
        reasons=(Reason(operator="store", why="pinned: it's on cloud/vm", considered=1),),
        seconds=0.0125,
        candidates=4,
    )


@pytest.mark.parametrize(
    ("name", "value", "load"),
    [
        ("application", small_application(), load_application),
        ("network", small_network(), load_network),
        ("plan", small_plan(), load_plan),
    ],
)
def test_the_format_is_that_of_the_golden_file(
    name: str, value: Any, load: Any, tmp_path: Path
) -> None:
    golden = GOLDEN / f"{name}.yaml"
    save(value, tmp_path / "saved.yaml")
    assert (tmp_path / "saved.yaml").read_text() == golden.read_text()
    if isinstance(value, Network):
        assert_same(load(golden), value)
    else:
        assert load(golden) == value


def test_nodes_are_counted_only_where_they_are_alike_and_numbered_from_zero() -> None:
    def entries(**changes: Any) -> list[dict[str, Any]]:
        alike: dict[str, Any] = {
            f"node_{name}": np.array([8.0] * 4)
            for name in ("cpu_ips", "cpu_available_ips", "memory_bytes", "memory_available_bytes")
        }
        alike |= {"node_lan_latency_s": np.zeros(4), "node_operators": np.zeros(4, dtype=np.int32)}
        alike |= {"node_lan_bandwidth_bps": np.full(4, np.inf)}
        alike |= {"node_lan_available_bps": np.full(4, np.inf)}
        nodes = network_data(small_network(**{**alike, **changes}))["sites"][0]["nodes"]
        return [{k: v for k, v in node.items() if k in ("name", "count")} for node in nodes]

    assert entries(node_names=("gw-0", "gw-1", "gw-2", "vm")) == [{"name": "gw", "count": 3}]
    assert entries(node_names=("gw-1", "gw-2", "gw-3", "vm")) == [
        {"name": "gw-1"},
        {"name": "gw-2"},
        {"name": "gw-3"},
    ]
    assert entries(node_names=("gw-0", "gw-1", "gw-3", "vm")) == [
        {"name": "gw", "count": 2},
        {"name": "gw-3"},
    ]
    assert entries(node_names=None) == [{"count": 3}]
    cpu = np.array([8.0, 8.0, 9.0, 8.0])
    assert entries(node_cpu_ips=cpu, node_cpu_available_ips=cpu) == [
        {"name": "gw", "count": 2},
        {"name": "gw-2"},
    ]


@given(
    st.recursive(
        st.one_of(TEXTS, NAMES, st.none(), st.booleans(), st.integers(), st.floats(-1e300, 1e300)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_yaml_means_the_same_data_to_our_reader(data: Any) -> None:
    from thalweg.files.text import parse_document

    source = write_yaml({"data": data})
    assert parse_document(source, file="x.yaml", format="yaml").data == {"data": data}


@given(st.dictionaries(NAMES, st.one_of(NAMES, TEXTS), max_size=4))
def test_texts_are_texts_to_other_yaml_readers_too(data: dict[str, str]) -> None:
    import yaml

    assert yaml.safe_load(write_yaml({"data": data})) == {"data": data}


# --- Where it goes --------------------------------------------------------------------------------


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refused(value: Any, path: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        save(value, path)
    return str(caught.value)


def test_saving_replaces_a_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text("before")
    save(small_application(), file)
    assert load_application(file) == small_application()
    assert names_in(tmp_path) == ["app.yaml"]


def test_saving_behind_a_link_leaves_the_link(tmp_path: Path) -> None:
    (tmp_path / "link.yaml").symlink_to(tmp_path / "real.yaml")
    save(small_application(), tmp_path / "link.yaml")
    assert (tmp_path / "link.yaml").is_symlink()
    assert load_application(tmp_path / "real.yaml") == small_application()


def test_a_file_is_readable_to_whom_the_system_says(tmp_path: Path) -> None:
    save(small_application(), tmp_path / "app.yaml")
    (tmp_path / "plain").touch()
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("app.yaml", "plain")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("name", ["app.yaml", "net"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = small_application() if name == "app.yaml" else small_network()
    save(value, tmp_path / name)
    before = sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*"))

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    monkeypatch.setattr("pyarrow.parquet.write_table", fail)
    assert "no space left on device" in refused(value, tmp_path / name)
    assert sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*")) == before


def test_the_place_must_be_one_where_a_file_can_be(tmp_path: Path) -> None:
    app, net = small_application(), small_network()
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    os.mkfifo(tmp_path / "pipe.yaml")
    assert 'got "a folder"' in refused(app, tmp_path / "folder.yaml")
    assert 'got "a pipe, socket or device"' in refused(app, tmp_path / "pipe.yaml")
    assert "need an existing folder" in refused(app, tmp_path / "none" / "app.yaml")
    assert "ends in .yaml, .yml or .json" in refused(app, tmp_path / "app.toml")
    assert "ends in .yaml, .yml or .json" in refused(app, tmp_path / "app")
    assert "or none for a folder" in refused(net, tmp_path / "net.csv")
    assert 'got "a file"' in refused(net, tmp_path / "file")
    assert 'got "a folder with letter.txt"' in refused(net, tmp_path / "full")
    assert refused(app, "nul\0byte.yaml")
    assert refused(app, "/")
    assert names_in(tmp_path) == ["file", "folder.yaml", "full", "pipe.yaml"]
    with pytest.raises(TypeError, match="cannot save dict"):
        save({}, tmp_path / "app.yaml")  # type: ignore[arg-type]


def test_a_folder_may_be_empty_or_hold_a_network(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    save(small_network(), tmp_path / "net")
    mesh = MeshWan(latency=np.zeros((2, 2)), bandwidth=np.ones((2, 2)), available=np.ones((2, 2)))
    save(small_network(wan=mesh), tmp_path / "net")
    assert isinstance(load_network(tmp_path / "net").wan, MeshWan)
    assert not (tmp_path / "net" / "tree.parquet").exists()
    assert names_in(tmp_path) == ["net"]


def test_a_network_too_large_for_text_is_sent_to_a_folder(tmp_path: Path) -> None:
    count = 5001
    figures = np.ones(count)
    network = Network(
        name="large",
        site_names=("a",),
        site_tier=np.zeros(1, dtype=np.uint8),
        site_parent=np.array([-1], dtype=np.int32),
        site_edge_delay_s=np.zeros(1),
        node_site=np.zeros(count, dtype=np.int32),
        node_cpu_ips=figures,
        node_cpu_available_ips=figures,
        node_memory_bytes=figures,
        node_memory_available_bytes=figures,
        node_lan_latency_s=figures,
        node_lan_bandwidth_bps=figures,
        node_lan_available_bps=figures,
        node_operators=np.zeros(count, dtype=np.int32),
        wan=MeshWan(latency=np.zeros((1, 1)), bandwidth=np.ones((1, 1)), available=np.ones((1, 1))),
    )
    assert "at most 5000 nodes in a text file" in refused(network, tmp_path / "net.yaml")
    save(network, tmp_path / "net")
    assert load_network(tmp_path / "net").node_count == count


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    """Values that the model allows and files do not: absurd figures, sites apart, odd texts."""
    fast = np.array([1e19, 1.0, 1.0, 1.0])
    absurd = small_network(node_cpu_ips=fast, node_cpu_available_ips=fast)
    apart = LinkWan(
        site_count=2,
        a=np.empty(0, dtype=np.int32),
        b=np.empty(0, dtype=np.int32),
        latency=np.empty(0),
        bandwidth=np.empty(0),
        available=np.empty((0, 2)),
    )
    heavy = dataclasses.replace(small_application().operator("clean"), cpu_per_byte=1e13)
    app = dataclasses.replace(
        small_application(),
        operators=[heavy if o.name == "clean" else o for o in small_application().operators],
    )
    plan = dataclasses.replace(small_plan(), objective=math.nan)
    for value, name, path in [
        (absurd, "net.yaml", "sites[0].nodes[0].cpu"),
        (absurd, "net", "cpu_ips[0]"),
        (small_network(wan=apart), "net.yaml", "sites[0]"),
        (small_network(wan=apart), "net", "sites[0]"),
        (app, "app.yaml", "operators[1].cpu_per_byte"),
        (plan, "plan.json", "objective"),
        (
            dataclasses.replace(small_plan(), objective_name="\x1b[2J"),
            "plan.yaml",
            "objective_name",
        ),
    ]:
        assert f"{path}: got" in refused(value, tmp_path / name)
    assert names_in(tmp_path) == []


def test_addresses_of_spark_come_back_from_a_file_and_are_refused_in_a_folder(
    tmp_path: Path,
) -> None:
    node = Node(name="n", cpu_ips=1e9, memory_bytes=1e9)
    sites = [
        Site(name="fog", tier="fog", nodes=(node,), spark="local[2]"),
        Site(name="cloud", tier="cloud", nodes=(node,)),
    ]
    links = [Link(a="fog", b="cloud", latency_s=0.1, bandwidth_bps=1e8)]
    network = build_network("small", sites, links)
    save(network, tmp_path / "net.yaml")
    assert dict(load_network(tmp_path / "net.yaml").addresses) == {"fog": "local[2]"}
    with pytest.raises(InvalidInput, match="addresses of Spark"):
        save(network, tmp_path / "net")


def test_an_address_belongs_to_a_site_and_has_a_known_form() -> None:
    node = Node(name="n", cpu_ips=1e9, memory_bytes=1e9)
    alone = build_network("small", [Site(name="fog", tier="fog", nodes=(node,))], [])
    with pytest.raises(InvalidInput) as told:
        dataclasses.replace(alone, addresses={"fgo": "local", "fog": "10.0.0.7"})
    assert [defect.path for defect in told.value.defects] == ["addresses.fgo", "addresses.fog"]
