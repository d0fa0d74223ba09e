"""What a query leaves that is killed before its first batch, and what is not touched for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from thalweg.spark.query.queries import _discard_what_never_began

DRAFT = ".0.7d9f.tmp"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    found = tmp_path / "fog-0@1"
    for name in ("offsets", "commits", "state"):
        (found / name).mkdir(parents=True)
    (found / "metadata").write_text("{}")
    (found / "offsets" / DRAFT).write_text("v1")
    found.with_name("fog-0@1.intake").mkdir()
    return found


def test_the_draft_of_a_first_batch_is_removed_and_rows_that_were_laid_down_stay(
    checkpoint: Path,
) -> None:
    """Spark: STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY."""
    _discard_what_never_began(checkpoint)
    assert not checkpoint.exists()
    assert checkpoint.with_name("fog-0@1.intake").is_dir()
    _discard_what_never_began(checkpoint)


@pytest.mark.parametrize("of_a_batch", ["fog-0@1/offsets/0", "fog-0@1/commits/0", "taken"])
def test_a_query_that_has_begun_a_batch_keeps_all_it_has(checkpoint: Path, of_a_batch: str) -> None:
    place = checkpoint.parent / of_a_batch
    if of_a_batch == "taken":
        place = checkpoint.with_name("fog-0@1.taken") / "0"
    place.parent.mkdir(exist_ok=True)
    place.write_text("{}")
    _discard_what_never_began(checkpoint)
    assert (checkpoint / "offsets" / DRAFT).exists()
