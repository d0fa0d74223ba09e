"""What the code of a pipeline reaches through values: registries, state, constants, classes."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent, indent

import pytest

pytest.importorskip("pyspark")

from thalweg.spark.pipeline.code import PipelineCode, code_of

FLOW = """
from thalweg.spark.pipeline import Pipeline
{module}

flow = Pipeline("shop")
sales = flow.source("sales", schema="n long", key="n")


@flow.operator(sales, kind="row-wise")
def keep(sales):
{body}
"""
TABLES = "SEEN = {}\nCOLUMNS = {'a': 1, 'b': 2}\n"
LIST_REGISTRY = """
RULES = []
def rule(function):
    RULES.append(function)
    return function
@rule
def positive(x):
    return x.where('n > HOLE')
"""
DICT_REGISTRY = """
RULES = {}
def rule(name):
    def put(function):
        RULES[name] = function
        return function
    return put
@rule('positive')
def positive(x):
    return x.where('n > HOLE')
"""
FILLED = """
TABLE = {}
def fill():
    TABLE['a'] = HOLE
fill()
"""
CLASS_REGISTRY = """
KINDS = {}
class Base:
    def __init_subclass__(cls):
        KINDS[cls.__name__] = cls
class Kind(Base):
    def f(self, x):
        return x.where(HOLE)
"""
REMEMBER = "def remember():\n    TABLE['z'] = 1\n"
METACLASS = """
class Meta(type):
    def f(cls, x):
        return x.where(HOLE)
class Kind(metaclass=Meta):
    pass
"""
SUBCLASS = """
class Base:
    @classmethod
    def find_all(cls):
        return cls.__subclasses__()
class Kind(Base):
    def f(self, x):
        return x.where(HOLE)
"""
PARTIAL_METHOD = """
from functools import partialmethod
class Kind:
    def g(self, n, x):
        return x.where(n)
    f = partialmethod(g, HOLE)
"""
DISPATCHED = """
from functools import singledispatchmethod
class Kind:
    @singledispatchmethod
    def f(self, x):
        return x.where(1)
    @f.register
    def _(self, x: int):
        return x.where(HOLE)
"""
USED = "return sales.where(CONFIG.a)"
ALL_RULES = "for r in RULES: sales = r(sales)\nreturn sales"
COLUMNS = "for name in R: sales = sales.withColumn(name, R[name])\nreturn sales"
Make = Callable[..., PipelineCode]


def write_flow(folder: Path, module: str, body: str, others: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = FLOW.format(module=dedent(module), body=indent(dedent(body).strip(), "    "))
    (folder / "reach_flow.py").write_text(text)
    (folder / "reach_others.py").write_text(others)
    return folder


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Make]:
    """The code of a pipeline in a new module with this text and this function body."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)

    def forget() -> None:
        for name in ("reach_flow", "reach_others"):
            sys.modules.pop(name, None)

    def make(module: str, body: str, others: str = "", run: str | None = None) -> PipelineCode:
        forget()
        write_flow(tmp_path, module, body, others)
        importlib.invalidate_caches()
        loaded = importlib.import_module("reach_flow")
        if run is not None:
            getattr(loaded, run)()
        return code_of(loaded.flow)

    yield make
    forget()


@pytest.mark.parametrize(
    ("module", "body", "reached"),
    [
        (LIST_REGISTRY, ALL_RULES, "positive"),
        (DICT_REGISTRY, "return RULES['positive'](sales)", "positive"),
        # Also where the step itself fills the registry.
        (DICT_REGISTRY, "rule('z')(positive)\nreturn RULES['positive'](sales)", "positive"),
        (CLASS_REGISTRY, "return KINDS['Kind']().f(sales)", "Kind.f"),
        (FILLED, "return sales.where(TABLE['a'])", "TABLE"),
        (FILLED + REMEMBER, "remember()\nreturn sales.where(TABLE['a'])", "fill"),
        (
            "TABLE = {}\nTABLE.update(a=HOLE)\n" + REMEMBER,
            "return sales.where(TABLE['a'])",
            "TABLE",
        ),
        (
            "TABLE = {}\nTABLE.update(a=HOLE)\n" + REMEMBER,
            "remember()\nreturn sales.where(TABLE['a'])",
            "TABLE",
        ),
        (
            "BASE = HOLE\nTABLE = {'a': BASE * 2}\n" + REMEMBER,
            "remember()\nreturn sales.where(TABLE['a'])",
            "BASE",
        ),
        (
            "BASE = HOLE\nlimits = [BASE * 2]\ndef f():\n    limits = []\n    limits.append(3)",
            "f()\nreturn sales.where(limits[0])",
            "limits",
        ),
        (
            "N = HOLE\ndef count():\n    global N\n    N += 1\n    return N",
            "return sales.where(count())",
            "N",
        ),
    ],
)
def test_a_name_that_functions_fill_hides_no_code(
    make: Make, module: str, body: str, reached: str
) -> None:
    before = make(module.replace("HOLE", "5"), body)
    (change,) = make(module.replace("HOLE", "6"), body).list_changes(before)
    assert change == f"operator keep: reaches reach_flow.{reached}, which has changed"


