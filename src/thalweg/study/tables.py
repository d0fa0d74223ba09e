"""A study for people: tables no wider than a terminal, and notes below them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thalweg.errors import printable
from thalweg.model.table import format_table
from thalweg.study.families import BY_NAME, FIGURES, Figure
from thalweg.study.planned import Row
from thalweg.study.summary import group_rows
from thalweg.units import show_number

if TYPE_CHECKING:
    from thalweg.study.result import Study

MAX_WIDTH = 100
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))
_ABSENT = "–"
_MAX_DIGITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Names of columns, rows of cells, and a title."""

    title: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...] = ()
    """Columns for which there is no room."""

    def __str__(self) -> str:
        return f"{self.title}\n{format_table(self.names, self.rows)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    name: str
    cells: tuple[str, ...]

    @property
    def width(self) -> int:
        return max(map(len, (self.name, *self.cells)))


def make_tables(study: Study) -> list[Table]:
    """A table for each case: a row for each value of the swept parameters and strategy."""
    return [_make_table(study, case) for case in study.cases]


def _make_table(study: Study, case: str) -> Table:
    keys = (*study.vary, "strategy")
    means = means_of(study, case)
    first = [
        _Column(name=name, cells=tuple(_show_value(key[k]) for key in means))
        for k, name in enumerate(keys)
    ]
    columns = [*first, *_figure_columns(study, case, means)]
    left_out: list[str] = []
    while len(columns) > len(first) + 1 and _width(columns) > MAX_WIDTH:
        # The last figure goes, not what follows the figures.
        left_out.insert(0, columns.pop(_last_figure(columns)).name.partition(" [")[0])
    return Table(
        title=_title(study, case, len({key[-1] for key in means})),
        names=tuple(column.name for column in columns),
        rows=tuple(zip(*(column.cells for column in columns), strict=True)),
        left_out=tuple(left_out),
    )


def means_of(study: Study, case: str) -> dict[tuple[Any, ...], dict[str, Row]]:
    """The means of each figure by value and strategy; of a single plan also if not feasible."""
    keys = (*study.vary, "strategy")
    means: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in study.rows:
        if row["case"] != case or row["feasible"] is None:
            continue
        own = means.setdefault(tuple(row[name] for name in keys), {})
        if len(study.seeds) == 1 and not row["feasible"]:
            for figure in FIGURES:
                if row[figure.name] is not None:
                    own[figure.name] = {
                        **{name: row[name] for name in keys},
                        "figure": figure.name,
                        "planned": 1,
                        "feasible": 0,
                        "mean": row[figure.name],
                        "low": None,
                        "high": None,
                        "best": False,
                    }
    for row in study.summary:
        if row["case"] == case:
            means[tuple(row[name] for name in keys)][row["figure"]] = row
    return means


def _width(columns: Sequence[_Column]) -> int:
    return sum(column.width for column in columns) + 2 * (len(columns) - 1)


def _last_figure(columns: Sequence[_Column]) -> int:
    kept = ("feasible", "vs best")
    return max(k for k, c in enumerate(columns) if c.name not in kept and c.name[:3] != "vs ")


def _figure_columns(
    study: Study, case: str, means: dict[tuple[Any, ...], dict[str, Row]]
) -> list[_Column]:
    family = study.family
    shown = [BY_NAME[name] for name in family.shown]
    if study.simulate_s is not None:
        shown.insert(1, BY_NAME["simulated_p99_s"])
    figures = [_show_figure(figure, list(means.values())) for figure in shown]
    figures.append(_show_figure(BY_NAME["seconds"], list(means.values())))
    if study.vary:
        figures.insert(len(shown), _show_figure(BY_NAME["moved"], list(means.values())))
    if not study.vary and len(study.seeds) == 1:
        figures.append(_show_figure(BY_NAME["candidates"], list(means.values())))
    against = _against(study, case, means)
    return [figures[0], against, *figures[1:], _feasible(study, case, list(means))]


def _feasible(study: Study, case: str, keys: Sequence[tuple[Any, ...]]) -> _Column:
    groups = group_rows((r for r in study.rows if r["case"] == case), (*study.vary, "strategy"))
    cells = []
    for key in keys:
        rows = groups[key]
        count = sum(bool(row["feasible"]) for row in rows)
        cells.append(f"{count}/{len(rows)}" if len(rows) > 1 else ("yes" if count else "no"))
    return _Column(name="feasible", cells=tuple(cells))


def _show_figure(figure: Figure, means: Sequence[dict[str, Row]]) -> _Column:
    """The means of a figure in one unit, with half of their intervals where there are any."""
    rows = [own.get(figure.name) for own in means]
    scale, prefix = scale_of([row for row in rows if row is not None])
    cells = [_ABSENT if row is None else _show_mean(row, scale) for row in rows]
    unit = f" [{prefix}{figure.unit}]" if figure.unit else ""
    return _Column(name=f"{figure.label}{unit}", cells=tuple(cells))


def scale_of(rows: Sequence[Row]) -> tuple[float, str]:
    """What the means of a figure are divided by so that the largest is from 1 to 1000."""
    unit = BY_NAME[rows[0]["figure"]].unit if rows else ""
    if unit in ("", "%"):
        return (0.01 if unit else 1.0), ""
    largest = max((row["mean"] for row in rows if math.isfinite(row["mean"])), default=0.0)
    smallest = _PREFIXES[-1] if largest > 0 else (1.0, "")
    return next(((scale, prefix) for scale, prefix in _PREFIXES if largest >= scale), smallest)


