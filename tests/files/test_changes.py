"""Changes come out of files as values, and bad files are told all that is wrong with them."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from thalweg.errors import Defect, InvalidInput
from thalweg.files import changes_reader, json_schema, load_plan
from thalweg.files.load import load_any, load_changes
from thalweg.files.text import read_document
from thalweg.model.changes import PlanChange, RateChange, SpeedChange

PLAN = (Path(__file__).parent.parent / "golden" / "plan.yaml").read_text()
CHANGES = """\
thalweg: 1
changes:
  - at: 20 s
    node: fog-1/0
    speed: 0.5
  - at: 30 s
    link: [fog-1, cloud]
    speed: 0
    loses: true
  - at: 1 min
    rates:
      - {source: rides, site: fog-1, rate: 120 /s}
      - {source: rides, site: fog-2, rate: 60 events/min}
    application: taxi
  - at: 0 s
    plan: plans/b.yaml
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that a changes file may lie in, with something outside it."""
    inside = tmp_path / "inside"
    (inside / "plans").mkdir(parents=True)
    (inside / "plans" / "b.yaml").write_text(PLAN)
    (tmp_path / "outside.yaml").write_text(PLAN)
    return inside


def write(folder: Path, contents: str | dict[str, Any], name: str = "") -> Path:
    """A changes file: YAML of a text, JSON of anything else."""
    is_text = isinstance(contents, str)
    path = folder / (name or ("changes.yaml" if is_text else "changes.json"))
    path.write_text(contents if isinstance(contents, str) else json.dumps(contents))
    return path


def document(*changes: Any) -> dict[str, Any]:
    return {"thalweg": 1, "changes": list(changes)}


def refused(path: Path) -> tuple[Defect, ...]:
    with pytest.raises(InvalidInput) as error:
        load_changes(path)
    return error.value.defects


def is_valid(data: object) -> bool:
    return bool(jsonschema.Draft202012Validator(json_schema("changes")).is_valid(data))


# --- good files


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_all_four_sorts_are_read_in_the_order_of_the_file(ending: str, folder: Path) -> None:
    path = write(folder, CHANGES)
    data: Any = read_document(path).data
    if ending == "json":
        path = write(folder, data)
    rates = {("rides", "fog-1"): 120.0, ("rides", "fog-2"): 1.0}
    assert load_changes(str(path)) == (
        SpeedChange(at_s=20.0, node="fog-1/0", speed=0.5),
        SpeedChange(at_s=30.0, link=("fog-1", "cloud"), speed=0.0, loses=True),
        RateChange(at_s=60.0, rates=rates, application="taxi"),
        PlanChange(at_s=0.0, plan=load_plan(folder / "plans" / "b.yaml")),
    )
    assert is_valid(data)


def test_a_plan_is_looked_for_beside_the_file_and_read_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    named = [{"at": f"{k} s", "plan": "plans/b.yaml"} for k in range(3)]
    (folder / "sub.json").write_text(json.dumps(document(*named)))
    plans = [change.plan for change in load_changes("sub.json") if isinstance(change, PlanChange)]
    assert len(plans) == 3
    assert plans[0] is plans[1] is plans[2]


def test_a_link_on_the_disk_that_stays_inside_is_followed(folder: Path) -> None:
    (folder / "now.yaml").symlink_to(Path("plans") / "b.yaml")
    data = document({"at": "1 s", "plan": "now.yaml"})
    assert isinstance(load_changes(write(folder, data))[0], PlanChange)


def test_a_folder_that_is_reached_by_a_link_is_a_folder_like_others(folder: Path) -> None:
    (folder.parent / "door").symlink_to(folder)
    write(folder, CHANGES)
    assert len(load_changes(folder.parent / "door" / "changes.yaml")) == 4


GOOD: list[dict[str, Any]] = [
    {"node": "fog-1", "speed": 1},
    {"node": "fog-1/0", "speed": "50 %"},
    {"node": "fog-1/0", "speed": 2.5, "loses": False},
    {"node": "fog-1/0", "speed": "0 %", "loses": True},
    {"link": ["a", "b"], "speed": 1_000_000},
    {"rates": [{"source": "rides", "site": "a", "rate": "0 /s"}]},
    {"plan": "plans/b.yaml", "application": "taxi"},
]


@pytest.mark.parametrize("change", GOOD, ids=str)
def test_another_good_change_is_read_and_follows_the_schema(
    change: dict[str, Any], folder: Path
) -> None:
    data = document({"at": "5 ms", **change})
    assert load_changes(write(folder, data))[0].at_s == 0.005
    assert is_valid(data)


# --- bad files


def test_every_broken_rule_is_told_at_once_with_its_line(folder: Path) -> None:
    (folder / "bad.yaml").write_text(PLAN.replace("usage: 0.5", "usage: -1"))
    text = """\
