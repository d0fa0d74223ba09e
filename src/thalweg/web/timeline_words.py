"""Lines of a run's timeline in the words of a page: what ran, why, and what happened."""

from __future__ import annotations

from typing import Any

from thalweg.web.run_frame import UP

Plain = dict[str, Any]
_STATES = {"first": "first deployment", "resume": "resumed", "adapt": "adapted"}
_STATES |= {"move": "moved by hand", "rollback": "rolled back"}


def changes_in(lines: list[Plain]) -> list[Plain]:
    """The lines that say what runs from then on."""
    return [line for line in lines if line["kind"] == "cuts"]


def total_rate(nested: dict[str, dict[str, float]]) -> float:
    """Events/s of all sources at all sites, as far as they are known."""
    return sum(r for by in nested.values() for r in by.values() if r is not None)


def rows_of_now(lines: list[Plain]) -> Plain:
    """Rows in and out per second by site and operator, of the sites that are up."""
    frame: Plain = next((line for line in reversed(lines) if line["kind"] == "frame"), {})
    sites = frame.get("sites") or {}
    return {
        site: flows
        for site, flows in (frame.get("operators") or {}).items()
        if (sites.get(site) or {}).get("state", UP) == UP
    }


def identity_of(line: Plain) -> str:
    """The name of the placement that begins with a line."""
    return f"p{line['at_s']:.3f}"


def title_of(line: Plain) -> str:
    """What happened, in a word or two."""
    return _STATES.get(str(line.get("cause")), str(line.get("cause", "")))


def text_of(line: Plain) -> str:
    """What happened and why, said once."""
    title, reason = title_of(line), str(line.get("reason", ""))
    return reason if reason.startswith(title) else f"{title}: {reason}"


def mark_of(line: Plain) -> Plain:
    """A change or something that died, on the axis of time.

    What takes a while has two marks with one `event`: its `phase` is "begin", then "end".
    """
    if line["kind"] == "mark":
        found = {"kind": line["mark"], "title": line["title"], "text": line.get("text", "")}
        event, phase = line.get("event"), line.get("phase")
        if isinstance(event, (str, int)) and phase in ("begin", "end"):
            found |= {"event": str(event), "phase": phase}
        return {"at_s": line["at_s"], **found, "placement": None}
    kind = "change" if line.get("cause") == "resume" else str(line.get("cause"))
    reason = str(line.get("reason", ""))
    title = title_of(line) if kind in ("first", "change") else text_of(line)
    cuts = "; ".join(f"{s}: {', '.join(cut) or 'nothing'}" for s, cut in line["cuts"].items())
    return {
        "at_s": line["at_s"],
        "kind": kind,
        "title": title,
        # It is read much later, too: "now" would be wrong then.
        "text": f"{reason}. From then on {cuts}",
        "placement": identity_of(line),
    }
