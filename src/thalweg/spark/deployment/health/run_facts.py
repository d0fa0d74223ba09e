"""What a run's folder says of the run itself: who holds it, what it told last, what it was asked.

Read by `read_run`, judged by `judge_run`, which is a pure function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thalweg.errors import ThalwegError
from thalweg.model.names import is_name
from thalweg.spark.deployment.control import list_requests
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.hand_over import DeploymentState, SiteState
from thalweg.spark.deployment.health.finding import GOOD, NOTE, PROBLEM, WARNING, Finding
from thalweg.spark.deployment.health.stakes import has_fog_checkpoints
from thalweg.spark.deployment.journal import Journal, JournalBroken, UnknownStep
from thalweg.spark.deployment.status import describe_cuts

_LEAST_SILENCE_S = 60.0
_START_SILENCE_S = 300.0
_LOOKS_MISSED = 10
_SITE_SILENCE_S = 15.0
_REQUEST_PATIENCE_S = 180.0
_FUTURE_S = 5.0
_PROC = Path("/proc")
_MOST_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalFacts:
    """What the journal says: the sites' state, or why it cannot be read; and whether it is torn."""

    sites: Mapping[str, SiteState] = field(default_factory=dict)
    fault: str = ""
    torn: bool = False
    of_other_version: bool = False
    """Whether it cannot be read because of a step that another version may have written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run as its folder tells of it at the time `now_s`."""

    folder: Path
    now_s: float
    held: bool = False
    status: Mapping[str, Any] = field(default_factory=dict)
    status_fault: str = ""
    history_fault: str = ""
    journal: JournalFacts = field(default_factory=JournalFacts)
    left_over: Mapping[str, int] = field(default_factory=dict)
    """Sites of this folder whose process is still there, by name."""
    requests: tuple[tuple[str, float], ...] = ()
    """What was asked and not taken yet: its kind, and when [Unix time]."""
    rebuilding: bool = False
    """Whether a rebuild was begun and not ended."""


def read_run(folder: RunFolder, fogs: tuple[str, ...], now_s: float) -> RunFacts:
    """Look into the folder; whatever is in its files, they are only read."""
    # Asked first: a run that ends meanwhile has then told so.
    held = folder.is_held()
    status, status_fault = _attempt(folder.read_status)
    _, history_fault = _attempt(folder.read_history)
    found: Mapping[str, Any] = status or {}
    return RunFacts(
        folder=folder.path,
        now_s=now_s,
        held=held,
        status=found,
        status_fault=status_fault,
        history_fault=history_fault,
        journal=read_journal(folder.path / "journal.jsonl", fogs),
        left_over=dict(_processes(folder.path, found)),
        # What a run that is gone had begun waits for the next start, too.
        requests=tuple(list_requests(folder, begun=not held)),
        rebuilding=folder.rebuild_file.exists(),
    )


def read_journal(file: Path, fogs: tuple[str, ...]) -> JournalFacts:
    """What is true after all of a journal's steps, or why that cannot be known."""
    if file.exists() and not file.is_file():
        return JournalFacts(fault="it cannot be read: a folder, pipe or device")
    try:
        content = Journal(file).content()
    except JournalBroken as error:
        return JournalFacts(fault=_cause_of(error))
    except OSError as error:
        return JournalFacts(fault=f"it cannot be read: {error.strerror or error}")
    if not content:
        lost = has_fog_checkpoints(file.parent, fogs)
        fault = "it is gone or empty, though sites of this run have worked" if lost else ""
        return JournalFacts(sites=DeploymentState.of(fogs).sites, fault=fault)
    torn = not content.endswith(b"\n")
    try:
        return JournalFacts(sites=Journal(file).state(fogs).sites, torn=torn)
    except JournalBroken as error:
        other = isinstance(error, UnknownStep)
        return JournalFacts(fault=_cause_of(error), torn=torn, of_other_version=other)


def _cause_of(error: JournalBroken) -> str:
    return str(error).partition(". Hint: ")[0]


