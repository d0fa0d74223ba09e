"""Sites that a change is not about: whether they go on as if nothing happened.

What a run writes down tells it. Its journal has every step that a site was taken through, its
timeline everything that was started again, and the log when a site has published.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from thalweg.spark.deployment.hand_over import Prepare, StartEpoch
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.timeline import read_timeline
from thalweg.spark.log import Log
from thalweg.spark.query.clock import SITE_CLOCK

NOTICED_S = 5.0
"""A change that takes no longer shows nothing: a site may happen to be between two batches."""


def find_moved(journal: Path, sites: Iterable[str]) -> list[str]:
    """The steps that these sites were taken through after their first start, in words."""
    names = set(sites)
    steps = [step for step, _ in Journal(journal).read() if step.site in names]
    return [
        f"{step.site} was to go on as it was: {step}"
        for step in steps
        if step.epoch > 0 or not isinstance(step, (Prepare, StartEpoch))
    ]


def find_restarted(folder: Path, sites: Iterable[str]) -> list[str]:
    """What died of these sites in a run's folder and was started again, in words."""
    died = tuple(f"{site} died" for site in sites)
    marks = [line for line in read_timeline(folder) if line.get("mark") == "failure"]
    titles = [(str(mark.get("title")), mark.get("text")) for mark in marks]
    return [
        f"{title}, and nobody struck it: {text}"
        for title, text in titles
        if any(title == whole or title.endswith(f" of {whole}") for whole in died)
    ]


def find_idle(log: Log, site: str, since_s: float, until_s: float) -> list[str]:
    """That a site has published nothing in this time, in words; nothing where it has."""
    if until_s - since_s < NOTICED_S:
        return []
    # The newest come last: the others need not be looked at.
    for segment in reversed(list(log.segments(SITE_CLOCK, site))):
        at_s = segment.folder.stat().st_mtime
        if at_s < since_s:
            break
        if at_s <= until_s:
            return []
    return [f"{site} published nothing for {until_s - since_s:.1f} s, while another site moved"]
