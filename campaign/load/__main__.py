"""`python -m campaign.load`: load the demo deployment until it gives way, and tell how it did."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from benchmarks.machine import describe_machine, find_commit, find_versions
from benchmarks.runner import ROOT, to_json, to_table
from campaign.load.analysis import find_left_over
from campaign.load.census import take_belongings
from campaign.load.phases import QUICK, Schedule, find_run_maximum, overload, soak
from campaign.load.report import NOTES, Findings, detail_findings, judged_samples, tell_findings
from campaign.load.rig import Rig, Sample
from thalweg.errors import ThalwegError
from thalweg.spark.deployment.one_place import await_last_row, compare_with_one_place

OUT = ROOT / "results" / "campaign" / "load.json"
QUESTION = "How much does the demo deployment bear, and does anything grow or leak while it does?"
_SOAK_S = 1800.0
_LEAST_S, _MOST_S = 30.0, 86_400.0
_MOST_PER_S = 1e6


def main(arguments: Sequence[str]) -> int:
    """Run it; 0 where every target was met, 1 where not, 2 for a wrong question."""
    asked = _parse(arguments)
    schedule = QUICK if asked.quick else Schedule(soak_s=_SOAK_S)
    wishes = {"soak_s": asked.seconds, "first_per_s": asked.first_rate}
    schedule = replace(schedule, **{k: v for k, v in wishes.items() if v is not None})
    out: Path = asked.out
    out.parent.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "campaign.load", *arguments])
    machine, began, start_s = describe_machine(), datetime.now(UTC), time.perf_counter()
    try:
        with out.with_name(f"{out.stem}-samples.jsonl").open("w", encoding="utf-8") as samples:
            found = _run_apart(schedule, samples)
    except ThalwegError as error:
        print(f"campaign.load: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("campaign.load: stopped", file=sys.stderr)
        return 130
    document: dict[str, Any] = {
        "benchmark": "load",
        "question": QUESTION,
        "quick": asked.quick,
        "command": command,
        "date": began.isoformat(timespec="seconds"),
        "commit": find_commit(ROOT),
        "machine": machine,
        "versions": find_versions(),
        "seconds": round(time.perf_counter() - start_s, 3),
        "notes": list(NOTES),
        "rows": [row.to_dict() for row in tell_findings(found)],
        "details": detail_findings(found),
    }
    draft = out.with_suffix(".json.part")
    draft.write_text(to_json(document), encoding="utf-8")
    draft.replace(out)
    print(to_json(document) if asked.format == "json" else to_table(document), end="")
    print(f"saved {out}", file=sys.stderr)
    return 0 if all(row["met"] is not False for row in document["rows"]) else 1


def _run_apart(schedule: Schedule, samples: IO[str]) -> Findings:
    """Run it with a temp folder of its own, so that it is known whose the files there are."""
    folder = Path(tempfile.mkdtemp(prefix="thalweg-load-"))
    before = os.environ.get("TMPDIR")
    try:
        (folder / "tmp").mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")
        return _run(folder / "run", schedule, samples)
    finally:
        tempfile.tempdir = None
        os.environ.pop("TMPDIR")
        if before is not None:
            os.environ["TMPDIR"] = before
        shutil.rmtree(folder, ignore_errors=True)


def _run(folder: Path, schedule: Schedule, samples: IO[str]) -> Findings:
    rig = Rig(folder, samples)
    had = take_belongings(rig.census)
    _tell("starting four Spark sites …")
    with rig:
        maximum = find_run_maximum(rig, schedule, _tell)
        rate = schedule.soak_share * maximum.per_s
        _tell(f"soak: {rate:,.0f} rides/s for {schedule.soak_s:g} s")
        before = rig.live_heaps()
        soaked = soak(rig, schedule, rate, _tell_sample)
        after = rig.live_heaps()
        # Once more what a soak had at worst is as good as before the flood.
        calm_s = max(sample.lag.seconds or 0.0 for sample in judged_samples(soaked))
        _tell("overload")
        flooded = overload(rig, schedule, maximum.per_s, calm_s, _tell)
        rig.finish()
        await_last_row(rig.run, patience_s=schedule.patience_s)
    has = take_belongings(rig.census)
    _tell("comparing with a run of the same rides in one place …")
    return Findings(
        schedule=schedule,
        maximum=maximum,
        soak=soaked,
        heaps=(before, after),
        overload=flooded,
        compared=compare_with_one_place(rig.run),
        left_over=find_left_over(had, has),
    )


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m campaign.load",
        description="Finds the highest rate that the demo deployment keeps up with, soaks it at "
        "80 % of that, floods it with 200 %, and looks for what grows, leaks or is lost.",
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help=f"length of the soak; default: {_SOAK_S:g}"
    )
    parser.add_argument(
        "--first-rate",
        type=float,
        metavar="RATE",
        help="rides/s with which the search for the maximum begins; "
        f"default: {Schedule(soak_s=_SOAK_S).first_per_s:,g}",
    )
    parser.add_argument("--quick", action="store_true", help="measure less: a few minutes")
    parser.add_argument(
        "--format", choices=("json", "table"), default="table", help="default: table"
    )
    parser.add_argument("--out", type=Path, default=OUT, metavar="FILE", help=f"default: {OUT}")
    asked = parser.parse_args(arguments)
    if asked.seconds is not None and not _LEAST_S <= asked.seconds <= _MOST_S:
        parser.error(f"--seconds: got {asked.seconds:g}, need {_LEAST_S:g} to {_MOST_S:g} s")
    if asked.first_rate is not None and not 1.0 <= asked.first_rate <= _MOST_PER_S:
        parser.error(
            f"--first-rate: got {asked.first_rate:g}, need 1 to {_MOST_PER_S:,.0f} rides/s"
        )
    return asked


def _tell_sample(sample: Sample) -> None:
    lag, memory = sample.lag, sample.memory_bytes["all processes"] / 2**20
    told = f"lag {lag.rows:,} rows, {lag.seconds or 0.0:.1f} s; {memory:,.0f} MiB"
    _tell(f"  {sample.at_s:,.0f} s: {told}")


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