def test_what_the_step_fills_while_it_runs_is_no_code_wherever_it_is(make: Make) -> None:
    others = "SEEN = {}\n"
    module = "from reach_others import SEEN\nN = 0\ndef remember():\n    global N\n    N += 1\n"
    module += "    SEEN[N] = N\n    return N\n"
    before = make(module, "return sales.where(remember() + len(SEEN))", others)
    after = make(module, "return sales.where(remember() + len(SEEN))", others, run="remember")
    assert after.list_changes(before) == ()
    other = make(module, "return sales.where(remember() + len(SEEN))", "SEEN = {0: 0}\n")
    assert other.list_changes(before) == (
        "operator keep: reaches reach_others.SEEN, which has changed",
    )


@pytest.mark.parametrize(
    "constant",
    [
        "import types\nCONFIG = types.SimpleNamespace(a=HOLE)",
        "import argparse\nCONFIG = argparse.Namespace(a=HOLE)",
        "import array\nCONFIG = array.array('i', [HOLE])",
        "import configparser\nCONFIG = configparser.ConfigParser()\n"
        "CONFIG.read_string('[a]\\nb = HOLE')",
        "import ipaddress\nCONFIG = ipaddress.ip_network('10.HOLE.0.0/16')",
        "import operator\nCONFIG = operator.attrgetter('aHOLE')",
        "import operator\nCONFIG = operator.itemgetter(HOLE)",
        "import operator\nCONFIG = operator.methodcaller('where', HOLE)",
        "import string\nCONFIG = string.Template('n > HOLE')",
        "import struct\nCONFIG = struct.Struct('HOLEi')",
        "import statistics\nCONFIG = statistics.NormalDist(HOLE, 1)",
        "from collections import ChainMap\nCONFIG = ChainMap({'a': HOLE}, {'b': 1})",
        "from collections import OrderedDict\nCONFIG = OrderedDict(a=HOLE)",
        "from collections import UserDict\nCONFIG = UserDict(a=HOLE)",
        "from collections import defaultdict\nCONFIG = defaultdict(lambda: HOLE)",
    ],
)
def test_constants_of_library_types_count_by_what_they_hold(make: Make, constant: str) -> None:
    before = make(constant.replace("HOLE", "5"), USED)
    assert make(constant.replace("HOLE", "5"), USED) == before
    (change,) = make(constant.replace("HOLE", "6"), USED).list_changes(before)
    assert change == "operator keep: reaches reach_flow.CONFIG, which has changed"


