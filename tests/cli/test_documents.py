"""Every document has a schema that is one, allows no more than it says, and is what is printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import pytest
from jsonschema import Draft202012Validator
from tools.cli_surface import read_commands

from cli.json_documents import find_faults, kinds_of
from thalweg.cli import serve
from thalweg.cli.documents import FILES, KINDS, SHAPES, document_schema
from thalweg.cli.output import print_json
from thalweg.errors import InvalidInput

COMMANDS = [command.name for command in read_commands()]
WITH_SWEPT_PARAMETERS = {"StudyRow", "StudyMean", "StudyTest"}
RUNS = ("status", "stop", "rollback", "doctor")


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_schemas_of_closed_documents_with_a_version(thalweg, kind) -> None:
    shown = thalweg("schema", kind)
    schema = json.loads(shown.out)
    Draft202012Validator.check_schema(schema)
    assert schema == document_schema(kind)
    if kind in FILES:
        return
    named = [each["$ref"].rpartition("/")[2] for each in schema.get("anyOf", ())]
    for document in [schema["$defs"][name] for name in named] or [schema]:
        assert document["properties"]["thalweg"]["const"] == 1
        assert "thalweg" in document["required"]
    for name, part in {"": schema, **schema.get("$defs", {})}.items():
        if "properties" in part:
            assert part["additionalProperties"] is (name in WITH_SWEPT_PARAMETERS)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "schema"])
def test_every_command_has_a_document(command: str) -> None:
    assert kinds_of(command)


def test_an_unknown_document_is_refused_with_a_hint(thalweg) -> None:
    refused = thalweg("schema", "reprot")
    assert refused.code == 2
    assert 'did you mean "report"?' in refused.err
    with pytest.raises(InvalidInput):
        document_schema("nonsense")


def test_a_document_with_more_or_less_than_promised_is_seen() -> None:
    good = {"thalweg": 1, "folder": "a", "stopped": True}
    assert find_faults("stop", good) == []
    assert find_faults("stop", {**good, "more": 1})
    assert find_faults("stop", {"thalweg": 1, "folder": "a"})
    assert find_faults("stop", {**good, "thalweg": 2})


def test_the_version_comes_first_and_once(capsys) -> None:
    print_json({"b": 1, "thalweg": 1, "a": 2})
    text = capsys.readouterr().out
    assert list(json.loads(text)) == ["thalweg", "b", "a"]
    assert text.count("thalweg") == 1


def test_init_strategies_and_metrics_print_documents(thalweg) -> None:
    made = json.loads(thalweg("init", "demo", "--format", "json").out)
    assert made["files"] == ["demo/app.yaml", "demo/network.yaml"]
    assert "aels" in json.loads(thalweg("strategies", "--format", "json").out)["strategies"]
    for file in ("rules", "dashboard", "prometheus"):
        told = json.loads(thalweg("metrics", file, "--format", "json").out)
        assert told["text"] == thalweg("metrics", file).out


def test_plans_of_several_applications_are_a_document(thalweg, example) -> None:
    text = (example / "app.yaml").read_text().replace("application: taxi", "application: other")
    (example / "other.yaml").write_text(text)
    call = ("plan", "demo/app.yaml", "demo/network.yaml", "-s", "cloud-only")
    told = json.loads(thalweg(*call, "--also", "demo/other.yaml", "--format", "json").out)
    assert [plan["strategy"] for plan in told["plans"]] == ["cloud-only"] * 2


@pytest.mark.parametrize("verb", RUNS)
def test_what_is_no_run_is_told_as_a_document(thalweg, verb) -> None:
    told = json.loads(thalweg(verb, "none", "--format", "json").out)
    assert told["problems"] or told["findings"]


def test_nothing_to_stop_is_told_as_a_document(thalweg, tmp_path) -> None:
    from thalweg.spark.deployment.folder import RunFolder
    from thalweg.spark.deployment.manifest import RunManifest

    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.write_manifest(
        RunManifest(pipeline="p", graph="1", network="n", fogs=("fog-0",), cloud="cloud")
    )
    told = json.loads(thalweg("stop", "run", "--format", "json").out)
    assert told == {"thalweg": 1, "folder": "run", "stopped": False}


def test_the_address_of_a_page_is_a_document(thalweg, example, monkeypatch) -> None:
    @contextmanager
    def end_at_once(act: Callable[[int], None]) -> Iterator[None]:
        act(15)
        yield

    monkeypatch.setattr(serve, "upon_signal", end_at_once)
    call = ("serve", "demo/app.yaml", "demo/network.yaml", "-s", "cloud-only", "--no-open")
    shown = thalweg(*call, "--format", "json")
    assert shown.code == 0, shown.err
    assert json.loads(shown.out)["address"].startswith("http://127.0.0.1:")


def test_the_summary_of_a_demo_is_the_document_that_it_promises() -> None:
    from thalweg.cli.documents.runs import Demo
    from thalweg.spark.demo_summary import DemoSummary, Durations, Kill, Surge

    took = Durations(setup=1.0, show=2.0, waiting=3.0, comparison=4.0)
    summary = DemoSummary(
        settings="abc", strategy="atsoo", options={"improve": 1}, rides=3, rows=2, lost=0,
        duplicated=0, sent_bytes=1, all_cloud_bytes=2, sent_since_bytes=None,
        all_cloud_since_bytes=None, longest_pause_s=1.0, surge=Surge(at_s=1.0),
        kill=Kill(site="fog-1", at_s=2.0), durations=took, adaptations=(), restarts=1, report={},
    )  # fmt: skip
    told = {"thalweg": 1, **summary.to_dict()}
    assert {fault.split(":")[0] for fault in find_faults("demo", told)} == {"report"}
    assert set(told) == set(Demo.__annotations__)
    assert asdict(took).keys() < told["seconds"].keys()


def test_a_reproduction_is_the_document_that_it_promises(tmp_path) -> None:
    from thalweg.experiments.claims import Claim
    from thalweg.experiments.reproduction import Reproduction

    claims = [Claim(about="a", paper="p", measured="m", agrees=agrees) for agrees in (True, None)]
    found = Reproduction(
        claims=claims, failures=(), points=2, resumed=1, rows=9, seconds=1.25, into=tmp_path,
        files=[tmp_path / "a.png"],
    )  # fmt: skip
    assert find_faults("reproduction", {"thalweg": 1, **found.to_dict()}) == []


def test_every_shape_is_declared() -> None:
    assert len(set(KINDS)) == len(KINDS) == len(FILES) + len(SHAPES)
