"""Failures, slow-downs, moves and rates that change, worked out by hand on tiny networks."""

from __future__ import annotations

import math

import pytest

import thalweg as tw
from generators.small import chain_problem, place
from thalweg.adapt.trigger import Trigger
from thalweg.errors import InvalidInput
from thalweg.model import (
    Application,
    CountWindow,
    Instance,
    Limits,
    Link,
    Node,
    Operator,
    Pin,
    Placement,
    Problem,
    Site,
    Stream,
    TimeWindow,
    build_network,
)
from thalweg.simulate import (
    Control,
    Deterministic,
    Periodic,
    Physics,
    PlanChange,
    RateChange,
    SpeedChange,
    Trace,
)

CPU = {"cpu_ips": 1e9}
HERE = {"t": "f1/n", "z": "f1/n"}
THERE = {"t": "dc/n", "z": "dc/n"}
LINK = ("f1", "dc")
SECONDS = 20.0


def work(name="t", **figures):
    """1 ms for each event."""
    return Operator(**{"name": name, "cpu_per_event": 1e6, **figures})


def small(*transforms, **figures):
    ample = {"rate": 100.0, "event_size": 125.0, "fogs": 1, "fog": CPU, "cloud": CPU}
    return chain_problem(*transforms, **{**ample, **figures})


def simulate(problem, hosts, *changes, times=None, **options):
    arrivals = Periodic() if times is None else Trace(time_s=times)
    plain = {
        "seconds": SECONDS,
        "warm_up_s": 0.0,
        "physics": Physics(service=Deterministic(), arrivals=arrivals),
    }
    found = tw.simulate(
        problem.application,
        problem.network,
        place(problem, hosts),
        changes=changes,
        **{**plain, **options},
    )
    assert found.conserved
    return found


def row_of(found, name, table="operators"):
    return next(row for row in found.rows(table) if row["name"] == name)


def test_a_node_that_fails_keeps_what_waits_and_goes_on_with_it():
    changes = [
        SpeedChange(at_s=5.0, node="f1/n"),
        SpeedChange(at_s=10.0, node="f1/n", speed=1.0),
    ]
    found = simulate(small(work()), HERE, *changes)
    assert found.totals["lost"] == 0
    assert found.totals["ended"] == pytest.approx(2000, abs=2)
    longest_s = found.rows("applications")[0]["latency_max_s"]
    assert 4.9 < longest_s < 5.1
    stays = [segment["events"] for segment in found.runs[0].segments]
    assert stays == [pytest.approx(500, abs=2), pytest.approx(0, abs=2), pytest.approx(1500, abs=2)]


def test_the_queue_of_a_source_on_a_failed_node_is_told():
    """500 events wait at 10 s for the source, which takes no time before and after."""
    changes = [
        SpeedChange(at_s=5.0, node="f1/n"),
        SpeedChange(at_s=10.0, node="f1/n", speed=1.0),
    ]
    found = simulate(small(work()), HERE, *changes)
    queues = {row["name"]: row["queue"] for row in found.runs[0].queues}
    assert max(queues.get("s@f1", [0])) == pytest.approx(500, abs=34)


def test_a_node_that_fails_for_good_has_all_that_comes_waiting():
    found = simulate(small(work()), THERE, SpeedChange(at_s=5.0, node="dc/n"))
    assert found.totals["lost"] == 0
    assert found.totals["queued"] == pytest.approx(1500, abs=15)
    unstable = {row["name"]: row["load"] for row in found.unstable}
    assert unstable["LAN dc/n in"] == math.inf


def test_a_node_that_fails_with_loss_loses_what_waits_and_what_comes_until_it_recovers():
    slow = small(work(cpu_per_event=2e7))  # 50 events/s: half of what comes waits.
    changes = [
        SpeedChange(at_s=4.0, node="f1/n", loses=True),
        SpeedChange(at_s=10.0, node="f1/n", speed=1.0),
    ]
    found = simulate(slow, HERE, *changes)
    # 200 wait at 4 s, 600 come until 10 s; from then on 50 of 100 events/s are served.
    assert found.totals["lost"] == pytest.approx(800, abs=4)
    assert found.totals["ended"] == pytest.approx(200 + 500, abs=4)
    assert found.totals["queued"] == pytest.approx(500, abs=4)


