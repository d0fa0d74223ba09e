"""Every page of the gallery shows every example, and what it says comes out."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from docs.test_examples import Block, read_blocks, run_console
from examples.gallery import EXAMPLES, ROOT, commands_of, run_in

PAGE = ROOT / "docs" / "examples.md"
BLOCKS = read_blocks("docs/examples.md", PAGE.read_text(encoding="utf-8"))
# What the others import, and what has a test of its own below or beside this file.
NO_COMMAND = {"taxi_pipeline.py"}
SLOW = ("taxi_on_three_fogs.py", "custom_link.py", "kafka_links.py", ".ipynb")

# A part of what each of them has to show.
CLAIMS = {"large_network": "250,500 nodes", "moving_users": "planning is least"}


def is_quick(block: Block) -> bool:
    return block.language == "console" and not any(name in block.text for name in SLOW)


def test_every_example_is_on_both_pages_with_its_command() -> None:
    there = {path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".ipynb"}}
    for page in (PAGE, EXAMPLES / "README.md"):
        shown = {
            Path(command.split("examples/")[1].split()[0]).name for command in commands_of(page)
        }
        assert shown == there - NO_COMMAND, page


def test_the_two_pages_show_the_same_commands() -> None:
    assert set(commands_of(EXAMPLES / "README.md")) <= set(commands_of(PAGE))


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_says_what_it_is_and_how_it_is_run(name: str, tmp_path: Path) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert text.startswith('"""')
    if name not in NO_COMMAND:
        assert f"python examples/{name}" in text.split('"""')[1]


@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if is_quick(b)], ids=lambda b: b.text.split("/")[1].split(".")[0]
)
def test_the_page_shows_what_a_reader_gets(block: Block, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    run_console(block, tmp_path)


@pytest.mark.parametrize("name", ["large_network", "moving_users"])
def test_a_notebook_runs_from_top_to_bottom(name: str, tmp_path: Path) -> None:
    for file in (f"{name}.ipynb", "bus_across_the_city.py"):
        shutil.copy(EXAMPLES / file, tmp_path)
    executable = Path(sys.executable).with_name("jupyter-execute")
    done = run_in(tmp_path, str(executable), f"{name}.ipynb", "--output=done.ipynb")
    assert done.returncode == 0, done.stderr
    cells = json.loads((tmp_path / "done.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"image/png", "text/html"} <= kinds
    table = "".join(
        text for output in outputs for text in output.get("data", {}).get("text/plain", "")
    )
    assert CLAIMS[name] in table


@pytest.mark.parametrize("name", ["large_network", "moving_users"])
def test_a_notebook_is_stored_without_what_it_printed(name: str) -> None:
    cells = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.parametrize("name", ["large_network", "moving_users"])
def test_a_notebook_names_what_it_imports(name: str) -> None:
    first, *cells = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    (extras,) = re.findall(
        r'pip install "\.\[([\w,]+)\]" ipykernel nbclient', "".join(first["source"])
    )
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    there = [*offered["dependencies"]]
    for extra in extras.split(","):
        there += offered["optional-dependencies"][extra]
    packages = {re.split(r"[^\w.-]", package)[0] for package in there}
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    imported = set(re.findall(r"^(?:import|from) (\w+)", code, flags=re.MULTILINE))
    assert imported - {"thalweg", "bus_across_the_city"} <= packages
    assert ("%matplotlib" in code) <= ("matplotlib" in packages)
