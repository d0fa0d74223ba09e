"""HTML in every text of a stranger's folder: each view shows it as text, and runs none of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz.good_files import write_city, write_run

pytest.importorskip("fastapi")

from thalweg.web.opening import open_subjects
from thalweg.web.server import PageServer

EVIL = "<img src=x onerror=alert(1)>"
# Keys whose values are free texts, wherever they are.
TEXTS = {"reason", "title", "text", "error", "note", "cause", "pipeline", "strategy", "mark"}


def spoil(value: Any) -> Any:
    """The same data with HTML in every free text."""
    if isinstance(value, dict):
        return {
            key: f"{inner} {EVIL}" if key in TEXTS and isinstance(inner, str) else spoil(inner)
            for key, inner in value.items()
        }
    return [spoil(inner) for inner in value] if isinstance(value, list) else value


def spoil_run(folder: Path) -> None:
    for name in ("status.json", "report.json", "history.json"):
        file = folder / name
        file.write_text(json.dumps(spoil(json.loads(file.read_text()))))
    for name in ("timeline.jsonl", "decisions.jsonl"):
        lines = [
            json.dumps(spoil(json.loads(line))) for line in (folder / name).read_text().splitlines()
        ]
        (folder / name).write_text("\n".join(lines) + "\n")


def spoil_city(folder: Path) -> None:
    """HTML in every text of what a page shows of a city, other than the kinds of things."""
    file = folder / "city.json"
    told = json.loads(file.read_text())
    for name in ("title", "name", "application", "note"):
        if isinstance(told.get(name), str):
            told[name] = f"{told[name]} {EVIL}"
    brokers = told["brokers"]["names"]
    told["brokers"]["names"] = [f"{name} {EVIL}" for name in brokers]
    file.write_text(json.dumps(told))
    for table in folder.rglob("*.parquet"):
        rows = pq.read_table(table)
        pq.write_table(rows.append_column("said", pa.array([EVIL] * rows.num_rows)), table)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """A run, a city and results, with HTML in them."""
    folder = tmp_path_factory.mktemp("html")
    spoil_run(write_run(folder / "run"))
    spoil_city(write_city(folder / "city"))
    (folder / "results").mkdir()
    table = pa.table({EVIL: [EVIL, "plain"], "value": [1.5, 2.5]})
    pq.write_table(table, folder / "results" / "rows.parquet")
    pq.write_table(table, folder / "results" / f"{EVIL.replace('/', '')}.parquet")
    manifest = {"command": EVIL, "seed": 0, EVIL: EVIL}
    (folder / "results" / "manifest.json").write_text(json.dumps(manifest))
    paths = [str(folder / name) for name in ("run", "city", "results")]
    with PageServer(open_subjects(paths)) as page:
        yield page


@pytest.mark.parametrize(
    ("subject", "view"),
    [
        (0, "map"),
        (0, "charts"),
        (0, "what-if"),
        (0, "compare"),
        (1, "city"),
        (1, "results"),
        (2, "results"),
    ],
)
def test_every_view_shows_html_as_text(served, open_page, shoot, subject, view):
    page = open_page("about:blank")
    ran: list[str] = []
    page.on("dialog", lambda dialog: (ran.append(dialog.message), dialog.dismiss()))
    page.goto(f"{served.address}&subject={subject}&view={view}")
    page.wait_for_selector(f'#panel[data-view="{view}"]')
    page.wait_for_timeout(1_000)
    # What is shown beside the panel on demand, too.
    for chip in page.query_selector_all("[data-chip], [data-site], [data-mark]")[:6]:
        if chip.is_visible():
            chip.click(force=True)
            page.wait_for_timeout(100)
    assert ran == []
    assert page.query_selector_all('img[src="x"]') == []
    assert page.evaluate("() => document.querySelectorAll('[onerror]').length") == 0
    shoot(page, f"html-{subject}-{view}")


def test_the_texts_are_there(served, open_page):
    """What is escaped is seen: nothing was thrown away instead."""
    page = open_page(f"{served.address}&subject=2&view=results")
    page.wait_for_selector("#panel table")
    assert EVIL in page.inner_text("#panel")
    page.goto(f"{served.address}&subject=0&view=map")
    page.wait_for_selector('#panel[data-view="map"]')
    page.wait_for_timeout(1_000)
    assert EVIL in page.inner_text("body")