def test_the_queue_before_a_loss_is_as_long_as_it_was():
    slow = small(work(cpu_per_event=2e7))
    found = simulate(slow, HERE, SpeedChange(at_s=10.0, node="f1/n", loses=True))
    queue = next(row for row in found.runs[0].queues if row["name"] == "t")
    at = dict(zip(queue["time_s"], queue["queue"], strict=True))
    before = max(time_s for time_s in at if time_s < 9.0)
    assert at[before] == pytest.approx(50 * before, abs=5)


def test_an_operator_that_leaves_a_failed_node_loses_nothing_any_more():
    problem = small(work())
    changes = [
        SpeedChange(at_s=5.0, node="dc/n", loses=True),
        PlanChange(at_s=10.0, plan=place(problem, HERE)),
    ]
    found = simulate(problem, {"t": "dc/n", "z": "f1/n"}, *changes)
    assert row_of(found, "t")["node"] == "f1/n"
    assert found.totals["lost"] == pytest.approx(500, abs=30)
    assert found.totals["ended"] == pytest.approx(1500, abs=30)


def test_an_operator_that_moves_to_a_node_that_loses_loses_what_comes():
    problem = small(work())
    changes = [
        SpeedChange(at_s=5.0, node="dc/n", loses=True),
        PlanChange(at_s=10.0, plan=place(problem, {"t": "dc/n", "z": "f1/n"})),
    ]
    found = simulate(problem, HERE, *changes)
    assert found.totals["lost"] == pytest.approx(1000, abs=30)


def test_a_link_that_is_down_keeps_what_waits_until_it_is_up():
    changes = [SpeedChange(at_s=5.0, link=LINK), SpeedChange(at_s=10.0, link=LINK, speed=1.0)]
    found = simulate(small(work()), THERE, *changes)
    assert found.totals["lost"] == 0
    assert found.rows("applications")[0]["latency_max_s"] == pytest.approx(5.1, abs=0.05)
    assert found.totals["ended"] == pytest.approx(1990, abs=3)
    down = simulate(small(work()), THERE, changes[0])
    assert row_of(down, "WAN f1 → dc", "links")["queue_end"] == pytest.approx(1500, abs=2)


def test_a_link_that_loses_loses_what_comes():
    changes = [
        SpeedChange(at_s=5.0, link=LINK, loses=True),
        SpeedChange(at_s=10.0, link=LINK, speed=1.0),
    ]
    found = simulate(small(work()), THERE, *changes)
    assert found.totals["lost"] == pytest.approx(500, abs=2)
    assert row_of(found, "WAN f1 → dc", "links")["lost"] == found.totals["lost"]
    assert found.rows("applications")[0]["latency_max_s"] < 0.11


def test_both_ways_of_a_link_are_down():
    problem = small(work())
    found = simulate(problem, {"t": "dc/n", "z": "f1/n"}, SpeedChange(at_s=5.05, link=LINK))
    waiting = {row["name"]: row["queue_end"] for row in found.rows("links")}
    assert waiting["WAN dc → f1"] == pytest.approx(10, abs=2)
    assert waiting["WAN f1 → dc"] == pytest.approx(1495, abs=2)


def test_half_the_speed_takes_twice_as_long():
    times = [1.0, 2.0, 3.0, 11.0, 12.0, 13.0, 14.0]
    slower = SpeedChange(at_s=10.0, node="f1/n", speed=0.5)
    found = simulate(small(work()), HERE, slower, times=times)
    assert row_of(found, "t")["latency_s"] == pytest.approx((3 * 1e-3 + 4 * 2e-3) / 7)
    slower = SpeedChange(at_s=10.0, link=LINK, speed=0.5)
    found = simulate(small(work()), THERE, slower, times=times)
    row = row_of(found, "WAN f1 → dc", "links")
    assert row["latency_s"] == pytest.approx((3 * 1e-3 + 4 * 2e-3) / 7)
    faster = SpeedChange(at_s=0.0, node="f1/n", speed=4.0)
    found = simulate(small(work()), HERE, faster, times=times)
    assert row_of(found, "t")["latency_s"] == pytest.approx(0.25e-3)


