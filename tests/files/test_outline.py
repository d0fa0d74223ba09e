"""Lines, limits and lists of defects: what YAML and JSON have in common."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import Defect, InvalidInput
from thalweg.files import outline
from thalweg.files.text import parse_document

FORMATS = ("yaml", "json")


def parse(source: str | bytes, kind: str) -> object:
    return parse_document(source, file=f"app.{kind}", format=kind).data


def refused(source: str | bytes, kind: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        parse(source, kind)
    return caught.value


@pytest.mark.parametrize("kind", FORMATS)
def test_a_long_list_of_problems_ends_with_their_number(kind: str) -> None:
    entries = ",".join(['"a": 1'] * 351)
    defects = refused(f"{{{entries}}}", kind).defects
    assert len(defects) == outline.MOST_DEFECTS + 1
    assert 'got "and 250 more"' in str(defects[-1])


@pytest.mark.parametrize("kind", FORMATS)
def test_the_deepest_nesting_is_accepted(kind: str) -> None:
    data = parse("[" * outline.DEEPEST_NESTING + "]" * outline.DEEPEST_NESTING, kind)
    for _ in range(outline.DEEPEST_NESTING - 1):
        (data,) = data  # type: ignore[misc]
    assert data == []


@pytest.mark.parametrize("kind", FORMATS)
def test_keys_and_values_are_counted(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "MOST_KEYS_AND_VALUES", 10)
    fits = {"a": [1, 2, 3, 4], "b": [5]}
    assert parse(json.dumps(fits), kind) == fits
    message = str(refused(json.dumps({"a": [1, 2, 3, 4], "b": [5, 6]}), kind))
    assert 'got "more than 10", need at most 10 keys and values in a file' in message
    assert "at most 10 keys" in str(refused('{"a":1,"b":2,"c":3,"d":4,"e":5}', kind))


@pytest.mark.parametrize("kind", FORMATS)
def test_the_longest_text_and_key_are_accepted(kind: str) -> None:
    data = {"k" * outline.LONGEST_KEY: "x" * outline.LONGEST_TEXT}
    assert parse(json.dumps(data), kind) == data


def test_the_line_of_an_unknown_path_is_that_of_its_nearest_ancestor() -> None:
    source = "# first\na:\n  - b: 1\n    c: |\n      d\n  -\n    e: 2\nf.g:\n  h[0]: 3\n"
    line_of = parse_document(source, file="app.yaml", format="yaml").line_of
    known = {"": 2, "a": 2, "a[0]": 3, "a[0].b": 3, "a[0].c": 4, "a[1]": 7, "a[1].e": 7}
    dotted = {"f.g": 8, "f.g.h[0]": 9, "f.g.h[0].i": 9, "f.x": 2, "f.g.h": 8}
    unknown = {"x": 2, "a[2]": 2, "a[0].c.d[9]": 4, "a[1].x.y": 7, "..[": 2}
    lines = known | dotted | unknown
    assert {path: line_of(path) for path in lines} == lines


def test_lines_do_not_depend_on_what_becomes_of_the_data() -> None:
    document = parse_document("a: 1\nb: 2\nc: 3", file="app.yaml", format="yaml")
    assert isinstance(document.data, dict)
    del document.data["a"]
    assert document.line_of("c") == 3


def test_a_defect_found_later_gets_file_and_line() -> None:
    document = parse_document('{"a":\n{"b": 1}}', file="app.json", format="json")
    later = InvalidInput([Defect(path="a.b", value=1, rule="a text")])
    located = later.in_file(document.file, document.line_of)
    assert str(located) == "app.json:2: a.b: got 1, need a text"


def nested(scalars: st.SearchStrategy[object], keys: st.SearchStrategy[str]) -> object:
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5),
        max_leaves=30,
    )


class PlainDumper(yaml.SafeDumper):
    """Writes no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def plain_yaml(data: object) -> str:
    return yaml.dump(data, Dumper=PlainDumper)


def slow_lines(node: yaml.Node, path: str, line: int) -> dict[str, int]:
    lines = {path: line}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = f"{path}.{key.value}" if path else key.value
            lines |= slow_lines(value, below, key.start_mark.line + 1)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            lines |= slow_lines(value, f"{path}[{i}]", value.start_mark.line + 1)
    return lines


@settings(deadline=None)
@given(
    data=nested(st.integers(0, 9) | st.just("two\nlines"), st.text("abc", min_size=1, max_size=3)),
    kind=st.sampled_from(FORMATS),
)
def test_lines_are_those_of_the_nodes(data: object, kind: str) -> None:
    dumps = {"json": lambda: json.dumps(data, indent=1), "yaml": lambda: plain_yaml(data)}
    source = dumps[kind]()
    root = yaml.compose(source, Loader=yaml.SafeLoader)
    expected = slow_lines(root, "", root.start_mark.line + 1)
    line_of = parse_document(source, file="app", format=kind).line_of
    assert {path: line_of(path) for path in expected} == expected
    assert all(line_of(f"{path}.unknown[0]") == line for path, line in expected.items() if path)
