"""Links: how the rows that cross a cut come from a site's log into the cloud's.

With the default link nothing is shipped: sites and cloud have one log, on a disk that all of them
reach. With any other link a site has a log of its own, on its own disk. A sender
(`thalweg.spark.link.sender`) hands every segment of the streams `edges/…` to the link, in order,
and a receiver (`thalweg.spark.link.receiver`) publishes it in the cloud's log under the key that it
has at the site: stream, site, epoch and batch. Publishing is done once, however often it is asked
for; so a link need only carry every envelope at least once, and those of a site in order, for every
row to be in the cloud's log exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from thalweg.errors import Defects, NotInTime, ThalwegError, nearest
from thalweg.spark.link.kafka_address import parse_kafka_address

if TYPE_CHECKING:
    from thalweg.spark.link.envelope import Envelope

DIRECTORY, KAFKA = "directory", "kafka"
ENTRY_POINT_GROUP = "thalweg.links"


class LinkError(ThalwegError):
    """Rows cannot go over a link; the message names its address and the cause."""


class LinkLate(LinkError, NotInTime):
    """What is waited for has not come over a link yet; the link itself works, or tries to."""


class LinkGap(LinkError):
    """Something that was sent before has not arrived."""


class Link(Protocol):
    """Carries envelopes from sites to the cloud: each at least once, those of a site in order.

    A sender uses `send`, `flush` and `close`, a receiver the others; each from a thread of its own,
    and each with a link that it does not share. `problem` is what was wrong last and may still be,
    for people; nothing where all is well.
    """

    address: str
    problem: str

    def send(self, envelope: Envelope) -> None:
        """Take an envelope; it may be under way when this returns.

        Raises:
            LinkError: where it will never arrive. An outage is no such thing: it is waited out.
        """

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was sent is safe with the link; False where it is not by then.

        Raises:
            LinkError: where something of it is lost.
        """

    def listen(self, reader: str) -> None:
        """Begin to receive what this reader has not acknowledged; for a new reader, everything.

        Raises:
            LinkError: where there is nothing to receive from.
        """

    def receive(self, timeout_s: float) -> Sequence[Envelope]:
        """The next envelopes; none where none come within this time.

        Raises:
            LinkError: where some are gone for good, or are no envelopes.
        """

    def acknowledge(self) -> None:
        """Say that all that was received is in the log: it need not be delivered again."""

    def close(self) -> None:
        """Let go of the link; what was not flushed may be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSpec:
    """Which link a site has: its kind, and an address that begins with the kind.

    A directory link without an address is the default: one log for the site and the cloud.

    >>> LinkSpec().ships, LinkSpec(kind="kafka", address="kafka://broker:9092/rides").ships
    (False, True)

    Raises:
        InvalidInput: with all that is wrong with the kind and the address.
    """

    kind: str = DIRECTORY
    address: str = ""

    def __post_init__(self) -> None:
        defects = Defects()
        if not _is_kind(self.kind):
            known = link_kinds()
            rule = f"a kind of link: {', '.join(known)}"
            defects.add("kind", self.kind, rule, nearest(str(self.kind), known))
        elif self.kind == KAFKA:
            defects.attempt("", lambda: parse_kafka_address(self.address))
        elif self.kind == DIRECTORY:
            defects.attempt("", lambda: self.address and directory_in(self.address))
        else:
            fits = isinstance(self.address, str) and self.address.startswith(f"{self.kind}://")
            defects.require(fits, "address", self.address, f"an address such as {self.kind}://…")
        defects.raise_if_any()

    @property
    def ships(self) -> bool:
        """Whether the site has a log of its own, from which rows have to be sent."""
        return bool(self.address)


LinkOpener = Callable[[LinkSpec], Link]


def link_kinds() -> list[str]:
    """The kinds of links there are: Thalweg's own, then those of other packages by name."""
    others = {point.name for point in entry_points(group=ENTRY_POINT_GROUP)}
    return [DIRECTORY, KAFKA, *sorted(others - {DIRECTORY, KAFKA})]


def parse_link(text: str) -> LinkSpec:
    """The link that a text says.

    >>> parse_link("directory")
    LinkSpec(kind='directory', address='')
    >>> parse_link("kafka://broker-1:9092,broker-2:9092/rides").kind
    'kafka'
    >>> parse_link("kafak://broker:9092/rides")
    Traceback (most recent call last):
    thalweg.errors.InvalidInput: link: got "kafak://broker:9092/rides", need directory, directory:///folder/of/the/log or kafka://host:port/topic. Hint: did you mean "kafka"?

    Raises:
        InvalidInput: where it says none.
    """  # noqa: E501
    kind, colon, _ = text.partition("://") if isinstance(text, str) else ("", "", "")
    defects = Defects()
    if not _is_kind(kind) or not (colon or kind == DIRECTORY):
        rule = "directory, directory:///folder/of/the/log or kafka://host:port/topic"
        hint = "" if _is_kind(kind) or not kind else nearest(kind, link_kinds())
        defects.add("link", text, rule, hint)
    defects.raise_if_any()
    return LinkSpec(kind=kind, address=text if colon else "")


def _is_kind(kind: str) -> bool:
    # To look through all packages takes long, and every query of a run asks this again and again.
    return kind in (DIRECTORY, KAFKA) or kind in link_kinds()


def directory_in(address: str) -> str:
    """The folder that the address of a directory link names.

    >>> directory_in("directory:///mnt/cloud/log")
    '/mnt/cloud/log'

    Raises:
        InvalidInput: where it names none.
    """
    defects = Defects()
    fits = False
    path = ""
    if isinstance(address, str):
        parts = urlsplit(address)
        path = unquote(parts.path)
        fits = parts.scheme == DIRECTORY and not parts.netloc and PurePosixPath(path).is_absolute()
    rule = "an address such as directory:///mnt/cloud/log"
    defects.require(fits, "address", address, rule, "a folder has three slashes in front")
    defects.raise_if_any()
    return path


def open_link(spec: LinkSpec) -> Link:
    """The link that a specification names, ready for one sender or one receiver.

    Raises:
        InvalidInput: for a link that does not ship: there is nothing to send or to receive.
        MissingExtra: where the package for it is not installed.
        LinkError: where nobody answers at the address.
    """
    if not spec.ships:
        defects = Defects()
        hint = "a site without an address writes into the cloud's own log; it needs no sender"
        defects.add("address", spec.address, "an address to send to", hint)
        defects.raise_if_any()
    return _opener(spec.kind)(spec)


def _opener(kind: str) -> LinkOpener:
    # Loaded only when wanted: a site with one kind of link needs nothing of the others.
    if kind == KAFKA:
        from thalweg.spark.link.kafka import KafkaLink

        return KafkaLink
    if kind == DIRECTORY:
        from thalweg.spark.link.directory import DirectoryLink

        return DirectoryLink
    (point, *_) = entry_points(group=ENTRY_POINT_GROUP, name=kind)
    opener: LinkOpener = point.load()
    return opener
