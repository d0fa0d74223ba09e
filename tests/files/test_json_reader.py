"""Reading JSON: what is refused and in which words, and the standard library as oracle."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.files.text import parse_document


def parse(source: str | bytes) -> object:
    return parse_document(source, file="app.json", format="json").data


def refused(source: str | bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        parse(source)
    return caught.value


BAD_JSON = {
    "same key": ('{"a": 1,\n"b": [{"c": 1, "c": 2}]}', "app.json:2: b[0].c: got "),
    "same key twice": ('{"a": 1,\n"a": 2,\n"a": 3}', "Hint: it is first given in line 1"),
    "same key, once escaped": ('{"a": 1, "\\u0061": 2}', 'a: got "a", need each key only once'),
    "not a number": ('{"a": NaN}', 'app.json:1: a: got "NaN", need a finite number'),
    "infinite": ("[1, Infinity]", '[1]: got "Infinity", need a finite number'),
    "negative infinite": ("-Infinity", 'got "-Infinity", need a finite number'),
    "overflow": ("[1e999]", '[0]: got "1e999", need a finite number'),
    "long integer": ("[" + "1" * 5000 + "]", "[0]: got"),
    "long integer, its rule": ("[" + "1" * 41 + "]", "need a whole number of at most 40 digits"),
    "long decimal": ("[0." + "1" * 65537 + "]", "need a text of at most 65536 characters"),
    "long text": (f'["{"x" * 65537}"]', "need a text of at most 65536 characters"),
    "long key": (f'{{"{"x" * 257}": 1}}', "need a key of 1 to 256 printable characters"),
    "escape in a text": ('["\\u001b[31m"]', "need a text without control characters"),
    "half a character": ('["\\ud800"]', '[0]: got "U+D800 in \\ud800", need a text without cont'),
    "half a character in a key": ('{"\\ud800": 1}', "need a key of 1 to 256 printable characters"),
    "deep lists": (
        "[" * 33 + "]" * 33,
        'got "33 levels", need lists and mappings nested at most 32',
    ),
    "bottomless": ("[" * 1_000_000, 'got "33 levels"'),
    "bottomless mappings": ('{"a":' * 100_000, 'got "33 levels"'),
    "nothing": (" \n", "got nothing, need a JSON document; the file is empty"),
    "unclosed": ('{"a": 1', "need valid JSON: expecting ',' delimiter (column 8)"),
    "line and column": ('{"a": 1,\n "b" 2}', 'app.json:2: got "\\"b\\" 2}", need valid JSON'),
    "two values": ("1 2", "extra data (column 3). Hint: one file holds one JSON value."),
    "stray bracket": ("]", "need valid JSON: expecting value"),
    "wrong bracket": ("[1}", "need valid JSON: expecting ',' delimiter (column 3)"),
    "comma too many": ('{"a": [1,]}', "Hint: remove the comma before the closing bracket."),
    "comma too many in a mapping": ('{"a": 1,}', "Hint: remove the comma before the closing"),
    "single quotes": ("{'a': 1}", "Hint: put texts and keys in double quotes."),
    "comment": ('{"a": // b\n1}', "Hint: JSON has no comments"),
    "Python": ('{"a": None}', "Hint: write true, false or null."),
    "unclosed text": ('["a\\"', "need valid JSON: unterminated string"),
    "bad escape": ('["\\q"]', "need valid JSON: invalid \\escape"),
    "leading zero": ("[007]", "need valid JSON"),
    "number as key": ("{1: 2}", "need valid JSON"),
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_bad_json_is_refused(case: str) -> None:
    source, expected = BAD_JSON[case]
    message = str(refused(source))
    assert message.startswith("app.json")
    assert expected in message


def test_every_problem_is_reported_at_once_and_in_order() -> None:
    source = '{"a": NaN,\n"a": [1e999, "\\u0000"]}'
    places = [(defect.line, defect.path) for defect in refused(source).defects]
    assert places == [(1, "a"), (2, "a"), (2, "a[0]"), (2, "a[1]")]


SAFE_TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff\ufeff")
    | st.sampled_from("\n\t"),
    max_size=30,
) | st.sampled_from(["1", "007", "1e5", ".5", "nan", "inf", "~", "null", "yes", "0x1", "1:2", "<<"])
KEYS = SAFE_TEXT.filter(lambda key: bool(key) and key.isprintable())
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40) + 1, 10**40 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | SAFE_TEXT
)


def nested(scalars: st.SearchStrategy[object], keys: st.SearchStrategy[str]) -> object:
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5),
        max_leaves=30,
    )


def same(a: object, b: object) -> bool:
    """Equal, with 1, 1.0 and True told apart."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@settings(deadline=None)
@given(data=nested(SCALARS, KEYS), indent=st.sampled_from([None, 0, 2]), wide=st.booleans())
def test_what_json_writes_is_read_back(data: object, indent: int | None, wide: bool) -> None:
    source = json.dumps(data, indent=indent, ensure_ascii=not wide)
    assert same(parse(source), data)
    # Most JSON is YAML, too; but YAML writes no pairs of surrogates, and knows more line ends.
    if "\\ud" not in source and not {"\u2028", "\u2029"} & set(source):
        document = parse_document(source, file="app.yaml", format="yaml")
        assert same(document.data, data)


JSON_PIECES = [*'[]{}",:0123456789.eE+- \n\\', "true", "null", '"a"', '"b":', "NaN", "[1]", "\\u00"]


def slow_json(source: str) -> object:
    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(found)) < len(found) or not all(key for key, _ in found):
            raise ValueError("keys")
        return dict(found)

    def fail(_: str) -> None:
        raise ValueError("constant")

    def finite(digits: str) -> float:
        if math.isinf(float(digits)):
            raise ValueError("infinite")
        return float(digits)

    return json.loads(source, object_pairs_hook=pairs, parse_constant=fail, parse_float=finite)


@settings(deadline=None, max_examples=500)
@given(source=st.lists(st.sampled_from(JSON_PIECES), max_size=14).map("".join))
def test_json_is_accepted_exactly_where_the_standard_library_and_the_rules_agree(
    source: str,
) -> None:
    try:
        expected = slow_json(source)
    except ValueError:
        refused(source)
    else:
        assert same(parse(source), expected)
