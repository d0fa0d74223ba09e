"""How operators, windows and links work, worked out by hand on tiny networks."""

from __future__ import annotations

import pytest

import thalweg as tw
from generators.small import chain_problem, fog_problem, place
from thalweg.errors import InvalidInput
from thalweg.model import CountWindow, Operator, TimeWindow
from thalweg.simulate import (
    Deterministic,
    Empirical,
    Exponential,
    Periodic,
    Physics,
    Poisson,
    Trace,
    placement_physics,
    scheduling_physics,
)

CPU = {"cpu_ips": 1e9}
HERE = {"t": "f1/n", "z": "f1/n"}


def work(name="t", **figures):
    """1 ms for each event, where it has the whole CPU."""
    return Operator(**{"name": name, "cpu_per_event": 1e6, **figures})


def small(*transforms, **figures):
    ample = {"rate": 100.0, "event_size": 125.0, "fogs": 1, "fog": CPU, "cloud": CPU}
    return chain_problem(*transforms, **{**ample, **figures})


def simulate(problem, hosts, **options):
    return tw.simulate(
        problem.application,
        problem.network,
        place(problem, hosts),
        **{"seconds": 20.0, "warm_up_s": 0.0, **options},
    )


def physics(times=None, **given):
    """Exact services, and events at given times."""
    plain = {"service": Deterministic(), "arrivals": Periodic()}
    if times is not None:
        plain["arrivals"] = Trace(time_s=times)
    return Physics(**{**plain, **given})


def row_of(found, name, table="operators"):
    return next(row for row in found.rows(table) if row["name"] == name)


def stay_s(found, name="t"):
    return row_of(found, name)["latency_s"]


def test_an_operator_alone_has_the_whole_cpu():
    for cpu in ("whole", "shared"):
        found = simulate(small(work()), HERE, physics=physics(cpu=cpu))
        assert stay_s(found) == pytest.approx(1e-3)


def test_two_operators_that_share_a_cpu_are_half_as_fast():
    problem = small(work("a"), work("b"))
    together = {"a": "f1/n", "b": "f1/n", "z": "f1/n"}
    shared = simulate(problem, together, physics=physics(cpu="shared"))
    whole = simulate(problem, together, physics=physics(cpu="whole"))
    apart = simulate(problem, {**together, "b": "dc/n"}, physics=physics(cpu="shared"))
    for name in ("a", "b"):
        assert stay_s(shared, name) == pytest.approx(2e-3)
        assert stay_s(whole, name) == pytest.approx(1e-3)
        assert stay_s(apart, name) == pytest.approx(1e-3)


def test_those_who_are_there_already_share_the_cpu_too():
    problem = small(work(), fog={**CPU, "operators": 3})
    assert stay_s(simulate(problem, HERE, physics=physics(cpu="shared"))) == pytest.approx(4e-3)


def test_applications_on_one_node_share_its_cpu_and_its_links():
    one = small(work())
    app, net, plan = one.application, one.network, place(one, HERE)
    other = tw.model.Application(name="other", operators=app.operators, streams=app.streams)
    for cpu, expected_s in (("shared", 2e-3), ("whole", 1e-3)):
        found = tw.simulate([app, other], net, [plan, plan], seconds=10, physics=physics(cpu=cpu))
        names = [row["application"] for row in found.rows("operators")]
        assert names == ["app"] * 3 + ["other"] * 3
        stays = [row["latency_s"] for row in found.rows("operators") if row["name"] == "t"]
        assert stays == pytest.approx([expected_s] * 2)
        assert [row["name"] for row in found.rows("applications")] == ["app", "other"]
        assert found.conserved


def test_applications_queue_behind_each_other_on_a_link():
    one = small(work(cpu_per_event=0.0))  # 1 ms for 125 B at 1 Mbps
    app, net, plan = one.application, one.network, place(one, {"t": "dc/n", "z": "dc/n"})
    other = tw.model.Application(name="other", operators=app.operators, streams=app.streams)
    how = physics([1.0, 2.0, 3.0])
    found = tw.simulate([app, other], net, [plan, plan], seconds=10, physics=how)
    row = row_of(found, "WAN f1 → dc", "links")
    assert row["events"] == 6
    assert row["latency_s"] == pytest.approx(1.5e-3)
    alone = tw.simulate(app, net, plan, seconds=10, physics=how)
    assert row_of(alone, "WAN f1 → dc", "links")["latency_s"] == pytest.approx(1e-3)


def test_a_link_takes_its_bandwidth_and_its_latency():
    found = simulate(small(work()), {"t": "dc/n", "z": "dc/n"}, physics=physics([1.0, 2.0]))
    assert found.latency_s == pytest.approx(1e-3 + 0.1 + 1e-3)
    assert row_of(found, "WAN f1 → dc", "links")["sent_bytes"] == 250.0


