from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from thalweg.errors import InvalidInput, MissingExtra
from thalweg.spark import session
from thalweg.spark.java import JavaMissing
from thalweg.spark.session import SparkUnavailable, is_master, open_session

pytestmark = pytest.mark.jvm

PROGRAM = """
import json, os, sys, warnings
from pathlib import Path
warnings.simplefilter("error")
from thalweg.errors import InvalidInput
from thalweg.spark.session import open_session

def show(batches):
    import pyarrow as pa
    for batch in batches:
        pass
    seen = [sys.executable, os.environ["NUMBA_NUM_THREADS"], json.dumps(sys.path)]
    print("a worker prints")
    yield pa.RecordBatch.from_pydict({"seen": seen})

config = {
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
ours = ["JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"]
before = list(map(os.environ.get, ours))
with open_session("local[1]", config=config, log=Path("log")) as one:
    environment_is_restored = list(map(os.environ.get, ours)) == before
    with open_session() as two, open_session("local[1]") as three:
        lent = one is two is three
    try:
        with open_session("local[2]"):
            pass
    except InvalidInput as error:
        refusal = str(error)
    seen = one.range(1).mapInArrow(show, "seen string").toArrow().column(0).to_pylist()
    java = one.sparkContext._gateway.proc.pid
    conf = dict(one.sparkContext.getConf().getAll())
print(json.dumps([environment_is_restored, lent, refusal, seen, java, conf]))
"""


def test_a_session_is_quiet_stays_here_is_lent_and_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    # In a process of its own: in this one a session of another test may be running.
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": "/no/such/folder"},
    )
    assert (run.returncode, run.stderr) == (0, "")
    restored, lent, refusal, (python, threads, path), java, conf = json.loads(run.stdout)
    assert restored
    assert lent
    assert refusal.startswith('master: got "local[2]", need local[1]')
    # Workers are this Python, with its modules and one thread.
    assert Path(python) == Path(sys.executable)
    assert threads == "1"
    assert {str(tmp_path), "/no/such/folder"} <= set(json.loads(path))
    wanted = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
    }
    assert wanted.items() <= conf.items()
    assert not psutil.pid_exists(java)
    assert [file.name for file in tmp_path.iterdir()] == ["log"]
    assert (tmp_path / "log").stat().st_size > 0


# pyspark itself forgets to close its end of the pipe to a JVM that did not start.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning"
)
def test_a_failed_start_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr(session, "_running_session", lambda master: None)
    before = dict(os.environ)
    config = {"spark.driver.memory": "1k"}
    with (
        pytest.raises(SparkUnavailable, match="Too small maximum heap"),
        open_session("local[1]", config=config),
    ):
        pass
    gc.collect()
    assert dict(os.environ) == before


def test_missing_java_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")

    def find_none() -> None:
        raise JavaMissing("no Java here")

    monkeypatch.setattr(session, "_running_session", lambda master: None)
    monkeypatch.setattr(session, "find_java", find_none)
    with pytest.raises(JavaMissing), open_session("local[1]"):
        pass


def test_missing_pyspark_is_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtra, match=r"pip install 'thalweg\[spark\]'"), open_session():
        pass


GOOD = ["local", "local[*]", "local[2]", "local[2,3]", "spark://a:7077", "k8s://https://a", "yarn"]
BAD = ["", "cluster", "local[]", "local[2", "spark://", "http://a", "sc:a", " local", None, 2]


@pytest.mark.parametrize(("text", "good"), [(t, True) for t in GOOD] + [(t, False) for t in BAD])
def test_masters_are_told_from_other_texts(text: object, good: bool) -> None:
    assert is_master(text) == good


def test_a_wrong_master_is_refused() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(InvalidInput, match="sc://host:port"), open_session("cluster-7"):
        pass
