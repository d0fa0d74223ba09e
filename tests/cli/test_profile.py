from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark.site_session import MANY_PLANS, site_session
from thalweg.files.load import load_application

pytest.importorskip("pyspark")

pytestmark = pytest.mark.jvm

MODULE = """
from thalweg.spark.pipeline import Pipeline

halved = Pipeline("halved")
rows = halved.source("rows", schema="number long, key int", key="key", rate=100.0, event_size=12.0)


@halved.operator(rows, kind="row-wise", selectivity=1.0)
def keep_even(rows):
    return rows.where("number % 2 = 0")


halved.sink("board", keep_even)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A pipeline in a module of its own, with a file of rows beside it."""
    name = "halved_rows_of_a_test"
    (tmp_path / f"{name}.py").write_text(MODULE)
    lines = [f"{n},{n % 3}" for n in range(3000)]
    (tmp_path / "rows.csv").write_text("\n".join(["number,key", *lines]) + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return f"{name}:halved"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session that both calls borrow."""
    with site_session(tmp_path_factory.mktemp("session"), MANY_PLANS) as session:
        yield session


@pytest.mark.usefixtures("session")
def test_profile_measures_writes_and_draws(
    thalweg: Callable[..., Any], module: str, tmp_path: Path
) -> None:
    words = ("profile", module, "--data", "rows.csv", "--repetitions", "1")
    outcome = thalweg(*words, "--output", "app.yaml", "--plot", "app.png")
    assert outcome.code == 0, outcome.err
    assert "keep-even: selectivity is declared as 1 and measured as 0.5" in outcome.out
    assert "GIPS per core" in outcome.out
    assert "wrote app.yaml" in outcome.err
    assert load_application(tmp_path / "app.yaml").operator("keep-even").selectivity == 0.5
    assert (tmp_path / "app.png").stat().st_size > 0
    outcome = thalweg(*words, "--format", "json", "--rows", "1000")
    data = json.loads(outcome.out)
    assert data["rows"] == {"rows": 1000}
    assert [found["figure"] for found in data["differences"]] == ["selectivity"]


def test_profile_tells_all_that_is_wrong_with_a_call(thalweg: Callable[..., Any]) -> None:
    outcome = thalweg("profile", "taxi-fare", "--output", "app.txt", "--plot", "none/app.jpg")
    assert outcome.code == 2
    assert 'did you mean "taxi-fares"?' in outcome.err
    assert "a file name that ends in .yaml, .yml or .json" in outcome.err
    assert "a file name that ends in .png or .svg or .pdf" in outcome.err
    assert "an existing folder to write into" in outcome.err
    assert "4 problems" in outcome.err


def test_profile_of_an_own_pipeline_needs_its_rows(
    thalweg: Callable[..., Any], module: str, tmp_path: Path
) -> None:
    outcome = thalweg("profile", module)
    assert outcome.code == 2
    assert "a file with rows of the source rows: number, key" in outcome.err
    (tmp_path / "other.csv").write_text("numbers\n1\n")
    outcome = thalweg("profile", module, "--data", "rows=other.csv", "--on", "yarn")
    assert outcome.code == 2
    assert "3 problems" in outcome.err
    outcome = thalweg("profile", module, "--data", "rows.csv", "--data", "rows=rows.csv")
    assert "one file for each source" in outcome.err