def test_lan_links_are_crossed_on_both_sides():
    lan = {**CPU, "lan_bandwidth_bps": 1e5, "lan_latency_s": 0.02}
    problem = small(work(), fog=lan, cloud=lan)
    found = simulate(problem, {"t": "dc/n", "z": "dc/n"}, physics=physics([1.0, 2.0]))
    assert found.latency_s == pytest.approx(0.01 + 0.02 + 1e-3 + 0.1 + 0.01 + 0.02 + 1e-3)
    assert {row["name"] for row in found.rows("links")} == {
        "LAN f1/n out",
        "WAN f1 → dc",
        "LAN dc/n in",
    }


def test_events_wait_for_a_window_to_fill_after_they_are_worked_on():
    problem = small(work(window=CountWindow(4)))
    found = simulate(problem, HERE, physics=physics([1.0, 2.0, 3.0, 4.0, 5.0]))
    row = row_of(found, "t")
    assert found.totals["ended"] == 4
    assert row["window_end"] == found.totals["queued"] == 1
    assert row["queue_end"] == 0
    # They leave at 4.001 s: 3, 2, 1 and 0 s after they were done.
    assert found.latency_s == pytest.approx(1.5 + 1e-3)
    assert row["window_wait_s"] == pytest.approx(1.5)
    assert found.rows("applications")[0]["response_s"] == pytest.approx(1e-3)


def test_a_full_window_is_one_piece_of_work():
    problem = small(work(window=CountWindow(4)))
    how = physics([1.0, 2.0, 3.0, 4.0, 5.0], windows="work")
    found = simulate(problem, HERE, physics=how)
    assert found.totals["ended"] == 4
    # Begun at 4 s, and four events' work.
    assert found.latency_s == pytest.approx(1.5 + 4e-3)
    assert stay_s(found) == pytest.approx(4e-3)
    assert found.rows("applications")[0]["response_s"] == pytest.approx(4e-3)


def test_events_of_a_time_window_leave_at_the_end_of_the_slide():
    problem = small(work(window=TimeWindow(2.0)))
    found = simulate(problem, HERE, physics=physics([0.5, 1.5, 1.9995, 3.0]))
    # The third is done at 2.0005 s, and so belongs to the second window.
    assert found.totals["ended"] == 4
    assert found.latency_s == pytest.approx((1.5 + 0.5 + 2.0005 + 1.0) / 4)


def test_an_event_of_sliding_windows_is_worked_on_once_for_each_that_has_it():
    """A window of 3 slides: in "fill" each event takes three times as long."""
    window = TimeWindow(3.0, 1.0)
    problem = small(work(window=window))
    fill = simulate(problem, HERE, physics=physics([0.25, 5.25]))
    assert stay_s(fill) == pytest.approx(3e-3)
    works = simulate(problem, HERE, physics=physics([0.25, 0.5], windows="work"))
    # Three pieces of work of 2 ms, at 1, 2 and 3 s; events leave with the first.
    row = row_of(works, "t")
    assert row["utilisation"] * 20.0 == pytest.approx(6e-3)
    assert works.totals["ended"] == 2
    assert works.latency_s == pytest.approx(0.625 + 2e-3)


def test_part_of_a_slide_is_part_of_the_work():
    problem = small(work(window=TimeWindow(1.5, 1.0)))
    found = simulate(problem, HERE, physics=physics([0.25], windows="work"))
    assert row_of(found, "t")["utilisation"] * 20.0 == pytest.approx(1.5e-3)


def test_sources_and_sinks_work_where_they_are_said_to():
    problem = small(work(), sink={"cpu_per_event": 3e6})
    for ends_work, expected_s in ((True, 4e-3), (False, 1e-3)):
        found = simulate(problem, HERE, physics=physics([1.0, 2.0], ends_work=ends_work))
        assert found.latency_s == pytest.approx(expected_s)


def test_events_come_to_their_site_with_its_delay_where_ends_do_not_work():
    problem = small(work(), site={"edge_delay_s": 0.25})
    for ends_work, expected_s in ((False, 0.251), (True, 0.001)):
        found = simulate(problem, HERE, physics=physics([1.0, 2.0], ends_work=ends_work))
        assert found.latency_s == pytest.approx(expected_s)


def test_bytes_are_work_too():
    problem = small(work(cpu_per_byte=8e3))
    assert stay_s(simulate(problem, HERE, physics=physics())) == pytest.approx(2e-3)


def test_services_can_be_given_for_each_operator():
    problem = small(work("a"), work("b"))
    hosts = {"a": "f1/n", "b": "f1/n", "z": "f1/n"}
    own = {"a": Deterministic(), "b": Empirical([1.0, 1.0, 3.0])}
    how = Physics(service=own, arrivals=Periodic())
    found = simulate(problem, hosts, physics=how, seconds=100.0)
    assert row_of(found, "a")["latency_p99_s"] == pytest.approx(1e-3, rel=0.04)
    assert stay_s(found, "a") == pytest.approx(1e-3)
    assert stay_s(found, "b") == pytest.approx(1e-3, rel=0.02)
    assert row_of(found, "b")["latency_p50_s"] == pytest.approx(0.6e-3, rel=0.04)
    assert row_of(found, "b")["latency_p95_s"] == pytest.approx(1.8e-3, rel=0.04)


