"""The code of a pipeline as a value: what changes it, what does not, and what differs, in words."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from thalweg.errors import InvalidInput

pytest.importorskip("pyspark")

from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.deployment.rows_code import compare_code
from thalweg.spark.log.founding import found_log
from thalweg.spark.pipeline import Pipeline, load_pipeline
from thalweg.spark.pipeline.code import PipelineCode, StepCode, code_of
from thalweg.spark.pipeline.source_code import describe_function
from thalweg.spark.query.queries import check_query
from thalweg.spark.query.spec import QuerySpec

FLOW = '''
"""A shop."""
from functools import lru_cache, partial, wraps
from pathlib import Path

from pyspark.sql import functions as sql

import beside
from shop import lib
from shop.lib import Rules, near
from thalweg.model import TimeWindow
from thalweg.spark.pipeline import Pipeline
from thalweg.spark.pipeline.mergeable import count, sum_of

LIMIT = 5
NAMES = {"a", "b", "c", "d"}
DATA = Path(__file__).parent / "data.csv"
RULES = Rules(3)
SEEN = {}
_model = None
PICK = {"low": lambda x: x - 1, "high": lambda x: x + 1}
first, second = lambda x: x * 2, lambda x: x * 3

flow = Pipeline("shop")
sales = flow.source(
    "sales", schema="n long, shop int, at timestamp", key="shop", time="at", delay="2 s", rate=10.0
)


def logged(function):
    """Say when."""
    @wraps(function)
    def call(*frames):
        return function(*frames)
    return call


def above(limit, *, strict=True):
    @logged
    def keep(sales):
        """Those above."""
        return sales.where(sales.n > limit if strict else sales.n >= limit)
    return keep


def remember(n):
    global _model
    SEEN[n] = n
    _model = n
    return len(SEEN)


@flow.operator(sales, kind="row-wise", must="n > 0", selectivity=0.9)
def clean(sales, factor=2):
    """Clean."""
    # A comment.
    from shop.late import scale as resize
    good = sales.where(lib.is_valid(sql.col("n")) & (sql.col("n") < LIMIT * factor))
    return resize(good.where(sql.col("shop").isin(*sorted(NAMES))))


kept = flow.operator(clean, kind="row-wise", name="kept")(above(7))
picked = flow.operator(kept, kind="row-wise", name="picked")(partial(lib.pick, PICK["low"]))
twice = flow.operator(picked, kind="row-wise", name="twice")(
    lambda f: f.where(str(second(1)))); other = lambda f: f.limit(1)
odd = flow.operator(twice, kind="row-wise", name="odd")(RULES.keep)


@flow.operator(odd, kind="row-wise")
def last(odd):
    remember(1)
    return beside.tidy(near(odd, str(DATA)), lib.depth(3), lib.table(2))


totals = flow.aggregate(
    "totals", last, by="shop", window=TimeWindow("10 s", "5 s"),
    columns={"n": count(), "s": sum_of("n")},
)
flow.sink("list", totals)
'''

LIB = """
from dataclasses import dataclass
from functools import lru_cache

from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

FLOOR = 0.5
UNUSED = 1


def is_valid(column):
    return column > bound()


def bound():
    return FLOOR


def unused():
    return 1


def pick(function, frame):
    return frame.where(f"n > {function(1)}")


def depth(n):
    return 0 if n == 0 else other_depth(n - 1)


def other_depth(n):
    return depth(n) + 1


@lru_cache
def table(n):
    return [n] * 3


@udf(returnType=LongType())
def plus(n):
    return n + 1


def near(frame, place):
    return frame.withColumn("m", plus("n"))


class Base:
    def floor(self):
        return 1


class Rules(Base):
    step: int = 2

    def __init__(self, least):
        self.least = least

    @property
    def bound(self):
        return self.least * self.step

    @staticmethod
    def show(n):
        return str(n)

    def keep(self, frame):
        return frame.where(f"n >= {self.show(self.bound + self.floor())}")