def test_rates_change_in_the_middle():
    change = RateChange(at_s=10.0, rates={("s", "f1"): 300.0})
    found = simulate(small(work()), HERE, change)
    assert found.totals["born"] == pytest.approx(1000 + 3000, abs=2)
    first, second = found.runs[0].segments
    assert (first["begin_s"], first["end_s"], second["end_s"]) == (0.0, 10.0, 20.0)
    assert second["cause"] == "rates"
    assert second["events"] == pytest.approx(3 * first["events"], rel=0.01)
    silent = simulate(small(work()), HERE, RateChange(at_s=10.0, rates={("s", "f1"): 0.0}))
    assert silent.totals["born"] == pytest.approx(1000, abs=2)


def test_segments_have_usage_and_uplink_of_their_own():
    problem = small(work())
    change = PlanChange(at_s=10.0, plan=place(problem, HERE))
    first, second = simulate(problem, THERE, change).runs[0].segments
    assert first["uplink_bps"] == pytest.approx(100 * 125 * 8, rel=0.01)
    assert first["uplink_bps"] == pytest.approx(first["uplink_estimated_bps"], rel=0.01)
    assert second["uplink_bps"] == second["uplink_estimated_bps"] == 0.0


def test_a_move_takes_the_state_and_what_waits():
    """Five events at once; at 10.0025 s two are done, one is in service and two wait."""
    problem = small(work(state=1e4))
    times = [10.0] * 5 + [15.0]
    change = PlanChange(at_s=10.0025, plan=place(problem, {"t": "dc/n", "z": "f1/n"}))
    found = simulate(problem, HERE, change, times=times)
    (move,) = found.runs[0].moves
    assert (move["operator"], move["from"], move["to"]) == ("t", "f1/n", "dc/n")
    assert move["delayed_events"] == 2
    assert move["sent_bytes"] == 1e4 + 2 * 125
    downtime_s = 8 * move["sent_bytes"] / 1e6 + 0.1
    assert move["downtime_s"] == pytest.approx(downtime_s)
    # Three are done here; two there, one after the other, and back; the last one goes both ways.
    back_s = 1e-3 + 0.1
    two = [0.0025 + downtime_s + 1e-3 + back_s, 0.0025 + downtime_s + 2e-3 + back_s]
    one = 1e-3 + 0.1 + 1e-3 + back_s
    assert found.latency_s == pytest.approx((1e-3 + 2e-3 + 3e-3 + sum(two) + one) / 6)
    assert found.totals["ended"] == 6


def test_state_waits_for_a_link_that_is_busy():
    """A transfer of 8 s is under way as the move begins; the state comes after it."""
    problem = small(work(state=1e5), event_size=1e6)
    change = PlanChange(at_s=5.0, plan=place(problem, {"t": "dc/n", "z": "dc/n"}))
    found = simulate(problem, {"t": "f1/n", "z": "dc/n"}, change, times=[1.0 - 1e-3])
    (move,) = found.runs[0].moves
    assert move["downtime_s"] == pytest.approx((9.0 - 5.0) + 0.8 + 0.1)


def test_a_window_that_is_open_moves_along():
    problem = small(work(window=CountWindow(10), state=1000.0))
    change = PlanChange(at_s=10.0, plan=place(problem, {"t": "dc/n", "z": "f1/n"}))
    times = [1.0, 2.0, 3.0, *(12.0 + k / 10 for k in range(7))]
    found = simulate(problem, HERE, change, times=times)
    (move,) = found.runs[0].moves
    assert move["delayed_events"] == 3
    assert move["sent_bytes"] == 1000 + 3 * 125
    assert found.totals["ended"] == 10


