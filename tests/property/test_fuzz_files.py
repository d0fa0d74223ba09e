"""Whatever a file or a command line says: it is understood, or refused in words. Nothing else.

Each claim has a quick variant that repeats the same cases in every run, and a slow one with more.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from thalweg.cli.entry import run
from thalweg.errors import InvalidInput
from thalweg.files.application_reader import read_application
from thalweg.files.application_writer import application_data
from thalweg.files.load import load_any, load_application, load_network, load_plan, read_back
from thalweg.files.network_reader import read_network
from thalweg.files.network_writer import network_data
from thalweg.files.plan_reader import read_plan
from thalweg.files.save import save
from thalweg.model import Application, Network, Plan
from thalweg.planning import plan
from thalweg.scenarios import small_city, small_taxi

MOST_MESSAGES = 102
BAD_INPUT = 2

TAXI, CITY = small_taxi(), small_city()
APPLICATION: dict[str, Any] = application_data(TAXI)
PLAN: dict[str, Any] = plan(TAXI, CITY).to_dict()


def _sites(**more: Any) -> list[dict[str, Any]]:
    nodes = [{"count": 3, "cpu": "1 GIPS", "memory": "1 GiB", "memory_available": "900 MB"}]
    area = {"west": "-1 km", "south": "0 m", "east": "1 km", "north": "5 km"}
    return [
        {"name": "rank", "tier": "edge", "parent": "hub", "nodes": nodes, "area": area, **more},
        {"name": "hub", "tier": "fog", "edge_delay": "2 ms", "nodes": nodes, **more},
    ]


NETWORKS: list[dict[str, Any]] = [
    network_data(CITY),
    {
        "thalweg": 1,
        "network": "mesh",
        "sites": _sites(),
        "mesh": {
            "latency": [["0 s", "5 ms"], ["6 ms", "0 s"]],
            "bandwidth": [["unlimited", "1 Gbps"], ["1 Gbps", "unlimited"]],
            "bandwidth_available": "10 Mbps",
        },
    },
    {
        "thalweg": 1,
        "network": "coordinates",
        "sites": _sites(position=["1 ms", "-2 ms"], height="1 ms"),
        "coordinates": {
            "bandwidth": "1 Gbps",
            "taken": [{"a": "rank", "b": "hub", "bandwidth": "1 Mbps"}],
        },
    },
    {
        "thalweg": 1,
        "network": "links",
        "sites": _sites(),
        "root": "hub",
        "links": [
            {
                "a": "rank",
                "b": "hub",
                "latency": "5 ms",
                "bandwidth": "2 Mbps",
                "bandwidth_available": ["1 Mbps", "2 Mbps"],
            }
        ],
    },
]

Path_ = tuple[Any, ...]


# --- spoiling documents


def _places(data: Any, here: Path_ = ()) -> Iterator[Path_]:
    """The path of every value below the top."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield (*here, key)
        if isinstance(value, (dict, list)):
            yield from _places(value, (*here, key))


def _at(data: Any, path: Path_) -> Any:
    for step in path:
        data = data[step]
    return data


_WORDS = [
    *("thalweg", "application", "network", "operators", "streams", "limits", "sites", "nodes"),
    *("links", "mesh", "coordinates", "root", "name", "kind", "rate", "pin", "tier", "window"),
    *("events", "length", "slide", "count", "cpu", "memory", "parent", "area", "position", "taken"),
    *("placement", "estimate", "violations", "reasons", "feasible", "why", "origin", "shape"),
    *("edge", "fog", "cloud", "source", "transform", "sink", "rides", "hub", "hub-centre", "inf"),
]
_TEXTS = [
    *("", " ", "\t", "5", "5 ms", "-5 ms", "5  ms", "5ms", "1e999 s", "1e-400 s", "0 s", "nan s"),
    *("100 MB", "100 Mbps", "100 events/s", "unlimited", "40 %", "-40 %", "1e400 %", "..", "../x"),
    *("a/b", "a/b/c", "/", "C:\\x", "<b>", "\x1b[2J", "\u202e", "\x9b", "a\nb", "é", "٣ s", "²"),
    *("null", "true", "1", "&a", "*a", "!!str", "<<", "x" * 65, "x" * 300, "𝔸", "\u2028", "\ufeff"),
]
SCALARS = st.one_of(
    st.sampled_from([None, True, False, 0, -1, 1, 2, 10**12, 10**39, -(10**39), 2**31, 2**63]),
    st.sampled_from([0.0, -0.0, 0.5, -1.5, 1e-320, 1e300, 1.7e308]),
    st.sampled_from(_WORDS),
    st.sampled_from(_TEXTS),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(_WORDS), st.text(max_size=5)), inner, max_size=3),
    ),
    max_leaves=5,
)