def _show_mean(row: Row, scale: float) -> str:
    mean, low, high = row["mean"], row["low"], row["high"]
    if not math.isfinite(mean):
        return "∞"
    value = mean / scale
    if low is None or high is None:
        return _short(value, 5)
    half = (high - low) / 2 / scale
    if half <= 1e-9 * abs(value):
        return f"{_short(value, 6)} ±0"
    digits = max(0, 1 - math.floor(math.log10(half)))
    if digits > _MAX_DIGITS:
        # As many digits as the interval leaves: the mean must not be rounded out of it.
        significant = math.floor(math.log10(abs(value))) - math.floor(math.log10(half)) + 1
        return f"{value:.{max(1, significant)}g} ±{half:.0e}"
    return f"{value:.{digits}f} ±{half:.{digits}f}"


def _short(value: float, digits: int) -> str:
    if value and (abs(value) < 1e-3 or abs(value) >= 10**7):
        return f"{value:.{digits - 2}g}"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.{max(0, digits - 1 - max(0, math.floor(math.log10(abs(value)))))}f}"


def _against(study: Study, case: str, means: dict[tuple[Any, ...], dict[str, Row]]) -> _Column:
    """How far the main figure is from the best, or with several seeds from the baseline."""
    main = study.family.minimised
    if len(study.seeds) > 1 and study.baseline is not None:
        keys = ("case", *study.vary, "strategy", "figure")
        tests = {tuple(row[name] for name in keys): row for row in study.tests}
        cells = [
            _show_test(tests.get((case, *key, main)), own.get(main), key[-1] == study.baseline)
            for key, own in means.items()
        ]
        return _Column(name=f"vs {study.baseline}", cells=tuple(cells))
    best: dict[tuple[Any, ...], float] = {}
    for key, own in means.items():
        if main in own and own[main]["best"]:
            best[key[:-1]] = min(own[main]["mean"], best.get(key[:-1], math.inf))
    cells = [_show_distance(own.get(main), best.get(key[:-1])) for key, own in means.items()]
    return _Column(name="vs best", cells=tuple(cells))


def _show_test(test: Row | None, mean: Row | None, is_baseline: bool) -> str:
    star = " best" if mean is not None and mean["best"] else ""
    if is_baseline:
        return f"baseline{star}"
    if test is None:
        return star.strip()
    change = "" if test["relative"] is None else f"{_percent(test['relative'])} "
    return f"{change}{_show_p(test['t_p_holm'])}{star}".replace("-", "−", 1)


def _show_p(p: float) -> str:
    return "p<0.001" if p < 0.001 else f"p={p:.3f}"


def _show_distance(mean: Row | None, best: float | None) -> str:
    if mean is None or best is None or not mean["feasible"]:
        return ""
    if mean["best"]:
        # Of several that tie, each is.
        return "best"
    return _percent(mean["mean"] / best - 1) if best else ""


def _percent(share: float) -> str:
    if abs(share) >= 10:
        return f"×{1 + share:,.1f}"
    return f"{100 * share:+.2f} %" if abs(share) < 1 else f"{100 * share:+.0f} %"


def _show_value(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return show_number(round(value, 9))
    return printable(str(value))


def _title(study: Study, case: str, strategies: int) -> str:
    row = next(row for row in study.rows if row["case"] == case)
    about = f"{row['application']} on {row['network']}"
    if case not in (row["network"], about):
        about = f"{case}: {row['application']}"
    parts = [f"{strategies} {'strategy' if strategies == 1 else 'strategies'}"]
    if len(study.seeds) > 1:
        parts.append(f"{len(study.seeds)} seeds")
    return f"{about}: {', '.join(parts)}"


def make_notes(study: Study) -> list[str]:
    """Lines no wider than the tables: how to read them, what is refused, what is violated."""
    notes = []
    left_out = dict.fromkeys(name for table in make_tables(study) for name in table.left_out)
    if left_out:
        notes.append(f"not shown for want of room: {', '.join(left_out)}")
    if len(study.seeds) > 1:
        text = "means of the feasible plans, ± half of a 95 % interval (Student's t)"
        if study.baseline is not None:
            text += (
                f"; vs {study.baseline}: mean difference in {BY_NAME[study.family.minimised].label}"
                ", p of a paired t-test after Holm"
            )
        notes.append(text)
    for (strategy,), rows in group_rows(study.rows, ("strategy",)).items():
        broken = [row for row in rows if row["feasible"] is False]
        if broken:
            share = f" ({len(broken)} of {len(rows)} plans)" if len(rows) > 1 else ""
            first, _, more = broken[0]["violations"].partition("; ")
            also = f", and {more.count('; ') + 1} more" if more else ""
            notes.append(f"{strategy} is not feasible{share}: {first}{also}")
        notes += dict.fromkeys(f"{strategy}: {row['note']}" for row in rows if row["note"])
    # Strategies of one kind refuse for the same reason.
    alike: dict[str, list[str]] = {}
    for strategy, why in study.refusals.items():
        alike.setdefault(why, []).append(strategy)
    notes += [f"{', '.join(names)}: no plan: {why}" for why, names in alike.items()]
    return [
        line
        for note in notes
        for line in textwrap.wrap(printable(note), MAX_WIDTH, subsequent_indent="  ")
    ]
