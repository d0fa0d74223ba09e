"""What a strategy is asked: this application, on this network, at these rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects, nearest
from thalweg.model.application import Application
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index, distinct
from thalweg.model.network import Network, Tier
from thalweg.model.operator import Pin

_LARGEST_RATE = 1e15
# Far above anything real, far below where products of rates, sizes and work overflow.
_MOST_TRAFFIC = 1e30


@dataclass(frozen=True, eq=False)
class Births:
    """Where events are born: one row for each source in each of its sites."""

    operator: Index
    site: Index
    node: Index
    rate: Floats

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """An application to be put on a network.

    `rates` gives events/s for (source, site); a source that it does not name is born evenly in
    all the sites of its pin. In each of them it sits on the site's first node, unless it is
    pinned to a node.
    """

    application: Application
    network: Network
    rates: Mapping[tuple[str, str], float] | None = None

    def __post_init__(self) -> None:
        defects = Defects()
        for name, wanted in (("application", Application), ("network", Network)):
            given = getattr(self, name)
            hint = "are application and network swapped?" if _is_other(given, wanted) else ""
            rule = f"a value of the class {wanted.__name__}"
            defects.require(isinstance(given, wanted), name, type(given).__name__, rule, hint)
        pairs = self.rates is None or (
            isinstance(self.rates, Mapping)
            and all(isinstance(key, tuple) and len(key) == 2 for key in self.rates)
        )
        defects.require(pairs, "rates", self.rates, "events/s for (source, site) pairs")
        defects.raise_if_any()
        for position, operator in enumerate(self.application.operators):
            if operator.pin is not None:
                _require_pin(defects, f"operators[{position}].pin", operator.pin, self.network)
        if not defects:
            self._require_rates(defects)
        if not defects:
            self._require_sane_traffic(defects)
        defects.raise_if_any()

    def _require_rates(self, defects: Defects) -> None:
        names = self.application.operators
        born = {
            (names[o].name, self.network.site_names[s])
            for o, s in zip(*(x.tolist() for x in self._birth_places), strict=True)
        }
        for (source, site), rate in (self.rates or {}).items():
            path = f"rates[{source}, {site}]"
            defects.require(
                (source, site) in born, path, f"{source} in {site}", "a source and one of its sites"
            )
            number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
            defects.require(
                number and 0 <= rate <= _LARGEST_RATE,
                path,
                rate,
                "a finite number of events/s >= 0",
            )

    def _require_sane_traffic(self, defects: Defects) -> None:
        """No operator multiplies events or their size until the numbers run out."""
        app, births = self.application, self.births
        total = np.bincount(births.operator, weights=births.rate, minlength=len(app.operators))
        rate = total.tolist()
        size = app.columns.event_size.tolist()
        leaving: list[list[int]] = [[] for _ in app.operators]
        for stream, source in enumerate(app.graph.source.tolist()):
            leaving[source].append(stream)
        target, probability = app.graph.target.tolist(), app.probability.tolist()
        for position in app.graph.order.tolist():
            operator = app.operators[position]
            if not (rate[position] <= _MOST_TRAFFIC and size[position] <= _MOST_TRAFFIC):
                defects.add(
                    f"operators[{position}]",
                    f"{rate[position]:.3g} events/s of {size[position]:.3g} bytes",
                    f"at most {_MOST_TRAFFIC:g} events/s of {_MOST_TRAFFIC:g} bytes that come in",
                    "look at the selectivity and compression of the operators before it",
                )
                return
            grows = operator.kind != "source"
            rate_out = rate[position] * (operator.selectivity if grows else 1.0)
            size_out = size[position] * (operator.compression if grows else 1.0)
            for stream in leaving[position]:
                rate[target[stream]] += rate_out * probability[stream]
                size[target[stream]] = max(size[target[stream]], size_out)

    def allowed_nodes(self, operator: int) -> npt.NDArray[np.int64] | None:
        """The nodes that the operator's pin allows, ascending; None for all."""
        pin = self.application.operators[operator].pin
        if pin is None:
            return None
        if pin.node is not None:
            return np.array([self.network.node_index(pin.node)], dtype=np.int64)
        if pin.site is not None:
            return self.network.nodes_in_site(self.network.site_index[pin.site])
        return self.network.nodes_in_tier(Tier[str(pin.tier).upper()])

    @cached_property
    def _birth_places(self) -> tuple[Index, Index]:
        operators: list[npt.NDArray[np.int32]] = []
        sites: list[npt.NDArray[np.int32]] = []
        for position, operator in enumerate(self.application.operators):
            if operator.kind == "source":
                nodes = self.allowed_nodes(position)
                if nodes is None:  # pragma: no cover - a source without a pin is never born
                    continue
                at = distinct(self.network.node_site[nodes])
                sites.append(at.astype(np.int32))
                operators.append(np.full(at.shape, position, dtype=np.int32))
        return np.concatenate(operators), np.concatenate(sites)

    @cached_property
    def births(self) -> Births:
        """Every source in every site where it is born, with its node and rate."""
        operator, site = self._birth_places
        app, net = self.application, self.network
        node = net.first_node[site].astype(np.int32)
        total = np.array([o.rate or 0.0 for o in app.operators])
        rate = total[operator] / np.bincount(operator, minlength=len(app.operators))[operator]
        for row, (o, s) in enumerate(zip(operator.tolist(), site.tolist(), strict=True)):
            pin = app.operators[o].pin
            if pin is not None and pin.node is not None:
                node[row] = net.node_index(pin.node)
            if self.rates:
                key = (app.operators[o].name, net.site_names[s])
                rate[row] = self.rates.get(key, rate[row])
        return Births(operator, site, node, rate)

    @property
    def birth_rates(self) -> dict[tuple[str, str], float]:
        """Events/s of every (source, site), in the order of the births."""
        names, sites, births = self.application.operators, self.network.site_names, self.births
        return {
            (names[o].name, sites[s]): rate
            for o, s, rate in zip(
                births.operator.tolist(), births.site.tolist(), births.rate.tolist(), strict=True
            )
        }


def _is_other(given: object, wanted: type) -> bool:
    return isinstance(given, (Application, Network)) and not isinstance(given, wanted)


def _require_pin(defects: Defects, path: str, pin: Pin, network: Network) -> None:
    if pin.site is not None:
        if pin.site not in network.site_index:
            hint = nearest(pin.site, network.site_names)
            defects.add(f"{path}.site", pin.site, f"a site of {network.name}", hint)
        elif not network.nodes_in_site(network.site_index[pin.site]).size:
            defects.add(f"{path}.site", pin.site, "a site that has nodes")
    elif pin.node is not None:
        try:
            network.node_index(pin.node)
        except KeyError:
            site = pin.node.partition("/")[0]
            known = site in network.site_index
            first = network.first_node[network.site_index[site]] if known else 0
            example = network.node_name(min(int(first), network.node_count - 1))
            hint = (
                f'nodes there are named like "{example}"'
                if known
                else (nearest(site, network.site_names))
            )
            defects.add(f"{path}.node", pin.node, f"a node of {network.name}", hint)
    elif not network.nodes_in_tier(Tier[str(pin.tier).upper()]).size:
        defects.add(
            f"{path}.tier", pin.tier, f"a tier that {network.name} has", "no node is in this tier"
        )
