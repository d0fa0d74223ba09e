"""The disk of a keyed operator's log goes away: while it stays where it is, and while it moves."""

from __future__ import annotations

import time
from pathlib import Path

from campaign.hosting import TrialStuck
from campaign.moves import KeyedTrial
from campaign.outages import MOST_OF_IT, OUTAGE_S, disk_away
from campaign.outcome import Diary, Outcome

KEYED_LOG_AWAY = "log's disk away from a keyed operator"


def take_keyed_log_away(folder: Path, outage_s: float = OUTAGE_S) -> Outcome:
    """Take the log of an operator away; it has to go on by itself, and get where it is wanted."""
    began_s, diary = time.monotonic(), Diary()
    with KeyedTrial(folder) as trial:
        trial.begin()
        for moves in (False, True):
            for left in ("nothing", "an empty folder"):
                since_s = time.time()
                wanted = trial.elsewhere() if moves else None
                with disk_away(trial.spec.log, leaving_a_folder=left != "nothing"):
                    if wanted is not None:
                        trial.want(wanted)
                    time.sleep(outage_s)
                if wanted is not None:
                    trial.await_site(wanted)
                trial.await_rows()
                what = f"away for {outage_s:g} s, leaving {left}{', during a move' * moves}"
                pause_s = trial.longest_pause_s(since_s)
                if pause_s < MOST_OF_IT * outage_s:
                    raise TrialStuck(f"{what}: output stopped for {pause_s:.1f} s only")
                diary.write(what, "healed", pause_s)
        return diary.close(KEYED_LOG_AWAY, {"rows": trial.finish()}, trial.count, began_s)
