"""The guide to files names every field and every column, and none that is not there.

Each sort of entry has a section of its own, headed by its title, with a table of its fields; each
Parquet table has one headed by the name of its file.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from thalweg.files import (
    application_document,
    changes_document,
    network_document,
    plan_document,
    workload_document,
)
from thalweg.files.folder_contents import (
    FILE,
    MOST_DIMENSIONS,
    MOST_LINKS,
    MOST_MESH_SITES,
    MOST_NODES,
    MOST_SITES,
    SHAPES,
    Contents,
)
from thalweg.files.network_document import MOST_TEXT_NODES, MOST_TEXT_SITES
from thalweg.files.network_writer import MOST_WRITTEN_NODES
from thalweg.files.outline import (
    DEEPEST_NESTING,
    LONGEST_KEY,
    LONGEST_TEXT,
    MOST_DEFECTS,
    MOST_KEYS_AND_VALUES,
)
from thalweg.files.tables import (
    LINKS,
    MESH,
    NODES,
    SITES,
    TAKEN,
    TREE,
    Table,
    coordinates_table,
)
from thalweg.files.text import LARGEST_FILE_BYTES
from thalweg.files.validation import Entry
from thalweg.files.workload_arrow import MOST_ROWS
from thalweg.files.workload_csv import LARGEST_CSV_BYTES, MOST_ROWS_TOLD
from thalweg.files.workload_document import MOST_RATES
from thalweg.files.workload_table import LARGEST_PARQUET_BYTES
from thalweg.files.workload_writer import COLUMNS

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "files.md"
DOCUMENTS = (
    application_document,
    network_document,
    plan_document,
    workload_document,
    changes_document,
)
ENTRIES = [
    entry
    for module in DOCUMENTS
    for entry in vars(module).values()
    if inspect.isclass(entry) and issubclass(entry, Entry) and entry.__module__ == module.__name__
]
TABLES = [SITES, NODES, MESH, LINKS, TREE, coordinates_table(2), TAKEN]

HEADING = re.compile(r"^#{2,3} (.+)$", flags=re.MULTILINE)
ROW = re.compile(r"^\| (`\w+`[^|]*) \|(.*)\|$", flags=re.MULTILINE)


def read_rows(text: str, heading: str) -> dict[str, list[str]]:
    """The other cells of each row, by the names in backticks in its first cell."""
    _, *parts = HEADING.split(text)
    found = [body for title, body in zip(parts[::2], parts[1::2], strict=True) if title == heading]
    assert len(found) == 1, f"{PAGE.name} needs one section headed {heading}, has {len(found)}"
    return {
        name: [cell.strip() for cell in cells.split("|")]
        for names, cells in ROW.findall(found[0])
        for name in re.findall(r"`(\w+)`", names)
    }


def heading_of(entry: type[Entry]) -> str:
    return str(entry.model_config["title"]).removeprefix("Thalweg ").capitalize()


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_documents_have_entries_to_look_for() -> None:
    # The list is found by looking into modules: nothing found must not mean nothing missing.
    assert {"Application", "Network", "Plan", "Workload", "Changes"} <= {
        heading_of(entry) for entry in ENTRIES
    }
    assert len({heading_of(entry) for entry in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=heading_of)
def test_table_names_every_field_and_whether_it_is_needed(entry: type[Entry], page: str) -> None:
    rows = read_rows(page, heading_of(entry))
    assert list(rows) == list(entry.model_fields)
    needed = [name for name, (_, left_out, _) in rows.items() if left_out == "needed"]
    assert needed == [name for name, field in entry.model_fields.items() if field.is_required()]


@pytest.mark.parametrize("entry", ENTRIES, ids=heading_of)
def test_table_gives_numbers_and_words_that_stand_in_for_what_is_left_out(
    entry: type[Entry], page: str
) -> None:
    rows = read_rows(page, heading_of(entry))
    for name, field in entry.model_fields.items():
        if isinstance(field.default, (bool, str)):
            assert rows[name][1] == f"`{str(field.default).lower()}`"
        elif isinstance(field.default, (int, float)):
            assert rows[name][1] == f"`{field.default:g}`"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file)
def test_table_names_every_column_with_its_type(table: Table, page: str) -> None:
    rows = read_rows(page, f"`{table.file}`")
    columns = (*table.columns, *table.optional)
    assert {name: cells[0] for name, cells in rows.items()} == {
        column.name: column.type_name for column in columns
    }
    without_unit = [name for name, (_, unit, _) in rows.items() if not unit]
    assert without_unit == [c.name for c in columns if c.is_text or c.sort == "count"]


def test_table_names_every_column_of_a_workload(page: str) -> None:
    assert tuple(read_rows(page, "Workload tables")) == COLUMNS


def test_table_names_every_field_of_the_folders_contents(page: str) -> None:
    fields = {
        shape: json.loads(
            Contents(
                name="any", shape=shape, site_count=1, node_count=1, dimensions=1, bandwidth_bps=1.0
            ).to_json()
        )
        for shape in SHAPES
    }
    rows = read_rows(page, f"`{FILE}`")
    assert set(rows) == {name for shape in SHAPES for name in fields[shape]}
    for name, (shapes, _) in rows.items():
        having = [f"`{shape}`" for shape in SHAPES if name in fields[shape]]
        assert shapes == ("all" if len(having) == len(SHAPES) else ", ".join(having)), name


@pytest.mark.parametrize(
    "words",
    [
        f"| {LARGEST_FILE_BYTES // 2**20} MiB |",
        f"| {DEEPEST_NESTING} levels |",
        f"| {MOST_KEYS_AND_VALUES:,} keys and values |",
        f"| {LONGEST_TEXT:,} characters | in a text; {LONGEST_KEY} in a key |",
        f"| {MOST_TEXT_NODES:,} nodes, {MOST_TEXT_SITES:,} sites |",
        f"| {MOST_WRITTEN_NODES:,} nodes |",
        f"At most {MOST_DEFECTS} problems",
        f"| 1 to {MOST_SITES:,}; in a mesh to {MOST_MESH_SITES:,} |",
        f"| 1 to {MOST_NODES:,} |",
        f"| `link_count` | `links` | 0 to {MOST_LINKS:,} |",
        f"| `dimensions` | `coordinates` | 1 to {MOST_DIMENSIONS} |",
        f"at most {LARGEST_CSV_BYTES // 2**20} MiB; a Parquet file",
        f"at most {LARGEST_PARQUET_BYTES // 2**20} MiB\nand {MOST_ROWS:,} rows",
        f"at most {MOST_RATES:,} rates",
        f"the first {MOST_ROWS_TOLD} are told",
    ],
)
def test_page_gives_the_caps_of_the_code(words: str, page: str) -> None:
    assert words in page


def test_a_missing_row_is_noticed(page: str) -> None:
    without = re.sub(r"^\| `selectivity` .*\n", "", page, flags=re.MULTILINE)
    assert "selectivity" in read_rows(page, "Operator")
    assert "selectivity" not in read_rows(without, "Operator")
