"""Loading: each defect with its file and line, in the order of the file, and no surprises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import thalweg
from thalweg.errors import InvalidInput
from thalweg.files import load_application, load_network, load_plan, save
from thalweg.files.outline import MOST_DEFECTS

APPLICATION = """\
thalweg: 1
application: taxi
operators:
  - {name: rides, kind: source, rate: 3000 events/s, event_size: 120 B, pin: {tier: fog}}
  - {name: clean, selectivity: 0.9}
  - {name: store, kind: sink, pin: {tier: cloud}}
streams:
  - {source: rides, target: clean}
  - {source: clean, target: store}
"""
NETWORK = """\
thalweg: 1
network: city
sites:
  - {name: fog, tier: fog, nodes: [{name: gw, cpu: 400 MIPS, memory: 2 GB}]}
  - {name: cloud, tier: cloud, nodes: [{name: vm, cpu: 4 GIPS, memory: unlimited}]}
links:
  - {a: fog, b: cloud, latency: 35 ms, bandwidth: 200 Mbps}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "app.yaml").write_text(APPLICATION)
    (tmp_path / "net.yml").write_text(NETWORK)
    return tmp_path


def refused(load: Any, path: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        load(path)
    return caught.value


def test_yaml_json_and_folders_hold_the_same(files: Path) -> None:
    application = load_application(files / "app.yaml")
    network = load_network(str(files / "net.yml"))
    save(application, files / "app.json")
    save(network, files / "net.json")
    save(network, files / "net")
    assert load_application(files / "app.json") == application
    for other in ("net.json", "net"):
        loaded = load_network(files / other)
        assert [loaded.node(k) for k in range(2)] == [network.node(k) for k in range(2)]
        assert loaded.link("fog", "cloud") == network.link("fog", "cloud")


def test_a_plan_of_a_strategy_is_loaded_as_it_was(files: Path) -> None:
    application, network = load_application(files / "app.yaml"), load_network(files / "net.yml")
    plan = thalweg.plan(application, network, strategy="cloud-only")
    for ending in ("json", "yaml"):
        save(plan, files / f"plan.{ending}")
        loaded = load_plan(files / f"plan.{ending}")
        assert loaded == plan
        assert loaded.to_json() == plan.to_json()
        assert thalweg.check(loaded, application, network) == []


def test_each_defect_has_its_file_and_line_from_top_to_bottom(files: Path) -> None:
    file = files / "app.yaml"
    text = APPLICATION.replace("target: store", "target: stoer")  # Told by the names …
    text = text.replace("selectivity: 0.9", "selectivty: 0.9")  # … by the fields …
    text = text.replace("rate: 3000 events/s, ", "")  # … and by the model.
    file.write_text(text)
    error = refused(load_application, file)
    assert [(d.line, d.path) for d in error.defects] == [
        (4, "operators[0].rate"),
        (5, "operators[1].selectivty"),
        (9, "streams[1].target"),
    ]
    assert {d.file for d in error.defects} == {str(file)}
    assert str(error).startswith(f"{file}:4: operators[0].rate: got nothing, need ")


@pytest.mark.parametrize(
    ("load", "name", "found", "wanted"),
    [
        (load_application, "net.yml", "a network", "an application"),
        (load_network, "app.yaml", "an application", "a network"),
        (load_plan, "app.yaml", "an application", "a plan"),
        (load_plan, "net.yml", "a network", "a plan"),
        (load_application, "plan.json", "a plan", "an application"),
        (load_network, "plan.json", "a plan", "a network"),
    ],
)
def test_a_file_about_something_else_is_told_from_a_bad_one(
    load: Any, name: str, found: str, wanted: str, files: Path
) -> None:
    network = load_network(files / "net.yml")
    save(thalweg.plan(load_application(files / "app.yaml"), network), files / "plan.json")
    (defect,) = refused(load, files / name).defects
    assert defect.value == found
    assert defect.rule.startswith(wanted)
    assert "swapped" in defect.hint


def test_the_description_in_a_network_folder_is_told_from_a_network(files: Path) -> None:
    save(load_network(files / "net.yml"), files / "net")
    (defect,) = refused(load_network, files / "net" / "network.json").defects
    assert defect.hint == "name the folder"
    (defect,) = refused(load_network, files).defects
    assert defect.file == str(files / "network.json")


def test_a_folder_is_no_application_and_no_plan(files: Path) -> None:
    for load in (load_application, load_plan):
        assert refused(load, files).defects


@pytest.mark.parametrize("path", ["none.yaml", "nul\0byte.yaml", "", "app.txt"])
def test_a_path_to_nothing_is_refused(path: str, files: Path) -> None:
    for load in (load_application, load_network, load_plan):
        assert refused(load, f"{files}/{path}" if path else path).defects


def test_no_more_defects_are_told_than_anyone_reads(files: Path) -> None:
    count = 3000
    operators = [{"name": f"o{k}", "slectivity": 1, "memory": 5} for k in range(count)]
    streams = [{"source": f"x{k}", "target": f"y{k}"} for k in range(count)]
    data = {"thalweg": 1, "application": "many", "operators": operators, "streams": streams}
    (files / "many.json").write_text(json.dumps(data))
    error = refused(load_application, files / "many.json")
    assert len(error.defects) == MOST_DEFECTS + 1
    assert error.defects[-1].value == f"more than {MOST_DEFECTS} problems"


@pytest.mark.parametrize("links", ["chain", "star"])
def test_a_network_of_many_sites_is_loaded_in_one_piece(links: str, files: Path) -> None:
    count = 2000
    node = {"cpu": "1 GIPS", "memory": "1 GB", "count": 30}
    sites = [{"name": f"s{k}", "tier": "edge", "nodes": [node]} for k in range(count)]
    data = {
        "thalweg": 1,
        "network": "many",
        "sites": sites,
        "links": [
            {
                "a": f"s{k}",
                "b": f"s{k + 1 if links == 'chain' else count - 1}",
                "latency": "1 ms",
                "bandwidth": "1 Gbps",
            }
            for k in range(count - 1)
        ],
    }
    (files / "many.json").write_text(json.dumps(data))
    network = load_network(files / "many.json")
    assert network.node_count == 30 * count
    expected = count - 1 if links == "chain" else 1
    assert network.link("s0", f"s{count - 1}").latency_s == pytest.approx(0.001 * expected)


def test_the_door_is_light_until_a_file_is_loaded(files: Path) -> None:
    program = """if True:
        import sys
        from thalweg.files import json_schema, load_application, load_network, load_plan, save
        heavy = {"pydantic", "yaml", "pyarrow", "scipy", "pandas"}
        before = heavy & set(sys.modules)
        load_application(sys.argv[1])
        print(sorted(before), sorted(heavy & set(sys.modules)))
    """
    run = subprocess.run(
        [sys.executable, "-c", program, str(files / "app.yaml")], capture_output=True, text=True
    )
    assert run.stdout.strip() == "[] ['pydantic', 'yaml']", run.stderr