def test_events_of_an_open_slide_move_along():
    problem = small(work(window=TimeWindow(8.0), state=1000.0))
    change = PlanChange(at_s=4.0, plan=place(problem, {"t": "dc/n", "z": "f1/n"}))
    found = simulate(problem, HERE, change, times=[1.0, 2.0, 3.0])
    (move,) = found.runs[0].moves
    assert move["sent_bytes"] == 1000 + 3 * 125
    assert move["delayed_events"] == 3


def test_events_of_an_open_slide_move_along_where_windows_are_work():
    problem = small(work(window=TimeWindow(8.0), state=1000.0))
    change = PlanChange(at_s=4.0, plan=place(problem, {"t": "dc/n", "z": "f1/n"}))
    how = Physics(service=Deterministic(), windows="work", arrivals=Trace(time_s=[1.0, 2.0, 3.0]))
    found = simulate(problem, HERE, change, physics=how)
    (move,) = found.runs[0].moves
    assert move["sent_bytes"] == 1000 + 3 * 125
    assert move["delayed_events"] == 3
    assert found.totals["ended"] == 3


def test_a_new_replica_waits_for_its_state():
    problem = small(work(state=1e5, replicable=True), fogs=2)
    before = place(problem, {"t": "dc/n", "z": "dc/n"})
    after = place(problem, {"t": "dc/n", "t@f1": "f1/n", "z": "dc/n"})
    found = simulate(problem, {"t": "dc/n", "z": "dc/n"}, PlanChange(at_s=10.0, plan=after))
    assert before != after
    moves = [move for move in found.runs[0].moves if move["operator"] == "t@f1"]
    assert [(move["from"], move["to"], move["sent_bytes"]) for move in moves] == [
        ("dc/n", "f1/n", 1e5)
    ]
    assert moves[0]["downtime_s"] == pytest.approx(0.8 + 0.1)


def test_what_waits_for_an_instance_that_ends_goes_to_the_one_that_takes_over():
    problem = small(work(cpu_per_event=1e9, replicable=True), rate=0.0)
    after = PlanChange(at_s=10.5, plan=place(problem, {"t": "dc/n", "z": "dc/n"}))
    hosts = {"t@f1": "f1/n", "z": "dc/n"}
    found = simulate(problem, hosts, after, times=[10.0, 10.1, 10.2])
    (move,) = found.runs[0].moves
    assert (move["operator"], move["delayed_events"], move["sent_bytes"]) == ("t@f1", 2, 250.0)
    assert found.totals["ended"] == 3
    assert row_of(found, "t")["events"] == 2


def test_what_was_on_a_node_that_is_down_comes_from_the_cloud():
    problem = small(work(state=1e5), fogs=2)
    changes = [
        SpeedChange(at_s=5.0, node="f1/n"),
        PlanChange(at_s=6.0, plan=place(problem, {"t": "f2/n", "z": "f2/n"})),
    ]
    found = simulate(problem, {"t": "f1/n", "z": "f2/n"}, *changes)
    move = next(move for move in found.runs[0].moves if move["operator"] == "t")
    # From dc to f2, one link, not from f1 over two.
    assert move["downtime_s"] == pytest.approx(8 * move["sent_bytes"] / 1e6 + 0.1, rel=0.02)


def slowed(begin, end):
    lan = {**CPU, "lan_bandwidth_bps": 1e6}
    problem = small(work(state=1e5), fog=lan, cloud=lan, link={"bandwidth_bps": 1e9})
    changes = [
        SpeedChange(at_s=1.0, node="f1/n", speed=0.5),
        PlanChange(at_s=5.0, plan=place(problem, {"t": f"{end}/n", "z": "f1/n"})),
    ]
    found = simulate(problem, {"t": f"{begin}/n", "z": "f1/n"}, *changes, times=[])
    return found.runs[0].moves[0]["downtime_s"]


def test_state_comes_slowly_to_a_node_that_is_slow():
    assert slowed("dc", "f1") == pytest.approx(0.8 + 0.0008 + 0.1 + 1.6)


