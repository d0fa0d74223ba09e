import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.problems import random_fog_problem
from thalweg.model.deployment import deploy
from thalweg.scheduling.rewrite import count_changes, rewrite
from thalweg.scheduling.schedule import Table
from thalweg.scheduling.shared_changes import count_shared_changes, least_shared_changes
from thalweg.scheduling.terms import replicas_changed


def random_choices(seed, fogs, transforms):
    problem = random_fog_problem(seed, fogs=fogs, transforms=transforms)
    table = Table.of(problem)
    rng = np.random.default_rng(seed)
    size = (2, table.traffic.site.size)
    return table, *rng.integers(len(table.cuts), size=size)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 6))
def test_unions_stand_where_an_instance_gets_a_stream_from_several(seed, fogs, transforms):
    table, choice, _ = random_choices(seed, fogs, transforms)
    problem, placement = table.problem, table.place(choice)
    graph = rewrite(problem.application, placement)
    deployment = deploy(problem, placement)
    expected, flows = set(), set()
    for stream, ends in enumerate(problem.application.streams):
        edges = np.flatnonzero(deployment.stream == stream)
        for target in set(deployment.graph.target[edges].tolist()):
            name = deployment.instance_name(target)
            here = edges[deployment.graph.target[edges] == target]
            senders = {deployment.instance_name(int(deployment.graph.source[e])) for e in here}
            receiver = name
            if len(senders) > 1:
                receiver = f"union({ends.source} → {name})"
                expected.add(receiver)
                flows.add((receiver, name))
            flows |= {(sender, receiver) for sender in senders}
    assert {union.name for union in graph.unions} == expected
    assert set(graph.streams) == flows
    others = {part.name for part in graph.parts if part.kind != "union"}
    assert others == {deployment.instance_name(k) for k in range(deployment.size)}


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 6))
def test_changes_add_up_from_replicas_and_what_streams_share(seed, fogs, transforms):
    table, before, after = random_choices(seed, fogs, transforms)
    changes = count_changes(table.problem.application, table.place(before), table.place(after))
    replicas = replicas_changed(table, before)[after, np.arange(after.size)].sum()
    assert changes.total == replicas + count_shared_changes(table, before, after)
    everything = np.ones((len(table.cuts), after.size), dtype=bool)
    only = np.zeros_like(everything)
    only[after, np.arange(after.size)] = True
    assert least_shared_changes(table, before, everything) == 0 or not everything.any()
    assert least_shared_changes(table, before, only) <= count_shared_changes(table, before, after)


def test_from_nothing_everything_but_the_sources_is_started():
    table, choice, _ = random_choices(3, 3, 5)
    placement = table.place(choice)
    app = table.problem.application
    changes = count_changes(app, None, placement)
    sources = sum(part.kind == "source" for part in rewrite(app, placement).parts)
    assert (changes.started, changes.stopped) == (len(rewrite(app, placement).parts) - sources, 0)
    assert count_changes(app, placement, placement).total == 0


def test_the_graph_prints_as_a_table():
    table, choice, _ = random_choices(3, 2, 3)
    text = str(rewrite(table.problem.application, table.place(choice)))
    assert text.splitlines()[0].split() == ["part", "kind", "node", "gets", "from"]
