"""Lines of a run's timeline in the words of a page: what ran, why, and what happened."""

from __future__ import annotations

from typing import Any

Plain = dict[str, Any]
_STATES = {"first": "first deployment", "resume": "resumed", "adapt": "adapted"}
_STATES |= {"move": "moved by hand", "rollback": "rolled back"}


def changes_in(lines: list[Plain]) -> list[Plain]:
    """The lines that say what runs from then on."""
    return [line for line in lines if line["kind"] == "cuts"]


def total_rate(nested: dict[str, dict[str, float]]) -> float:
    """Events/s of all sources at all sites."""
    return sum(rate or 0.0 for by in nested.values() for rate in by.values())


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
    """A change or something that died, on the axis of time."""
    if line["kind"] == "mark":
        told = {"kind": line["mark"], "title": line["title"], "text": line.get("text", "")}
        return {"at_s": line["at_s"], **told, "placement": None}
    kind = "change" if line.get("cause") == "resume" else str(line.get("cause"))
    reason = str(line.get("reason", ""))
    title = title_of(line) if kind in ("first", "change") else text_of(line)
    cuts = "; ".join(f"{s}: {', '.join(cut) or 'nothing'}" for s, cut in line["cuts"].items())
    return {
        "at_s": line["at_s"],
        "kind": kind,
        "title": title,
        "text": f"{reason}. Now {cuts}",
        "placement": identity_of(line),
    }
