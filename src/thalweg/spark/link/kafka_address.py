"""Addresses of Kafka topics: `kafka://host:port,host:port/topic?option=value`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from thalweg.errors import Defects

_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_RULE = "an address such as kafka://host:9092/topic"
CONFIG = "config"
# What the link's guarantees rest on is not for users to set.
_OURS = frozenset(
    {
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.idempotence",
        "group.id",
        "message.timeout.ms",
        "delivery.timeout.ms",
        "partitioner",
        "request.required.acks",
    }
)
_SECRET = re.compile(r"password|secret|\.pem$|sasl\.oauthbearer\.config")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAddress:
    """The brokers to begin with, the topic, and settings for the client.

    >>> address = parse_kafka_address("kafka://a:9092,b:9092/rides?security.protocol=SSL")
    >>> address.servers, address.topic, dict(address.settings)
    (('a:9092', 'b:9092'), 'rides', {'security.protocol': 'SSL'})
    """

    servers: tuple[str, ...]
    topic: str
    settings: Mapping[str, str] = field(default_factory=dict)
    config: Path | None = None

    def __str__(self) -> str:
        return f"kafka://{','.join(self.servers)}/{self.topic}"

    def load_settings(self) -> dict[str, str]:
        """The settings of the configuration file, if there is one, and those of the address.

        Raises:
            InvalidInput: where the file cannot be read or sets what is not for users to set.
        """
        settings = {}
        defects = Defects()
        if self.config is not None:
            try:
                lines = self.config.read_text("utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                defects.add(CONFIG, str(self.config), "a file of lines name=value", str(error))
                lines = []
            for number, line in enumerate(map(str.strip, lines), start=1):
                name, equals, value = (part.strip() for part in line.partition("="))
                if not line or line.startswith("#"):
                    continue
                # Never the line itself: it may be a secret.
                where = f"{self.config}:{number}"
                defects.require(bool(equals and name), CONFIG, where, "a line name=value")
                defects.require(name not in _OURS, CONFIG, where, f"no {name}: Thalweg sets it")
                settings[name] = value
        defects.raise_if_any()
        return settings | dict(self.settings)


def parse_kafka_address(address: str) -> KafkaAddress:
    """The parts of an address.

    Raises:
        InvalidInput: with all that is wrong with it.
    """
    defects = Defects()
    try:
        parts = urlsplit(address if isinstance(address, str) else "")
    except ValueError:
        parts = urlsplit("")
    if parts.scheme != "kafka" or not parts.netloc:
        defects.add("address", address, _RULE)
        defects.raise_if_any()
    servers = parts.netloc.split(",")
    for server in servers:
        match = _SERVER.fullmatch(server)
        fits = match is not None and 0 < int(match[2]) < 65536
        defects.require(fits, "address", address, _RULE, f"{server!r} is no host:port")
    topic = parts.path.removeprefix("/")
    hint = f"{topic!r} is no topic" if topic else "the topic is missing"
    defects.require(bool(_TOPIC.fullmatch(topic)), "address", address, _RULE, hint)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name in _OURS:
            defects.add(f"address.{name}", options[name], "nothing: Thalweg sets this itself")
        if _SECRET.search(name):
            hint = f"put it into a file, and add ?{CONFIG}=/path/of/the/file"
            defects.add(f"address.{name}", "…", "no secret in an address", hint)
    defects.raise_if_any()
    config = options.pop(CONFIG, None)
    return KafkaAddress(
        servers=tuple(servers),
        topic=topic,
        settings=options,
        config=Path(config) if config else None,
    )