thalweg: 1
changes:
  - at: 20
    node: a/b/c
    speed: -1
  - at: -5 s
    node: fog-1/0
    link: [fog-1, fog-1]
  - at: 5 MB
    link: [fog-1]
    speed: 0.5
    loses: true
  - at: 1 s
  - at: 2 s
    rates:
      - {source: rides, site: fog-1, rate: 120}
      - {source: rides, site: fog-1, rate: 5 MB}
      - {source: rides, sit: fog-1, rate: nan /s}
    speed: 0
    loses: true
  - at: 3 s
    node: fog-1/0
    speed: fast
    application: taxi
  - {at: 4 s, rates: []}
  - {at: 5 s, plan: ../outside.yaml}
  - {at: 6 s, plan: missing.yaml}
  - {at: 7 s, plan: bad.yaml}
"""
    path = write(folder, text)
    *own, last = refused(path)
    assert {defect.file for defect in own} == {str(path)}
    assert (last.file, last.path) == (str(folder / "bad.yaml"), "estimate.usage")
    assert sorted((defect.line or 0, defect.path) for defect in own) == [
        (3, "changes[0].at"),
        (4, "changes[0].node"),
        (5, "changes[0].speed"),
        (6, "changes[1]"),
        (6, "changes[1].at"),
        (6, "changes[1].speed"),
        (8, "changes[1].link"),
        (9, "changes[2].at"),
        (10, "changes[2].link"),
        (12, "changes[2].loses"),
        (13, "changes[3]"),
        (16, "changes[4].rates[0].rate"),
        (17, "changes[4].rates[1]"),
        (17, "changes[4].rates[1].rate"),
        (18, "changes[4].rates[2].rate"),
        (18, "changes[4].rates[2].sit"),
        (18, "changes[4].rates[2].site"),
        (19, "changes[4].speed"),
        (20, "changes[4].loses"),
        (23, "changes[5].speed"),
        (24, "changes[5].application"),
        (25, "changes[6].rates"),
        (26, "changes[7].plan"),
        (27, "changes[8].plan"),
    ]


def test_problems_inside_a_plan_carry_its_name_and_follow_the_others(folder: Path) -> None:
    (folder / "bad.yaml").write_text(PLAN.replace("usage: 0.5", "usage: -1"))
    plan = {"at": "1 s", "plan": "bad.yaml"}
    path = write(folder, document(plan, plan, {"at": "2 s", "node": "a", "speed": -1}))
    first, second = refused(path)
    assert (first.file, first.path) == (str(path), "changes[2].speed")
    line = PLAN.splitlines().index("  usage: 0.5") + 1
    assert (second.file, second.line) == (str(folder / "bad.yaml"), line)
    assert (second.path, second.value) == ("estimate.usage", -1)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("/etc/plan.yaml", "root of the disk"),
        ("../outside.yaml", 'leave out ".."'),
        ("plans/../../outside.yaml", 'leave out ".."'),
        ("plans/../plans/b.yaml", 'leave out ".."'),
        ("./plans/b.yaml", 'leave out ".."'),
        ("plans//b.yaml", 'leave out ".."'),
        ("plans\\b.yaml", 'write "/"'),
        ("..\\outside.yaml", 'write "/"'),
        ("plans/", 'leave out ".."'),
        ("plans", "ends in .yaml"),
        ("", 'leave out ".."'),
        ("b\u202e.yaml", "cannot be seen"),
        ("b" * 300 + ".yaml", "305 characters"),
        (5, ""),
        (None, "leave the field out"),
        ({"thalweg": 1}, "a file of its own"),
    ],
)
def test_what_is_no_path_inside_the_folder_is_refused(name: Any, hint: str, folder: Path) -> None:
    (defect,) = refused(write(folder, document({"at": "1 s", "plan": name})))
    assert defect.path == "changes[0].plan"
    assert defect.rule.startswith("the path of a plan file from the folder of this file")
    assert hint in defect.hint


@pytest.mark.parametrize("target", ["../outside.yaml", "/etc", "..", "loop.yaml"])
def test_a_link_on_the_disk_that_leads_out_is_not_followed(target: str, folder: Path) -> None:
    (folder / "loop.yaml").symlink_to(target)
    name = "loop.yaml" if target.endswith("yaml") else "loop.yaml/outside.yaml"
    path = write(folder, document({"at": "1 s", "plan": name}))
    (defect,) = refused(path)
    assert (defect.file, defect.path, defect.value) == (str(path), "changes[0].plan", name)
    assert defect.rule in ("a plan file in the folder of this file", "a file that can be read")


def test_a_file_that_is_not_there_is_told_where_it_is_named(folder: Path) -> None:
    (folder / "plan-b.yaml").write_text(PLAN)
    (folder / "dir.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    text = "thalweg: 1\nchanges:\n- {at: 1 s, plan: plan-bb.yaml}\n- {at: 1 s, plan: dir.yaml}\n"
    path = write(folder, text + "- {at: 1 s, plan: pipe.yaml}\n")
    missing, a_folder, pipe = refused(path)
    assert str(missing).endswith(
        'changes.yaml:3: changes[0].plan: got "plan-bb.yaml", need an existing file. '
        'Hint: did you mean "plan-b.yaml"?'
    )
    assert (a_folder.line, a_folder.value, a_folder.rule) == (4, "dir.yaml: a folder", "a file")
    assert (pipe.line, pipe.rule) == (5, "a regular file")


def test_a_plan_that_is_something_else_is_told_so(folder: Path) -> None:
    path = write(folder, document({"at": "1 s", "plan": "changes.json"}))
    (defect,) = refused(path)
    assert defect.file == str(path)
    assert 'it has the field "changes"' in defect.hint


def test_unknown_fields_get_hints_and_what_they_stand_for_is_not_told_twice(folder: Path) -> None:
    rates = [{"source": "rides", "sites": "a", "rate": "1 /s"}]
    found = refused(
        write(
            folder,
            document(
                {"at": "1 s", "nodes": "fog-1/0", "sped": 0},
                {"at": "1 s", "node": "fog-1/0", "sped": 0},
                {"att": "1 s", "rates": rates},
            ),
        )
    )
    assert {(defect.path, defect.hint) for defect in found} == {
        ("changes[0].nodes", 'did you mean "node"?'),
        ("changes[0].sped", 'did you mean "speed"?'),
        ("changes[1].sped", 'did you mean "speed"?'),
        ("changes[2].at", 'rename "att" to "at"'),
        ("changes[2].att", 'did you mean "at"?'),
        ("changes[2].rates[0].site", 'rename "sites" to "site"'),
        ("changes[2].rates[0].sites", 'did you mean "site"?'),
    }


RATE = {"source": "rides", "site": "a", "rate": "1 /s"}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"at": "20 s"}, ""),
    ({"at": "20 s", "node": "a", "link": ["a", "b"], "speed": 0}, ""),
    ({"at": "20 s", "node": "a", "speed": 0, "rates": [RATE]}, ""),
    ({"at": "20 s", "rates": [RATE], "plan": "plans/b.yaml"}, ""),
    ({"at": "20 s", "rates": [RATE], "speed": 1}, ".speed"),
    ({"at": "20 s", "plan": "plans/b.yaml", "speed": 0}, ".speed"),
    ({"at": "20 s", "plan": "plans/b.yaml", "loses": False}, ".loses"),
    ({"at": "20 s", "node": "a", "speed": 0, "application": "taxi"}, ".application"),
    ({"node": "a", "speed": 0}, ".at"),
    ({"at": 20, "node": "a", "speed": 0}, ".at"),
    ({"at": "20", "node": "a", "speed": 0}, ".at"),
    ({"at": "-1 s", "node": "a", "speed": 0}, ".at"),
    ({"at": "nan s", "node": "a", "speed": 0}, ".at"),
    ({"at": "inf s", "node": "a", "speed": 0}, ".at"),
    ({"at": "20 MB", "node": "a", "speed": 0}, ".at"),
    ({"at": "20 s", "node": "../a", "speed": 0}, ".node"),
    ({"at": "20 s", "node": None, "speed": 0}, ".node"),
    ({"at": "20 s", "node": "a"}, ".speed"),
    ({"at": "20 s", "link": ["a", "b"]}, ".speed"),
    ({"at": "20 s", "node": "a", "speed": -0.1}, ".speed"),
    ({"at": "20 s", "node": "a", "speed": 1e7}, ".speed"),
    ({"at": "20 s", "node": "a", "speed": "0.5"}, ".speed"),
    ({"at": "20 s", "node": "a", "speed": "5 MIPS"}, ".speed"),
    ({"at": "20 s", "node": "a", "speed": True}, ".speed"),
    ({"at": "20 s", "node": "a", "speed": None}, ".speed"),
    ({"at": "20 s", "node": "a", "speed": 0.5, "loses": True}, ".loses"),
    ({"at": "20 s", "node": "a", "speed": 0, "loses": "yes"}, ".loses"),
    ({"at": "20 s", "link": "a", "speed": 0}, ".link"),
    ({"at": "20 s", "link": ["a", "b", "c"], "speed": 0}, ".link"),
    ({"at": "20 s", "link": ["a", "a"], "speed": 0}, ".link"),
    ({"at": "20 s", "link": ["a", "b/0"], "speed": 0}, ".link[1]"),
    ({"at": "20 s", "link": ["a", 5], "speed": 0}, ".link[1]"),
    ({"at": "20 s", "rates": []}, ".rates"),
    ({"at": "20 s", "rates": {"rides": "1 /s"}}, ".rates"),
    ({"at": "20 s", "rates": [5]}, ".rates[0]"),
    ({"at": "20 s", "rates": [{**RATE, "rate": 5}]}, ".rates[0].rate"),
    ({"at": "20 s", "rates": [{**RATE, "rate": "5 s"}]}, ".rates[0].rate"),
    ({"at": "20 s", "rates": [{**RATE, "rate": "-5 /s"}]}, ".rates[0].rate"),
    ({"at": "20 s", "rates": [{**RATE, "rate": "nan /s"}]}, ".rates[0].rate"),
    ({"at": "20 s", "rates": [{**RATE, "site": "*"}]}, ".rates[0].site"),
    ({"at": "20 s", "rates": [RATE], "application": "../taxi"}, ".application"),
    ({"at": "20 s", "plan": "../outside.yaml"}, ".plan"),
    ({"at": "20 s", "plan": "/plan.yaml"}, ".plan"),
    ({"at": "20 s", "plan": "a\\plan.yaml"}, ".plan"),
]


@pytest.mark.parametrize(("change", "place"), BAD, ids=str)
def test_one_broken_rule_is_told_once_and_breaks_the_schema_too(
    change: dict[str, Any], place: str, folder: Path
) -> None:
    data = document(change)
    (defect,) = refused(write(folder, data))
    assert defect.path == f"changes[0]{place}"
    assert not is_valid(data)


def test_a_pair_that_is_there_twice_is_told_with_the_first(folder: Path) -> None:
    rates = [RATE, {**RATE, "site": "b"}, {**RATE, "rate": "2 /s"}]
    (defect,) = refused(write(folder, document({"at": "1 s", "rates": rates})))
    assert (defect.path, defect.value) == ("changes[0].rates[2]", "rides, a")
    assert defect.hint == "rates[0] has them already"


@pytest.mark.parametrize(
    "contents",
    [
        [],
        5,
        None,
        {},
        {"thalweg": 1},
        {"thalweg": 1, "changes": None},
        {"thalweg": 1, "changes": {"at": "1 s"}},
        {"thalweg": 2, "changes": []},
        document(),
        document(5, None),
    ],
    ids=str,
)
def test_what_holds_no_changes_is_refused(contents: Any, folder: Path) -> None:
    assert refused(write(folder, contents, "changes.json"))
    assert not is_valid(contents)


def test_not_a_number_has_no_place_in_a_file(folder: Path) -> None:
    for text in ("{at: 1 s, node: a, speed: .nan}", "{at: .inf, node: a, speed: 0}"):
        assert refused(write(folder, f"thalweg: 1\nchanges:\n- {text}\n"))[0].line == 3
    bad = json.dumps(document({"at": "1 s", "node": "a", "speed": float("nan")}))
    assert refused(write(folder, bad, "changes.json"))


def test_too_many_plan_files_are_not_even_looked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes_reader, "MOST_PLANS", 2)
    named = [{"at": "1 s", "plan": f"{k}.yaml"} for k in range(3)]
    (defect,) = refused(write(folder, document(*named)))
    assert (defect.value, defect.rule) == ("3 plan files", "at most 2 plan files")


def test_swapped_files_are_told_apart(folder: Path) -> None:
    (defect,) = refused(folder / "plans" / "b.yaml")
    assert (defect.value, defect.rule) == ("a plan", "a list of changes, with changes")
    for load in (load_plan, load_any):
        with pytest.raises(InvalidInput, match="changes"):
            load(write(folder, CHANGES))


def test_reading_leaves_the_data_as_it_was(folder: Path) -> None:
    data = read_document(write(folder, CHANGES)).data
    before = copy.deepcopy(data)
    changes_reader.read_changes(data, folder, load_plan)
    assert data == before


def test_the_schema_names_and_describes_everything() -> None:
    schema = json_schema("changes")
    jsonschema.Draft202012Validator.check_schema(schema)
    json.dumps(schema, allow_nan=False)
    assert schema["title"] == "Thalweg changes"
    for entry in [schema, *schema["$defs"].values()]:
        assert entry["title"]
        assert all(field["description"] for field in entry["properties"].values())