def test_an_operator_that_is_not_named_works_as_estimated():
    one = work("a")
    assert placement_physics().service_of(one) == Exponential()
    assert scheduling_physics().service_of(one) == Deterministic()
    slid = work("b", window=TimeWindow(1.0))
    assert scheduling_physics().service_of(slid) == Exponential()
    named = Physics(service={"x": Deterministic()})
    assert named.service_of(one) == Exponential()
    assert named.arrivals_of("s", "f1") == Poisson()


def test_arrivals_can_be_given_for_each_source_and_site():
    problem = small(work(), fogs=2)
    own = {("s", "f1"): Trace(time_s=[1.0, 2.0, 3.0])}
    found = simulate(problem, HERE, physics=Physics(arrivals=own))
    assert row_of(found, "s@f1")["events"] == 3
    # 50 events/s in the other, at random.
    assert row_of(found, "s@f2")["events"] == pytest.approx(1000, abs=150)


def test_even_lets_every_so_many_th_through():
    problem = small(work(selectivity=0.25))
    found = simulate(problem, HERE, physics=physics(even=True))
    assert found.totals["born"] == 2000
    assert found.totals["ended"] in (499, 500)
    random = simulate(problem, HERE, physics=physics())
    assert random.totals["ended"] == pytest.approx(500, abs=100)


def test_copies_are_counted():
    problem = small(work(selectivity=2.5))
    found = simulate(problem, HERE, physics=physics(even=True))
    assert found.conserved
    assert found.totals["made"] == pytest.approx(3000, abs=5)


def test_alternatives_take_one_way_and_independent_ones_any():
    streams = [tw.model.Stream(source="s", target="t")]

    def split(first, second):
        ways = [
            tw.model.Stream(source="t", target="a", probability=first),
            tw.model.Stream(source="t", target="b", probability=second),
            tw.model.Stream(source="a", target="z"),
            tw.model.Stream(source="b", target="z"),
        ]
        made = [Operator(name=name) for name in ("t", "a", "b")]
        problem = fog_problem(
            made, streams + ways, rate=1000.0, event_size=1.0, fogs=1, fog=CPU, cloud=CPU
        )
        hosts = dict.fromkeys(("t", "a", "b", "z"), "f1/n")
        return simulate(problem, hosts, physics=physics())

    found = split(0.3, 0.5)
    born = found.totals["born"]
    assert found.totals["made"] == 0
    assert found.totals["filtered"] == pytest.approx(0.2 * born, rel=0.1)
    assert row_of(found, "a")["events"] == pytest.approx(0.3 * born, rel=0.1)
    found = split(0.75, 0.75)
    assert found.totals["made"] == pytest.approx(0.75**2 * born, rel=0.1)
    assert found.totals["filtered"] == pytest.approx(0.25**2 * born, rel=0.15)
    assert found.conserved


@pytest.mark.parametrize(("name", "value"), [("cpu", "half"), ("windows", "empty")])
def test_a_way_to_work_that_does_not_exist_is_refused(name, value):
    with pytest.raises(InvalidInput, match=name):
        Physics(**{name: value})


def test_names_that_nobody_has_are_refused_together():
    how = Physics(service={"tt": Deterministic()}, arrivals={("s", "nowhere"): Poisson()})
    with pytest.raises(InvalidInput) as refused:
        simulate(small(work()), HERE, physics=how)
    told = str(refused.value)
    assert 'did you mean "t"?' in told
    assert "s in nowhere" in told
    assert [d.path for d in refused.value.defects] == ["physics.service", "physics.arrivals"]


@pytest.mark.parametrize("name", ["service", "transfer", "arrivals"])
def test_a_service_or_arrivals_of_another_kind_are_refused(name):
    with pytest.raises(InvalidInput, match=name):
        there = {"t": "dc/n", "z": "dc/n"}
        simulate(small(work()), there, physics=Physics(**{name: "exponential"}))


def test_a_node_is_as_busy_as_its_cpu():
    """100 events/s of 1 ms are a tenth of the CPU, whoever else is there."""
    problem = small(work("a"), work("b", cpu_per_event=0.0))
    hosts = {"a": "f1/n", "b": "f1/n", "z": "dc/n"}
    found = simulate(problem, hosts, physics=physics(cpu="shared"))
    assert row_of(found, "f1/n", "nodes")["utilisation"] == pytest.approx(0.1, rel=0.05)


def test_a_node_with_operators_alike_is_as_busy_as_its_cpu():
    problem = small(work("a"), work("b"))
    hosts = {"a": "f1/n", "b": "f1/n", "z": "dc/n"}
    found = simulate(problem, hosts, physics=physics(cpu="shared"))
    assert row_of(found, "f1/n", "nodes")["utilisation"] == pytest.approx(0.2, rel=0.02)


def test_a_very_long_window_of_very_short_slides_is_refused():
    """The model allows it; a run of it cannot be had, and should say so."""
    problem = small(work(window=TimeWindow(3e9, 1e-9)))
    with pytest.raises(InvalidInput):
        simulate(problem, HERE, seconds=1e-6)
