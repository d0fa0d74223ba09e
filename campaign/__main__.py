"""`python -m campaign`: every fault on Spark sites that run, and the table of what came of it."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.machine import describe_machine, find_commit
from campaign.faults import all_faults, few_faults, inject
from campaign.hosting import ROOT
from campaign.outcome import Outcome, to_table

RESULTS = ROOT / "results" / "campaign"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where nothing was lost or twice and everything healed or was refused; else 1."""
    asked = _parser().parse_args(arguments)
    faults = few_faults() if asked.quick else all_faults()
    if asked.list:
        for name, fault in faults.items():
            print(f"{name:<20} {fault.kind}")
        return 0
    unknown = sorted(set(asked.fault) - set(faults))
    if unknown:
        print(f"campaign: there is no fault {', '.join(unknown)}; --list names them all")
        return 2
    report = Report(out=asked.out)
    folder = Path(tempfile.mkdtemp(prefix="thalweg-campaign-", dir=asked.folder))
    for name in asked.fault or faults:
        print(f"{name}: {faults[name].kind} …", file=sys.stderr, flush=True)
        report.add(name, lambda name=name: inject(name, faults, folder))  # type: ignore[misc]
        if report.is_right:
            shutil.rmtree(folder / name, ignore_errors=True)
    print(report.to_json() if asked.format == "json" else report.to_table())
    print(f"saved {asked.out}", file=sys.stderr)
    if report.is_right:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    print(f"what went wrong is kept in {folder}", file=sys.stderr)
    return 1


@dataclass(kw_only=True)
class Report:
    """What came of every fault so far; saved after each, so that nothing is lost here either."""

    out: Path
    outcomes: list[Outcome] = field(default_factory=list)
    stuck: dict[str, str] = field(default_factory=dict)
    began_s: float = field(default_factory=time.monotonic)

    @property
    def is_right(self) -> bool:
        """Whether every fault healed or was refused, and nothing was lost or came twice."""
        tried = any(not outcome.skipped for outcome in self.outcomes)
        return tried and not self.stuck and all(outcome.is_right for outcome in self.outcomes)

    def add(self, name: str, act: Callable[[], Outcome]) -> None:
        """Inject a fault; whatever goes wrong with it does not keep the others from their turn."""
        try:
            self.outcomes.append(act())
        except Exception as error:
            self.stuck[name] = f"{type(error).__name__}: {error}"
            print(f"{name}: {self.stuck[name]}", file=sys.stderr, flush=True)
        else:
            print(to_table(self.outcomes[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(self.to_json() + "\n", encoding="utf-8")

    def to_json(self) -> str:
        """All of it."""
        document = {
            "commit": find_commit(ROOT),
            "machine": describe_machine(),
            "seconds": round(time.monotonic() - self.began_s, 1),
            "faults": [outcome.to_dict() for outcome in self.outcomes],
            "stuck": self.stuck,
        }
        return json.dumps(document, indent=1)

    def to_table(self) -> str:
        """The table, and below it what is not as it should be."""
        lines = [to_table(self.outcomes)]
        lines += [f"{name}: neither healed nor refused" for name in self.stuck]
        lines += [f"{o.kind}: {problem}" for o in self.outcomes for problem in o.problems]
        skipped = sum(bool(outcome.skipped) for outcome in self.outcomes)
        return "\n".join([*lines, *([f"{skipped} skipped"] if skipped else [])])


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
