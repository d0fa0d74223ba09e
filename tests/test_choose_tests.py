"""Which tests `make check` chooses after a change."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.choose_tests import Modules, choose, read_seconds

FILES = {
    "src/thalweg/__init__.py": '_PLACES = {"plan": "thalweg.planning"}\n',
    "src/thalweg/units.py": "",
    "src/thalweg/model.py": "from thalweg.units import DURATION\n",
    "src/thalweg/planning.py": "def plan():\n    from thalweg.model import Plan\n",
    "src/thalweg/cli/__init__.py": "",
    "src/thalweg/cli/entry.py": 'VERBS = {"fit": "fit:fit"}\n',
    "src/thalweg/cli/fit.py": "",
    "tests/cli/test_fit.py": "from thalweg.cli.entry import run\n",
    "tests/test_units.py": "from thalweg.units import DURATION\n",
    "tests/test_model.py": "import thalweg.model\nfrom maker import make\n",
    "tests/maker.py": "import thalweg.model\n",
    "tests/test_planning.py": "import thalweg as tw\n",
    "tests/test_site.py": "import pytest, thalweg.units\npytestmark = pytest.mark.jvm\n",
    "tests/docs/test_pages.py": "",
}


@pytest.fixture
def modules(tmp_path: Path) -> Modules:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Modules(tmp_path)


def test_the_nearest_come_first_and_names_in_texts_count_as_imports(modules: Modules) -> None:
    found = choose(["src/thalweg/units.py"], modules, {}, budget_s=100.0)
    assert found.files == ("tests/test_units.py", "tests/test_model.py", "tests/test_planning.py")
    assert found.left_out == {"tests/test_site.py": "starts a JVM"}


def test_what_no_import_leads_to_is_not_run(modules: Modules) -> None:
    assert choose(["src/thalweg/planning.py"], modules, {}, 100.0).files == (
        "tests/test_planning.py",
    )
    # A module of the tests counts as well, and so does a test itself.
    assert choose(["tests/maker.py"], modules, {}, 100.0).files == ("tests/test_model.py",)
    assert choose(["tests/test_units.py"], modules, {}, 100.0).files == ("tests/test_units.py",)


def test_verbs_are_named_by_their_place_and_packages_run_with_their_modules(
    modules: Modules,
) -> None:
    for changed in ("fit", "entry", "__init__"):
        found = choose([f"src/thalweg/cli/{changed}.py"], modules, {}, 100.0)
        assert found.files == ("tests/cli/test_fit.py",), changed


def test_what_there_is_no_time_for_is_left_out_and_said(modules: Modules) -> None:
    seconds = {"tests/test_units.py": 3.0, "tests/test_model.py": 30.0}
    found = choose(["src/thalweg/units.py"], modules, seconds, budget_s=10.0)
    assert found.files == ("tests/test_units.py", "tests/test_planning.py")
    assert "there is no time" in found.left_out["tests/test_model.py"]
    # The nearest is run however long it takes.
    alone = choose(["src/thalweg/units.py"], modules, {"tests/test_units.py": 99.0}, budget_s=10.0)
    assert alone.files == ("tests/test_units.py",)


def test_a_file_takes_as_long_as_all_of_its_tests_that_were_timed(tmp_path: Path) -> None:
    kept = tmp_path / "seconds.json"
    kept.write_text('{"tests/test_a.py": 2.5, "tests/test_b.py::x": 3, "tests/test_b.py::y": 4}')
    assert read_seconds(kept) == {"tests/test_a.py": 2.5, "tests/test_b.py": 7.0}
    kept.write_text("[]")
    assert read_seconds(kept) == {}
    assert read_seconds(tmp_path / "none") == {}


def test_files_that_are_no_modules_have_their_readers(modules: Modules) -> None:
    assert choose(["docs/tutorial.md"], modules, {}, 100.0).files == ("tests/docs/test_pages.py",)
    beside = choose(["src/thalweg/figures.json"], modules, {}, 100.0)
    assert "tests/test_units.py" in beside.files
    assert choose(["LICENSE"], modules, {}, 100.0).files == ()