def _replace(draw: st.DrawFn, holder: Any, key: Any) -> None:
    holder[key] = draw(VALUES)


def _delete(_: st.DrawFn, holder: Any, key: Any) -> None:
    del holder[key]


def _repeat(draw: st.DrawFn, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder.insert(draw(st.integers(0, len(holder))), copy.deepcopy(holder[key]))
    else:
        holder[draw(st.sampled_from(_WORDS))] = copy.deepcopy(holder[key])


def _insert(draw: st.DrawFn, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder.insert(key, draw(VALUES))
    else:
        holder[draw(st.one_of(st.sampled_from(_WORDS), st.text(max_size=8)))] = draw(VALUES)


def _rename(_: st.DrawFn, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[f"{str(key)[1:]}{str(key)[:1]}"] = holder.pop(key)


def _wrap(_: st.DrawFn, holder: Any, key: Any) -> None:
    holder[key] = [holder[key]]


CHANGES = [_replace, _replace, _replace, _delete, _repeat, _insert, _rename, _wrap]


@st.composite
def spoilt(draw: st.DrawFn, documents: list[dict[str, Any]]) -> dict[str, Any]:
    """A document that was right, with one to six changes at random places."""
    data = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 6))):
        places = list(_places(data))
        if not places:
            break
        path = places[draw(st.integers(0, len(places) - 1))]
        change = draw(st.sampled_from(CHANGES))
        change(draw, _at(data, path[:-1]), path[-1])
    # Some changes have put parts of the document into others; a file is a tree.
    return copy.deepcopy(data)


_PIECES = [
    *("&a ", "*a", "!!python/object:os.system ", "!x ", "<<: ", "---\n", "...\n", "\t", ": ", "- "),
    *("? ", "{", "}", "[", "]", '"', "'", "#", "|\n", ">\n", "%TAG ! x\n", "\\", ",", "\0", "\x1b"),
    *("\ufeff", "\u2028", "\x85", "\r", "\n", "\n  ", "NaN", "Infinity", "1e999", "0x10", "007"),
    *(".inf", "~", "nan", "yes", "9" * 50, "[" * 40, "\ud800", "\uffff", "//", "/*", "None"),
]


@st.composite
def spoilt_text(draw: st.DrawFn, documents: list[dict[str, Any]]) -> tuple[str, str]:
    """The name of a file and its text: a document, spoilt or not, with its text spoilt, too."""
    data = draw(st.one_of(st.sampled_from(documents), spoilt(documents)))
    name = draw(st.sampled_from(["f.json", "f.yaml"]))
    text = json.dumps(data, indent=1) if name == "f.json" else yaml.safe_dump(data)
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 2, 5, 40])))
        text = text[:start] + draw(st.sampled_from(["", *_PIECES])) + text[end:]
    return name, text


# --- what may happen


def require_words(error: InvalidInput, file: str | None = None) -> None:
    """The error is for people: one printable line for each defect, with place and rule."""
    assert error.defects
    assert len(error.defects) <= MOST_MESSAGES or file is None
    assert len(str(error).split("\n")) == len(error.defects)
    for defect in error.defects:
        assert str(defect).isprintable(), repr(str(defect))
        assert defect.rule
        assert file is None or (defect.file == file and str(defect).startswith(file))