def judge_run(facts: RunFacts) -> Iterator[Finding]:
    """What is to be said of a run, and what to do about it."""
    yield _judge_state(facts)
    if facts.status_fault:
        remedy = f"`thalweg doctor {facts.folder} --repair` sets it aside"
        if facts.held:
            remedy = "ask again: the run writes it anew at every look"
        yield Finding(level=WARNING, where="status.json", what=facts.status_fault, remedy=remedy)
    if facts.history_fault:
        remedy = f"`thalweg doctor {facts.folder} --repair` sets it aside; rollbacks are forgotten"
        yield Finding(level=PROBLEM, where="history.json", what=facts.history_fault, remedy=remedy)
    if facts.rebuilding:
        remedy = f"`thalweg doctor {facts.folder} --rebuild --yes` ends it"
        what = "a rebuild was begun and not ended: what is left belongs to two lives"
        yield Finding(level=PROBLEM, where="rebuild.json", what=what, remedy=remedy)
    yield from _judge_clock(facts)
    yield from _judge_sites(facts)
    yield from _judge_declarations(facts)
    yield from _judge_journal(facts)
    for kind, at_s in facts.requests:
        waits_s = facts.now_s - at_s
        if not facts.held:
            what = f"a request to {kind} waits for the next start"
            yield Finding(level=NOTE, where="control", what=what)
        elif waits_s > _REQUEST_PATIENCE_S:
            what = f"a request to {kind} was not taken for {waits_s:.0f} s"
            remedy = f"`thalweg status {facts.folder}` says whether it changes cuts just now"
            yield Finding(level=WARNING, where="control", what=what, remedy=remedy)


def _judge_state(facts: RunFacts) -> Finding:
    state = str(facts.status.get("state", ""))[:_MOST_SHOWN]
    again = "the same `thalweg run` goes on where it was"
    silent_s = _silence_s(facts)
    if facts.held:
        interval_s = _number(facts.status.get("interval_s")) or 2.0
        limit_s = max(_LEAST_SILENCE_S, _LOOKS_MISSED * interval_s)
        if state in ("", "starting"):
            limit_s = _START_SILENCE_S
        if silent_s is not None and silent_s > limit_s:
            pid = _number(facts.status.get("pid"))
            ends = f"; if it does not end, `kill -9 {pid:.0f}` loses nothing" if pid else ""
            what = f"it is there, but was last heard of {silent_s:.0f} s ago: it hangs"
            remedy = f"`thalweg stop {facts.folder}`{ends}; {again}"
            return Finding(level=PROBLEM, where="run", what=what, remedy=remedy)
        ago = "" if silent_s is None else f", last look {silent_s:.0f} s ago"
        doing = "what it does cannot be told" if facts.status_fault else state or "starting"
        return Finding(level=GOOD, where="run", what=f"alive: {doing}{ago}")
    if facts.status_fault:
        what = "nobody runs it; how it ended cannot be told"
        return Finding(level=NOTE, where="run", what=what, remedy=again)
    ago = "" if silent_s is None else f" {silent_s:.0f} s ago"
    if state == "failed":
        error = str(facts.status.get("error"))[:_MOST_SHOWN]
        what = f"it failed{ago}: {error}"
        remedy = f"see to what is said there and below; then {again}"
        return Finding(level=PROBLEM, where="run", what=what, remedy=remedy)
    if state == "ended":
        return Finding(level=GOOD, where="run", what=f"stopped{ago}", remedy=again)
    what = f"it was killed; last heard of{ago or ' never'}"
    return Finding(level=WARNING, where="run", what=what, remedy=again)


def _silence_s(facts: RunFacts) -> float | None:
    heartbeat_s = _number(facts.status.get("heartbeat_s"))
    return None if heartbeat_s is None else max(0.0, facts.now_s - heartbeat_s)


def _judge_clock(facts: RunFacts) -> Iterator[Finding]:
    heartbeat_s = _number(facts.status.get("heartbeat_s"))
    if heartbeat_s is not None and heartbeat_s > facts.now_s + _FUTURE_S:
        ahead_s = heartbeat_s - facts.now_s
        what = f"it was last heard of {ahead_s:.0f} s in the future: the clock went back"
        remedy = "set the clock of this machine; rows are not touched by it, times shown are"
        yield Finding(level=WARNING, where="run", what=what, remedy=remedy)


