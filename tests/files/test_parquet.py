"""Networks as folders of Parquet files: the layout, and that nothing in a folder is trusted."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.files import load_network, save
from thalweg.model import CoordinateWan, LinkWan, MeshWan, Network, TreeWan, Wan

MESH = MeshWan(
    latency=np.array([[0.0, 0.07, 0.1], [0.08, 0.0, 0.1], [0.1, 0.1, 0.0]]),
    bandwidth=np.full((3, 3), 1e9),
    available=np.full((3, 3), 1e9),
)
LINKS = LinkWan(
    site_count=3,
    a=np.array([0, 1, 2], dtype=np.int32),
    b=np.array([1, 2, 0], dtype=np.int32),
    latency=np.array([0.01, 0.02, 0.03]),
    bandwidth=np.array([1e6, 1e7, np.inf]),
    available=np.array([[1e6, 5e5], [1e7, 1e7], [np.inf, 3.0]]),
)
TREE = TreeWan(
    parent=np.array([1, 2, -1], dtype=np.int32),
    latency=np.array([0.01, 0.02, 0.0]),
    bandwidth=np.array([1e6, 1e7, np.inf]),
    available=np.array([[1e6, 5e5], [1e7, 1e7], [np.inf, np.inf]]),
)
COORDINATES = CoordinateWan(
    position_s=np.array([[0.0, -0.01], [0.02, 0.0], [0.03, 0.04]]),
    height_s=np.array([0.001, 0.0, 0.002]),
    capacity_bps=1e9,
    taken_links=np.array([1, 5], dtype=np.int64),
    taken_bps=np.array([1e6, 2e6]),
)
SHAPES = {"mesh": MESH, "links": LINKS, "tree": TREE, "coordinates": COORDINATES}

FIGURES = ("cpu_ips", "cpu_available_ips", "memory_bytes", "memory_available_bytes")


def network(wan: Wan = MESH) -> Network:
    figures: dict[str, Any] = {f"node_{name}": np.array([4.0, 5.0, 6.0, 7.0]) for name in FIGURES}
    return Network(
        name="small",
        site_names=("edge", "fog", "cloud"),
        site_tier=np.array([0, 1, 2], dtype=np.uint8),
        site_parent=np.array([1, 2, -1], dtype=np.int32),
        site_edge_delay_s=np.array([0.01, 0.02, 0.0]),
        site_area_m=np.array([[0.0, 0.0, 10.0, 10.0], [-5.0, -5.0, 5.0, 5.0], [np.nan] * 4]),
        node_site=np.array([0, 0, 1, 2], dtype=np.int32),
        node_lan_latency_s=np.array([0.1, 0.2, 0.0, 0.0]),
        node_lan_bandwidth_bps=np.array([1e6, 1e6, 1e7, np.inf]),
        node_lan_available_bps=np.array([1e6, 5e5, 1e7, np.inf]),
        node_operators=np.array([0, 1, 2, 0], dtype=np.int32),
        node_names=("a", "b", "a", "vm"),
        wan=wan,
        **figures,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(network(), tmp_path / "net")
    return tmp_path / "net"


def saved(tmp_path: Path, shape: str) -> Path:
    save(network(SHAPES[shape]), tmp_path / shape)
    return tmp_path / shape


def refused(folder: Path) -> list[str]:
    """The messages without the folder; every one names a file in it."""
    with pytest.raises(InvalidInput) as caught:
        load_network(folder)
    assert caught.value.defects
    for defect in caught.value.defects:
        assert Path(defect.file).parent == folder
    return [str(d).removeprefix(f"{folder}/") for d in caught.value.defects]


# --- The layout -----------------------------------------------------------------------------------

SITE_COLUMNS = {
    "name": "string",
    "tier": "string",
    "parent": "int32",
    "edge_delay_s": "double",
    "area_west_m": "double",
    "area_south_m": "double",
    "area_east_m": "double",
    "area_north_m": "double",
}
NODE_COLUMNS = {
    "site": "int32",
    "cpu_ips": "double",
    "cpu_available_ips": "double",
    "memory_bytes": "double",
    "memory_available_bytes": "double",
    "lan_latency_s": "double",
    "lan_bandwidth_bps": "double",
    "lan_available_bps": "double",
    "operators": "int32",
    "name": "string",
}
SHAPE_COLUMNS = {
    "mesh": {"latency_s": "double", "bandwidth_bps": "double", "available_bps": "double"},
    "links": {
        "a": "int32",
        "b": "int32",
        "latency_s": "double",
        "bandwidth_bps": "double",
        "available_to_b_bps": "double",
        "available_to_a_bps": "double",
    },
    "tree": {
        "parent": "int32",
        "latency_s": "double",
        "bandwidth_bps": "double",
        "available_up_bps": "double",
        "available_down_bps": "double",
    },
    "coordinates": {"position_0_s": "double", "position_1_s": "double", "height_s": "double"},
}


def layout(file: Path) -> dict[str, str]:
    schema = pq.read_schema(file)
    return {name: str(schema.field(name).type) for name in schema.names}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_layout_of_a_folder_is_the_documented_one(shape: str, tmp_path: Path) -> None:
    folder = saved(tmp_path, shape)
    contents: dict[str, Any] = {
        "thalweg": 1,
        "network": "small",
        "shape": shape,
        "site_count": 3,
        "node_count": 4,
    }
    contents |= {"links": {"link_count": 3}}.get(shape, {})
    if shape == "coordinates":
        contents |= {"dimensions": 2, "bandwidth": "1 Gbps", "taken_count": 2}
        assert layout(folder / "taken.parquet") == {
            "a": "int32",
            "b": "int32",
            "taken_bps": "double",
        }
    assert json.loads((folder / "network.json").read_text()) == contents
    assert layout(folder / "sites.parquet") == SITE_COLUMNS
    assert layout(folder / "nodes.parquet") == NODE_COLUMNS
    assert layout(folder / f"{shape}.parquet") == SHAPE_COLUMNS[shape]
    files = ["network.json", "nodes.parquet", "sites.parquet", f"{shape}.parquet"]
    files += ["taken.parquet"] if shape == "coordinates" else []
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)


def test_a_mesh_lies_in_its_table_row_by_row(folder: Path) -> None:
    column = pq.read_table(folder / "mesh.parquet").column("latency_s").to_pylist()
    assert column == MESH.latency.ravel().tolist()


def test_a_folder_of_another_writer_is_read(folder: Path) -> None:
    """Other compression, several row groups, no checksums: the values count, not the encoding."""
    for file in folder.glob("*.parquet"):
        table = pq.read_table(file)
        pq.write_table(table, file, compression="zstd", row_group_size=2, use_dictionary=False)
    loaded = load_network(folder)
    assert loaded.node_names == ("a", "b", "a", "vm")
    assert np.array_equal(loaded.wan.latency_s(0, 1), 0.07)
    assert np.array_equal(loaded.site_area_m, network().site_area_m, equal_nan=True)  # type: ignore[arg-type]


def test_figures_that_are_the_same_share_their_memory(folder: Path) -> None:
    loaded = load_network(folder)
    assert isinstance(loaded.wan, MeshWan)
    assert np.shares_memory(loaded.node_cpu_ips, loaded.node_cpu_available_ips)
    assert not np.shares_memory(loaded.node_lan_bandwidth_bps, loaded.node_lan_available_bps)
    assert loaded.wan.bandwidth.strides == (0, 0)
    assert np.shares_memory(loaded.wan.bandwidth, loaded.wan.available)


def test_loading_and_saving_a_folder_needs_neither_pandas_nor_pydantic(tmp_path: Path) -> None:
    program = """if True:
        import sys
        from pathlib import Path
        from thalweg.files import load_network, save
        folder = Path(sys.argv[1])
        save(load_network(folder / "net"), folder / "again")
        print(*sorted({"pandas", "pydantic", "yaml"} & set(sys.modules)))
    """
    save(network(), tmp_path / "net")
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True
    )
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stderr


# --- What a folder says it holds ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"thalweg": 2}, ["thalweg"]),
        ({"thalweg": True}, ["thalweg"]),
        ({"network": "../x"}, ["network"]),
        ({"network": ...}, ["network"]),
        ({"shape": "meshes"}, ["shape"]),
        ({"shape": ["mesh"]}, ["shape"]),
        ({"shape": ..., "thalweg": ...}, ["thalweg", "shape"]),
        ({"link_count": 3}, ["link_count"]),
        ({"site_count": 0}, ["site_count"]),
        ({"site_count": 5001}, ["site_count"]),
        ({"site_count": True, "node_count": 2.0}, ["node_count", "site_count"]),
        ({"node_count": 5_000_001}, ["node_count"]),
        ({"node_count": ...}, ["node_count"]),
    ],
)
def test_contents_that_break_a_rule_are_refused(
    changes: dict[str, Any], paths: list[str], folder: Path
) -> None:
    file = folder / "network.json"
    data = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({k: v for k, v in data.items() if v is not ...}, indent=1))
    messages = refused(folder)
    assert [message.split(": ")[1] for message in messages] == paths
    assert all(message.startswith("network.json:") for message in messages)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "a JSON document"),
        (b"{", "valid JSON"),
        (b"[]", "a mapping that describes a network folder"),
        (b'{"thalweg": 1, "thalweg": 1}', "each key only once"),
        (b"\xff\xfe", "UTF-8 text"),
        (b" " * 70_000, "at most 65536 bytes"),
        (b"[" * 5000, "nested at most"),
    ],
)
def test_contents_that_are_no_description_are_refused(
    content: bytes, rule: str, folder: Path
) -> None:
    (folder / "network.json").write_bytes(content)
    assert any(rule in message for message in refused(folder))


@pytest.mark.parametrize("bandwidth", [5, "5 MB", None, ["unlimited"]])
def test_the_bandwidth_of_coordinates_is_written_with_its_unit(
    bandwidth: object, tmp_path: Path
) -> None:
    folder = saved(tmp_path, "coordinates")
    data = json.loads((folder / "network.json").read_text())
    (folder / "network.json").write_text(json.dumps({**data, "bandwidth": bandwidth}))
    (message,) = refused(folder)
    assert "bandwidth: got" in message


# --- Files that are no tables ---------------------------------------------------------------------


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def made_text(file: Path) -> None:
    file.write_text("a,b\n1,2\n")


def only_magic(file: Path) -> None:
    file.write_bytes(b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1")


def made_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def made_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def unlinked(file: Path) -> None:
    file.unlink()


def scribbled(file: Path) -> None:
    """The data in the middle changed, the footer whole: only the checksum of a page can tell."""
    content = bytearray(file.read_bytes())
    at = content.find(np.float64(0.07).tobytes())
    assert at > 0
    content[at] ^= 1
    file.write_bytes(content)


DAMAGES = [truncated, half, emptied, made_text, only_magic, made_folder, made_pipe, unlinked]


@pytest.mark.parametrize("name", ["sites.parquet", "nodes.parquet", "mesh.parquet"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_no_table_is_refused_by_name(
    damage: Callable[[Path], None], name: str, folder: Path
) -> None:
    damage(folder / name)
    (message,) = refused(folder)
    assert message.startswith(f"{name}: got ")


def test_a_page_that_was_changed_is_noticed(folder: Path) -> None:
    scribbled(folder / "mesh.parquet")
    (message,) = refused(folder)
    assert "CRC" in message


@pytest.mark.parametrize("damage", [emptied, made_folder, made_pipe, unlinked])
def test_contents_that_are_no_file_are_refused(
    damage: Callable[[Path], None], folder: Path
) -> None:
    damage(folder / "network.json")
    (message,) = refused(folder)
    assert message.startswith("network.json:")


def test_the_defects_of_all_files_are_told_at_once(folder: Path) -> None:
    for name in ("sites.parquet", "nodes.parquet", "mesh.parquet"):
        made_text(folder / name)
    names = [message.split(":")[0] for message in refused(folder)]
    assert names == ["sites.parquet", "nodes.parquet", "mesh.parquet"]


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32))
def test_a_file_with_any_bytes_changed_is_loaded_or_refused(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    folder = tmp_path / "fuzzed"
    shutil.rmtree(folder, ignore_errors=True)
    save(network(), folder)
    file = folder / str(rng.choice([path.name for path in sorted(folder.iterdir())]))
    content = bytearray(file.read_bytes())
    for place in rng.integers(len(content), size=rng.choice([1, 1, 2, 8])):
        content[place] = rng.integers(256)
    if rng.random() < 0.2:
        del content[rng.integers(len(content)) :]
    file.write_bytes(content)
    try:
        load_network(folder)
    except InvalidInput as error:
        assert error.defects


# --- Tables that break a rule ---------------------------------------------------------------------


def rewritten(folder: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(folder / name)), folder / name)


def with_column(column: str, values: Any) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        position = table.schema.names.index(column)
        kind = table.schema.field(column).type
        return table.set_column(position, column, pa.array(values, type=kind))

    return change


def without(column: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.drop_columns([column])


def as_type(column: str, kind: Any) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        position = table.schema.names.index(column)
        return table.set_column(position, column, table.column(column).cast(kind))

    return change


def with_more(column: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.append_column(column, pa.array([1.0] * table.num_rows))


NAN = float("nan")
TABLE_RULES: list[tuple[str, str, Callable[[pa.Table], pa.Table], str]] = [
    ("mesh", "sites", without("tier"), "tier"),
    ("mesh", "sites", with_more("teir"), "teir"),
    ("mesh", "sites", without("area_west_m"), "area_west_m"),
    ("mesh", "sites", as_type("edge_delay_s", pa.float32()), "edge_delay_s"),
    ("mesh", "sites", lambda table: table.slice(0, 2), ""),
    ("mesh", "sites", with_column("name", ["edge", "edge", "cloud"]), "sites[1].name"),
    ("mesh", "sites", with_column("name", ["edge", "../fog", "cloud"]), "name[1]"),
    ("mesh", "sites", with_column("name", ["edge", None, "cloud"]), "name"),
    ("mesh", "sites", with_column("tier", ["edge", "Fog", "cloud"]), "tier[1]"),
    ("mesh", "sites", with_column("parent", [1, 2, 3]), "parent[2]"),
    ("mesh", "sites", with_column("parent", [1, -2, -1]), "parent[1]"),
    ("mesh", "sites", with_column("parent", [1, 0, -1]), "sites[0].parent"),
    ("mesh", "sites", with_column("parent", [1, None, -1]), "parent"),
    ("mesh", "sites", with_column("edge_delay_s", [0.0, -1.0, 0.0]), "edge_delay_s[1]"),
    ("mesh", "sites", with_column("edge_delay_s", [0.0, 0.0, math.inf]), "edge_delay_s[2]"),
    ("mesh", "sites", with_column("area_east_m", [10.0, None, None]), "area_west_m[1]"),
    ("mesh", "sites", with_column("area_east_m", [0.0, 5.0, None]), "area_west_m[0]"),
    ("mesh", "sites", with_column("area_east_m", [10.0, 5.0, NAN]), "area_east_m"),
    ("mesh", "sites", with_column("area_east_m", [10.0, 2e9, None]), "area_east_m[1]"),
    ("mesh", "nodes", with_column("site", [0, 2, 1, 2]), "site[2]"),
    ("mesh", "nodes", with_column("site", [0, 0, 1, 3]), "site[3]"),
    ("mesh", "nodes", with_column("site", [-1, 0, 1, 2]), "site[0]"),
    ("mesh", "nodes", with_column("cpu_ips", [4.0, NAN, 6.0, 7.0]), "cpu_ips[1]"),
    ("mesh", "nodes", with_column("cpu_ips", [4.0, None, 6.0, 7.0]), "cpu_ips"),
    ("mesh", "nodes", with_column("cpu_ips", [4.0, -5.0, 6.0, 7.0]), "cpu_ips[1]"),
    ("mesh", "nodes", with_column("cpu_ips", [4.0, 5.0, 1e19, 7.0]), "cpu_ips[2]"),
    (
        "mesh",
        "nodes",
        with_column("memory_bytes", [4.0, 4.5, 6.0, 7.0]),
        "memory_available_bytes[1]",
    ),
    ("mesh", "nodes", with_column("lan_latency_s", [0.0, 0.0, 0.0, math.inf]), "lan_latency_s[3]"),
    ("mesh", "nodes", with_column("operators", [0, 0, -1, 0]), "operators[2]"),
    ("mesh", "nodes", with_column("operators", [0, 0, 2**31 - 1, 0]), "operators[2]"),
    ("mesh", "nodes", as_type("operators", pa.int64()), "operators"),
    ("mesh", "nodes", with_column("name", ["a", "a", "a", "vm"]), "name[1]"),
    ("mesh", "nodes", with_column("name", ["a", "b", "a", "x" * 65]), "name[3]"),
    ("mesh", "mesh", lambda table: table.slice(0, 8), ""),
    ("mesh", "mesh", with_column("latency_s", [0.0] * 8 + [NAN]), "latency_s[8]"),
    ("mesh", "mesh", with_column("latency_s", [0.0] * 8 + [math.inf]), "latency_s[8]"),
    ("mesh", "mesh", with_column("available_bps", [1e9] * 8 + [2e9]), "available_bps[8]"),
    ("links", "links", with_column("b", [1, 2, 2]), "b[2]"),
    ("links", "links", with_column("b", [1, 0, 0]), "a[1]"),
    ("links", "links", with_column("b", [1, 2, 7]), "b[2]"),
    ("links", "links", with_column("available_to_a_bps", [2e6, 1.0, 1.0]), "available_to_a_bps[0]"),
    ("tree", "tree", with_column("parent", [-1, 2, -1]), "parent"),
    ("tree", "tree", with_column("parent", [1, 0, -1]), "parent[0]"),
    ("tree", "tree", with_column("parent", [1, 3, -1]), "parent[1]"),
    ("coordinates", "coordinates", with_column("position_1_s", [0.0, NAN, 0.0]), "position_1_s[1]"),
    ("coordinates", "coordinates", with_column("height_s", [0.0, -1.0, 0.0]), "height_s[1]"),
    ("coordinates", "coordinates", without("position_1_s"), "position_1_s"),
    ("coordinates", "coordinates", with_more("position_2_s"), "position_2_s"),
    ("coordinates", "taken", with_column("b", [0, 2]), "b[0]"),
    ("coordinates", "taken", with_column("taken_bps", [1.0, math.inf]), "taken_bps[1]"),
]


@pytest.mark.parametrize(("shape", "table", "change", "path"), TABLE_RULES)
def test_a_table_that_breaks_a_rule_is_refused_at_its_place(
    shape: str, table: str, change: Callable[[pa.Table], pa.Table], path: str, tmp_path: Path
) -> None:
    folder = saved(tmp_path, shape)
    rewritten(folder, f"{table}.parquet", change)
    with pytest.raises(InvalidInput) as caught:
        load_network(folder)
    assert [defect.path for defect in caught.value.defects] == [path]
    if not path.startswith("sites["):
        assert caught.value.defects[0].file == str(folder / f"{table}.parquet")


def test_links_that_leave_a_site_out_are_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, "links")
    rewritten(folder, "links.parquet", lambda table: table.slice(0, 1))
    data = json.loads((folder / "network.json").read_text())
    (folder / "network.json").write_text(json.dumps({**data, "link_count": 1}))
    (message,) = refused(folder)
    assert 'sites[2]: got "cloud"' in message


def test_ways_are_taken_in_any_order(tmp_path: Path) -> None:
    folder = saved(tmp_path, "coordinates")
    rewritten(folder, "taken.parquet", lambda table: table.take([1, 0]))
    loaded = load_network(folder).wan
    assert isinstance(loaded, CoordinateWan)
    assert loaded.taken_links.tolist() == COORDINATES.taken_links.tolist()
    assert loaded.taken_bps.tolist() == COORDINATES.taken_bps.tolist()


def test_the_same_way_taken_twice_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, "coordinates")
    rewritten(folder, "taken.parquet", with_column("a", [0, 0]))
    rewritten(folder, "taken.parquet", with_column("b", [1, 1]))
    (message,) = refused(folder)
    assert message.startswith("taken.parquet: a[1]: got ")


def test_a_tree_that_is_one_long_way_down_is_refused_before_it_is_walked(tmp_path: Path) -> None:
    count = 1002
    figures = np.ones(count)
    chain = TreeWan(
        parent=np.arange(-1, count - 1, dtype=np.int32),
        latency=figures,
        bandwidth=figures,
        available=np.ones((count, 2)),
    )
    wide = dataclasses.replace(
        network(),
        site_names=tuple(f"s{k}" for k in range(count)),
        site_tier=np.zeros(count, dtype=np.uint8),
        site_parent=np.full(count, -1, dtype=np.int32),
        site_edge_delay_s=figures,
        site_area_m=None,
        wan=chain,
    )
    with pytest.raises(InvalidInput, match="a way of at most 1000 links up to the root"):
        save(wide, tmp_path / "net")
    assert not (tmp_path / "net").exists()


def test_names_repeated_without_end_cost_no_more_than_once(tmp_path: Path) -> None:
    """A dictionary makes a small file of a long name in many rows; it stays one name in memory."""
    folder = tmp_path / "net"
    save(network(), folder)
    count = 300_000
    table = pq.read_table(folder / "nodes.parquet").slice(0, 1)
    columns = {
        name: pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(count, dtype=np.int32)), table.column(name).combine_chunks()
        ).dictionary_decode()
        for name in table.schema.names
        if name != "name"
    }
    word = pa.array(["x" * 60_000])
    rows = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), word)
    schema = pa.schema([*((k, v.type) for k, v in columns.items()), ("name", rows.type)])
    bomb = pa.Table.from_arrays([*columns.values(), rows], schema=schema)
    pq.write_table(bomb, folder / "nodes.parquet", store_schema=False)
    assert (folder / "nodes.parquet").stat().st_size < 1_000_000
    data = json.loads((folder / "network.json").read_text())
    (folder / "network.json").write_text(json.dumps({**data, "node_count": count}))
    (message,) = refused(folder)
    assert message.startswith('nodes.parquet: name[0]: got "xxx')


def test_more_data_than_the_rows_can_need_is_refused_unread(tmp_path: Path) -> None:
    folder = saved(tmp_path, "mesh")
    rewritten(folder, "sites.parquet", with_column("name", ["edge", "fog", "x" * 2_000_000]))
    (message,) = refused(folder)
    assert "bytes for 3 rows" in message
