"""Network coordinates: embeddings are found again, errors are honest, bad input is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from thalweg.errors import InvalidInput
from thalweg.estimate import vivaldi
from thalweg.estimate.coordinates import (
    Coordinates,
    coordinate_wan,
    fit_coordinates,
    fit_report,
    relative_errors,
)

PLANETLAB = Path(__file__).parents[3] / "shared/data/netlatency/planetlab_490x490_median_ms.npz"


def slow_distance(position: np.ndarray, height: np.ndarray, a: int, b: int) -> float:
    if a == b:
        return 0.0
    squares = sum((float(p) - float(q)) ** 2 for p, q in zip(position[a], position[b], strict=True))
    return math.sqrt(squares) + float(height[a]) + float(height[b])


def slow_errors(coordinates: Coordinates, rtt: np.ndarray) -> list[float]:
    errors = []
    for a in range(len(rtt)):
        for b in range(a + 1, len(rtt)):
            measured = [float(r) for r in (rtt[a, b], rtt[b, a]) if r > 0]
            if measured:
                mean = sum(measured) / len(measured)
                estimate = slow_distance(coordinates.position, coordinates.height_s, a, b)
                errors.append(abs(estimate - mean) / mean)
    return errors


def planar_world(nodes: int, seed: int) -> np.ndarray:
    """Round trips that points in a plane with heights meet exactly."""
    rng = np.random.default_rng(seed)
    world = Coordinates(
        position=rng.uniform(0.0, 0.1, (nodes, 2)), height_s=rng.uniform(0.001, 0.01, nodes)
    )
    return world.distance_s(np.arange(nodes)[:, np.newaxis], np.arange(nodes))


def worst_error(coordinates: Coordinates, rtt: np.ndarray) -> float:
    return float(relative_errors(coordinates, rtt).max())


@st.composite
def any_coordinates(draw: st.DrawFn) -> Coordinates:
    nodes, dimensions = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    position = draw(arrays(np.float64, (nodes, dimensions), elements=st.floats(-10, 10)))
    height = draw(arrays(np.float64, nodes, elements=st.floats(0, 10)))
    return Coordinates(position=position, height_s=height)


@settings(deadline=None)
@given(any_coordinates())
def test_distance_broadcasts_and_agrees_with_plain_loops(found: Coordinates) -> None:
    index = np.arange(found.nodes)
    wanted = [[slow_distance(found.position, found.height_s, a, b) for b in index] for a in index]
    np.testing.assert_allclose(found.distance_s(index[:, np.newaxis], index), wanted, rtol=1e-12)
    np.testing.assert_allclose(found.distance_s(0, index), wanted[0], rtol=1e-12)
    assert found.distance_s(0, found.nodes - 1).shape == ()


@settings(deadline=None)
@given(any_coordinates(), st.data())
def test_relative_errors_agree_with_plain_loops(found: Coordinates, data: st.DataObject) -> None:
    entry = st.one_of(st.floats(1e-3, 10.0), st.just(0.0), st.just(math.nan))
    rtt = data.draw(arrays(np.float64, (found.nodes, found.nodes), elements=entry))
    wanted = slow_errors(found, rtt)
    if wanted:
        np.testing.assert_allclose(relative_errors(found, rtt), wanted, rtol=1e-9, atol=1e-12)
    else:
        with pytest.raises(InvalidInput, match="rtt_s"):
            relative_errors(found, rtt)


@pytest.mark.parametrize("nodes", [2, 3, 10, 60])
def test_an_exact_embedding_is_found_again(nodes: int) -> None:
    rtt = planar_world(nodes, seed=nodes)
    found = fit_coordinates(rtt, rng=np.random.default_rng(0), dimensions=2)
    assert found.position.shape == (nodes, 2)
    assert worst_error(found, rtt) < 1e-5


def test_heights_are_found_again_not_only_distances() -> None:
    rng = np.random.default_rng(3)
    height = rng.uniform(0.001, 0.02, 60)
    world = Coordinates(position=rng.uniform(0.0, 0.1, (60, 2)), height_s=height)
    rtt = world.distance_s(np.arange(60)[:, np.newaxis], np.arange(60))
    found = fit_coordinates(rtt, rng=rng, dimensions=2)
    np.testing.assert_allclose(found.height_s, height, atol=1e-6)


def test_spare_dimensions_do_no_harm() -> None:
    rtt = planar_world(40, seed=1)
    assert worst_error(fit_coordinates(rtt, rng=np.random.default_rng(0)), rtt) < 1e-3


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_the_fit_does_not_depend_on_the_scale_of_the_round_trips(unit: float) -> None:
    rtt = planar_world(30, seed=2)
    plain = fit_coordinates(rtt, rng=np.random.default_rng(5), dimensions=2, polish=False)
    scaled = fit_coordinates(rtt * unit, rng=np.random.default_rng(5), dimensions=2, polish=False)
    np.testing.assert_allclose(scaled.position, plain.position * unit, rtol=1e-6)
    np.testing.assert_allclose(scaled.height_s, plain.height_s * unit, rtol=1e-6)


def test_pairs_that_were_not_measured_are_predicted() -> None:
    rtt = planar_world(60, seed=4)
    rng = np.random.default_rng(0)
    hidden = np.triu(rng.random(rtt.shape) < 0.5, 1)
    hidden |= hidden.T
    for missing in (np.nan, 0.0):
        found = fit_coordinates(np.where(hidden, missing, rtt), rng=rng, dimensions=2)
        assert worst_error(found, np.where(hidden, rtt, np.nan)) < 0.01


def test_one_measured_direction_is_enough_and_two_are_averaged() -> None:
    rtt = planar_world(12, seed=6)
    tilted = rtt * (1.0 + 0.2 * (np.triu(np.ones_like(rtt)) - np.tril(np.ones_like(rtt))))
    one_way = np.where(np.triu(np.ones_like(rtt)) > 0, rtt, np.nan)
    fits = [
        fit_coordinates(matrix, rng=np.random.default_rng(0), dimensions=2)
        for matrix in (rtt, tilted, one_way)
    ]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.position, fits[0].position, atol=1e-4)


def test_the_diagonal_is_not_read() -> None:
    rtt = planar_world(8, seed=1)
    fits = []
    for filler in (0.0, np.nan, np.inf, -3.0):
        np.fill_diagonal(rtt, filler)
        fits.append(fit_coordinates(rtt, rng=np.random.default_rng(0)).position.tobytes())
    assert len(set(fits)) == 1


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    rtt = planar_world(30, seed=8)
    first, again, other = (fit_coordinates(rtt, rng=np.random.default_rng(s)) for s in (1, 1, 2))
    assert first.position.tobytes() == again.position.tobytes()
    assert first.height_s.tobytes() == again.height_s.tobytes()
    assert first.position.tobytes() != other.position.tobytes()


def noisy_world(nodes: int, seed: int) -> np.ndarray:
    """A planar world with measurement noise and detours that no embedding can meet."""
    rng = np.random.default_rng(seed)
    rtt = planar_world(nodes, seed) * rng.lognormal(0.0, 0.05, (nodes, nodes))
    return np.where(rng.random((nodes, nodes)) < 0.02, rtt * 3.0, rtt)


def test_the_polish_lowers_the_errors_that_vivaldi_leaves() -> None:
    report = fit_report(noisy_world(80, seed=9), rng=np.random.default_rng(0))
    assert report.median_relative_error < 0.8 * report.vivaldi_median_relative_error
    assert report.p90_relative_error < report.vivaldi_p90_relative_error


def slow_loss(position: np.ndarray, height: np.ndarray, rtt: np.ndarray) -> float:
    """The loss that the polish promises to lower, pair by pair."""
    found = Coordinates(position=position, height_s=height)
    return sum(math.log(1.0 + (error / 0.2) ** 2) for error in slow_errors(found, rtt))


def test_the_polish_ends_at_a_minimum_of_the_loss_it_names() -> None:
    rtt = noisy_world(9, seed=2)
    found = fit_coordinates(rtt, rng=np.random.default_rng(0), dimensions=2)
    loss = slow_loss(found.position, found.height_s, rtt)
    rng = np.random.default_rng(1)
    for size in (1e-4, 1e-3, 1e-2):
        for _ in range(40):
            position = found.position + size * rng.normal(scale=0.05, size=found.position.shape)
            height = np.abs(found.height_s + size * rng.normal(scale=0.005, size=9))
            assert slow_loss(position, height, rtt) > loss * (1.0 - 1e-6)


def test_plain_vivaldi_alone_finds_the_arrangement() -> None:
    rtt = planar_world(80, seed=9)
    plain = fit_coordinates(rtt, rng=np.random.default_rng(0), polish=False)
    assert np.median(relative_errors(plain, rtt)) < 0.05


def test_the_report_says_what_the_single_functions_say() -> None:
    rtt = noisy_world(25, seed=3)
    rtt[0, 1] = rtt[1, 0] = np.nan
    report = fit_report(rtt, rng=np.random.default_rng(4), dimensions=3, rounds=200)
    fit = fit_coordinates(rtt, rng=np.random.default_rng(4), dimensions=3, rounds=200)
    plain = fit_coordinates(
        rtt, rng=np.random.default_rng(4), dimensions=3, rounds=200, polish=False
    )
    assert report.coordinates.position.tobytes() == fit.position.tobytes()
    assert (report.nodes, report.pairs, report.dimensions) == (25, 25 * 24 // 2 - 1, 3)
    assert report.median_relative_error == np.quantile(relative_errors(fit, rtt), 0.5)
    assert report.p90_relative_error == np.quantile(relative_errors(fit, rtt), 0.9)
    assert report.vivaldi_median_relative_error == np.quantile(relative_errors(plain, rtt), 0.5)
    assert report.vivaldi_p90_relative_error == np.quantile(relative_errors(plain, rtt), 0.9)


def test_a_polish_of_selected_pairs_still_fits_and_leaves_no_node_out(monkeypatch) -> None:
    rtt = planar_world(100, seed=5)
    # The last node was measured against three others only.
    rtt[3:-1, -1] = rtt[-1, 3:-1] = np.nan
    monkeypatch.setattr(vivaldi, "_MOST_POLISHED_PAIRS", 1500)
    found = fit_coordinates(rtt, rng=np.random.default_rng(0), dimensions=2)
    assert worst_error(found, rtt) < 0.01


def test_nodes_at_one_place_and_wild_ranges_are_no_trouble() -> None:
    equal = np.full((6, 6), 0.01)
    assert worst_error(fit_coordinates(equal, rng=np.random.default_rng(0)), equal) < 1e-3
    wild = np.array([[0.0, 1e-9, 3e9], [1e-9, 0.0, 1.0], [3e9, 1.0, 0.0]])
    found = fit_coordinates(wild, rng=np.random.default_rng(0))
    assert np.isfinite(found.position).all()


def defects_of(rtt: object, **chosen: object) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        fit_coordinates(rtt, rng=np.random.default_rng(0), **chosen)
    return [str(defect) for defect in caught.value.defects]


@pytest.mark.parametrize(
    ("rtt", "wanted"),
    [
        (np.ones((2, 3)), "an array of shape (2, 3)"),
        (np.ones((1, 1)), "need n × n numbers, n >= 2"),
        (np.ones(4), "need n × n numbers"),
        (1.0, "need n × n numbers"),
        ([[0, 1], [1]], "rows of different lengths"),
        ([["a", "b"], ["c", "d"]], "need an array of numbers"),
        (np.ones((2, 2), dtype=complex), "an array of complex128"),
        (np.ones((2, 2), dtype=bool), "an array of bool"),
        (np.full((2, 2), None), "an array of object"),
        (np.full((3, 3), np.nan), "no measured pair"),
        (np.zeros((3, 3)), "no measured pair"),
        (np.eye(3), "no measured pair"),
        (np.full((2, 2), -0.1), "rtt_s[0][1]: got -0.1, need seconds between 1e-09 and 3.2e+09"),
        (np.full((2, 2), np.inf), "rtt_s[0][1]: got inf"),
        (np.full((2, 2), -np.inf), "rtt_s[1][0]: got -inf"),
        (np.full((2, 2), 1e-300), "rtt_s[0][1]: got 1e-300"),
        (np.full((2, 2), 1e300), "rtt_s[0][1]: got 1e+300"),
    ],
)
def test_bad_matrices_are_refused(rtt: object, wanted: str) -> None:
    assert wanted in "\n".join(defects_of(rtt))


def test_all_defects_are_told_at_once() -> None:
    rtt = planar_world(4, seed=0)
    rtt[0, 1], rtt[2, 3] = -1.0, np.inf
    found = defects_of(rtt, dimensions=0, rounds=True)
    assert [text.split(":")[0] for text in found] == [
        "rtt_s[0][1]",
        "rtt_s[2][3]",
        "dimensions",
        "rounds",
    ]
    assert "write nan (or 0) for a pair that was not measured" in found[0]


def test_many_bad_entries_are_counted_not_listed() -> None:
    found = defects_of(np.full((30, 30), -1.0))
    assert len(found) == 11
    assert "870 such entries in all" in found[-1]


@pytest.mark.parametrize("value", [0, -1, 2.0, "3", None, 10**9])
def test_settings_that_are_no_sensible_count_are_refused(value: object) -> None:
    rtt = planar_world(3, seed=0)
    assert defects_of(rtt, dimensions=value)[0].startswith("dimensions: got")
    assert defects_of(rtt, rounds=value)[0].startswith("rounds: got")


def test_nodes_without_a_chain_of_measurements_are_refused() -> None:
    rtt = planar_world(6, seed=0)
    rtt[:4, 4:] = rtt[4:, :4] = np.nan
    (found,) = defects_of(rtt)
    assert "2 groups of nodes without a measurement between them" in found
    assert "measure node 4 against node 0" in found


@pytest.mark.parametrize(
    ("position", "height", "wanted"),
    [
        ([0.0, 1.0], [0.0, 0.0], "position: got"),
        ([[]], [0.0], "position: got"),
        ([[0.0, np.nan]], [0.0], "position: got"),
        ([[0.0, np.inf]], [0.0], "position: got"),
        ([["x"]], [0.0], "position: got"),
        ([[0.0], [1.0]], [0.0], "height_s: got"),
        ([[0.0]], 0.0, "height_s: got"),
        ([[0.0]], [-1e-9], "height_s: got"),
        ([[0.0]], [np.nan], "height_s: got"),
        ([[0.0]], [True], "height_s: got"),
    ],
)
def test_impossible_coordinates_are_refused(position: list, height: object, wanted: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Coordinates(position=position, height_s=height)
    assert [str(defect).startswith(wanted) for defect in caught.value.defects] == [True]


def test_coordinates_are_copied_and_read_only() -> None:
    position, height = np.zeros((2, 3)), np.ones(2)
    found = Coordinates(position=position, height_s=height)
    position[0] = 7.0
    assert found.position.max() == 0.0
    with pytest.raises(ValueError, match="read-only"):
        found.position[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        found.height_s[0] = 1.0
    assert (found.nodes, found.dimensions) == (2, 3)


@pytest.mark.parametrize("index", [-1, 2, [0, 5], 0.0, True, "0"])
def test_node_numbers_out_of_range_are_refused(index: object) -> None:
    found = Coordinates(position=np.zeros((2, 3)), height_s=np.ones(2))
    with pytest.raises(InvalidInput, match="need node numbers from 0 to 1"):
        found.distance_s(0, index)


def test_a_matrix_of_other_size_has_no_relative_errors() -> None:
    found = Coordinates(position=np.zeros((2, 3)), height_s=np.ones(2))
    with pytest.raises(InvalidInput, match="need 2 × 2 numbers"):
        relative_errors(found, np.ones((3, 3)))


@pytest.fixture(scope="module")
def planetlab_s() -> np.ndarray:
    if not PLANETLAB.exists():
        pytest.skip(f"needs the PlanetLab round trips at {PLANETLAB}")
    with np.load(PLANETLAB, allow_pickle=False) as arrays_in_file:
        return arrays_in_file["rtt_ms"].astype(np.float64) * 1e-3


@pytest.mark.data
def test_planetlab_is_met_within_8_percent_median_and_36_percent_p90(planetlab_s) -> None:
    report = fit_report(planetlab_s, rng=np.random.default_rng(0))
    assert (report.nodes, report.pairs) == (490, 490 * 489 // 2)
    assert report.median_relative_error <= 0.08
    assert report.p90_relative_error <= 0.36


@pytest.mark.data
def test_planetlab_pairs_held_out_of_the_fit_are_met_as_well(planetlab_s) -> None:
    rng = np.random.default_rng(1)
    held_out = np.triu(rng.random(planetlab_s.shape) < 0.5, 1)
    held_out |= held_out.T
    found = fit_coordinates(np.where(held_out, np.nan, planetlab_s), rng=rng)
    median, p90 = np.quantile(
        relative_errors(found, np.where(held_out, planetlab_s, np.nan)), [0.5, 0.9]
    )
    assert median <= 0.08
    assert p90 <= 0.36


def test_coordinates_become_a_network_with_half_a_round_trip_each_way() -> None:
    found = Coordinates(position=[[0.0, 0.0], [0.03, 0.04]], height_s=[0.001, 0.002])
    wan = coordinate_wan(found, 1e9)
    assert wan.latency_s(0, 1) == pytest.approx(float(found.distance_s(0, 1)) / 2)
    assert wan.latency_s(1, 1) == 0
    assert wan.bandwidth_bps(0, 1) == 1e9
