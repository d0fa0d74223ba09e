"""Where a site's Spark is reached."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from thalweg.errors import Defects, nearest

LOCAL = "local"
ADDRESS_RULE = (
    "the Spark of a site: local, local[N], spark://host:port, k8s://…, yarn or sc://host:port"
)
ADDRESS_PATTERN = (
    r"local(\[([1-9][0-9]{0,3}|\*)\])?|local-cluster\[[0-9]+(, *[0-9]+){2}\]|yarn"
    r"|(spark|k8s|sc)://[A-Za-z0-9\[][^\s\x00-\x1f\x7f]{0,500}"
)
_ADDRESS = re.compile(ADDRESS_PATTERN)


def is_address(text: object) -> bool:
    """Whether the text can be the Spark of a site.

    >>> [is_address(text) for text in ("local[2]", "sc://spark.example:15002", "10.0.0.7")]
    [True, True, False]
    """
    return isinstance(text, str) and _ADDRESS.fullmatch(text) is not None


def address_hint(text: object) -> str:
    """What is likely to be meant by a text that is no address.

    >>> address_hint("spark.example:7077"), address_hint("https://spark.example")
    ('write spark:// or sc:// in front', 'it starts with spark:// or sc://')
    """
    if not isinstance(text, str) or not text:
        return ""
    if "://" in text:
        return "it starts with spark:// or sc://"
    if ":" in text or "." in text:
        return "write spark:// or sc:// in front"
    return nearest(text, (LOCAL, "yarn")) if len(text) <= 20 else ""


def require_addresses(
    defects: Defects, addresses: Mapping[str, str], sites: Collection[str]
) -> None:
    """Remember a defect for each address that is none, or of no site."""
    known = set(sites)
    for site, address in addresses.items():
        path = f"addresses.{site}"
        if site not in known:
            defects.add(path, site, "the name of a site", nearest(str(site), sites))
        defects.require(is_address(address), path, address, ADDRESS_RULE, address_hint(address))
