"""A run whose checkpoints are damaged, on Spark: mended where that is safe, else refused."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from spark.numbered_rides import listed, send_numbers
from spark.taxi_run import wait_for
from thalweg.scenarios import fog_cloud
from thalweg.spark.deployment import Deployment, examine, rebuild
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.restarts import DeploymentFailed
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.query.checkpoint import last_number

pytest.importorskip("pyspark")

PIPELINE = "spark.site_pipelines:rides"
PATIENCE_S = 120.0


def lose_state(folder: Path, tmp_path: Path) -> None:
    """A state that Spark has written is missed, as a whole and in part, wherever one was."""
    assert examine(folder).is_well
    stores = sorted(folder.glob("checkpoints/*@*/state/*/*/1.changelog"))
    assert any(store.is_relative_to(folder / "checkpoints" / "cloud@0") for store in stores)
    for place, store in enumerate(stores):
        for above in (0, 1, 2):
            lost = store.parents[above].relative_to(folder)
            copy = Path(shutil.copytree(folder, tmp_path / f"copy-{place}-{above}"))
            shutil.rmtree(copy / lost)
            found = [f for f in examine(copy).findings if f.level == "problem"]
            assert [finding.where for finding in found] == [str(lost)]
            assert "the state before batch" in found[0].what
            assert "--rebuild" in found[0].remedy


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.parametrize("ships", [False, True])
def test_a_torn_commit_is_mended_lost_offsets_are_refused_and_a_rebuild_gives_all_rows(
    tmp_path: Path, ships: bool
) -> None:
    folder, network = tmp_path / "run", fog_cloud(1, seed=1)
    link = {"link": f"directory://{folder}/log"} if ships else {}

    def deployment() -> Deployment:
        return Deployment(PIPELINE, network, folder=folder, adapt=None, **link)

    root = folder / "logs" / "fog-0" if ships else folder / "log"
    gateway = Gateway(root, "rides", "fog-0", time="at", durable=False, founds=True)
    send_numbers(gateway, 0, 50)
    with deployment() as run:
        cuts = run.cuts
        if ships:
            cuts = {"fog-0": ("clean",)}
            run.move(cuts)
        wait_for(lambda: len(listed(folder)) == 50)
    lose_state(folder, tmp_path)
    checkpoint = folder / "checkpoints" / "cloud@0"
    last = checkpoint / "commits" / str(last_number(checkpoint / "commits"))
    last.write_bytes(b"")
    (finding,) = [f for f in examine(folder).findings if f.level == "warning"]
    assert finding.where == f"checkpoints/cloud@0/commits/{last.name}"

    # Harmless: it mends itself, says so, and nothing comes twice.
    send_numbers(gateway, 50, 50)
    with deployment() as run:
        wait_for(lambda: len(listed(folder)) >= 100)
    assert listed(folder) == list(range(100))
    told = [d["reason"] for d in RunFolder(folder).read_decisions() if d["cause"] == "repair"]
    assert len(told) == 1
    assert f"commits/{last.name} is empty: set aside in set-aside/1" in told[0]
    assert examine(folder, deep=True).is_well

    # Beyond repair: refused at once, with the reason and the command.
    offsets = checkpoint / "offsets" / str(last_number(checkpoint / "commits"))
    offsets.write_bytes(offsets.read_bytes()[:20])
    send_numbers(gateway, 100, 50)
    begin_s = time.monotonic()
    with pytest.raises(DeploymentFailed, match=r"offsets/\d+: is torn.*thalweg doctor"):
        deployment().start()
    assert time.monotonic() - begin_s < 10.0
    health = examine(folder)
    assert not health.is_well
    assert any("--rebuild" in finding.remedy for finding in health.findings)
    assert listed(folder) == list(range(100))

    told = rebuild(folder)
    assert listed(folder) == []
    assert examine(folder, deep=True).is_well
    with deployment() as run:
        assert run.cuts == cuts
        wait_for(lambda: len(listed(folder)) >= 150)
    assert listed(folder) == list(range(150))
    assert (folder / "set-aside" / "2" / "log" / "sinks").is_dir()
    assert "checkpoints: set aside in set-aside/2" in told
    assert examine(folder, deep=True).is_well
