import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.spark.deployment.hand_over import DeploymentState, Drain, Fence, StartEpoch, learn
from thalweg.spark.deployment.journal import Journal, JournalBroken, JournalHeld

START = StartEpoch(site="fog-0", epoch=0, cut=("a", "b"), start=None)
DRAIN = Drain(site="fog-0", epoch=0, cut=())
FENCE = Fence(site="fog-0", epoch=0, last_batch=4)
AGAIN = StartEpoch(site="fog-0", epoch=1, cut=(), start={"rides": {"fog-0": 17}})


def write_all(journal):
    journal.write(START)
    journal.write(DRAIN, offsets={"rides": {"fog-0": 17}}, last_batch=4)
    journal.write(FENCE)
    journal.write(AGAIN)


def test_what_was_written_is_read_back(tmp_path):
    with Journal(tmp_path / "run" / "journal.jsonl") as journal:
        write_all(journal)
        assert [step for step, _ in journal.read()] == [START, DRAIN, FENCE, AGAIN]
    again = Journal(tmp_path / "run" / "journal.jsonl").state(("fog-0", "fog-1"))
    site = again.sites["fog-0"]
    assert (site.epoch, site.phase, site.cut) == (1, "running", ())
    assert again.sites["fog-1"].phase == "idle"


@settings(max_examples=60, deadline=None)
@given(lost=st.integers(1, 700))
def test_a_journal_cut_off_anywhere_has_the_steps_before(tmp_path_factory, lost):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    with Journal(path) as journal:
        write_all(journal)
    whole = path.read_bytes()
    kept = whole[: max(len(whole) - lost, 0)]
    path.write_bytes(kept)
    expected = [START, DRAIN, FENCE, AGAIN][: kept.count(b"\n")]
    with Journal(path) as journal:
        assert [step for step, _ in journal.read()] == expected
        journal.write(START)
        assert [step for step, _ in journal.read()] == [*expected, START]


def test_a_broken_line_is_refused_with_its_number(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        write_all(journal)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + "{}\n" + lines[2])
    with pytest.raises(JournalBroken, match=r"journal\.jsonl:2"):
        list(Journal(path).read())


def test_only_one_coordinator_at_a_time(tmp_path):
    path = tmp_path / "journal.jsonl"
    code = (
        "import sys; from thalweg.spark.deployment.journal import Journal\n"
        "with Journal(sys.argv[1]): print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(JournalHeld, match="another coordinator"), Journal(path):
            pass
    finally:
        other.kill()
        other.communicate()
    with Journal(path) as journal:
        journal.write(START)


def test_steps_of_sites_that_are_gone_are_left_out(tmp_path):
    with Journal(tmp_path / "journal.jsonl") as journal:
        write_all(journal)
        assert journal.state(("fog-7",)) == DeploymentState.of(("fog-7",))
        assert journal.state(("fog-0",)) == learn(
            learn(learn(learn(DeploymentState.of(("fog-0",)), START), DRAIN, last_batch=4), FENCE),
            AGAIN,
        )
