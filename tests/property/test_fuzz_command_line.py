"""Whatever a command line says: it is done, or refused in words. Nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property.spoiling import APPLICATION, CITY, NETWORKS, PLAN, TAXI, extreme, fuzzed
from thalweg.cli.entry import run
from thalweg.files.plan_reader import read_plan
from thalweg.files.save import save

BAD_INPUT = 2

_VERBS = ["validate", "plan", "explain", "diff", "strategies", "schema", "coordinates", "init"]
_FILES = ["app.yaml", "network.yaml", "plan.json", "bad.yaml", "network", "none.yaml", "matrix.csv"]
_OPTIONS = [
    *("--format", "json", "table", "--format=json", "--format=xml", "-s", "--strategy"),
    *("cloud-only", "cloud-only+cloud-only", "+", "none", "--option", "a=1", "=", "current=1"),
    *("rates=[1]", "strategy=2", "a=NaN", "--current", "-o", "out.json", "out", "no/out.json"),
    *("--unit", "ms", "--dimensions", "3", "0", "-1", "--seed", "1e9", "--force", "-h", "--help"),
    *("--version", "--", "-", "", "application", "network", "plan", "rides", "demo", "--nonsense"),
]
# Never a path that leads out of the folder of the test.
_STRANGE = st.text(max_size=10).map(lambda text: text.replace("/", "_").strip(".~"))
WORDS = st.lists(
    st.one_of(st.sampled_from(_FILES), st.sampled_from(_OPTIONS), _STRANGE), max_size=6
)
_SENSIBLE = [
    *(["plan", "app.yaml", "network.yaml"], ["plan", "app.yaml", "network"], ["validate"]),
    *(["explain", "plan.json"], ["diff", "plan.json", "plan.json"], ["init", "demo"], ["schema"]),
    *(["coordinates", "matrix.csv", "--unit", "ms"], ["strategies"], ["validate", "app.yaml"]),
]
LINES = st.one_of(
    st.tuples(st.sampled_from(_SENSIBLE), WORDS).map(lambda line: [*line[0], *line[1]]),
    st.tuples(st.sampled_from(_VERBS), WORDS).map(lambda line: [line[0], *line[1]]),
    WORDS,
)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files to name."""
    folder = tmp_path_factory.mktemp("examples")
    save(TAXI, folder / "app.yaml")
    save(CITY, folder / "network.yaml")
    save(CITY, folder / "network")
    (folder / "plan.json").write_text(json.dumps(PLAN))
    (folder / "bad.yaml").write_text("thalweg: 1\napplication: ../x\noperators: 5\n")
    (folder / "matrix.csv").write_text("0,1,2\n1,0,3\n2,3,0\n")
    return folder


@contextlib.contextmanager
def working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def check_line(examples: Path, words: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(examples, name, dirs_exist_ok=True)
        with working_in(Path(name)), redirect_stdout(out), redirect_stderr(err):
            code = run(words)
    assert code in (0, BAD_INPUT, 3), err.getvalue()
    assert "Traceback" not in err.getvalue()
    assert "inside Thalweg" not in err.getvalue()


@fuzzed(300)
@given(words=LINES)
def test_any_command_line_is_done_or_refused(examples: Path, words: list[str]) -> None:
    check_line(examples, words)


@pytest.mark.slow
@fuzzed(1500)
@given(words=LINES)
def test_many_command_lines_are_done_or_refused(examples: Path, words: list[str]) -> None:
    check_line(examples, words)


def check_extremes(app: dict[str, Any], net: dict[str, Any]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "app.json"), Path(folder, "network.json")]
        for file, data in zip(files, (app, net), strict=True):
            file.write_text(json.dumps(data))
        with redirect_stdout(out), redirect_stderr(err):
            code = run(["plan", *map(str, files), "--format", "json"])
    assert code in (0, BAD_INPUT, 3), err.getvalue()
    if code != BAD_INPUT:
        found = read_plan(json.loads(out.getvalue()))
        assert found.feasible == (code == 0)


@fuzzed(100)
@given(extreme(APPLICATION), extreme(NETWORKS[0]))
def test_extremes_are_planned_or_refused(app: dict[str, Any], net: dict[str, Any]) -> None:
    check_extremes(app, net)


@pytest.mark.slow
@fuzzed(1500)
@given(extreme(APPLICATION), extreme(NETWORKS[0]))
def test_many_extremes_are_planned_or_refused(app: dict[str, Any], net: dict[str, Any]) -> None:
    check_extremes(app, net)
