"""The alert rules, the dashboard and the example that ship: valid, complete, and about our metrics.

promtool comes with Debian's package prometheus; what needs it is skipped where it is not there.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.provide import PROMTOOL

from thalweg.web import monitoring
from thalweg.web.monitoring import SHIPPED, read_shipped
from thalweg.web.monitoring.families import FAMILIES

FOLDER = Path(monitoring.__file__).parent
TESTS = Path(__file__).parent / "alerts" / "thalweg.rules.test.yml"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "monitoring.md"
LABELS = {f.name: {"run", "job", "instance", *f.labels} for f in FAMILIES}
RULES: list[dict[str, Any]] = yaml.safe_load(read_shipped("rules"))["groups"][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads(read_shipped("dashboard"))


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip(PROMTOOL.missing)
    return found


def run(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, **more)


def panel_queries() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (annotation["expr"] for annotation in DASHBOARD["annotations"]["list"])


def variable_queries() -> Iterator[str]:
    variables = DASHBOARD["templating"]["list"]
    yield from (v["query"]["query"] for v in variables if v["type"] == "query")


def rule_queries() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)


def metrics_in(query: str) -> set[str]:
    return set(re.findall(r"\bthalweg_\w+", query))


def test_everything_that_ships_is_a_file_of_the_package() -> None:
    for name, file in SHIPPED.items():
        assert read_shipped(name) == (FOLDER / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("query", [*rule_queries(), *panel_queries(), *variable_queries()])
def test_every_query_asks_for_metrics_and_labels_that_there_are(query: str) -> None:
    names = metrics_in(query)
    assert names or query == 'up{job="thalweg"} == 0'
    assert names <= set(LABELS)
    for name, matchers in re.findall(r"\b(thalweg_\w+)\{([^}]*)\}", query):
        assert set(re.findall(r"(\w+)\s*=~?", matchers)) <= LABELS[name], name


def test_the_dashboard_shows_every_metric() -> None:
    shown = set().union(*map(metrics_in, panel_queries()))
    assert set(LABELS) - shown == set()


def test_legends_and_texts_name_labels_that_their_metrics_have() -> None:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            told = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert all(told <= LABELS[name] for name in metrics_in(target["expr"])), panel["title"]
    for rule in RULES:
        texts = " ".join(rule["annotations"].values())
        known = set().union(*(LABELS[name] for name in metrics_in(rule["expr"])))
        assert set(re.findall(r"\$labels\.(\w+)", texts)) <= known, rule["alert"]


def test_panels_take_the_data_source_that_is_chosen_and_do_not_overlap() -> None:
    (chooser,) = (v for v in DASHBOARD["templating"]["list"] if v["type"] == "datasource")
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        for asking in panel.get("targets", ()):
            assert asking["datasource"]["uid"] == f"${{{chooser['name']}}}"
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_there_are_ten_alerts_and_each_says_what_is_wrong_and_what_to_do() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) == 10
    headings = re.findall(r"^#+ (.+)$", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for rule in RULES:
        told = rule["annotations"]
        assert set(told) == {"summary", "description", "runbook_url"}
        assert told["description"].endswith(".")
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert told["runbook_url"] == f"docs/guides/monitoring.md#{rule['alert'].lower()}"
        assert rule["alert"] in headings


def test_every_alert_is_tested_to_fire_and_not_to() -> None:
    cases = [
        case
        for test in yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]
        for case in test["alert_rule_test"]
    ]
    for rule in RULES:
        fires = {bool(c["exp_alerts"]) for c in cases if c["alertname"] == rule["alert"]}
        assert fires == {True, False}, rule["alert"]


# With promtool


def test_promtool_takes_the_rules(promtool: str) -> None:
    checked = run(promtool, "check", "rules", str(FOLDER / SHIPPED["rules"]))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "10 rules found" in checked.stdout


def test_every_alert_fires_when_it_has_to_and_only_then(promtool: str) -> None:
    tested = run(promtool, "test", "rules", str(TESTS))
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("number", range(10))
def test_the_alert_tests_find_an_alert_that_never_fires(
    promtool: str, tmp_path: Path, number: int
) -> None:
    rules = yaml.safe_load(read_shipped("rules"))
    rules["groups"][0]["rules"][number]["expr"] = "vector(0) > 1"
    (tmp_path / SHIPPED["rules"]).write_text(yaml.safe_dump(rules))
    tests = yaml.safe_load(TESTS.read_text(encoding="utf-8"))
    (tmp_path / "test.yml").write_text(
        yaml.safe_dump({**tests, "rule_files": [SHIPPED["rules"]]}, allow_unicode=True)
    )
    tested = run(promtool, "test", "rules", str(tmp_path / "test.yml"))
    assert tested.returncode != 0
    assert RULES[number]["alert"] in tested.stdout + tested.stderr


def test_promtool_takes_the_example(promtool: str, tmp_path: Path) -> None:
    (tmp_path / "prometheus.yml").write_text(read_shipped("prometheus"))
    (tmp_path / SHIPPED["rules"]).write_text(read_shipped("rules"))
    checked = run(promtool, "check", "config", "--syntax-only", "prometheus.yml", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    (job,) = yaml.safe_load(read_shipped("prometheus"))["scrape_configs"]
    assert job["job_name"] == "thalweg"
    assert job["authorization"]["type"] == "Bearer"
    assert job["authorization"]["credentials_file"].endswith("/control/metrics-token")


def test_promtool_takes_every_query_of_the_dashboard(promtool: str, tmp_path: Path) -> None:
    queries = [query.replace("$", "") for query in panel_queries()]
    rules = [{"record": f"query:{n}", "expr": query} for n, query in enumerate(queries)]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = run(promtool, "check", "rules", str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr
