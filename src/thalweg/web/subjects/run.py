"""A run of a pipeline, as its folder tells: live while a process holds it, a replay after that."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from thalweg.errors import Defect, InvalidInput, ThalwegError
from thalweg.files.load import load_plan
from thalweg.files.model_folder import has_model
from thalweg.files.own_file import require_own
from thalweg.model import Plan, Problem
from thalweg.spark.deployment.control import (
    MOVE,
    Request,
    await_answer,
    give_up,
    leave,
    leave_rollback,
)
from thalweg.spark.deployment.folder import RunFolder, as_cuts
from thalweg.spark.deployment.plan import Cuts, cuts_of, find_sites, placement_of
from thalweg.spark.deployment.status import describe_state
from thalweg.web.picture import GAUGES, Picture, gather_links, plain_number
from thalweg.web.question import Answer
from thalweg.web.subject import Plain, Refused, Update
from thalweg.web.subjects.planned import PlannedSubject, Present
from thalweg.web.timeline_reader import TimelineReader
from thalweg.web.timeline_words import changes_in, identity_of, mark_of, text_of, total_rate

_LEAST_FRAMES, _MOST_FRAMES, _MOST_SITE_FRAMES = 200, 2_000, 25_000
_PATIENCE_S = 180.0
_HOW_KNOWN = (
    "T, B and RU are estimates at the rates measured; links, CPU, memory and lags are measured."
)


class RunSubject(PlannedSubject):
    """A run, from `application.json`, `network.json` and `timeline.jsonl` in its folder."""

    kind = "run"
    views = ("map", "charts", "what-if", "compare")

    def __init__(self, folder: Path | str) -> None:
        self._folder = RunFolder.of_run(folder)
        self.run_folder = self._folder.path
        if not has_model(self._folder.path):
            rule = "the folder of a run that keeps its model and its timeline"
            hint = "runs of older versions do not; start it once with this one"
            raise InvalidInput([Defect(path="", value=str(folder), rule=rule, hint=hint)])
        self._application, self._network = self._folder.read_model()
        self._plain = Problem(application=self._application, network=self._network)
        self._sites = find_sites(self._plain)
        self._timeline = TimelineReader(self._folder.path)
        self._pictures: dict[str, Picture] = {}
        self._plans: dict[str, Plan] = {}
        super().__init__(f"{self._application.name} on {self._network.name}")

    @property
    def is_live(self) -> bool:
        """Whether a process holds the folder."""
        return self._folder.is_held()

    def scene(self) -> Plain:
        """What stands still."""
        told = super().scene()
        notes = [told["left_out"], _HOW_KNOWN]
        return {**told, "clock": "wall", "left_out": " ".join(note for note in notes if note)}

    # What ran when

    def present(self) -> Present:
        """The cuts that run, at the rates that were last measured."""
        lines = self._timeline.lines()
        changes = changes_in(lines)
        if not changes:
            return self._present_of({"cuts": {}}, None)
        found = self._present_of(changes[-1], self._rates(lines))
        frame = next((line for line in reversed(lines) if line["kind"] == "frame"), {})
        return replace(found, measured=frame.get("operators") or {})

    def find_placed(self, placement: str) -> Present | None:
        """What ran under a placement's name, at the rates at which it was chosen."""
        changes = {identity_of(line): line for line in changes_in(self._timeline.lines())}
        if placement not in changes:
            return None
        if placement == list(changes)[-1]:
            return self.present()
        return self._present_of(changes[placement], self._flat(changes[placement].get("rates")))

    def _present_of(self, line: Plain, rates: dict[tuple[str, str], float] | None) -> Present:
        problem = self._plain
        if rates is not None:
            problem = Problem(application=self._application, network=self._network, rates=rates)
        placement = placement_of(as_cuts(line["cuts"]), problem, self._sites)
        return Present(
            problem=problem,
            placement=placement,
            plan=self._plan(line.get("plan")),
            strategy=str(self._told.get("strategy", "atsoo")),
            text=text_of(line) if "cause" in line else "",
        )

    def _plan(self, name: object) -> Plan | None:
        """The plan behind a change, where one was kept."""
        if not isinstance(name, str) or not name.removesuffix(".json").isdecimal():
            return None
        if name not in self._plans:
            with suppress(ThalwegError, OSError, ValueError):
                file = self._folder.plans / name
                require_own(self._folder.path, file)
                self._plans[name] = load_plan(file)
        return self._plans.get(name)

    def _rates(self, lines: list[Plain]) -> dict[tuple[str, str], float] | None:
        """Events/s by source and site as last measured; None where that is not known."""
        told = [line.get("rates") for line in lines if line["kind"] == "frame"]
        # When nothing comes, those of the last rows: at no rates at all nothing can be asked.
        return self._flat(next((r for r in reversed(told) if r and total_rate(r) > 0), None))

    def _flat(self, nested: object) -> dict[tuple[str, str], float] | None:
        """Rates of a line by source and site; None where it has none."""
        if not isinstance(nested, dict) or not nested:
            return None
        found = {(s, site): rate for s, by in nested.items() for site, rate in by.items()}
        return {pair: max(0.0, found.get(pair) or 0.0) for pair in self._plain.birth_rates}

    # Over time

    def history(self) -> Plain:
        """All that the timeline holds; of very many frames every n-th, and the last one."""
        lines, position = self._timeline.since(0)
        frames, placements, marks = [], {}, []
        before: Plain | None = None
        number, count = 0, sum(line["kind"] == "frame" for line in lines)
        step = -(-count // self._most_frames)
        for line in lines:
            if line["kind"] == "frame":
                number += 1
                if number % step == 0 or number in (1, count):
                    frames.append(self._frame(line, "" if before is None else identity_of(before)))
                continue
            if line["kind"] == "cuts":
                placements[identity_of(line)] = self._placement(line, before)
                before = line
            if not line.get("again"):
                marks.append(mark_of(line))
        told = {"frames": frames, "placements": placements, "marks": marks}
        return {**told, "position": position, "live": self.is_live}

    @property
    def _most_frames(self) -> int:
        """Fewer of runs with many sites, so that a history stays a few megabytes."""
        return max(_LEAST_FRAMES, min(_MOST_FRAMES, _MOST_SITE_FRAMES // self._network.site_count))

    def updates(self, after: int) -> Iterator[Update | None]:
        """Lines as they are written, and the end of the run."""
        state = self._state()
        yield Update(kind="state", data={"live": self.is_live, "text": state})
        changes = changes_in(self._timeline.until(after))
        before = changes[-1] if changes else None
        while True:
            # Asked first: what is written before the end is told before it.
            live = self.is_live
            lines, after = self._timeline.since(after)
            for line in lines:
                if line["kind"] == "frame":
                    identity = "" if before is None else identity_of(before)
                    yield Update(kind="frame", data=self._frame(line, identity))
                    continue
                if line["kind"] == "cuts":
                    yield Update(kind="placement", data=self._placement(line, before))
                    before = line
                if not line.get("again"):
                    yield Update(kind="mark", data=mark_of(line))
            if live and state != (now := self._state()):
                state = now
                yield Update(kind="state", data={"live": True, "text": state})
            if not live:
                yield Update(kind="state", data={"live": False, "text": self._state()})
                return
            yield None

    def _state(self) -> str:
        """How the run is doing, in a few words."""
        told = self._told
        silent_s = time.time() - float(told.get("heartbeat_s") or time.time())
        return describe_state(told, silent_s, is_alive=self.is_live)

    @property
    def _told(self) -> Plain:
        """What the run last said of itself; nothing where that cannot be read."""
        with suppress(InvalidInput):
            return self._folder.read_status()
        return {}

    def _placement(self, line: Plain, before: Plain | None) -> Plain:
        picture, old = self._picture(line), None if before is None else self._picture(before)
        return picture.describe(
            identity_of(line),
            at_s=line["at_s"],
            strategy=str(self._told.get("strategy", "")),
            text=text_of(line),
            before=old,
        )

    def _picture(self, line: Plain) -> Picture:
        """Cuts as drawn, at the rates at which they were chosen."""
        identity = identity_of(line)
        if identity not in self._pictures:
            self._pictures[identity] = self.picture(
                self._present_of(line, self._flat(line.get("rates")))
            )
        return self._pictures[identity]

    @cached_property
    def _ways(self) -> dict[str, list[int]]:
        """The links from each fog to the cloud."""
        net = self._network
        cloud = net.site_index[self._sites.cloud]
        return {f: net.wan.route(net.site_index[f], cloud).tolist() for f in self._sites.fogs}

    @cached_property
    def _uplinks(self) -> dict[int, tuple[str, float]]:
        """The ends of each of these links, and what is free on it."""
        links = sorted({link for way in self._ways.values() for link in way})
        free = self._network.wan.link_available_bps(links).tolist()
        return {k: (self.grouping.ends_of(k), bps) for k, bps in zip(links, free, strict=True)}

    def _frame(self, line: Plain, identity: str) -> Plain:
        """A look as a page draws it: T, B and RU by the formulas, all else as measured."""
        figures = line.get("figures") or {}
        sent = {s: told for s, told in (line.get("links") or {}).items() if s in self._ways}
        on_link: Counter[int] = Counter()
        for site, told in sent.items():
            # Fogs that share a link share its bandwidth.
            on_link.update(dict.fromkeys(self._ways[site], told["bps"]))
        ends_and_free = ((*self._uplinks[link], bps) for link, bps in sorted(on_link.items()))
        links = gather_links(
            (ends, bps, bps / free if free > 0 else math.inf) for ends, free, bps in ends_and_free
        )
        for site, told in sent.items():
            first = self._uplinks[self._ways[site][0]][0]
            if first in links:
                links[first]["lag_s"] = told.get("lag_s")
        gauges: dict[str, Any] = {name: plain_number(figures.get(name)) for name in GAUGES}
        for name in ("events_in_per_s", "events_out_per_s"):
            gauges[name] = line.get(name)
        return {
            "at_s": line["at_s"],
            "placement": identity,
            "gauges": gauges,
            "sites": line.get("sites") or {},
            "links": links,
            "rates": line.get("rates"),
        }

    # What if, for real

    def why_not(self, answer: Answer) -> str:
        """Why an answer cannot be applied; empty where it can."""
        if not self.is_live:
            return "the run has ended: `thalweg run` with the same folder goes on with it"
        try:
            wanted = self._wanted(answer)
        except InvalidInput as error:
            return "; ".join(str(defect) for defect in error.defects)
        changes = changes_in(self._timeline.lines())
        now = as_cuts(changes[-1]["cuts"]) if changes else {}
        if all(set(now.get(site, ())) == set(cut) for site, cut in wanted.items()):
            return "this is what runs already"
        running = placement_of(now, answer.problem, self._sites)
        if running.fingerprint != answer.before.fingerprint:
            return "the run has changed since this was asked; ask again"
        return ""

    def _wanted(self, answer: Answer) -> Cuts:
        """The cuts of an answer; sites that were said to be gone keep what they have."""
        cuts = cuts_of(answer.plan.placement, answer.problem, self._sites)
        return {site: cut for site, cut in cuts.items() if site not in answer.down}

    def apply(self, answer: str) -> str:
        """Move the run to what a what-if has found; returns when it runs."""
        found = self.answer(answer)
        why_not = self.why_not(found)
        if why_not:
            raise Refused(why_not)
        request = Request(kind=MOVE, cuts=self._wanted(found))
        return self._ask(partial(leave, self._folder, request))

    def rollback(self) -> str:
        """Back to the cuts before the last change; returns when they run."""
        if not self.is_live:
            raise Refused("the run has ended: `thalweg rollback` says what its next start does")
        return self._ask(partial(leave_rollback, self._folder))

    def _ask(self, leave_request: Callable[[], Request]) -> str:
        try:
            request = leave_request()
        except ThalwegError as error:
            raise Refused(str(error)) from None
        told = await_answer(self._folder, request, _PATIENCE_S, goes_on=self._folder.is_held)
        if told is None:
            what = give_up(self._folder, request)
            raise Refused(f"{what}. Hint: `thalweg status` tells more.")
        done, text = told
        if not done:
            raise Refused(text)
        return text