def test_state_leaves_slowly_from_a_node_that_is_slow():
    assert slowed("f1", "dc") == pytest.approx(1.6 + 0.0008 + 0.1 + 0.8)


def two_in_the_cloud():
    """A fog and a cloud of two nodes with LAN links; "t" and "z" in the cloud."""
    operators = [
        Operator(name="s", kind="source", rate=100.0, event_size=125.0, pin=Pin(tier="fog")),
        work(),
        Operator(name="z", kind="sink"),
    ]
    streams = [Stream(source="s", target="t"), Stream(source="t", target="z")]
    app = Application(name="app", operators=operators, streams=streams)

    def node(name):
        return Node(name=name, cpu_ips=1e9, memory_bytes=1e12, lan_bandwidth_bps=1e9)

    sites = [
        Site(name="f1", tier="fog", nodes=(node("n"),)),
        Site(name="dc", tier="cloud", nodes=(node("n"), node("m"))),
    ]
    net = build_network("net", sites, [Link(a="f1", b="dc", latency_s=0.1, bandwidth_bps=1e6)])
    return Problem(application=app, network=net)


def test_no_plan_brings_events_over_a_link_that_is_down():
    problem = two_in_the_cloud()
    changes = [
        SpeedChange(at_s=5.0, link=LINK),
        PlanChange(at_s=10.0, plan=place(problem, {"t": "dc/m", "z": "dc/n"})),
    ]
    found = simulate(problem, THERE, *changes)
    # What left before 5 s is there by 5.2 s; nothing more comes.
    assert found.totals["ended"] == pytest.approx(500, abs=5)
    assert found.rows("applications")[0]["latency_max_s"] < 0.2


def test_an_operator_resumes_when_the_link_that_its_state_waits_for_is_up_again():
    problem = small(work(state=1e4))
    changes = [
        SpeedChange(at_s=5.0, link=LINK),
        PlanChange(at_s=6.0, plan=place(problem, HERE)),
        SpeedChange(at_s=10.0, link=LINK, speed=1.0),
    ]
    found = simulate(problem, {"t": "dc/n", "z": "f1/n"}, *changes)
    assert found.totals["ended"] > 1500


def test_each_node_is_told_what_it_did_while_the_operator_was_there():
    problem = small(work())
    change = PlanChange(at_s=10.0, plan=place(problem, {"t": "dc/n", "z": "f1/n"}))
    found = simulate(problem, HERE, change)
    busy = {row["name"]: row["utilisation"] for row in found.rows("nodes")}
    assert busy["f1/n"] == pytest.approx(0.05, rel=0.1)
    assert busy["dc/n"] == pytest.approx(0.05, rel=0.1)


def test_a_plan_that_leads_nowhere_is_told_as_a_downtime_without_end():
    operators = [
        Operator(name="s", kind="source", rate=10.0, event_size=1.0, pin=Pin(site="f1")),
        work(state=10.0),
        Operator(name="z", kind="sink"),
    ]
    streams = [Stream(source="s", target="t"), Stream(source="t", target="z")]
    app = Application(name="app", operators=operators, streams=streams)
    node = Node(name="n", cpu_ips=1e9, memory_bytes=1e12)
    sites = [Site(name=name, tier="fog", nodes=(node,)) for name in ("f1", "f2", "f3")]
    net = build_network("net", sites, [Link(a="f1", b="f2", latency_s=0.1, bandwidth_bps=1e6)])

    def on(host):
        return Placement.of(
            [
                Instance(operator="s", node="f1/n", origin="f1"),
                Instance(operator="t", node=host),
                Instance(operator="z", node=host),
            ]
        )

    found = tw.simulate(
        app, net, on("f2/n"), seconds=10, changes=[PlanChange(at_s=5.0, plan=on("f3/n"))]
    )
    assert found.conserved
    assert {move["downtime_s"] for move in found.runs[0].moves if move["operator"] == "t"} == {
        math.inf
    }
    assert "no way f1 → f3" in {row["name"] for row in found.unstable}