def _judge_sites(facts: RunFacts) -> Iterator[Finding]:
    if not facts.held:
        for name, pid in facts.left_over.items():
            what = f"process {pid} of it is still there, though nobody runs it"
            remedy = f"it ends by itself within seconds; if not, `kill -9 {pid}` loses nothing"
            yield Finding(level=WARNING, where=f"site {name}", what=what, remedy=remedy)
        return
    for name, site in _mapping(facts.status.get("sites")).items():
        told = _mapping(site)
        where = f"site {name}"[:_MOST_SHOWN]
        silent_s = _number(told.get("silent_s")) or 0.0
        errors = [
            str(error)[:_MOST_SHOWN]
            for query in told.get("queries") or ()
            if (error := _mapping(query).get("error"))
        ]
        if told.get("alive") is False:
            what = "its process is not there; it is being started again"
            yield Finding(level=WARNING, where=where, what=what)
        elif silent_s > _SITE_SILENCE_S:
            what = f"nothing was heard of it for {silent_s:.0f} s"
            remedy = "its log is in `sites/`; killing its process has it started again"
            yield Finding(level=WARNING, where=where, what=what, remedy=remedy)
        for error in errors:
            yield Finding(level=WARNING, where=where, what=f"its query failed: {error}")
    restarts = _number(facts.status.get("restarts")) or 0
    if restarts > 0:
        what = f"something was started again {restarts:.0f} times"
        remedy = f"`{facts.folder}/timeline.jsonl` and the logs in `sites/` say why"
        yield Finding(level=NOTE, where="run", what=what, remedy=remedy)


def _judge_declarations(facts: RunFacts) -> Iterator[Finding]:
    """Figures that are not what was declared: a run plans with what it measures."""
    found = _mapping(facts.status).get("deviations")
    for deviation in found if isinstance(found, list) else ():
        told = _mapping(deviation)
        declared, measured = _number(told.get("declared")), _number(told.get("measured"))
        if declared is None or measured is None:
            continue
        what = f"{told.get('figure')} is declared as {declared:.4g} and measured as {measured:.4g}"
        remedy = (
            f"`thalweg profile PIPELINE {facts.folder} --output FILE` writes measured "
            "figures, and `thalweg run --profile FILE` begins with them"
        )
        where = f"operator {told.get('operator')}"
        yield Finding(level=NOTE, where=where, what=what, remedy=remedy)


def _judge_journal(facts: RunFacts) -> Iterator[Finding]:
    journal = facts.journal
    if journal.fault:
        remedy = (
            "restore it from a copy of the same moment; without one, "
            f"`thalweg doctor {facts.folder} --rebuild --yes` works on all rows again"
        )
        if journal.of_other_version:
            remedy = (
                "if another version of Thalweg wrote it, use that one: nothing is damaged; "
                "else restore it from a copy of the same moment"
            )
        yield Finding(level=PROBLEM, where="journal.jsonl", what=journal.fault, remedy=remedy)
        return
    if journal.torn and not facts.held:
        what = "its last line is torn: that step was not finished, and is taken again"
        yield Finding(level=NOTE, where="journal.jsonl", what=what)
    running = {name: site.cut for name, site in journal.sites.items() if site.phase == "running"}
    if running:
        yield Finding(level=GOOD, where="journal.jsonl", what=f"runs {describe_cuts(running)}")
    for name, site in sorted(journal.sites.items()):
        if step := describe_next_step(site):
            what = f"a hand-over of epoch {site.epoch} is under way ({site.phase}); next: {step}"
            remedy = "" if facts.held else "the same `thalweg run` ends it"
            yield Finding(level=NOTE, where=f"site {name}", what=what, remedy=remedy)


def describe_next_step(site: SiteState) -> str:
    """What a hand-over that was begun does next, in words; nothing where none was."""
    cut = ", ".join(site.next_cut or ()) or "nothing"
    if site.phase == "running":
        return "" if site.next_cut is None else f"drain it, to go on with {cut}"
    if site.phase == "drained":
        return "hand over its open windows, if it has any, and fence it"
    if site.phase == "exported":
        return f"fence it after batch {site.last_batch}"
    return f"start epoch {site.epoch + 1} with {cut}" if site.phase == "fenced" else ""


def _processes(folder: Path, status: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The sites that a status names whose process is there, and is one of a site of this folder."""
    for name, site in _mapping(status.get("sites")).items():
        pid = _mapping(site).get("pid")
        if is_name(name) and isinstance(pid, int) and pid > 0 and _is_site_of(folder, pid):
            yield name, pid


def _is_site_of(folder: Path, pid: int) -> bool:
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes()
        home = (_PROC / str(pid) / "cwd").readlink()
        sites = (folder / "sites").resolve()
    except OSError:
        return False
    # Numbers of processes are used again, after a reboot by sites of another run, too.
    return b"thalweg.spark.site" in words and home.is_relative_to(sites)


def _attempt(read: Any) -> tuple[Any, str]:
    try:
        return read(), ""
    except ThalwegError as error:
        # A finding has a remedy of its own.
        fault, _, _ = str(error).partition(". Hint: ")
        return None, fault[:_MOST_SHOWN]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        return float(value) if good and abs(value) < 1e15 else None  # type: ignore[arg-type]
    except OverflowError:
        return None
