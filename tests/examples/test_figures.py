"""The figures of README and documentation come from one command, and are small."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from examples.gallery import ROOT, run_in

ASSETS = ROOT / "docs" / "assets"


def test_the_plan_is_drawn_with_every_site_and_uplink(tmp_path: Path) -> None:
    done = run_in(
        ROOT, sys.executable, "-m", "tools.draw_readme_figures", "plan.svg", "--into", str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert "wrote" in done.stdout
    drawn = (tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert ET.fromstring(drawn).tag.endswith("svg")  # noqa: S314
    # Texts are drawn as paths, and kept as comments.
    for text in ("cloud", "fog-0", "fog-1", "fog-2", "rank-zones", "of 5 Mbps"):
        assert text in drawn


def test_a_figure_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = run_in(
        ROOT, sys.executable, "-m", "tools.draw_readme_figures", "map.svg", "--into", str(tmp_path)
    )
    assert done.returncode == 2
    assert "unknown: map.svg" in done.stderr


@pytest.mark.parametrize("name", ["plan.svg", "scale.png", "surge.png"])
def test_the_figures_are_there_and_small(name: str) -> None:
    assert 1_000 < (ASSETS / name).stat().st_size < 150_000