def test_changes_at_one_moment_are_one_change_in_their_order():
    problem = small(work())
    changes = [
        PlanChange(at_s=10.0, plan=place(problem, THERE)),
        RateChange(at_s=10.0, rates={("s", "f1"): 10.0}),
        SpeedChange(at_s=5.0, node="f1/n", speed=0.5),
        SpeedChange(at_s=10.0, node="f1/n", speed=1.0),
    ]
    found = simulate(problem, HERE, *changes)
    assert [segment["cause"] for segment in found.runs[0].segments] == [
        "start",
        "f1/n at 0.5 of its speed",
        "plan; rates; f1/n at 1 of its speed",
    ]
    assert found.totals["born"] == pytest.approx(1000 + 100, abs=3)


def test_a_change_at_the_first_moment_is_how_it_begins():
    problem = small(work())
    found = simulate(problem, HERE, PlanChange(at_s=0.0, plan=place(problem, THERE)))
    assert found.measured("uplink_bps") == pytest.approx(100 * 125 * 8, rel=0.02)


# A strategy in the loop.


def surge(**figures):
    """10 ms of work for each event, half of its bytes after; 50 ms of response time at most."""
    return small(
        work(cpu_per_event=1e7, compression=0.5, replicable=True),
        **{
            "rate": 20.0,
            "fog": {"cpu_ips": 1e9},
            "cloud": {"cpu_ips": 1e11},
            "link": {"bandwidth_bps": 1e8, "latency_s": 0.001},
            "limits": Limits(response_time_s=0.05),
            **figures,
        },
    )


def watched(*changes, interval_s=2.0, **options):
    problem = surge()
    plan = tw.plan(problem.application, problem.network, "atsoo-both-ways")
    return tw.simulate(
        problem.application,
        problem.network,
        plan,
        seconds=SECONDS,
        changes=changes,
        control=Control(interval_s=interval_s, trigger=Trigger(rest_s=0.0)),
        **options,
    )


def test_a_strategy_sees_what_was_born_in_the_last_interval_and_nothing_later():
    times = [0.5, 1.0, 1.5, 2.0, 2.1, 5.9999, 6.0, 6.0, 17.0, 19.9]
    found = watched(physics=Physics(arrivals=Trace(time_s=times)))
    seen = [(row["at_s"], row["rate_seen"]) for row in found.runs[0].decisions]
    assert [at_s for at_s, _ in seen] == [2.0 * k for k in range(1, 10)]
    for at_s, rate in seen:
        born = sum(at_s - 2.0 <= time_s < at_s for time_s in times)
        assert rate == born / 2.0


def test_a_strategy_answers_a_surge_at_its_next_look():
    change = RateChange(at_s=9.0, rates={("s", "f1"): 95.0})
    found = watched(change, physics=None)
    decisions = found.runs[0].decisions
    adapted = [row["at_s"] for row in decisions if row["changed"]]
    assert adapted, decisions
    assert 9.0 < adapted[0] <= 12.0
    assert all(not row["changed"] for row in decisions if row["at_s"] <= 9.0)
    causes = [segment["cause"] for segment in found.runs[0].segments]
    assert causes[:3] == ["start", "rates", "plan"]
    assert found.conserved
    calm = watched()
    assert not any(row["changed"] for row in calm.runs[0].decisions)


def test_what_will_come_does_not_change_what_is_decided_before():
    late = RateChange(at_s=15.0, rates={("s", "f1"): 95.0})
    found, plain = watched(late), watched()
    for a, b in zip(found.runs[0].decisions[:7], plain.runs[0].decisions[:7], strict=True):
        assert a == b


@pytest.mark.parametrize("interval_s", [0.0, -1.0, math.nan, math.inf])
def test_an_interval_that_is_no_duration_is_refused(interval_s):
    with pytest.raises(InvalidInput, match="interval_s"):
        Control(interval_s=interval_s)


