"""A run of a pipeline, as its folder tells: live while a process holds it, a replay after that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from thalweg.errors import Defect, InvalidInput, ThalwegError
from thalweg.files.load import load_plan
from thalweg.files.model_folder import has_model
from thalweg.files.own_file import require_own
from thalweg.model import Plan, Problem
from thalweg.planning import SCHEDULING_STRATEGY
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
from thalweg.spark.deployment.told_status import find_site_end, settle_status
from thalweg.strategy import find_strategy
from thalweg.web.picture import Picture
from thalweg.web.question import Answer
from thalweg.web.run_frame import closing_line, is_over, read_frame, stale_after_s
from thalweg.web.run_links import RunLinks
from thalweg.web.subject import Plain, Refused, Update
from thalweg.web.subjects.planned import PlannedSubject, Present
from thalweg.web.timeline_reader import TimelineReader
from thalweg.web.timeline_words import (
    changes_in,
    identity_of,
    mark_of,
    rows_of_now,
    text_of,
    total_rate,
)

_LEAST_FRAMES, _MOST_FRAMES, _MOST_SITE_FRAMES = 200, 2_000, 25_000
_PATIENCE_S = 180.0
_HOW_KNOWN = (
    "T, B and RU are what decisions rest on, with what the model alone estimates and what the "
    "links measured beside them; CPU, memory, lags and what is on links are measured."
)


class RunSubject(PlannedSubject):
    """A run, from `application.json`, `network.json` and `timeline.jsonl` in its folder."""

    kind = "run"
    now_is = "what runs now"
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
        told["left_out"] = " ".join(note for note in notes if note)
        return {**told, "clock": "wall", "stale_after_s": self._stale_after_s()}

    # What ran when

    def present(self) -> Present:
        """The cuts that run, at the rates of now; of a run that has ended at its last ones."""
        lines = self._timeline.lines()
        changes = changes_in(lines)
        if not changes:
            return self._present_of({"cuts": {}}, None)
        live = self.is_live
        rates, rates_at_s = self._rates(lines, live=live)
        found = self._present_of(changes[-1], rates)
        measured = rows_of_now(lines) if live else {}
        return replace(found, measured=measured, rates_at_s=rates_at_s)

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
            strategy=self._strategy,
            text=text_of(line) if "cause" in line else "",
            at_s=line.get("at_s"),
        )

    @property
    def _strategy(self) -> str:
        """The strategy that the run names, or that of most runs where there is none such here."""
        name = str(self._told.get("strategy", SCHEDULING_STRATEGY))
        with suppress(InvalidInput):
            find_strategy(name)
            return name
        return SCHEDULING_STRATEGY

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

    def _rates(
        self, lines: list[Plain], *, live: bool
    ) -> tuple[dict[tuple[str, str], float] | None, float | None]:
        """Events/s by source and site, and when that was measured; None where it never was.

        A run that goes on may have none now, which is a rate like any other. Of one that has
        ended the last rates with events count: nothing comes any more.
        """
        for line in reversed(lines):
            told = line.get("rates") if line["kind"] == "frame" else None
            if told and (live or total_rate(told) > 0):
                return self._flat(told), line["at_s"]
        return None, None

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
        last: Plain | None = None
        live, stale_s = self.is_live, self._stale_after_s()
        number, count = 0, sum(line["kind"] == "frame" for line in lines)
        step = -(-count // self._most_frames)
        for line in lines:
            if line["kind"] == "frame":
                number, last = number + 1, line
                if number % step == 0 or number in (1, count):
                    frames.append(self._frame(line, before, stale_s))
                continue
            if line["kind"] == "cuts":
                placements[identity_of(line)] = self._placement(line, before)
                before = line
            if not line.get("again"):
                marks.append(mark_of(line))
        over = [] if live else self._after_the_end(last)
        frames += [self._frame(line, before, stale_s) for line in over]
        told = {"frames": frames, "placements": placements, "marks": marks}
        return {**told, "position": position, "live": live}

    @property
    def _most_frames(self) -> int:
        """Fewer of runs with many sites, so that a history stays a few megabytes."""
        return max(_LEAST_FRAMES, min(_MOST_FRAMES, _MOST_SITE_FRAMES // self._network.site_count))

    def updates(self, after: int) -> Iterator[Update | None]:
        """Lines as they are written, and the end of the run."""
        state, stale_s = self._state(), self._stale_after_s()
        yield Update(kind="state", data={"live": self.is_live, "text": state})
        known = self._timeline.until(after)
        before = next(reversed(changes_in(known)), None)
        last = next((line for line in reversed(known) if line["kind"] == "frame"), None)
        while True:
            # Asked first: what is written before the end is sent before it.
            live = self.is_live
            lines, after = self._timeline.since(after)
            for line in lines:
                if line["kind"] == "frame":
                    last = line
                    yield Update(kind="frame", data=self._frame(line, before, stale_s))
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
                for line in self._after_the_end(last):
                    yield Update(kind="frame", data=self._frame(line, before, stale_s))
                yield Update(kind="state", data={"live": False, "text": self._state()})
                return
            yield None

    def _state(self) -> str:
        """How the run is doing, in a few words."""
        # The lock first: a run that ends now reports its end before it lets go of it.
        is_live = self.is_live
        told = settle_status(self._told, is_alive=is_live)
        silent_s = time.time() - float(told.get("heartbeat_s") or time.time())
        return describe_state(told, silent_s, is_alive=is_live)

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
    def _links(self) -> RunLinks:
        return RunLinks(self._network, self._sites.fogs, self._sites.cloud, self.grouping)

    def _stale_after_s(self) -> float:
        """The age from which on a measured figure of this run is stale."""
        return stale_after_s(self._told.get("interval_s"))

    def _frame(self, line: Plain, before: Plain | None, stale_s: float) -> Plain:
        """A moment as a page draws it."""
        placement = "" if before is None else identity_of(before)
        if is_over(line) and not line.get("deviations"):
            # What was found out about what is declared outlives the run.
            line = {**line, "deviations": self._told.get("deviations")}
        links = self._links.describe(line, stale_s)
        return {**read_frame(line, stale_s), "placement": placement, "links": links}

    def _after_the_end(self, last: Plain | None) -> list[Plain]:
        """The line after the last one of a run that is over, unless it wrote that itself."""
        if last is None or is_over(last):
            return []
        told = self._told
        # Whoever was killed wrote no end: then it was over when it was last heard of.
        at_s = max(float(told.get("heartbeat_s") or 0.0), last["at_s"] + 0.001)
        return [closing_line(last, at_s, find_site_end(told))]

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