@pytest.mark.parametrize(
    ("module", "body", "reached"),
    [
        (PARTIAL_METHOD, "return Kind().f(sales)", "Kind"),
        (DISPATCHED, "return Kind().f(sales)", "Kind._"),
        (METACLASS, "return Kind.f(sales)", "Meta.f"),
        (SUBCLASS, "return [k().f(sales) for k in Base.find_all()][0]", "Kind.f"),
        (SUBCLASS, "return [k().f(sales) for k in Base.__subclasses__()][0]", "Kind.f"),
    ],
)
def test_code_behind_classes_counts(make: Make, module: str, body: str, reached: str) -> None:
    before = make(module.replace("HOLE", "5"), body)
    (change,) = make(module.replace("HOLE", "6"), body).list_changes(before)
    assert change == f"operator keep: reaches reach_flow.{reached}, which has changed"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("R = {'a': 1, 'b': 2}", "R = {'b': 2, 'a': 1}", False),
        ("R = dict(a=1, b=2)", "R = dict(b=2, a=1)", False),
        ("R: dict = {'x': {'a': 1, 'b': 2}}", "R: dict = {'x': {'b': 2, 'a': 1}}", False),
        ("R = [{'a': 1, 'b': 2}]", "R = [{'b': 2, 'a': 1}]", False),
        # The order of these may be that of a set, which differs in every process.
        ("R = {k: 1 for k in ('a', 'b')}", "R = {k: 1 for k in ('b', 'a')}", True),
        ("S = 'ab'\nR = {k: 1 for k in S}", "S = 'ba'\nR = {k: 1 for k in S}", True),
        (
            "from collections import OrderedDict\nR = OrderedDict((k, 1) for k in 'ab')",
            "from collections import OrderedDict\nR = OrderedDict((k, 1) for k in 'ba')",
            False,
        ),
    ],
)
def test_the_order_that_a_source_writes_out_counts(
    make: Make, one: str, other: str, *, is_same: bool
) -> None:
    assert (make(one, COLUMNS) == make(other, COLUMNS)) == is_same


def test_the_order_of_an_imported_mapping_counts_where_it_is_written(make: Make) -> None:
    module = "from reach_others import COLUMNS as R"
    before = make(module, COLUMNS, TABLES)
    after = make(module, COLUMNS, TABLES.replace("'a': 1, 'b': 2", "'b': 2, 'a': 1"))
    assert after.list_changes(before) == (
        "operator keep: reaches reach_others.COLUMNS, which has changed",
    )


def test_a_module_under_another_name_is_followed_as_far_as_it_is_used(make: Make) -> None:
    body, others = "h = reach_others\nreturn h.f(sales)", "def f(x): return 1\ndef g(): return 1\n"
    before = make("import reach_others", body, others)
    unused = make("import reach_others", body, others.replace("g(): return 1", "g(): return 2"))
    assert unused == before
    used = make("import reach_others", body, others.replace("f(x): return 1", "f(x): return 2"))
    assert used.list_changes(before) == (
        "operator keep: reaches reach_others.f, which has changed",
    )


def test_what_differs_in_each_process_is_known_by_its_type(make: Make) -> None:
    module = "import os, random, threading\nA, B, C = os.environ, random.Random(), threading.Lock()"
    body = "return sales.where(str((A, B, C)))"
    before = make(module, body)
    os.environ["REACH_TEST"] = "1"
    try:
        assert make(module, body) == before
    finally:
        del os.environ["REACH_TEST"]


def test_the_digest_is_the_same_in_every_process(tmp_path: Path) -> None:
    module = "\n".join(
        (
            DICT_REGISTRY.replace("HOLE", "1"),
            CLASS_REGISTRY.replace("HOLE", "1"),
            FILLED.replace("HOLE", "1"),
            REMEMBER,
            METACLASS.replace("Kind", "Made").replace("HOLE", "1"),
            DISPATCHED.replace("Kind", "Sent").replace("int", "Mapping").replace("HOLE", "1"),
            SUBCLASS.replace("Base", "Root").replace("Kind", "Leaf").replace("HOLE", "1"),
            "class Branch(Root): pass",
            "from argparse import Namespace",
            "NAMES = {'a', 'b', 'c', 'd', 'e'}",
            "BY_NAME = {name: {name} for name in NAMES}",
            "CONFIG = Namespace(names=NAMES, by_name=BY_NAME)",
            "for name in NAMES: TABLE[name] = name",
        )
    )
    body = "remember()\nCONFIG, BY_NAME, TABLE, KINDS, RULES, Made, Sent, Root.find_all()\n"
    folder = write_flow(tmp_path, "from collections.abc import Mapping\n" + module, body)
    program = "from thalweg.spark.pipeline.code import code_of; import reach_flow as r; "
    program += "print(code_of(r.flow).to_dict())"
    # Registered abstract classes are counted in each process.
    counted = "import collections.abc as c; c.Mapping.register(type('T', (), {})); "
    found = set()
    for seed, before in (("0", ""), ("1", "import json; "), ("2", counted)):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(folder)}
        command = [sys.executable, "-c", before + program]
        ran = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        found.add(ran.stdout)
    assert len(found) == 1
    for name in ("Leaf.f", "Made", "Meta.f", "Sent", "Kind", "positive", "fill"):
        assert f"'reach_flow.{name}'" in ran.stdout
