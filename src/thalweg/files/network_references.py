"""The names that join the parts of a network: whether they lead anywhere, and to what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thalweg.errors import Defects, InvalidInput
from thalweg.files.connectivity import require_connected
from thalweg.files.validation import Hints, list_of, renumber, require_known, text_of
from thalweg.model import Link, Node, Site, build_network
from thalweg.model.names import is_name

_SITE_RULE = "the name of a site"
_MOST_NAMES_SHOWN = 8

NumberedLinks = list[tuple[int, Mapping[str, Any]]]


def check_references(defects: Defects, data: Mapping[str, object]) -> None:
    """Whether names lead to sites and sites differ, as far as it is known despite other defects."""
    sites, links = list_of(data, "sites") or [], list_of(data, "links") or []
    names = [str(name) for name in (text_of(item, "name") for item in sites) if is_name(name)]
    if not names or len(names) != len(sites):
        return
    known = {name: position for position, name in enumerate(names)}
    hints = Hints()

    def is_site(item: object, path: str, field: str) -> bool:
        name = text_of(item, field)
        if name is None or not is_name(name):
            return False
        return require_known(defects, f"{path}{field}", name, known, _SITE_RULE, hints)

    parents = [
        known[str(text_of(item, "parent"))] if is_site(item, f"sites[{k}].", "parent") else -1
        for k, item in enumerate(sites)
    ]
    if len(known) == len(names):
        _require_parents_end(defects, names, parents)
    is_site(data, "", "root")
    for position, item in enumerate(list_of(data.get("coordinates"), "taken") or []):
        for end in ("a", "b"):
            is_site(item, f"coordinates.taken[{position}].", end)
    joined: NumberedLinks = []
    for position, item in enumerate(links):
        known_ends = [is_site(item, f"links[{position}].", end) for end in ("a", "b")]
        if all(known_ends):
            joined.append((position, item))
    if not defects:
        return
    _check_stand_ins(defects, names, joined)
    if "links" in data and len(known) == len(names) and len(joined) == len(links):
        ends = [(known[item["a"]], known[item["b"]]) for _, item in joined]
        require_connected(defects, tuple(names), ends)


def _require_parents_end(defects: Defects, names: list[str], parents: list[int]) -> None:
    """Remember every circle of parents, at its first site."""
    seen: dict[int, int] = {}
    for start in range(len(parents)):
        way: list[int] = []
        site = start
        while site >= 0 and site not in seen:
            seen[site] = start
            way.append(site)
            site = parents[site]
        if site >= 0 and seen[site] == start:
            circle = [names[k] for k in [*way[way.index(site) :], site]]
            if len(circle) > _MOST_NAMES_SHOWN:
                circle[_MOST_NAMES_SHOWN - 2 : -1] = ["…"]
            path, rule = f"sites[{site}].parent", "parents that do not lead back to the site"
            defects.add(path, names[parents[site]], rule, f"they go {' → '.join(circle)}")


def _check_stand_ins(defects: Defects, names: list[str], links: NumberedLinks) -> None:
    """What the model says to sites of these names and links with these ends, all else set right."""
    node = Node(name="any", cpu_ips=1.0, memory_bytes=1.0)
    try:
        build_network(
            "unnamed",
            [Site(name=name, tier="edge", nodes=(node,)) for name in names],
            [Link(a=item["a"], b=item["b"], latency_s=0.0, bandwidth_bps=1.0) for _, item in links],
        )
    except InvalidInput as error:
        numbers = [position for position, _ in links]
        defects.absorb(InvalidInput(renumber(d, "links", numbers) for d in error.defects))
