"""Runs side by side on Spark: exactly those that one after the other gives."""

from __future__ import annotations

import pytest

from generators.small import chain_problem, place
from thalweg.experiments.simulations import RunFailed, run_on_spark
from thalweg.model import Operator
from thalweg.simulate import Control, PlanChange, SpeedChange, prepare
from thalweg.simulate.run import run_all
from thalweg.spark.sweep import IN_PROCESS

CPU = {"cpu_ips": 1e9}


def experiment(factor=1.0, **options):
    problem = chain_problem(
        Operator(name="t", cpu_per_event=5e6, state=1e4),
        rate=100.0,
        event_size=125.0,
        fogs=1,
        fog=CPU,
        cloud=CPU,
    )
    changes = [
        PlanChange(at_s=2.0, plan=place(problem, {"t": "dc/n", "z": "dc/n"})),
        SpeedChange(at_s=3.0, node="f1/n"),
        SpeedChange(at_s=3.5, node="f1/n", speed=1.0),
    ]
    return prepare(
        problem.application,
        problem.network,
        place(problem, {"t": "f1/n", "z": "dc/n"}),
        **{
            "seconds": 5.0,
            "replications": 3,
            "rates": {("s", "f1"): 100.0 * factor},
            "changes": changes,
            "control": Control(interval_s=1.0),
            **options,
        },
    )


def told(found):
    plain = found.to_dict()
    del plain["wall_s"]
    return plain


def compare(found, experiments):
    assert len(found) == len(experiments)
    for one, each in zip(found, experiments, strict=True):
        plain = run_all(each)
        assert told(one) == told(plain)
        for a, b in zip(one.runs, plain.runs, strict=True):
            assert a.totals == b.totals
            assert a.queues == b.queues
            assert a.histogram == b.histogram


def test_runs_without_spark_are_those_one_after_the_other():
    experiments = [experiment(), experiment(2.5, seed=9, replications=2)]
    heard = []
    found = run_on_spark(
        experiments, master=IN_PROCESS, on_progress=lambda done, total: heard.append((done, total))
    )
    compare(found, experiments)
    assert heard[-1] == (5, 5)
    assert found[1].seed == 9
    assert found[0].runs[0].totals != found[0].runs[1].totals


def test_a_run_that_raises_is_told(monkeypatch):
    from thalweg.simulate import run

    def refuse(*arguments):
        raise RuntimeError("no more figures")

    monkeypatch.setattr(run, "tell", refuse)
    with pytest.raises(RunFailed, match="no more figures"):
        run_on_spark([experiment()], master=IN_PROCESS)


@pytest.mark.jvm
def test_runs_on_spark_are_those_one_after_the_other():
    pytest.importorskip("pyspark")
    experiments = [experiment(replications=2), experiment(3.0, replications=1)]
    compare(run_on_spark(experiments, master="local[2]"), experiments)
