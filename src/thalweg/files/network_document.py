"""A network as it stands in a file: the fields, what each needs, and what it means."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from thalweg.files.fields import MayLack, Name, SparkAddress, TierName, Version, whole
from thalweg.files.quantities import (
    Bandwidth,
    CapacityMatrix,
    CpuCapacity,
    Duration,
    DurationMatrix,
    LinkCapacities,
    LinkCapacity,
    MemoryCapacity,
    Position,
    SignedLength,
)
from thalweg.files.validation import Entry

MOST_TEXT_NODES = 100_000
MOST_TEXT_SITES = 10_000
MOST_OPERATORS = 1_000_000


class NodeEntry(Entry):
    """A machine in a site, or several that are alike. What is not said to be taken is available."""

    model_config = ConfigDict(title="Node")
    noun: ClassVar[str] = "a node"
    plural: ClassVar[str] = "nodes"

    name: MayLack[Name] = Field(
        None, description="Its name in the site. All nodes of a network have one, or none has."
    )
    count: MayLack[Annotated[int, whole(1, MOST_TEXT_NODES)]] = Field(
        None, description="So many nodes like this; gw becomes gw-0, gw-1 and so on."
    )
    cpu: CpuCapacity = Field(description="CPU speed.")
    cpu_available: MayLack[CpuCapacity] = Field(None, description="CPU speed nobody uses yet.")
    memory: MemoryCapacity = Field(description="Memory.")
    memory_available: MayLack[MemoryCapacity] = Field(
        None, description="Memory that nobody uses yet."
    )
    lan_latency: Duration = Field(0.0, description="One way, to the site's gateway.")
    lan_bandwidth: MayLack[LinkCapacity] = Field(
        None,
        description="To the site's gateway, shared by both directions; unlimited if not given.",
    )
    lan_available: MayLack[LinkCapacity] = Field(
        None, description="Bandwidth to the gateway that nobody uses yet."
    )
    operators: Annotated[int, whole(0, MOST_OPERATORS)] = Field(
        0, description="Operators of other applications that share its CPU."
    )


class AreaEntry(Entry):
    """The area a site serves."""

    model_config = ConfigDict(title="Area")
    noun: ClassVar[str] = "an area"

    west: SignedLength = Field(description="Western edge.")
    south: SignedLength = Field(description="Southern edge.")
    east: SignedLength = Field(description="Eastern edge.")
    north: SignedLength = Field(description="Northern edge.")


class SiteEntry(Entry):
    """A place with nodes: an edge LAN behind a gateway, a fog site, a cloud."""

    model_config = ConfigDict(title="Site")
    noun: ClassVar[str] = "a site"
    plural: ClassVar[str] = "sites"

    name: Name = Field(description="What links, pins and people call it.")
    tier: TierName = Field(description="How far from the data it is.")
    parent: MayLack[Name] = Field(None, description="The site above.")
    edge_delay: Duration = Field(
        0.0, description="The largest delay from a device in its area to the site."
    )
    area: MayLack[AreaEntry] = Field(None, description="The area it serves.")
    position: MayLack[Position] = Field(
        None, description="With coordinates: where it lies, each coordinate a duration."
    )
    height: MayLack[Duration] = Field(
        None, description="With coordinates: what every way into and out of it takes besides."
    )
    nodes: list[NodeEntry] = Field([], description="Its machines.")
    spark: MayLack[SparkAddress] = Field(
        None, description="Where its Spark is reached when the application runs."
    )


class LinkEntry(Entry):
    """The line between two sites; both directions have this bandwidth."""

    model_config = ConfigDict(title="Link")
    noun: ClassVar[str] = "a link"
    plural: ClassVar[str] = "links"

    a: Name = Field(description="A site.")
    b: Name = Field(description="Another site.")
    latency: Duration = Field(description="One way.")
    bandwidth: LinkCapacity = Field(description="In each direction.")
    bandwidth_available: MayLack[LinkCapacities] = Field(
        None, description="What nobody uses yet: for both directions, or from a to b and back."
    )


class MeshEntry(Entry):
    """A link from every site to every other, given as matrices in the order of the sites."""

    model_config = ConfigDict(title="Mesh")
    noun: ClassVar[str] = "a mesh"

    latency: DurationMatrix = Field(description="One way, from the row's to the column's site.")
    bandwidth: CapacityMatrix = Field(description="One for all links, or a matrix.")
    bandwidth_available: MayLack[CapacityMatrix] = Field(
        None, description="What nobody uses yet: one for all links, or a matrix."
    )


class TakenEntry(Entry):
    """Bandwidth that is in use from one site to another."""

    model_config = ConfigDict(title="Taken bandwidth")
    noun: ClassVar[str] = "taken bandwidth"
    plural: ClassVar[str] = "taken bandwidths"

    a: Name = Field(description="The site it comes from.")
    b: Name = Field(description="The site it goes to.")
    bandwidth: Bandwidth = Field(description="How much is in use.")


class CoordinatesEntry(Entry):
    """A link from every site to every other; latency is the distance of positions plus heights."""

    model_config = ConfigDict(title="Coordinates")
    noun: ClassVar[str] = "coordinates"

    bandwidth: LinkCapacity = Field(description="Of every link.")
    taken: list[TakenEntry] = Field([], description="Bandwidth that is in use already.")


class NetworkDocument(Entry):
    """A network: sites, the nodes in them, and the links between them."""

    model_config = ConfigDict(
        title="Thalweg network",
        json_schema_extra={
            "anyOf": [
                {"oneOf": [{"required": [way]} for way in ("links", "mesh", "coordinates")]},
                {
                    "properties": {
                        "sites": {"maxItems": 1},
                        "links": False,
                        "mesh": False,
                        "coordinates": False,
                    }
                },
            ]
        },
    )
    noun: ClassVar[str] = "a network"

    thalweg: Version = Field(description="The version of the format.")
    network: Name = Field(description="The name of the network.")
    sites: list[SiteEntry] = Field(description="Its places, from the edge to the cloud.")
    links: MayLack[list[LinkEntry]] = Field(None, description="The lines between sites.")
    root: MayLack[Name] = Field(
        None, description="Where links form a tree: its root; the last site if not given."
    )
    mesh: MayLack[MeshEntry] = Field(None, description="Every site linked to every other.")
    coordinates: MayLack[CoordinatesEntry] = Field(
        None, description="Every site linked to every other, by positions."
    )