def read_or_refuse(read: Callable[[object], Any], data: object) -> Any:
    before = copy.deepcopy(data)
    try:
        found = read(data)
    except InvalidInput as error:
        require_words(error)
        found = None
    assert data == before
    return found


def load_or_refuse(read: Callable[[object], Any], name: str, text: str) -> Any:
    try:
        return read_back(text, name, read)
    except InvalidInput as error:
        require_words(error, name)
        return None


def fuzzed(cases: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """So many cases, the same ones in every run."""
    return settings(
        max_examples=cases,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def check_application(data: dict[str, Any]) -> None:
    found = read_or_refuse(read_application, data)
    if found is not None:
        assert isinstance(found, Application)
        assert read_application(application_data(found)) == found


def check_network(data: dict[str, Any]) -> None:
    found = read_or_refuse(read_network, data)
    if found is not None:
        assert isinstance(found, Network)
        assert network_data(read_network(network_data(found))) == network_data(found)


def check_plan(data: dict[str, Any]) -> None:
    found = read_or_refuse(read_plan, data)
    if found is not None:
        assert isinstance(found, Plan)
        assert read_plan(found.to_dict()).to_dict() == found.to_dict()


READERS = [read_application, read_network, read_plan]
DOCUMENTS = [APPLICATION, PLAN, *NETWORKS]


def check_text(reader: int, named: tuple[str, str]) -> None:
    load_or_refuse(READERS[reader], *named)


def check_file(folder: Path, name: str, contents: bytes) -> None:
    path = folder / name
    path.write_bytes(contents)
    for load in (load_any, load_application, load_network, load_plan):
        try:
            load(path)
        except InvalidInput as error:
            require_words(error, str(path))


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files to name."""
    folder = tmp_path_factory.mktemp("examples")
    save(TAXI, folder / "app.yaml")
    save(CITY, folder / "network.yaml")
    save(CITY, folder / "network")
    (folder / "plan.json").write_text(json.dumps(PLAN))
    (folder / "bad.yaml").write_text("thalweg: 1\napplication: ../x\noperators: 5\n")
    (folder / "matrix.csv").write_text("0,1,2\n1,0,3\n2,3,0\n")
    return folder


# --- documents


@fuzzed(300)
@given(spoilt([APPLICATION]))
def test_a_spoilt_application_is_read_or_refused(data: dict[str, Any]) -> None:
    check_application(data)


@fuzzed(300)
@given(spoilt(NETWORKS))
def test_a_spoilt_network_is_read_or_refused(data: dict[str, Any]) -> None:
    check_network(data)


@fuzzed(300)
@given(spoilt([PLAN]))
def test_a_spoilt_plan_is_read_or_refused(data: dict[str, Any]) -> None:
    check_plan(data)


@fuzzed(150)
@given(VALUES, st.integers(0, 2))
def test_any_plain_data_is_read_or_refused(data: Any, reader: int) -> None:
    read_or_refuse(READERS[reader], data)


@pytest.mark.slow
@fuzzed(3000)
@given(spoilt([APPLICATION]))
def test_many_spoilt_applications_are_read_or_refused(data: dict[str, Any]) -> None:
    check_application(data)


@pytest.mark.slow
@fuzzed(3000)
@given(spoilt(NETWORKS))
def test_many_spoilt_networks_are_read_or_refused(data: dict[str, Any]) -> None:
    check_network(data)


@pytest.mark.slow
@fuzzed(2000)
@given(spoilt([PLAN]))
def test_many_spoilt_plans_are_read_or_refused(data: dict[str, Any]) -> None:
    check_plan(data)


# --- text


@fuzzed(300)
@given(st.integers(0, 2), spoilt_text(DOCUMENTS))
def test_a_spoilt_text_is_read_or_refused(reader: int, named: tuple[str, str]) -> None:
    check_text(reader, named)


@pytest.mark.slow
@fuzzed(3000)
@given(st.integers(0, 2), spoilt_text(DOCUMENTS))
def test_many_spoilt_texts_are_read_or_refused(reader: int, named: tuple[str, str]) -> None:
    check_text(reader, named)


@fuzzed(300)
@given(st.sampled_from(["f.json", "f.yaml"]), st.text(max_size=200))
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    check_text(0, (name, text))


@pytest.mark.slow
@fuzzed(3000)
@given(st.sampled_from(["f.json", "f.yaml"]), st.lists(st.sampled_from(_PIECES)).map("".join))
def test_many_texts_of_special_characters_are_read_or_refused(name: str, text: str) -> None:
    check_text(0, (name, text))


@fuzzed(150)
@given(st.sampled_from(["f.json", "f.yaml", "f.yml"]), st.binary(max_size=200))
@example("f.yaml", b"\xff\xfea\x00")
@example("f.json", b"\xef\xbb\xbf{}")
def test_any_bytes_are_loaded_or_refused(name: str, contents: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_file(Path(folder), name, contents)


# --- networks as folders


@st.composite
def spoilt_bytes(draw: st.DrawFn, contents: bytes) -> bytes:
    """A file with one to five small damages."""
    spoiling = bytearray(contents)
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(spoiling)))
        end = start + draw(st.sampled_from([0, 1, 1, 1, 4, 20]))
        spoiling[start:end] = draw(st.one_of(st.binary(max_size=4), st.just(b"\xff\xff\xff\x7f")))
    return bytes(spoiling)


def check_folder(examples: Path, data: st.DataObject) -> None:
    names = sorted(path.name for path in (examples / "network").iterdir())
    name = data.draw(st.sampled_from(names))
    contents = data.draw(spoilt_bytes((examples / "network" / name).read_bytes()))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "city")
        shutil.copytree(examples / "network", folder)
        (folder / name).write_bytes(contents)
        try:
            assert isinstance(load_network(folder), Network)
        except InvalidInput as error:
            require_words(error)
            assert all(defect.file.startswith(str(folder)) for defect in error.defects)


@fuzzed(150)
@given(data=st.data())
def test_a_spoilt_folder_is_loaded_or_refused(examples: Path, data: st.DataObject) -> None:
    check_folder(examples, data)


@pytest.mark.slow
@fuzzed(1500)
@given(data=st.data())
def test_many_spoilt_folders_are_loaded_or_refused(examples: Path, data: st.DataObject) -> None:
    check_folder(examples, data)


# --- extremes: right by every rule, and as far out as the rules allow


_EXTREMES: dict[str, list[Any]] = {
    "rate": ["0 /s", "1e-9 /s", "1e15 /s"],
    "event_size": ["1e-9 B", "1e15 B"],
    "selectivity": [0, 1e-9, 1e9],
    "compression": [0, 1e-9, 1e9],
    "cpu_per_event": ["0 instr", "1e18 instr"],
    "cpu_per_byte": ["1e12 instr/B"],
    "memory": ["0 B", "1e18 B"],
    "memory_factor": [0, 1e9],
    "state": ["1e18 B"],
    "window": [{"events": 10**12}, {"length": "1 ns"}, {"length": "3e9 s", "slide": "1 ns"}],
    "replicable": [True, False],
    "pin": [{"tier": "edge"}, {"tier": "cloud"}, {"node": "hub-west/server"}, {"site": "cloud"}],
    "probability": [1e-9],
    "response_time": ["0 s"],
    "uplink": ["0 bps"],
    "cpu": ["0 IPS", "1e-9 IPS", "1e18 IPS", "unlimited"],
    "lan_latency": ["3e9 s"],
    "lan_bandwidth": ["0 bps", "1e-9 bps", "unlimited"],
    "latency": ["0 s", "1e-9 s", "3e9 s"],
    "bandwidth": ["0 bps", "1e-9 bps", "unlimited"],
    "edge_delay": ["0 s", "3e9 s"],
}


@st.composite
def extreme(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    """A document with some of its figures as far out as the rules allow."""
    data = copy.deepcopy(document)
    places = [path for path in _places(data) if path[-1] in _EXTREMES]
    for path in draw(st.lists(st.sampled_from(places), max_size=8)):
        with contextlib.suppress(KeyError):  # It was in a part that is replaced already.
            _at(data, path[:-1])[path[-1]] = draw(st.sampled_from(_EXTREMES[path[-1]]))
    return data


def check_extremes(app: dict[str, Any], net: dict[str, Any]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "app.json"), Path(folder, "network.json")]
        for file, data in zip(files, (app, net), strict=True):
            file.write_text(json.dumps(data))
        with redirect_stdout(out), redirect_stderr(err):
            code = run(["plan", *map(str, files), "--format", "json"])
    assert code in (0, BAD_INPUT, 3), err.getvalue()
    if code != BAD_INPUT:
        found = read_plan(json.loads(out.getvalue()))
        assert found.feasible == (code == 0)


@fuzzed(100)
@given(extreme(APPLICATION), extreme(NETWORKS[0]))
def test_extremes_are_planned_or_refused(app: dict[str, Any], net: dict[str, Any]) -> None:
    check_extremes(app, net)


@pytest.mark.slow
@fuzzed(1500)
@given(extreme(APPLICATION), extreme(NETWORKS[0]))
def test_many_extremes_are_planned_or_refused(app: dict[str, Any], net: dict[str, Any]) -> None:
    check_extremes(app, net)


# --- the command line


_VERBS = ["validate", "plan", "explain", "diff", "strategies", "schema", "coordinates", "init"]
_FILES = ["app.yaml", "network.yaml", "plan.json", "bad.yaml", "network", "none.yaml", "matrix.csv"]
_OPTIONS = [
    *("--format", "json", "table", "--format=json", "--format=xml", "-s", "--strategy"),
    *("cloud-only", "cloud-only+cloud-only", "+", "none", "--option", "a=1", "=", "current=1"),
    *("rates=[1]", "strategy=2", "a=NaN", "--current", "-o", "out.json", "out", "no/out.json"),
    *("--unit", "ms", "--dimensions", "3", "0", "-1", "--seed", "1e9", "--force", "-h", "--help"),
    *("--version", "--", "-", "", "application", "network", "plan", "rides", "demo", "--nonsense"),
]
# Never a path that leads out of the folder of the test.
_STRANGE = st.text(max_size=10).map(lambda text: text.replace("/", "_").strip(".~"))
WORDS = st.lists(
    st.one_of(st.sampled_from(_FILES), st.sampled_from(_OPTIONS), _STRANGE), max_size=6
)
_SENSIBLE = [
    *(["plan", "app.yaml", "network.yaml"], ["plan", "app.yaml", "network"], ["validate"]),
    *(["explain", "plan.json"], ["diff", "plan.json", "plan.json"], ["init", "demo"], ["schema"]),
    *(["coordinates", "matrix.csv", "--unit", "ms"], ["strategies"], ["validate", "app.yaml"]),
]
LINES = st.one_of(
    st.tuples(st.sampled_from(_SENSIBLE), WORDS).map(lambda line: [*line[0], *line[1]]),
    st.tuples(st.sampled_from(_VERBS), WORDS).map(lambda line: [line[0], *line[1]]),
    WORDS,
)


@contextlib.contextmanager
def working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def check_line(examples: Path, words: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(examples, name, dirs_exist_ok=True)
        with working_in(Path(name)), redirect_stdout(out), redirect_stderr(err):
            code = run(words)
    assert code in (0, BAD_INPUT, 3), err.getvalue()
    assert "Traceback" not in err.getvalue()
    assert "inside Thalweg" not in err.getvalue()


@fuzzed(300)
@given(words=LINES)
def test_any_command_line_is_done_or_refused(examples: Path, words: list[str]) -> None:
    check_line(examples, words)


@pytest.mark.slow
@fuzzed(1500)
@given(words=LINES)
def test_many_command_lines_are_done_or_refused(examples: Path, words: list[str]) -> None:
    check_line(examples, words)
