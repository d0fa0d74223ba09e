"""A split taxi application whose rows go from the fogs to the cloud through Kafka.

    python examples/kafka_links.py --broker localhost:9092
    python examples/kafka_links.py --start-broker

Every fog publishes on a disk of its own; a sender ships that to a topic, and the cloud takes it
from there. The topic is new, and removed in the end. `--start-broker` starts a broker of its own,
the one of this repository's tests, with jars that Maven fetches once. What came out is compared row
by row with a run in one place.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from taxi_pipeline import city

from thalweg.errors import InvalidInput
from thalweg.spark.deployment import Deployment
from thalweg.spark.deployment.one_place import await_last_row, compare_with_one_place
from thalweg.spark.feed.rides import feed_rides
from thalweg.spark.link import LinkError

RIDES_PER_S = 300.0
ROWS_PER_BATCH = 500
NO_BROKER = 3


def main() -> int:
    """0 where the result is as in one place, 1 where it is not, 3 where no broker answers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--broker", metavar="HOST:PORT", help="a Kafka broker that runs")
    which.add_argument("--start-broker", action="store_true", help="start one for this example")
    parser.add_argument("--fogs", type=int, default=2, help="how many sites have the link")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long rides come in")
    wanted = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kafka-links-") as temporary:
        folder = Path(temporary)
        try:
            if wanted.start_broker:
                with started_broker(folder / "broker") as broker:
                    same = run_taxis(folder / "run", broker, wanted.fogs, wanted.seconds)
            else:
                same = run_taxis(folder / "run", wanted.broker, wanted.fogs, wanted.seconds)
        except (NoBroker, LinkError, InvalidInput) as reason:
            print(reason)
            return NO_BROKER
    print(f"took {time.monotonic() - began:.0f} s")
    return 0 if same else 1


def run_taxis(folder: Path, broker: str, fogs: int, seconds: float) -> bool:
    """Taxi rides at fogs that reach the cloud over Kafka alone."""
    topic = f"taxi-rides-{uuid4().hex[:8]}"
    run = Deployment(
        "taxi_pipeline:taxi",
        city(fogs),
        folder=folder,
        link=f"kafka://{broker}/{topic}",
        adapt=None,
        rows_per_batch=ROWS_PER_BATCH,
        feed=lambda gateways: feed_rides(gateways, RIDES_PER_S, seconds, close=True),
    )
    print(f"starting {fogs + 1} Sparks, linked by kafka://{broker}/{topic} …")
    try:
        with run:
            print(f"running; rides come in for {seconds:g} s")
            await_last_row(run)
        print(f"{count_messages(broker, topic)} messages went over the topic")
    finally:
        for removed in AdminClient({"bootstrap.servers": broker}).delete_topics([topic]).values():
            removed.exception(timeout=30)
    compared = compare_with_one_place(run)
    print(compared)
    return compared.same


def count_messages(broker: str, topic: str) -> int:
    """How many messages the topic's partition has got."""
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "count"})
    try:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    finally:
        consumer.close()
    return int(end - first)


class NoBroker(Exception):
    """There is no Kafka broker on this machine, and why."""


@contextmanager
def started_broker(folder: Path) -> Iterator[str]:
    """The address of a broker for as long as this lasts."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
    try:
        from spark.kafka_broker import Broker, BrokerMissing
    except ImportError as error:
        raise NoBroker(f"no Kafka broker: {error}; it comes from this repository") from error
    folder.mkdir()
    print("starting a Kafka broker …")
    try:
        broker = Broker(folder)
    except BrokerMissing as reason:
        raise NoBroker(str(reason)) from reason
    try:
        broker.start()
        yield f"127.0.0.1:{broker.port}"
    finally:
        broker.kill()


if __name__ == "__main__":
    sys.exit(main())
