"""The exported JSON Schema says about good and bad files what loading them says."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from thalweg.errors import InvalidInput
from thalweg.files import json_schema
from thalweg.files.application_reader import read_application
from thalweg.files.network_reader import read_network
from thalweg.files.plan_reader import read_plan
from thalweg.files.text import read_document

GOLDEN = Path(__file__).parent.parent / "golden"
READERS = {"application": read_application, "network": read_network, "plan": read_plan}
KINDS: list[Any] = ["application", "network", "plan"]


def golden(kind: str) -> Any:
    return read_document(GOLDEN / f"{kind}.yaml").data


def is_valid(kind: Any, data: object) -> bool:
    return bool(jsonschema.Draft202012Validator(json_schema(kind)).is_valid(data))


def with_change(data: Any, path: list[str | int], value: Any) -> Any:
    made = copy.deepcopy(data)
    here = made
    for step in path[:-1]:
        here = here[step]
    if value is ...:
        del here[path[-1]]
    else:
        here[path[-1]] = value
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_one_of_the_draft_it_names(kind: Any) -> None:
    schema = json_schema(kind)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == f"Thalweg {kind}"
    jsonschema.Draft202012Validator.check_schema(schema)
    json.dumps(schema, allow_nan=False)


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_has_a_title_and_every_field_a_description(kind: Any) -> None:
    schema = json_schema(kind)
    for entry in [schema, *schema["$defs"].values()]:
        assert entry["title"]
        assert entry["description"]
        assert entry["additionalProperties"] is False
        for name, field in entry["properties"].items():
            assert field["description"], name


@pytest.mark.parametrize("kind", KINDS)
def test_quantities_come_with_examples_that_follow_their_pattern(kind: Any) -> None:
    schema = json_schema(kind)
    found = 0
    for entry in [schema, *schema["$defs"].values()]:
        for field in entry["properties"].values():
            for example in field.get("examples", []):
                jsonschema.Draft202012Validator(field).validate(example)
                found += 1
            assert field.get("default") is None or jsonschema.Draft202012Validator(field).is_valid(
                field["default"]
            )
    assert found or kind == "plan"


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_file_follows_the_schema(kind: Any) -> None:
    assert READERS[kind](golden(kind))
    assert is_valid(kind, golden(kind))


MESH = {"latency": [["0 s", "1 ms"], ["1 ms", "0 s"]], "bandwidth": "1 Gbps"}
BAD: list[tuple[str, list[str | int], Any]] = [
    ("application", ["thalweg"], 2),
    ("application", ["thalweg"], ...),
    ("application", ["thalweg"], "1"),
    ("application", ["application"], "../taxi"),
    ("application", ["application"], "a..b"),
    ("application", ["operators"], {}),
    ("application", ["operator"], []),
    ("application", ["operators", 0, "rate"], ...),
    ("application", ["operators", 0, "rate"], 3000),
    ("application", ["operators", 0, "rate"], "3000 MB"),
    ("application", ["operators", 0, "rate"], "-3 events/s"),
    ("application", ["operators", 0, "pin"], {"tier": "fog", "site": "fog"}),
    ("application", ["operators", 0, "pin"], {}),
    ("application", ["operators", 0, "pin"], None),
    ("application", ["operators", 1, "rate"], "3 events/s"),
    ("application", ["operators", 1, "window"], {"events": 5, "length": "1 s"}),
    ("application", ["operators", 1, "window"], {"slide": "1 s"}),
    ("application", ["operators", 1, "window"], {"events": 0}),
    ("application", ["operators", 1, "selectivity"], "0.9"),
    ("application", ["operators", 1, "selectivity"], -1),
    ("application", ["operators", 1, "replicable"], 1),
    ("application", ["operators", 1, "kind"], "Sink"),
    ("application", ["streams", 0, "target"], ...),
    ("application", ["limits", "uplink"], "unlimited"),
    ("network", ["sites", 0, "tier"], "moon"),
    ("network", ["sites", 0, "nodes", 0, "cpu"], ...),
    ("network", ["sites", 0, "nodes", 0, "count"], 0),
    ("network", ["sites", 0, "nodes", 0, "memory"], "2 gb"),
    ("network", ["sites", 0, "area"], {"west": "0 m"}),
    ("network", ["links"], ...),
    ("network", ["mesh"], MESH),
    ("network", ["links", 0, "latency"], "unlimited"),
    ("network", ["links", 0, "bandwidth_available"], ["1 Gbps"]),
    ("network", ["coordinates"], {"bandwidth": "1 Gbps"}),
    ("plan", ["feasible"], "no"),
    ("plan", ["objective"], "infinite"),
    ("plan", ["gap"], ...),
    ("plan", ["estimate", "usage"], -1),
    ("plan", ["placement", 0, "origin"], None),
    ("plan", ["placement", 0, "node"], "a/b/c"),
    ("plan", ["violations", 0, "operators"], "rides"),
]


@pytest.mark.parametrize(("kind", "path", "value"), BAD)
def test_a_bad_file_breaks_the_schema_too(kind: Any, path: list[str | int], value: Any) -> None:
    data = with_change(golden(kind), path, value)
    assert not is_valid(kind, data)
    with pytest.raises(InvalidInput):
        READERS[kind](data)


AREA = {"west": "-1 km", "south": "-1 km", "east": "1 km", "north": "1 km"}
GOOD: list[tuple[str, list[str | int], Any]] = [
    ("application", ["limits"], ...),
    ("application", ["operators", 1, "selectivity"], "40 %"),
    ("application", ["operators", 1, "memory"], "1.5e3 KiB"),
    ("application", ["operators", 1, "memory"], "0 B"),
    ("application", ["operators", 1, "window"], {"length": "1 min"}),
    ("application", ["operators", 0, "pin"], {"node": "fog/gw-0"}),
    ("network", ["sites", 0, "nodes", 0, "memory"], "unlimited"),
    ("network", ["sites", 0, "area"], AREA),
    ("network", ["links", 0, "bandwidth_available"], "1 Mbps"),
    ("network", ["root"], "fog"),
    ("plan", ["gap"], 0.01),
    ("plan", ["placement", 0, "origin"], "fog"),
]


@pytest.mark.parametrize(("kind", "path", "value"), GOOD)
def test_another_good_file_follows_the_schema_too(
    kind: Any, path: list[str | int], value: Any
) -> None:
    data = with_change(golden(kind), path, value)
    assert is_valid(kind, data)
    assert READERS[kind](data)


def test_one_site_needs_no_links_by_the_schema_either() -> None:
    site = {"name": "a", "tier": "edge", "nodes": [{"cpu": "1 IPS", "memory": "1 B"}]}
    data = {"thalweg": 1, "network": "one", "sites": [site]}
    assert is_valid("network", data)
    assert read_network(data)
    two = {**data, "sites": [site, {**site, "name": "b"}]}
    assert not is_valid("network", two)


def test_there_is_no_schema_of_anything_else() -> None:
    with pytest.raises(InvalidInput, match='did you mean "plan"'):
        json_schema("plann")  # type: ignore[arg-type]
