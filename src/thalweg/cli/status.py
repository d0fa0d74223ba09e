"""`thalweg status`: how is a run doing?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from thalweg.cli.options import RunFolderArgument
from thalweg.cli.output import Format, FormatOption, print_json, print_table, tell_wrapped

if TYPE_CHECKING:
    from thalweg.spark.deployment.folder import RunFolder


def status(
    folder: RunFolderArgument,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Say how a run is doing, or when it was last heard of and what to do about that."""
    from dataclasses import asdict

    from thalweg.spark.deployment.folder import RunFolder
    from thalweg.spark.deployment.health import glance
    from thalweg.spark.deployment.told_status import settle_status

    found, now_s = RunFolder.of_run(folder), time.time()
    # The lock first: a run that ends now reports its end before it lets go of it.
    is_alive = found.is_held()
    told = settle_status(_read_status(found, now_s), is_alive=is_alive)
    silent_s = max(0.0, now_s - float(told.get("heartbeat_s", now_s)))
    worst = glance(found, now_s)
    if format is Format.JSON:
        seen = {"alive": is_alive, "heartbeat_age_s": round(silent_s, 3)}
        print_json({**told, **seen, "worst": None if worst is None else asdict(worst)})
        return
    tell_wrapped(describe_run(told, silent_s, is_alive=is_alive))
    if is_alive and (under_way := describe_under_way(told, now_s)):
        tell_wrapped(under_way)
    if told.get("code"):
        tell_wrapped(describe_code(told))
    if is_alive and (figures := describe_figures(told, now_s)):
        tell_wrapped(figures)
    _print_sites(told, now_s, is_alive=is_alive)
    for line in describe_deviations(told):
        tell_wrapped(line)
    if is_alive and (address := found.read_page()):
        tell_wrapped(f"page: {address}")
    if told.get("last_decision"):
        tell_wrapped(f"last decision: {told['last_decision'].get('reason', '')}")
    if worst is not None:
        # That a run has ended, and why, is told above.
        what = "" if worst.where == "run" and not is_alive else f"{worst.where}: {worst.what}; "
        tell_wrapped(f"{worst.level}: {what}`thalweg doctor {folder}` says more")


def _read_status(folder: RunFolder, now_s: float) -> dict[str, Any]:
    """How the run said that it was doing; what helps is told where that cannot be read."""
    from dataclasses import replace

    from thalweg.errors import InvalidInput
    from thalweg.spark.deployment.health import glance

    try:
        return folder.read_status()
    except InvalidInput as error:
        worst, hint = glance(folder, now_s), f"`thalweg doctor {folder.path}` says more"
        if worst is not None:
            is_same = worst.where == "status.json"
            hint = worst.remedy if is_same else f"{worst.where}: {worst.what}; {hint}"
        raise InvalidInput(replace(defect, hint=hint) for defect in error.defects) from None


def describe_code(told: dict[str, Any]) -> str:
    """The code that a run has, shortened, and since when that is known."""
    from thalweg.spark.deployment.rows_code import CodeSpan

    since_s = told.get("code_since_s")
    before = "" if since_s is None else "; that of the rows before is unknown"
    return f"{CodeSpan(digest=told['code'], since_s=since_s)}{before}"


def describe_run(told: dict[str, Any], silent_s: float, *, is_alive: bool) -> str:
    """A run in a line or two: what it is, whether it is there, and what to do if not."""
    what = f"{told.get('pipeline', 'a run')} on {told.get('network', 'a network')}"
    state = told.get("state", "starting")
    if is_alive:
        rows = f", {told['rows_in']:,} rows in" if "rows_in" in told else ""
        return f"{what}: {state}, last look {silent_s:.0f} s ago{rows}"
    again = "Hint: the same `thalweg run` goes on where it was."
    if state == "ended":
        return f"{what}: stopped {silent_s:.0f} s ago. {again}"
    if state == "failed":
        after = "Hint: when that is seen to, the same `thalweg run` goes on where it was."
        return f"{what}: failed {silent_s:.0f} s ago: {told.get('error')}\n{after}"
    return (
        f"{what}: not running; it was killed, last heard of {max(0.0, silent_s):.0f} s ago. {again}"
    )