"""

LATE = "def scale(frame):\n    return frame.where('n < 100')\n"
BESIDE = "def tidy(frame, *_):\n    return frame.dropna()\n"
FILES = {
    "shop/__init__.py": "",
    "shop/flow.py": FLOW,
    "shop/lib.py": LIB,
    "shop/late.py": LATE,
    "beside.py": BESIDE,
}
Load = Callable[[Path], PipelineCode]


def write_files(folder: Path, **changes: tuple[str, str]) -> Path:
    """The package in a folder; each change is of the file of that name, in its text."""
    for name, text in FILES.items():
        before, after = changes.get(Path(name).stem, ("", ""))
        assert not before or text.count(before) >= 1, before
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(before, after) if before else text)
    return folder


def import_flow(folder: Path) -> Any:
    """The package anew, as another process would see it."""
    forget_flow()
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return importlib.import_module("shop.flow")
    finally:
        sys.path.remove(str(folder))


def forget_flow() -> None:
    for name in [n for n in sys.modules if n.split(".")[0] in ("shop", "beside")]:
        del sys.modules[name]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    # A file that is written twice in a second may have the bytecode of the first time.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(folder: Path) -> PipelineCode:
        monkeypatch.syspath_prepend(folder)
        return code_of(import_flow(folder).flow)

    yield load
    forget_flow()


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        ("flow", "< LIMIT", "<= LIMIT", ["clean: its function has changed"]),
        ("flow", "factor=2", "factor=3", ["clean: its function has changed"]),
        ("flow", "good", "well", ["clean: its function has changed"]),
        ("flow", "LIMIT = 5", "LIMIT = 6", ["clean: reaches shop.flow.LIMIT, "]),
        ("flow", '"c", "d"}', '"c", "e"}', ["clean: reaches shop.flow.NAMES, "]),
        ("flow", "data.csv", "more.csv", ["last: reaches shop.flow.DATA, "]),
        ("flow", "above(7)", "above(8)", ["kept: its function has changed"]),
        ("flow", "sales.n >= limit", "sales.n == limit", ["kept: its function has"]),
        ("flow", "function(*frames)", "function(frames[0])", ["kept: its function"]),
        ("flow", "x - 1", "x - 2", ["picked: its function has changed"]),
        ("flow", "partial(lib.pick, ", "partial(lib.pick, *[], ", []),
        ("flow", "x * 3", "x * 4", ["twice: reaches shop.flow.second, "]),
        ("flow", "x * 2", "x * 4", []),
        ("flow", "f.where(str(", "f.where(repr(", ["twice: its function has changed"]),
        ("flow", "f.limit(1)", "f.limit(2)", []),
        ("flow", "Rules(3)", "Rules(4)", ["odd: its function has changed"]),
        ("flow", "SEEN = {}", "SEEN = {0: 0}", ["last: reaches shop.flow.SEEN, "]),
        ("flow", "_model = n", "_model = -n", ["last: reaches shop.flow.remember, "]),
        ("lib", "column > bound", "column < bound", ["clean: reaches shop.lib.is_valid, "]),
        ("lib", "FLOOR = 0.5", "FLOOR = 0.6", ["clean: reaches shop.lib.FLOOR, "]),
        ("lib", "return FLOOR", "return -FLOOR", ["clean: reaches shop.lib.bound, "]),
        ("lib", '"n > {function(1)}"', '"n < {function(1)}"', ["picked: reaches shop.l"]),
        ("lib", "depth(n) + 1", "depth(n) + 2", ["last: reaches shop.lib.other_depth, "]),
        ("lib", "[n] * 3", "[n] * 4", ["last: reaches shop.lib.table, "]),
        ("lib", "n + 1\n\n\ndef n", "n + 2\n\n\ndef n", ["last: reaches shop.lib.plus"]),
        ("lib", "LongType", "IntegerType", ["last: reaches shop.lib.plus, "]),
        ("lib", "str(n)", "repr(n)", ["odd: reaches shop.lib.Rules.show, "]),
        ("lib", "* self.step", "+ self.step", ["odd: reaches shop.lib.Rules.bound, "]),
        ("lib", "int = 2", "int = 3", ["odd: reaches shop.lib.Rules, "]),
        ("lib", "return 1\n\n\nclass", "return 2\n\n\nclass", ["odd: reaches shop.lib.Base"]),
        ("lib", "UNUSED = 1", "UNUSED = 2", []),
        ("lib", "def unused():\n    return 1", "def unused():\n    return 2", []),
        ("late", "n < 100", "n < 101", ["clean: reaches shop.late.scale, "]),
        ("beside", "dropna()", "dropna('all')", ["last: reaches beside.tidy, "]),
        ("flow", '"""Clean."""', '"""Cleaner."""', []),
        ("flow", '    """Those above."""\n', "", []),
        ("flow", "    # A comment.\n", "\n\n    # Another\n    # one.\n", []),
        ("flow", "good = sales.where(", "good = sales.where(  # So.\n        ", []),
        ("late", "'n < 100'", '"n < 100"', []),
        ("flow", "kept = flow", "def another():\n    return 1\n\n\nkept = flow", []),
        ("flow", "selectivity=0.9", "selectivity=0.1, cpu_per_event=7.0, memory=1e6", []),
        ("flow", "rate=10.0", "rate=99.0, event_size=7.0", []),
        ("flow", 'delay="2 s"', 'delay="3 s"', ["sales: delay 2 s → 3 s"]),
        ("flow", "n long, shop", "n int, shop", ["sales: schema n long, shop int, at times"]),
        ("flow", 'must="n > 0"', 'must="n > 1"', ["clean: must n > 0 → n > 1"]),
        ("flow", ', must="n > 0"', "", ["clean: must n > 0 → nothing"]),
        ("flow", '"10 s", "5 s"', '"20 s", "5 s"', ["totals-partial: window 10 s every 5 s → 20"]),
        ("flow", 's": sum_of("n")', 's": sum_of("m")', ["partial: its function", "totals: its f"]),
        ("flow", 'name="odd"', 'name="even"', ["odd: is gone", "inputs odd → even", "even: is"]),
    ],
)  # fmt: skip
def test_a_change_is_told_where_it_was_made_and_form_does_not_count(
    load: Load, tmp_path: Path, file: str, before: str, after: str, told: list[str]
) -> None:
    found = load(write_files(tmp_path / "before"))
    changed = load(write_files(tmp_path / "after", **{file: (before, after)}))
    changes = changed.list_changes(found)
    assert len(changes) == len(told), changes
    for change, part in zip(changes, told, strict=True):
        assert part in change
    assert (changed == found) == (changed.digest == found.digest) == (not told)
    assert found.list_changes(found) == ()
    if told:
        with pytest.raises(InvalidInput) as refused:
            changed.require_same(found)
        assert [defect.path for defect in refused.value.defects] == list(changes)
        assert found.digest[:12] in str(refused.value)
    else:
        changed.require_same(found)


def test_the_code_is_the_same_in_every_process_and_place(load: Load, tmp_path: Path) -> None:
    found = load(write_files(tmp_path / "here"))
    program = "from thalweg.spark.pipeline.code import code_of; from shop.flow import flow; "
    program += "print(code_of(flow).digest)"
    for seed, place in (("0", "here"), ("1", "there"), ("4711", "further/away")):
        folder = write_files(tmp_path / place)
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(folder)}
        ran = subprocess.run(
            [sys.executable, "-c", program],
            env=env,
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        assert ran.stdout.strip() == found.digest


def test_what_functions_fill_while_they_run_is_no_code(load: Load, tmp_path: Path) -> None:
    folder = write_files(tmp_path)
    found = load(folder)
    flow = import_flow(folder)
    flow.remember(4)
    assert code_of(flow.flow) == found
    # Once known, it stays: other objects may have changed by being used.
    flow.RULES.least = 100
    assert code_of(flow.flow) == found


def test_functions_count_as_they_were_loaded(load: Load, tmp_path: Path) -> None:
    """A file that was edited after its import says nothing of the code that runs."""
    folder = write_files(tmp_path)
    found = load(folder)
    flow = import_flow(folder)
    write_files(tmp_path, flow=("< LIMIT", "> LIMIT"), lib=("return FLOOR", "return 2"))
    stale = code_of(flow.flow)
    edited = load(folder)
    for code in (stale, edited):
        assert "operator clean: its function has changed" in code.list_changes(found)
    assert stale.list_changes(edited)
    # Comments alone are no other code, also where they move everything.
    write_files(tmp_path, flow=("def clean", "# More.\n\n\n\n# And more.\ndef clean"))
    assert code_of(import_flow(folder).flow).list_changes(found) == ()


def test_functions_without_source_count_by_their_instructions() -> None:
    def made(text: str) -> PipelineCode:
        scope: dict[str, Any] = {"__name__": "typed_in", "LIMIT": 3}
        exec(text, scope)  # noqa: S102 - as an interactive session does
        pipeline = Pipeline("typed")
        rows = pipeline.source("rows", schema="n long", key="n")
        pipeline.operator(rows, kind="row-wise", name="keep")(scope["keep"])
        return code_of(pipeline)

    code = made("def keep(rows):\n    return rows.where(f'n > {LIMIT}')")
    assert code == made("def keep(rows):\n    'Keep.'\n\n    return rows.where(f'n > {LIMIT}')")
    for text in (
        "def keep(rows):\n    return rows.where(f'n < {LIMIT}')",
        "def keep(rows):\n    return rows.filter(f'n > {LIMIT}')",
        "def keep(rows):\n    return rows.where(f'n > {len(str(LIMIT))}')",
    ):
        assert made(text).list_changes(code) == ("operator keep: its function has changed",)
    changed = made("LIMIT = 4\ndef keep(rows):\n    return rows.where(f'n > {LIMIT}')")
    (change,) = changed.list_changes(code)
    assert change == "operator keep: reaches typed_in.LIMIT, which has changed"


def code_with(**held: object) -> PipelineCode:
    pipeline = Pipeline("holding")
    rows = pipeline.source("rows", schema="n long", key="n")

    def keep(frame: Any) -> Any:
        return frame.where(str(held))

    pipeline.operator(rows, kind="row-wise")(keep)
    return code_of(pipeline)


class Loose:
    """An object that refers to itself, and dislikes being looked at."""

    def __init__(self, n: int) -> None:
        self.n, self.own = n, self

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def values() -> list[tuple[object, object, bool]]:
    import datetime
    import decimal

    import numpy as np
    import pandas as pd
    from pyspark.sql.types import IntegerType, LongType, StructType

    circle: list[object] = [1]
    circle.append(circle)
    table = pd.DataFrame({"a": [1, 2]})
    return [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (0.1, 0.1 + 2**-56, False),
        (float("nan"), float("nan"), True),
        ("a", b"a", False),
        ([1, 2], (1, 2), False),
        ([1, 2], [2, 1], False),
        ({1, 2, "a"}, {"a", 2, 1}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        (circle, [1, [1, circle]], False),
        (np.arange(3), np.arange(3), True),
        (np.arange(3), np.arange(3.0), False),
        (np.array(["a", None], object), np.array(["a", None], object), True),
        (table, table.copy(), True),
        (table, table.assign(a=[1, 3]), False),
        (table["a"], table["a"] + 1, False),
        (re.compile("a"), re.compile("a", re.IGNORECASE), False),
        (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), False),
        (decimal.Decimal("1.0"), decimal.Decimal("1.00"), False),
        (LongType(), IntegerType(), False),
        (StructType().add("a", "integer"), StructType().add("a", "integer"), True),
        (Loose(1), Loose(1), True),
        (Loose(1), Loose(2), False),
        (open, print, False),
        (object(), object(), True),
        (iter([1]), iter([2]), True),
        ("a".upper, "b".upper, False),
        (int, str, False),
        (list[int], list[str], False),
    ]


@pytest.mark.parametrize("position", range(len(values())))
def test_values_in_a_closure_count_by_what_they_hold(position: int) -> None:
    one, other, is_same = values()[position]
    assert (code_with(held=one) == code_with(held=other)) == is_same


def test_two_functions_in_one_line_are_told_apart() -> None:
    low, high = (lambda x: x < 1 and 2), (lambda x: x < 2 and 2)  # fmt: skip
    # The same instructions, and another tree: where it stands says which it is.
    plain, folded = (lambda: 4), (lambda: 2 + 2)  # fmt: skip
    texts = [describe_function(f.__code__, f.__globals__) for f in (low, high, plain, folded)]
    assert len(set(texts)) == 4
    assert "BinOp" in texts[3]
    assert "BinOp" not in texts[2]


def test_code_comes_back_from_plain_data_and_nothing_else_does(load: Load, tmp_path: Path) -> None:
    found = load(write_files(tmp_path))
    told = found.to_dict()
    again = PipelineCode.from_dict(told)
    assert (again, again.digest) == (found, told["digest"])
    for spoilt in ({}, {**told, "steps": 3}, {**told, "steps": {"a": {}}}, {**told, "method": "x"}):
        with pytest.raises(ValueError, match=r".+"):
            PipelineCode.from_dict(spoilt)
    # Digests of another version of Thalweg say nothing.
    other = PipelineCode.from_dict({**told, "steps": {}, "method": 99})
    found.require_same(other)


# The code of a run


def manifest_with(code: PipelineCode | None, **fields: Any) -> RunManifest:
    given: dict[str, Any] = {"pipeline": "a:b", "graph": "1", "network": "city", "cloud": "cloud"}
    return RunManifest(**given, fogs=("fog-0",), code=code, **fields)


def some_code(text: str, method: int = 1) -> PipelineCode:
    step = StepCode(settings={"kind": "row-wise"}, function=text)
    return PipelineCode(steps={"clean": step}, method=method)


def test_a_folder_takes_one_code_and_keeps_since_when(tmp_path: Path) -> None:
    folder, code = RunFolder(tmp_path), some_code("one")
    assert folder.claim(manifest_with(None), 1.0).code_since_s is None
    assert folder.claim(manifest_with(code), 2.0).code_since_s == 2.0
    assert folder.claim(manifest_with(code), 3.0).code_since_s == 2.0
    assert folder.read_manifest() == manifest_with(code, code_since_s=2.0)
    with pytest.raises(InvalidInput) as refused:
        folder.claim(manifest_with(some_code("two"), ships=True), 4.0)
    told = [defect.path for defect in refused.value.defects]
    assert told == ["operator clean: its function has changed", "link"]
    assert folder.read_manifest().code == code
    # Where digests cannot be compared, the graph still can.
    later = folder.claim(manifest_with(some_code("two", method=2)), 5.0)
    assert later.code_since_s == 5.0
    with pytest.raises(InvalidInput, match="its operators have changed"):
        folder.claim(replace(manifest_with(code), graph="2"), 6.0)


@pytest.mark.parametrize(
    "spoilt", [3, {}, {"steps": []}, {"steps": {"a": 1}, "definitions": {}, "method": 1}]
)
def test_a_manifest_with_other_data_for_its_code_is_refused(tmp_path: Path, spoilt: object) -> None:
    folder = RunFolder(tmp_path)
    folder.write_manifest(manifest_with(some_code("one")))
    data = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**data, "code": spoilt}))
    with pytest.raises(InvalidInput, match="as a run writes it"):
        folder.read_manifest()


def test_the_codes_of_rows_are_told_with_since_when() -> None:
    code, other = some_code("one"), some_code("two")
    plain = compare_code(manifest_with(code), [{"code": code.digest, "at_s": 1.0}], code)
    assert (plain.is_same, plain.changes) == (True, ())
    assert plain.describe() == (
        f"the rows were made with code {code.digest[:12]}; this is that code"
    )
    differs = compare_code(manifest_with(code), [], other)
    assert differs.is_same is False
    assert differs.describe().splitlines()[1:] == ["operator clean: its function has changed"]
    late = compare_code(manifest_with(code, code_since_s=86_400.0), [{"at_s": 1.0}], code)
    assert late.is_same is None
    assert "code unknown, then code " in late.describe()
    assert "since 1970-01-02 00:00:00 UTC; whether all are of the code here" in late.describe()
    # A run that was upgraded on its way has several.
    decisions = [{"code": d, "at_s": t} for t, d in ((1.0, other.digest), (9.0, code.digest))]
    both = compare_code(manifest_with(code), [*decisions, {"code": 3, "at_s": "x"}], code)
    assert [(span.digest, span.since_s) for span in both.spans] == [
        (other.digest, 1.0),
        (code.digest, 9.0),
    ]
    assert both.is_same is False
    assert compare_code(manifest_with(None), [], code).is_same is None


def test_a_query_is_refused_with_other_code_and_old_specs_still_load(tmp_path: Path) -> None:
    found_log(tmp_path / "log")
    given: dict[str, Any] = {
        "site": "fog-1",
        "epoch": 0,
        "role": "fog",
        "pipeline": "spark.site_pipelines:rides",
        "log": str(tmp_path / "log"),
        "checkpoint": str(tmp_path / "checkpoints" / "fog-1@0"),
        "cut": ["clean"],
    }
    check_query(QuerySpec.from_dict(given))
    code = code_of(load_pipeline("spark.site_pipelines:rides"))
    check_query(QuerySpec.from_dict({**given, "code": code.to_dict()}))
    steps = {**code.steps, "clean": replace(code.steps["clean"], function="other")}
    other = replace(code, steps=steps)
    with pytest.raises(InvalidInput, match="operator clean: its function has changed: got"):
        check_query(QuerySpec.from_dict({**given, "code": other.to_dict()}))
    with pytest.raises(InvalidInput, match="code: got"):
        QuerySpec.from_dict({**given, "code": {"steps": 1}})
