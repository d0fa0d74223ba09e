"""Opens Spark sessions: local, on a cluster, or through Spark Connect, and closes them cleanly."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from thalweg.errors import Defect, InvalidInput, MissingExtra, ThalwegError
from thalweg.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"
MASTER_FORMS = "local, local[N], spark://host:port, k8s://…, yarn or sc://host:port"
# Every worker is a process of its own: with threads inside, the cores would be counted twice.
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
}
_MASTER = re.compile(r"local(\[[^\]]+\])?|local-cluster\[[^\]]+\]|yarn|(spark|k8s|sc)://\S+")
_CONNECT_PORT = 15002
_CONNECT_TIMEOUT_S = 10
_END_TIMEOUT_S = 30
_SHOWN_LOG_LINES = 15


class SparkUnavailable(ThalwegError):
    """Spark did not start, or nobody answers at the address given."""


def is_master(text: object) -> bool:
    """Whether Spark could understand this as a master or as a Spark Connect address.

    >>> [is_master(text) for text in ("local[2]", "sc://spark.example:15002", "cluster-7")]
    [True, True, False]
    """
    return isinstance(text, str) and _MASTER.fullmatch(text) is not None


def require_pyspark() -> None:
    """Raise `MissingExtra` where pyspark is not installed."""
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            "Spark needs the package pyspark, which is not installed. "
            "Hint: pip install 'thalweg[spark]'."
        ) from error


@contextmanager
def open_session(
    master: str | None = None,
    name: str = "thalweg",
    *,
    config: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[SparkSession]:
    """A Spark session for the length of a `with` block; what was started for it ends with it.

    Where the process has a session with this master already, it is lent and left running, as it
    is: `config` is not applied to it. Without a master, any such session will do, and `local[*]`
    where there is none. A session through Spark Connect is always a new one, which costs little.

    Everything that Spark and its workers print goes to the file `log`, and nothing to the
    terminal; without one, only what explains a failed start is kept.

    Raises:
        InvalidInput: where the master is not one, or the process has a session with another.
        MissingExtra: where pyspark is not installed.
        JavaMissing: where there is no Java.
        SparkUnavailable: where Spark does not start or does not answer.
    """
    require_pyspark()
    if master is not None and not is_master(master):
        raise InvalidInput([Defect(path="master", value=master, rule=MASTER_FORMS)])
    if master is not None and master.startswith("sc://"):
        opened = _connect(master, config or {})
    elif (session := _running_session(master)) is not None:
        yield session
        return
    else:
        opened = _start(master or LOCAL_MASTER, name, config or {}, log)
    with opened as session:
        yield session


def _running_session(master: str | None) -> SparkSession | None:
    """The session that this process has already, if its master is the one wanted."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None:
        return None
    if master not in {None, context.master}:
        rule = f"{context.master}: this process has a Spark session with that master already"
        hint = "stop that session first, or leave the master out to use it"
        raise InvalidInput([Defect(path="master", value=master, rule=rule, hint=hint)])
    return SparkSession.builder.getOrCreate()


@contextmanager
def _connect(address: str, config: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session of its own on a Spark Connect server."""
    place = urlsplit(address)
    try:
        # Asked directly first, because the client keeps trying for minutes.
        host, port = place.hostname or "", place.port or _CONNECT_PORT
        socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise SparkUnavailable(
            f"no Spark Connect server answers at {address}: {error}. "
            "Hint: start one with start-connect-server.sh of the Spark installation."
        ) from error
    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        raise MissingExtra(
            f"Spark Connect needs packages that are not installed ({error}). "
            "Hint: pip install 'thalweg[spark]'."
        ) from error
    builder = ConnectSession.builder.remote(address)
    for key, value in config.items():
        builder = builder.config(key, value)
    session: Any = builder.create()
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _start(
    master: str, name: str, config: Mapping[str, str], log: Path | None
) -> Iterator[SparkSession]:
    """A session in a JVM of its own, both of which end with the block."""
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.sql import SparkSession

    settings = _configuration(master, name) | dict(config)
    environment = _driver_environment(master)
    launcher: Any = java_gateway
    gateway: Any = None
    with _open_log(log) as output:
        try:
            with _environment(environment):
                # The JVM takes its settings from the command line; so they are all given there.
                conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
                gateway = launcher.launch_gateway(conf, {"stdout": output, "stderr": output})
                session = SparkSession(SparkContext(conf=conf, gateway=gateway))
        except Exception as error:
            # An error of the JVM can be read only as long as the JVM is there.
            said = _words_of(error)
            _end_jvm(gateway)
            raise SparkUnavailable(
                f"Spark did not start with master {master}: {said}{_last_lines(output)}"
            ) from error
        except BaseException:
            _end_jvm(gateway)
            raise
        try:
            yield session
        finally:
            try:
                session.stop()
            finally:
                _end_jvm(gateway)


def _configuration(master: str, name: str) -> dict[str, str]:
    settings = {
        "spark.master": master,
        "spark.app.name": name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    settings |= {f"spark.executorEnv.{key}": value for key, value in ONE_THREAD.items()}
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Local workers see the modules that this process sees, in the same order.
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(
                str(Path(entry).absolute()) for entry in sys.path
            ),
        }
    return settings


def _driver_environment(master: str) -> dict[str, str]:
    """What Spark reads from the environment as it starts; elsewhere the user's choice stands."""
    environment = {"JAVA_HOME": str(find_java().path)}
    if master.startswith("local"):
        environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return environment


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """These variables for the length of the block."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


@contextmanager
def _open_log(log: Path | None) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() if log is None else log.open("ab+") as output:
        yield output


def _words_of(error: Exception) -> str:
    """What an error says; its name where the JVM that knows more has ended by itself."""
    try:
        return str(error)
    except OSError:
        return type(error).__name__


def _last_lines(output: IO[bytes]) -> str:
    output.seek(0)
    lines = output.read().decode(errors="replace").splitlines()[-_SHOWN_LOG_LINES:]
    return "".join(f"\n  {line}" for line in lines)


def _end_jvm(gateway: Any) -> None:
    """End the JVM behind a gateway. A stopped session alone would leave it until Python ends."""
    from pyspark import SparkContext

    if gateway is None:
        return
    SparkContext._gateway = None
    SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(timeout=_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