def test_a_window_is_not_handed_on_while_its_node_is_down():
    problem = small(work(window=TimeWindow(1.0)))
    changes = [SpeedChange(at_s=5.5, node="dc/n"), SpeedChange(at_s=15.5, node="dc/n", speed=1.0)]
    found = simulate(problem, {"t": "dc/n", "z": "f1/n"}, *changes, times=[5.05, 5.2, 5.3])
    (row,) = found.rows("applications")
    assert row["events"] == 3
    # The slide ended at 6 s; they leave when the node is up again.
    assert row["latency_max_s"] > 10.4
    assert row["latency_p50_s"] > 10.0


def test_a_window_is_not_handed_on_while_the_state_is_on_its_way():
    problem = small(work(window=TimeWindow(1.0), state=1e6))  # 8 s at 1 Mbps.
    change = PlanChange(at_s=5.5, plan=place(problem, THERE))
    found = simulate(problem, {"t": "f1/n", "z": "dc/n"}, change, times=[5.05, 5.2, 5.4])
    (move,) = [move for move in found.runs[0].moves if move["operator"] == "t"]
    assert move["downtime_s"] > 8.0
    (row,) = found.rows("applications")
    assert row["events"] == 3
    assert row["latency_p50_s"] > 8.0


@pytest.mark.parametrize("later_s", [0.0, 1e-6])
def test_what_fails_has_failed_before_anybody_acts_on_it(later_s):
    problem = small(work(cpu_per_event=5e7))
    changes = [
        SpeedChange(at_s=5.0, node="f1/n", loses=True),
        PlanChange(at_s=5.0 + later_s, plan=place(problem, THERE)),
    ]
    found = simulate(problem, {"t": "f1/n", "z": "dc/n"}, *changes)
    assert found.totals["lost"] == 1900  # 400 that wait, and all that are born there from then on.


def test_what_is_on_its_way_to_a_link_that_is_down_is_kept_when_the_link_is_left():
    problem = small(work(), fogs=2)
    changes = [
        SpeedChange(at_s=4.0, link=("f2", "dc")),
        PlanChange(at_s=5.0, plan=place(problem, {"t": "dc/n", "z": "f2/n"})),
        PlanChange(at_s=5.02, plan=place(problem, {"t": "dc/n", "z": "dc/n"})),
    ]
    # `simulate` asserts that every event is accounted for.
    found = simulate(problem, {"t": "f1/n", "z": "f2/n"}, *changes, rates={("s", "f2"): 0.0})
    assert found.totals["queued"] == 0


def test_an_instance_that_comes_back_does_not_wait_for_what_was_never_sent():
    problem = small(work(cpu_per_event=5e7))
    replica = Placement.of(
        [
            Instance(operator="s", node="f1/n", origin="f1"),
            Instance(operator="t", node="f1/n", origin="f1"),
            Instance(operator="z", node="dc/n"),
        ]
    )
    there = place(problem, {"t": "dc/n", "z": "dc/n"})
    changes = [
        SpeedChange(at_s=4.0, link=LINK),
        PlanChange(at_s=5.0, plan=there),
        PlanChange(at_s=6.0, plan=replica),
        SpeedChange(at_s=7.0, link=LINK, speed=1.0),
        PlanChange(at_s=8.0, plan=there),
    ]
    found = simulate(problem, {"t": "f1/n", "z": "dc/n"}, *changes)
    # 20 a second are served, from 8 s on as well.
    assert found.totals["ended"] > 20 * 11


def test_the_queue_of_an_instance_that_handed_over_is_empty():
    problem = small(work(cpu_per_event=5e7))
    replica = Placement.of(
        [
            Instance(operator="s", node="f1/n", origin="f1"),
            Instance(operator="t", node="dc/n", origin="f1"),
            Instance(operator="z", node="dc/n"),
        ]
    )
    found = simulate(problem, HERE, PlanChange(at_s=5.0, plan=replica))
    (queue,) = [row["queue"] for row in found.runs[0].queues if row["name"] == "t"]
    assert max(queue) > 300
    assert queue[-1] == 0
