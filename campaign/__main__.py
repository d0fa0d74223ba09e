"""`python -m campaign`: every fault on Spark sites that run, and the table of what came of it."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine
from campaign.faults import all_faults, few_faults, inject
from campaign.outcome import Outcome, to_table
from campaign.trial import ROOT, TrialStuck

RESULTS = ROOT / "results" / "campaign"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where nothing was lost or twice and everything healed or was refused; else 1."""
    asked = _parser().parse_args(arguments)
    faults = few_faults() if asked.quick else all_faults()
    if asked.list:
        print(*faults, sep="\n")
        return 0
    unknown = sorted(set(asked.fault) - set(faults))
    if unknown:
        print(f"campaign: there is no fault {', '.join(unknown)}; --list names them all")
        return 2
    began_s = time.monotonic()
    outcomes: list[Outcome] = []
    stuck: dict[str, str] = {}
    folder = Path(tempfile.mkdtemp(prefix="thalweg-campaign-", dir=asked.folder))
    for name in asked.fault or faults:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            outcomes.append(inject(name, faults, folder))
        except TrialStuck as error:
            stuck[name] = str(error)
            print(f"{name}: {error}", file=sys.stderr, flush=True)
        else:
            print(to_table(outcomes[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
            if outcomes[-1].is_right:
                shutil.rmtree(folder / name, ignore_errors=True)
    document = {
        "machine": describe_machine(),
        "seconds": round(time.monotonic() - began_s, 1),
        "faults": [outcome.to_dict() for outcome in outcomes],
        "stuck": stuck,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(document, indent=1) if asked.format == "json" else to_table(outcomes))
    for name in stuck:
        print(f"{name}: neither healed nor refused")
    print(f"saved {asked.out}", file=sys.stderr)
    right = not stuck and all(outcome.is_right for outcome in outcomes)
    if right:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"what went wrong is kept in {folder}", file=sys.stderr)
    return 0 if right else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m campaign",
        description="Injects faults into deployments that run on Spark, and checks every event "
        "at every sink. The answer also goes to results/campaign/faults.json.",
    )
    parser.add_argument("fault", nargs="*", help="the faults to inject; all unless named")
    parser.add_argument("--list", action="store_true", help="print their names, one per line")
    parser.add_argument("--quick", action="store_true", help="a representative part, some minutes")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--folder", type=Path, default=None, help="where deployments are put")
    parser.add_argument("--out", type=Path, default=RESULTS / "faults.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