def describe_figures(told: dict[str, Any], now_s: float) -> str:
    """The figures that decisions rest on, and where they come from; empty without any.

    >>> seen = {"uplink_bps": 2000.0, "response_time_s": 0.5, "usage": 0.25}
    >>> links = {"uplink_bps": 2000.0, "passing_bps": 800.0, "measured_at_s": 100.0}
    >>> model = {"uplink_bps": 1500.0}
    >>> print(describe_figures({"figures": seen, "estimated": model, "measured": links}, 101.0))
    uplink 2 kbps: estimated 1.5 kbps, measured 2 kbps 1 s ago, and 800 bps in passing
    response time 500 ms, usage 25 %: estimated
    """
    from thalweg.units import BANDWIDTH, DURATION, show_quantity, show_share

    def bits(value: float) -> str:
        return show_quantity(float(f"{value:.3g}"), BANDWIDTH)

    figures, estimated = told.get("figures") or {}, told.get("estimated") or {}
    measured = told.get("measured") or {}
    lines = []
    if "uplink_bps" in figures:
        sources = []
        if "uplink_bps" in estimated:
            sources.append(f"estimated {bits(estimated['uplink_bps'])}")
        if "uplink_bps" in measured:
            age_s = max(0.0, now_s - measured["measured_at_s"])
            sources.append(f"measured {bits(measured['uplink_bps'])} {age_s:.0f} s ago")
        if measured.get("passing_bps"):
            sources.append(f"and {bits(measured['passing_bps'])} in passing")
        lines.append(f"uplink {bits(figures['uplink_bps'])}: {', '.join(sources)}")
    if "response_time_s" in figures and "usage" in figures:
        time_s = show_quantity(float(f"{figures['response_time_s']:.3g}"), DURATION)
        lines.append(f"response time {time_s}, usage {show_share(figures['usage'])}: estimated")
    return "\n".join(lines)


def describe_under_way(told: dict[str, Any], now_s: float) -> str:
    """What is under way in a run, and for how long; nothing where nothing is.

    >>> change = {"kind": "change", "what": "to fog-0: parse", "began_at_s": 100.0}
    >>> describe_under_way({"under_way": change}, 107.2)
    'under way for 7 s: change to fog-0: parse'
    """
    activity = told.get("under_way")
    if not activity:
        return ""
    passed_s = max(0.0, now_s - activity["began_at_s"])
    # A restart says what it starts again.
    kind = "change " if activity["kind"] == "change" else ""
    return f"under way for {passed_s:.0f} s: {kind}{activity['what']}"


def describe_deviations(told: dict[str, Any]) -> list[str]:
    """Figures that are not as they were declared, a line for each.

    >>> size = {"operator": "rides", "figure": "event_size", "declared": 1.0}
    >>> describe_deviations({"deviations": [size | {"measured": 46.6, "low": 46.0, "high": 47.0}]})
    ['rides: event_size is declared as 1 and measured as 46.6 (46 to 47)']
    """
    return [
        f"{found['operator']}: {found['figure']} is declared as {found['declared']:.4g} and "
        f"measured as {found['measured']:.4g} ({found['low']:.4g} to {found['high']:.4g})"
        for found in told.get("deviations") or ()
    ]


def describe_site_state(site: dict[str, Any], now_s: float) -> str:
    """The state of a site, and how long it has been in it.

    >>> describe_site_state({"alive": False, "state": "down", "since_s": 5.0}, 9.0)
    'down for 4 s'
    >>> describe_site_state({"alive": False, "state": "ended", "since_s": 5.0}, 9.0)
    'ended'
    """
    # A run of an older version says only whether it is there.
    state = str(site.get("state") or ("up" if site["alive"] else "down"))
    if state in ("up", "ended") or site.get("since_s") is None:
        return state
    return f"{state} for {max(0.0, now_s - site['since_s']):.0f} s"


def _print_sites(told: dict[str, Any], now_s: float, *, is_alive: bool) -> None:
    rates = told.get("rates") or {}
    rows = []
    for name, site in told.get("sites", {}).items():
        query = (site["queries"] or [{}])[0]
        works = is_alive and site.get("state", "up") == "up"
        arriving = sum(by_site.get(name, 0.0) for by_site in rates.values())
        cut = told.get("cuts", {}).get(name)
        rows.append(
            [
                name,
                describe_site_state(site, now_s),
                "everything" if cut is None else ", ".join(cut) or "nothing",
                f"{arriving:.0f}" if cut is not None and is_alive else "",
                f"{query.get('processed_rows_per_s', 0.0):.0f}" if works else "",
                str(query.get("batch", "")),
                str(query.get("error") or ""),
            ]
        )
    if rows:
        names = ["site", "state", "runs", "rows/s in", "rows/s done", "batch", "error"]
        print_table(names, rows)
