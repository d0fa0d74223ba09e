"""The states of sites: what may follow what, and what people are told is under way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.spark.deployment.site_states import Activity, InvalidTransition, RunStates

SITES = ("fog-0", "fog-1")
EVENTS = ("lose", "regain", "begin", "succeed", "fail", "change", "changed", "end")


def restart_of(site: str, at_s: float = 0.0) -> Activity:
    what = f"{site} is started again"
    return Activity(kind="restart", event=f"r-{site}", what=what, began_at_s=at_s, site=site)


def change_at(at_s: float) -> Activity:
    return Activity(kind="change", event="c", what="to fog-0: parse", began_at_s=at_s)


def take(states: RunStates, event: str, site: str, at_s: float) -> RunStates:
    acts = {
        "lose": lambda: states.lose(site, at_s, "signal 9"),
        "regain": lambda: states.regain(site, at_s),
        "begin": lambda: states.begin_restart(restart_of(site, at_s)),
        "succeed": lambda: states.end_restart(site, at_s),
        "fail": lambda: states.end_restart(site, at_s, why="no"),
        "change": lambda: states.begin_change(change_at(at_s)),
        "changed": states.end_change,
        "end": lambda: states.end(at_s),
    }
    return acts[event]()


class SlowStates:
    """The same told by what has happened, looked through from the start each time."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def is_restarting(self, site: str) -> bool:
        last = [e for e, s in self.events if s == site and e in ("begin", "succeed", "fail")]
        return bool(last) and last[-1] == "begin"

    def is_down(self, site: str) -> bool:
        own = ("lose", "regain", "begin", "succeed", "fail")
        last = [e for e, s in self.events if s == site and e in own]
        return bool(last) and last[-1] in ("lose", "fail")

    def is_changing(self) -> bool:
        last = [e for e, _ in self.events if e in ("change", "changed")]
        return bool(last) and last[-1] == "change"

    def allows(self, event: str, site: str) -> bool:
        if any(e == "end" for e, _ in self.events):
            return event == "end"
        if event == "regain":
            return self.is_down(site)
        if event == "begin":
            return not self.is_restarting(site)
        if event in ("succeed", "fail"):
            return self.is_restarting(site)
        if event in ("change", "changed"):
            return self.is_changing() == (event == "changed")
        return True

    def state_of(self, site: str) -> str:
        if self.is_restarting(site):
            return "restarting"
        return "down" if self.is_down(site) else "up"


@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.sampled_from(SITES)), max_size=30))
def test_states_follow_what_happens_and_nothing_else_can(events: list[tuple[str, str]]) -> None:
    states, slow = RunStates(), SlowStates()
    for site in SITES:
        states = states.see(site, 0.0)
    for at_s, (event, site) in enumerate(events, start=1):
        if event == "lose" and slow.is_restarting(site):
            # Whoever sees to restarts learns that from their end.
            continue
        if not slow.allows(event, site):
            with pytest.raises(InvalidTransition, match="no such transition"):
                take(states, event, site, float(at_s))
            continue
        before, states = states, take(states, event, site, float(at_s))
        slow.events.append((event, site))
        if event == "end":
            assert {life.state for life in states.sites.values()} == {"ended"}
            assert states.is_idle
            break
        for name in SITES:
            life, earlier = states.life_of(name), before.life_of(name)
            assert life.state == slow.state_of(name)
            if life.state == earlier.state:
                assert life.since_s == earlier.since_s
            else:
                assert life.since_s == float(at_s)
        assert set(states.restarts) == {s for s in SITES if slow.is_restarting(s)}
        assert (states.change is not None) == slow.is_changing()
        assert states.is_idle == (not states.restarts and not slow.is_changing())


def test_what_cannot_happen_is_told_with_what_came_before() -> None:
    states = RunStates().lose("fog-0", 1.0, "signal 9").begin_restart(restart_of("fog-0"))
    with pytest.raises(InvalidTransition) as told:
        states.begin_restart(restart_of("fog-0"))
    assert str(told.value) == (
        "there is no such transition: begin fog-0 is started again. "
        "Before it: fog-0: up → down; fog-0: down → restarting"
    )


def test_a_change_is_told_before_restarts_and_these_by_their_begin() -> None:
    states = RunStates().begin_restart(restart_of("fog-1", 3.0))
    states = states.begin_restart(restart_of("fog-0", 2.0))
    assert states.under_way is not None
    assert states.under_way.to_dict() == {
        "kind": "restart",
        "site": "fog-0",
        "what": "fog-0 is started again",
        "began_at_s": 2.0,
    }
    changing = states.begin_change(change_at(5.0))
    assert changing.under_way == changing.change
    assert changing.end_change().under_way == states.under_way


def test_a_site_that_is_known_or_ended_is_not_learnt_of_again() -> None:
    states = RunStates().see("fog-0", 1.0)
    assert states.see("fog-0", 2.0) is states
    assert states.end(3.0).see("fog-1", 4.0).sites.keys() == {"fog-0"}
    assert states.end(3.0).end(5.0).life_of("fog-0").since_s == 3.0


def test_a_site_remembers_when_it_stopped_being_up() -> None:
    states = RunStates().see("fog-0", 1.0)
    assert states.life_of("fog-0").lost_s is None
    states = states.lose("fog-0", 2.0, "signal 9").begin_restart(restart_of("fog-0", 3.0))
    states = states.end_restart("fog-0", 4.0, why="no Spark")
    states = states.begin_restart(restart_of("fog-0", 5.0)).end_restart("fog-0", 6.0)
    assert (states.life_of("fog-0").state, states.life_of("fog-0").lost_s) == ("up", 2.0)
    assert states.begin_restart(restart_of("fog-0", 7.0)).life_of("fog-0").lost_s == 7.0
