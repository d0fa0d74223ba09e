"""Ways to deliver messages, friendly and not."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from thalweg.migration.coordination import first_sent, in_random_order, last_sent

KINDS = (
    "Trigger",
    "PlanPublished",
    "PlanUpdated",
    "PlanAccepted",
    "PlanSettled",
    "ReservationRequest",
    "ReservationReply",
    "Reserve",
    "Reserved",
    "Refused",
    "Release",
)


def following(choices):
    """The choices one after the other, from the start again when they are used up."""
    picks = itertools.cycle(choices)
    return lambda pending: next(picks) % len(pending)


def by_kind(kinds):
    """Some kinds always before others: a network that starves whom it likes."""
    rank = {kind: k for k, kind in enumerate(kinds)}
    return lambda pending: min(range(len(pending)), key=lambda k: rank[pending[k].kind])


def by_receiver(receivers):
    """Whatever goes to some is delivered before what goes to others, newest first."""
    rank = {receiver: k for k, receiver in enumerate(receivers)}
    return lambda pending: min(
        range(len(pending)), key=lambda k: (rank.get(pending[k].receiver, -1), -k)
    )


orders = st.one_of(
    st.sampled_from([first_sent, last_sent]),
    st.lists(st.integers(0, 50), min_size=1, max_size=40).map(following),
    st.integers(0, 2**32 - 1).map(lambda seed: in_random_order(np.random.default_rng(seed))),
    st.permutations(KINDS).map(by_kind),
    st.permutations([f"o{k}" for k in range(5)]).map(by_receiver),
)
