"""Links: how segments of the log get from a site to the cloud."""

from thalweg.spark.link.link import (
    ENTRY_POINT_GROUP,
    Link,
    LinkError,
    LinkGap,
    LinkLate,
    LinkOpener,
    LinkSpec,
    directory_in,
    link_kinds,
    open_link,
    parse_link,
)

__all__ = [
    "ENTRY_POINT_GROUP",
    "Link",
    "LinkError",
    "LinkGap",
    "LinkLate",
    "LinkOpener",
    "LinkSpec",
    "directory_in",
    "link_kinds",
    "open_link",
    "parse_link",
]
