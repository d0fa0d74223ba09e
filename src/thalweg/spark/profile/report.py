"""Shows a profile: as a table, as plain data, as a drawing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.errors import Defect, InvalidInput
from thalweg.plotting import require_plotting
from thalweg.spark.profile.fit import Measured
from thalweg.units import DURATION, SIZE, WORK, show_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thalweg.spark.profile.figures import StepProfile
    from thalweg.spark.profile.measure import Difference, Profile

# Okabe and Ito's colours, which people with any colour vision can tell apart.
_DECLARED, _MEASURED = "#999999", "#0072B2"
_COLUMNS = (
    "operator",
    "events",
    "selectivity",
    "size out",
    "compression",
    "CPU/event",
    "work",
    "state",
)


def profile_data(profile: Profile) -> dict[str, Any]:
    """The profile as plain data, with the spread of every figure."""
    return {
        "application": profile.application.name,
        "rows": dict(profile.rows),
        "rate": dict(profile.rate),
        "sites": profile.sites,
        "repeat": profile.repeat,
        "calibration": {
            "speed_ips": profile.calibration.speed_ips.to_dict(),
            "rounds": profile.calibration.rounds,
            "repeat": profile.calibration.repeat,
        },
        "operators": [_step_data(step) for step in profile.steps],
        "differences": [
            {
                "operator": found.operator,
                "figure": found.figure,
                "declared": found.declared,
                "measured": found.measured,
                "off": found.off,
            }
            for found in profile.differences()
        ],
    }


def _step_data(step: StepProfile) -> dict[str, Any]:
    declared = step.declared
    return {
        "operator": step.name,
        "role": step.role,
        "declared": {
            "event_size": declared.event_size,
            "selectivity": declared.selectivity,
            "compression": declared.compression,
            "cpu_per_event": declared.cpu_per_event,
            "cpu_per_byte": declared.cpu_per_byte,
        },
        "rows_in": step.rows_in,
        "rows_out": step.rows_out,
        "selectivity": step.selectivity.to_dict(),
        "size_in_bytes": step.size_in_bytes,
        "size_out_bytes": step.size_out_bytes,
        "link_bytes": step.link_bytes,
        "compression": step.compression.to_dict(),
        "cpu_s": step.cpu_s.to_dict(),
        "fixed_s": step.fixed_s,
        "cpu_per_event": step.work.to_dict(),
        "window_events": step.window_events,
        "window_bytes": step.window_bytes,
        "state_bytes": step.state_bytes,
    }


def profile_table(profile: Profile) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Column names and rows for people: declared → measured, with the spread of measured CPU."""
    return _COLUMNS, [_table_row(step) for step in profile.steps]


def _table_row(step: StepProfile) -> tuple[str, ...]:
    size = show_quantity(step.size_out_bytes, SIZE)
    if step.role == "source":
        declared = show_quantity(step.declared.event_size or 0.0, SIZE)
        return (step.name, f"{step.rows_out:,}", "", f"{declared} → {size}", "", "", "", "")
    return (
        step.name,
        f"{step.rows_in:,}",
        f"{step.declared.selectivity:.3g} → {step.measured.selectivity:.3g}",
        size,
        f"{step.declared.compression:.3g} → {step.measured.compression:.3g}",
        _show_spread(step.cpu_s),
        f"{show_quantity(step.declared.cpu_per_event, WORK)} → "
        f"{show_quantity(step.measured.cpu_per_event, WORK)}",
        "" if step.state_bytes is None else show_quantity(step.state_bytes, SIZE),
    )


def _show_spread(figure: Measured) -> str:
    low, high = (show_quantity(value, DURATION) for value in (figure.low, figure.high))
    return f"{show_quantity(figure.value, DURATION)} ({low} to {high})"


def show_difference(found: Difference) -> str:
    """One sentence on a declared figure that is off."""
    return (
        f"{found.operator}: {found.figure} is declared as {found.declared:.4g}"
        f" and measured as {found.measured:.4g}"
    )


def save_application(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Save the application with its measured figures; in YAML, with their spread as comments.

    Raises:
        InvalidInput: where the place does not allow it.
    """
    from thalweg.files.save import save

    save(profile.application, path)
    target = Path(path)
    if target.suffix.lower() != ".json":
        with target.open("a", encoding="utf-8") as file:
            file.writelines(f"# {line}\n" for line in _spread_lines(profile))


def _spread_lines(profile: Profile) -> list[str]:
    rows = ", ".join(f"{count:,} {name}" for name, count in profile.rows.items())
    lines = [f"Measured on {rows} at {profile.calibration}."]
    for step in profile.steps:
        if step.role != "source":
            figures = {
                "selectivity": step.selectivity,
                "compression": step.compression,
                "cpu_per_event": step.work,
            }
            shown = (f"{n} {f.low:.4g} to {f.high:.4g}" for n, f in figures.items())
            lines.append(f"{step.name}: {', '.join(shown)}")
    return lines


def plot_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Draw a profile into a file; its ending says how (.png, .svg or .pdf).

    Raises:
        InvalidInput: where it cannot be written there.
    """
    figure = draw_profile(profile)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        value, rule = (error.strerror or str(error)).lower(), "a place that can be written"
        raise InvalidInput(
            [Defect(file=os.fspath(path), path="", value=value, rule=rule)]
        ) from error


def draw_profile(profile: Profile) -> Figure:
    """The drawing: for every operator its CPU time, selectivity and event size, as bars."""
    require_plotting()
    from matplotlib.figure import Figure

    steps = [step for step in profile.steps if step.role != "source"]
    names = [step.name for step in steps]
    figure = Figure(figsize=(11, 1.8 + 0.4 * len(steps)), layout="constrained")
    left, middle, right = figure.subplots(1, 3, sharey=True)
    _draw_bars(left, names, [step.cpu_s.times(1e6) for step in steps], None)
    left.set_xlabel("CPU per event [µs]")
    _draw_bars(
        middle,
        names,
        [step.selectivity for step in steps],
        [step.declared.selectivity for step in steps],
    )
    middle.set_xlabel("selectivity")
    _draw_bars(
        right,
        names,
        [step.compression for step in steps],
        [step.declared.compression for step in steps],
    )
    right.set_xlabel("compression")
    left.invert_yaxis()
    speed = profile.calibration
    figure.suptitle(f"{profile.application.name}, measured; {speed}")
    handles, labels = middle.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _draw_bars(
    panel: Axes, names: list[str], measured: list[Measured], declared: list[float] | None
) -> None:
    """Measured figures as bars with their spread; declared ones as thin bars beneath."""
    places = range(len(names))
    values = [figure.value for figure in measured]
    spread = [
        [figure.value - figure.low for figure in measured],
        [figure.high - figure.value for figure in measured],
    ]
    shift = 0.0 if declared is None else 0.2
    height = 0.7 if declared is None else 0.4
    panel.barh(
        [place - shift for place in places],
        values,
        height=height,
        xerr=spread,
        color=_MEASURED,
        label="measured",
    )
    if declared is not None:
        lower = [place + shift for place in places]
        panel.barh(lower, declared, height=height, color=_DECLARED, label="declared")
    panel.set_yticks(list(places), names)
    panel.grid(axis="x", alpha=0.3)
