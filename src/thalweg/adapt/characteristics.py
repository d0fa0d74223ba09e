"""Characteristics of operators as a run measures them: sizes, selectivities, work per event.

What was declared is the prior of each figure. Sizes are measured twice: as data, which is what
declared sizes mean, and on the links, where they are compressed and packed into batches. A strategy
plans with what goes over the links; memory and work per byte stay those of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from thalweg.adapt.events import BatchDone
from thalweg.adapt.ratio import HALF_LIFE_S, Estimate, Ratio
from thalweg.adapt.work import BatchWork, WorkHistory
from thalweg.model.application import Application
from thalweg.model.operator import Operator, TimeWindow

DEVIATION = 0.2
"""How far a measured figure is from the declared one before people are told."""
LINK_RATIO = "link_ratio"
"""What a strategy plans with where operators declare an event size, or a compression."""
_LARGEST_RATIO = 1e9
_TYPICAL_WORK = 1000.0
_WINDOWS = 6
_NEARLY = 0.9
Place = tuple[str, str]
"""(operator, site)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """A figure of an operator that is not what was declared."""

    operator: str
    figure: str
    declared: float
    measured: Estimate

    def to_dict(self) -> dict[str, object]:
        """The deviation as plain data."""
        found = self.measured
        return {
            "operator": self.operator,
            "site": None,
            "figure": self.figure,
            "declared": self.declared,
            "measured": found.value,
            "low": found.low,
            "high": found.high,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWindow:
    """Events in and out of a windowed operator on a site since one of its outputs was counted."""

    since_s: float
    came: float = 0.0
    went: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Characteristics:
    """What was counted of the operators and sources of one application so far."""

    size: Mapping[str, Ratio] = field(default_factory=dict)
    """Bytes of data for each event that an operator or a source put out."""
    encoding: Mapping[str, Ratio] = field(default_factory=dict)
    """Bytes on a link for each byte of data, by who put the events out."""
    any_encoding: Ratio = field(default_factory=Ratio)
    """The same of all streams together, for those that cross no link yet."""
    selectivity: Mapping[str, Ratio] = field(default_factory=dict)
    open_window: Mapping[Place, OpenWindow] = field(default_factory=dict)
    work: WorkHistory = field(default_factory=WorkHistory)

    def learn(self, batch: BatchDone, application: Application) -> Characteristics:
        """What is known after one more batch; names that the application lacks are left out."""
        size, encoding = dict(self.size), dict(self.encoding)
        selectivity, open_window = dict(self.selectivity), dict(self.open_window)
        any_encoding, known = self.any_encoding, application.index
        for name, put in batch.outputs.items():
            if name not in known or put.events <= 0:
                continue
            added = size.get(name, Ratio()).add(put.events, put.data_bytes, batch.time_s)
            size[name] = added
            if put.link_bytes is not None:
                before = encoding.get(name, Ratio())
                encoding[name] = before.add(put.data_bytes, put.link_bytes, batch.time_s)
                any_encoding = any_encoding.add(put.data_bytes, put.link_bytes, batch.time_s)
        for name, count in batch.events_in.items():
            if name not in known or application.operator(name).kind != "transform":
                continue
            pair = _pair_up(open_window, application.operator(name), batch, count)
            if pair is not None:
                half_life_s = _half_life_s(application.operator(name))
                known_so_far = selectivity.get(name, Ratio())
                selectivity[name] = known_so_far.add(*pair, batch.time_s, half_life_s=half_life_s)
        return replace(
            self,
            size=size,
            encoding=encoding,
            any_encoding=any_encoding,
            selectivity=selectivity,
            open_window=open_window,
            work=self._learn_work(batch, application),
        )

    def forget_open_windows(self) -> Characteristics:
        """The same after a change of places, which hands over what is in open windows."""
        return replace(self, open_window={})

    def _learn_work(self, batch: BatchDone, application: Application) -> WorkHistory:
        # Nothing is done in no time: what reads so was not measured.
        if not batch.instructions:
            return self.work
        passes = {
            name: count * _passes(application.operator(name))
            for name, count in batch.events_in.items()
            if name in application.index and application.operator(name).kind == "transform"
        }
        measured = BatchWork(site=batch.site, instructions=batch.instructions, events=passes)
        return self.work.add(measured)

    def measured(self, application: Application, rates: Mapping[str, float]) -> Measured:
        """The application with measured figures; `rates` are events/s of each source."""
        return Measured(declared=application, known=self, rates=dict(rates))


def _pair_up(
    open_window: dict[Place, OpenWindow],
    operator: Operator,
    batch: BatchDone,
    count: int,
) -> tuple[float, float] | None:
    """Events in and the events out that they became; None where that is not known yet.

    A window puts its events out together, long after the first came in, and perhaps in several
    batches: its pairs go from one output to another that is a slide later at least. What came
    before the first output is in none. What other operators put out may be counted with the next
    batch, so that nothing put out waits for that.
    """
    put_out = batch.events_out.get(operator.name)
    if put_out is None:
        return None
    window = operator.window
    place = (operator.name, batch.site)
    before = open_window.get(place)
    if not isinstance(window, TimeWindow):
        came = count + (0.0 if before is None else open_window.pop(place).came)
        if put_out or before is not None or not count:
            return float(came), float(put_out)
        open_window[place] = OpenWindow(since_s=batch.time_s, came=came)
        return None
    if before is None:
        if put_out:
            open_window[place] = OpenWindow(since_s=batch.time_s)
        return None
    came, went = before.came + count, before.went + put_out
    is_whole = batch.time_s - before.since_s >= _NEARLY * window.slide
    if put_out and came > 0 and is_whole:
        open_window[place] = OpenWindow(since_s=batch.time_s)
        return came, went
    open_window[place] = replace(before, came=came, went=went)
    return None


def _half_life_s(operator: Operator) -> float:
    """How soon older pairs count half; of windows, which are few, not before some have ended."""
    window = operator.window
    return max(HALF_LIFE_S, _WINDOWS * window.slide if isinstance(window, TimeWindow) else 0.0)


def _passes(operator: Operator) -> float:
    """How often an event is worked on: once for every window that it is in."""
    window = operator.window
    return window.length / window.slide if isinstance(window, TimeWindow) else 1.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """An application with the figures that were measured of it."""

    declared: Application
    known: Characteristics
    rates: Mapping[str, float]
    anchors: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By (operator, figure), what stands until it is surely another."""

    def anchored(self, anchors: Mapping[tuple[str, str], float]) -> Measured:
        """The same with these figures, but for those that are surely others by now.

        Else chance would decide which of two plans that cost nearly the same is the cheaper one.
        """
        return Measured(declared=self.declared, known=self.known, rates=self.rates, anchors=anchors)

    def _hold(self, operator: str, figure: str, found: Estimate) -> Estimate:
        """The anchor of a figure, unless what was measured is surely another."""
        anchor = self.anchors.get((operator, figure))
        if anchor is None or not found.is_measured or found.differs_from(anchor, DEVIATION):
            return found
        low, high = min(found.low, anchor), max(found.high, anchor)
        return replace(found, value=anchor, low=low, high=high)

    @cached_property
    def _flow(self) -> dict[str, float]:
        """Events/s that each operator puts out."""
        flow: dict[str, float] = {}
        for operator in self._in_order:
            if operator.kind == "source":
                # Beside sources that are counted, one that nobody has counted is silent.
                unknown = 0.0 if self.rates else operator.rate or 0.0
                flow[operator.name] = self.rates.get(operator.name, unknown)
                continue
            came = sum(
                flow[s.source] * s.probability
                for s in self.declared.streams
                if s.target == operator.name
            )
            flow[operator.name] = came * self.selectivity(operator).value
        return flow

    @property
    def _in_order(self) -> list[Operator]:
        return [self.declared.operators[k] for k in self.declared.graph.order.tolist()]

    @cached_property
    def _sizes(self) -> dict[str, tuple[float, Estimate]]:
        """By operator: bytes of data of an event that comes in, and of one that is put out."""
        out: dict[str, float] = {}
        found: dict[str, tuple[float, Estimate]] = {}
        for operator in self._in_order:
            size_in = self._mean_in(operator.name, out, self._counted)
            prior = (
                operator.event_size or 0.0
                if operator.kind == "source"
                else size_in * operator.compression
            )
            size = self.known.size.get(operator.name, Ratio()).estimate(prior)
            if operator.kind == "source":
                size = self._hold(operator.name, "event_size", size)
            elif size_in > 0:
                ratio = self._hold(operator.name, "compression", _scaled(size, 1.0 / size_in))
                size = _scaled(ratio, size_in)
            out[operator.name] = size.value
            found[operator.name] = (size_in, size)
        return found

    @cached_property
    def _on_links(self) -> dict[str, tuple[float, Estimate]]:
        """By operator, on links: bytes of an event that comes in, and the ratio of those put out.

        Of a source, for which nothing comes in, bytes of one that is put out.
        """
        common = _settled(self.known.any_encoding, Estimate(value=1.0, low=1.0, high=1.0))
        out: dict[str, float] = {}
        found = {}
        for operator in self._in_order:
            name, (_, size) = operator.name, self._sizes[operator.name]
            share = _settled(self.known.encoding.get(name, Ratio()), common)
            link_in = self._mean_in(name, out, self._counted)
            unit = 1.0 if operator.kind == "source" or link_in <= 0 else link_in
            ratio = Estimate(
                value=size.value * share.value / unit,
                low=size.low * share.low / unit,
                high=size.high * share.high / unit,
                count=max(size.count, share.count),
            )
            held = self._hold(name, LINK_RATIO, ratio)
            out[name] = held.value * unit
            found[name] = (link_in, held)
        return found

    @cached_property
    def _counted(self) -> dict[str, float]:
        """Events that each operator put out: counted in the time that sizes are measured over."""
        sizes = self.known.size
        if not sizes:
            return self._flow
        now_s = max(ratio.at_s for ratio in sizes.values())
        return {n: sizes[n].count_at(now_s) if n in sizes else 0.0 for n in self._flow}

    def _mean_in(self, name: str, size: Mapping[str, float], flow: Mapping[str, float]) -> float:
        """The mean size of what comes in, by this flow; the plain mean where nothing comes."""
        streams = [s for s in self.declared.streams if s.target == name]
        come = [(flow[s.source] * s.probability, size[s.source]) for s in streams]
        total = sum(rate for rate, _ in come)
        if total > 0:
            return sum(rate * bytes_ for rate, bytes_ in come) / total
        return sum(bytes_ for _, bytes_ in come) / len(come) if come else 0.0

    @cached_property
    def _per_event(self) -> dict[str, float]:
        """The declared work for each event that comes in [instructions], 0 where there is none."""
        return {
            operator.name: operator.cpu_per_event
            + operator.cpu_per_byte * self._sizes[operator.name][0]
            for operator in self.declared.operators
            if operator.kind == "transform"
        }

    @cached_property
    def _typical_work(self) -> float:
        """What stands for the work of operators of which none is declared."""
        declared = [work for work in self._per_event.values() if work > 0]
        return sum(declared) / len(declared) if declared else _TYPICAL_WORK

    @cached_property
    def _work(self) -> dict[str, Estimate]:
        """By which factor each operator's work per event is off."""
        undeclared = frozenset(name for name, work in self._per_event.items() if work <= 0)
        expected = {n: work or self._typical_work for n, work in self._per_event.items()}
        found = {}
        for name, factor in self.known.work.estimate(expected, vague=undeclared).items():
            figure, unit = self._work_figure(self.declared.operator(name))
            held = self._hold(name, figure, _scaled(factor, unit))
            found[name] = _scaled(held, 1.0 / unit)
        return found

    def _work_figure(self, operator: Operator) -> tuple[str, float]:
        """The figure by which an operator's work is known, and what it is as declared."""
        if operator.cpu_per_event > 0:
            return "cpu_per_event", operator.cpu_per_event
        if operator.cpu_per_byte > 0:
            return "cpu_per_byte", operator.cpu_per_byte
        return "cpu_per_event", self._typical_work

    def selectivity(self, operator: Operator) -> Estimate:
        """Events out for each event in."""
        declared = operator.selectivity
        found = self.known.selectivity.get(operator.name, Ratio()).estimate(declared)
        # The first windows say little: how many events a batch reads between two of them is chance.
        if isinstance(operator.window, TimeWindow) and found.low <= declared <= found.high:
            found = replace(found, value=declared)
        return self._hold(operator.name, "selectivity", found)

    @property
    def is_measured(self) -> bool:
        """Whether anything was measured."""
        return self.known != Characteristics()

    @cached_property
    def application(self) -> Application:
        """What a strategy plans with: measured figures, sizes as they are on links."""
        if not self.is_measured:
            return self.declared
        operators = [self._operator(operator) for operator in self.declared.operators]
        return replace(self.declared, operators=operators)

    def _operator(self, operator: Operator) -> Operator:
        data_in, _ = self._sizes[operator.name]
        link_in, link_ratio = self._on_links[operator.name]
        if operator.kind == "source":
            return replace(operator, event_size=max(link_ratio.value, 1e-9))
        per_byte = data_in / link_in if link_in > 0 else 1.0
        changed = {
            "memory_factor": min(operator.memory_factor * per_byte, _LARGEST_RATIO),
            "cpu_per_byte": operator.cpu_per_byte * per_byte,
        }
        if operator.kind == "transform":
            changed["selectivity"] = min(self.selectivity(operator).value, _LARGEST_RATIO)
            if link_in > 0:
                changed["compression"] = min(link_ratio.value, _LARGEST_RATIO)
            factor = self._work.get(operator.name)
            if factor is not None:
                figure, unit = self._work_figure(operator)
                changed["cpu_per_event"] = operator.cpu_per_event * factor.value
                changed["cpu_per_byte"] *= factor.value
                if figure == "cpu_per_event":
                    changed["cpu_per_event"] = unit * factor.value
        return replace(operator, **changed)  # type: ignore[arg-type]  # all of them numbers

    def figures(self) -> dict[str, dict[str, Estimate]]:
        """Every figure that was measured, in the meaning that declarations have."""
        found: dict[str, dict[str, Estimate]] = {}
        for operator in self.declared.operators:
            size_in, out = self._sizes[operator.name]
            own: dict[str, Estimate] = {}
            if operator.kind == "source":
                own["event_size"] = out
            elif operator.kind == "transform":
                own["selectivity"] = self.selectivity(operator)
                if size_in > 0:
                    own["compression"] = _scaled(out, 1.0 / size_in)
                factor = self._work.get(operator.name)
                if factor is not None:
                    figure, unit = self._work_figure(operator)
                    own[figure] = _scaled(factor, unit)
                    if figure == "cpu_per_event" and operator.cpu_per_byte > 0:
                        own["cpu_per_byte"] = _scaled(factor, operator.cpu_per_byte)
            found[operator.name] = {name: e for name, e in own.items() if e.is_measured}
        return found

    def planned_with(self) -> dict[tuple[str, str], Estimate]:
        """What a strategy plans with and declarations do not say, by (operator, figure)."""
        found = {
            (operator, figure): estimate
            for operator, own in self.figures().items()
            for figure, estimate in own.items()
        }
        for name, (_, ratio) in self._on_links.items():
            if ratio.is_measured and self.declared.operator(name).kind != "sink":
                found[name, LINK_RATIO] = ratio
        return found

    def declared_figure(self, operator: str, figure: str) -> float:
        """What is planned with as long as a figure is not measured."""
        declared = self.declared.operator(operator)
        if figure == LINK_RATIO:
            figure = "event_size" if declared.kind == "source" else "compression"
        return float(getattr(declared, figure) or 0.0)

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """Every measured figure with its interval and what was declared, as plain data."""
        return {
            operator: {
                figure: {
                    "declared": float(getattr(self.declared.operator(operator), figure) or 0.0),
                    "value": found.value,
                    "low": found.low,
                    "high": found.high,
                    "count": round(found.count, 1),
                }
                for figure, found in own.items()
            }
            for operator, own in self.figures().items()
            if own
        }

    def deviations(self, share: float = DEVIATION) -> tuple[Deviation, ...]:
        """The figures that are further from what was declared than this share of it."""
        found, figures = [], self.figures()
        for operator in self.declared.operators:
            for figure, measured in figures.get(operator.name, {}).items():
                declared = float(getattr(operator, figure) or 0.0)
                if measured.differs_from(declared, share):
                    found.append(
                        Deviation(
                            operator=operator.name,
                            figure=figure,
                            declared=declared,
                            measured=measured,
                        )
                    )
        return tuple(found)


def _settled(ratio: Ratio, prior: Estimate) -> Estimate:
    """A ratio that is known well, or surely another than its prior; else the prior.

    The first batches after a start are small, and what they cost on a link is mostly their frame.
    """
    found = ratio.estimate(prior.value)
    is_known = found.is_precise or found.differs_from(prior.value, 0.0)
    return found if is_known else prior


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    return replace(
        estimate,
        value=estimate.value * factor,
        low=estimate.low * factor,
        high=estimate.high * factor,
    )
