"""The drawing of a replay shows its figures, and what is infinite too."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.adapt import Trigger, replay
from thalweg.model.workload import Workload
from thalweg.scenarios import fog_cloud, taxi_fares

pytest.importorskip("matplotlib")

from thalweg.adapt.plot import draw_replay, plot_replay


def replayed(*rates):
    load = Workload.of({1800.0 * k: {("rides", "fog-0"): r} for k, r in enumerate(rates)})
    return replay(taxi_fares(), fog_cloud(1), load, "ru-min-cut", trigger=Trigger())


def test_lines_are_the_figures_after_each_decision_and_dashes_the_limits():
    found = replayed(1e3, 3e4, 2e3)
    usage, uplink, response, cuts, *_ = draw_replay(found).axes
    for panel, values in (
        (usage, [step.after.usage for step in found.steps]),
        (uplink, [step.after.uplink_bps / 1e6 for step in found.steps]),
        (response, [step.after.response_time_s * 1e3 for step in found.steps]),
    ):
        stairs = next(p for p in panel.patches if hasattr(p, "get_data"))
        np.testing.assert_allclose(stairs.get_data().values, values)
        np.testing.assert_allclose(stairs.get_data().edges, [0, 30, 60, 90])
    assert response.lines[0].get_linestyle() == "--"
    assert response.lines[0].get_ydata()[0] == 1000.0
    mesh = cuts.collections[0].get_array()
    assert mesh.ravel().tolist() == [len(step.cuts["fog-0"]) for step in found.steps]


def test_infinite_figures_are_marked_not_lost(tmp_path):
    found = replayed(1e3, 1e9, 1e3)
    assert np.isinf(found.steps[1].after.response_time_s)
    response = draw_replay(found).axes[2]
    marks = [line for line in response.lines if line.get_label() == "infinite"]
    assert [line.get_xdata().tolist() for line in marks] == [[45.0]]
    plot_replay(found, tmp_path / "found.svg")
    assert (tmp_path / "found.svg").read_text().startswith("<?xml")


def test_a_single_step_can_be_drawn(tmp_path):
    plot_replay(replayed(0.0), tmp_path / "found.png")
    assert (tmp_path / "found.png").stat().st_size > 0
