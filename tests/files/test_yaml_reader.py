"""Reading YAML: what scalars mean, what is refused and in which words, and PyYAML as oracle."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.files import yaml_reader
from thalweg.files.text import parse_document


def parse(source: str | bytes) -> object:
    return parse_document(source, file="app.yaml", format="yaml").data


def refused(source: str | bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        parse(source)
    return caught.value


@pytest.fixture(params=["libyaml", "pure Python"])
def either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure Python":
        monkeypatch.setattr(yaml_reader, "_LOADER", yaml.SafeLoader)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *[(word, None) for word in ("", "~", "null", "Null", "NULL")],
        *[(word, True) for word in ("true", "True", "TRUE")],
        *[(word, False) for word in ("false", "False", "FALSE")],
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("-7", -7),
        ("9" * 40, int("9" * 40)),
        ("1.5", 1.5),
        (".5", 0.5),
        ("-1.", -1.0),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("+2.5e+2", 250.0),
        ("0.5", 0.5),
        ("0e0", 0.0),
        *[
            (word, word)
            for word in (
                *("yes", "no", "on", "off", "Yes", "NO", "y", "n", "tRUE", "nil", "none", "None"),
                *("0x1F", "0o17", "0b11", "1_000", "12:30:00", "190:20:30", "2024-01-31", "1.2.3"),
                *("2001-12-14t21:59:43.10-05:00", "5 ms", "1e", "e5", "-a", "+", ".", "--1", "1,5"),
                *("information", "nano", "nans", "infinite", "=", "١٢", "1٢"),
            )
        ],
        ('"12"', "12"),
        ("'true'", "true"),
        ('"~"', "~"),
        ("'.nan'", ".nan"),
        ('"007"', "007"),
        ('"a\\tb\\nc"', "a\tb\nc"),
        ("|\n  12\n", "12\n"),
        (">-\n  true\n  false\n", "true false"),
    ],
)
@pytest.mark.usefixtures("either_parser")
def test_a_yaml_scalar_means_what_yaml_1_2_says(written: str, meant: object) -> None:
    value = parse(f"key: {written}")["key"]  # type: ignore[index]
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        *[
            (word, "need a finite number")
            for word in (
                *(".nan", ".NaN", ".NAN", "nan", "NaN", ".inf", "-.inf", "+.Inf", "inf", "-inf"),
                *("Infinity", "-Infinity", "infinity", "1e999", "-1e999", "9" * 400 + "."),
            )
        ],
        *[
            (word, "need a number without leading zeros")
            for word in ("007", "-00", "+01", "08", "00.5", "01e3")
        ],
        ("1" * 41, "need a whole number of at most 40 digits"),
        ("-" + "1" * 5000, "need a whole number of at most 40 digits"),
    ],
)
def test_an_unclear_number_is_refused_with_the_advice_to_quote(written: str, rule: str) -> None:
    message = str(refused(f"a: 1\nkey: {written}"))
    assert message.startswith("app.yaml:2: key: got ")
    assert rule in message
    assert message.endswith("Hint: put a text in quotes.")
    assert parse(f'key: "{written}"') == {"key": written}


BAD_YAML = {
    "anchor": ("a: &x 1", 'app.yaml:1: a: got "&x", need no anchors'),
    "anchor on a list": ("- &x [1]", '[0]: got "&x", need no anchors'),
    "anchor on a key": ("&x a: 1", 'a: got "&x", need no anchors'),
    "alias": ("a: 1\nb: *x", 'app.yaml:2: b: got "*x", need no aliases'),
    "alias as key": ("{*x : 1}", 'got "*x", need no aliases'),
    "local tag": ("a: !special 1", 'a: got "!special", need no tags'),
    "bare tag": ("a: ! 1", 'a: got "!", need no tags'),
    "tag of Python": ("!!python/object/apply:os.system [ls]", 'got "!!python/object/apply:os'),
    "binary tag": ("a: !!binary aGk=", 'a: got "!!binary", need no tags'),
    "tag on a key": ("!!str a: 1", 'a: got "!!str", need no tags'),
    "merge key": ("a:\n  <<: {b: 1}", 'app.yaml:2: a.<<: got "<<", need no merge keys'),
    "two documents": ("a: 1\n---\nb: 2", 'app.yaml:2: got "a second document", need one doc'),
    "same key": ("a: 1\nb: 2\na: 3", 'app.yaml:3: a: got "a", need each key only once'),
    "same key, told the first line": ("a: 1\nb: 2\na: 3", "Hint: it is first given in line 1"),
    "same key in one line": ("{a: 1, a: 2}", 'a: got "a", need each key only once'),
    "same key, once quoted": ('x: [{a: 1, "a": 2}]', 'x[0].a: got "a", need each key only once'),
    "number as key": ("a:\n  1: b", 'app.yaml:2: a.1: got "1", need a text as key'),
    "boolean as key": ("true: b", 'true: got "true", need a text as key. Hint: put the key in q'),
    "null as key": ("{~: b}", 'got "~", need a text as key'),
    "nothing as key": ("? \n: b", "null: got "),
    "unclear number as key": ("007: b", '007: got "007", need a text as key'),
    "list as key": ("a: {[1, 2]: 3}", 'a.?: got "a list", need a text as key'),
    "mapping as key": ("? {b: 1}\n: 2", '?: got "a mapping", need a text as key'),
    "empty key": ('"": 1', 'got "", need a key of 1 to 256 printable characters'),
    "long key": (f"? {'k' * 257}\n: 1", "need a key of 1 to 256 printable characters"),
    "line break in a key": ('"a\\nb": 1', "a\\u000ab: got "),
    "escape in a text": ('a: "\\e[31m"', 'a: got "U+001B in \\u001b[31m", need a text without co'),
    "NUL in a text": ('a: "b\\0"', "need a text without control characters"),
    "carriage return in a text": ('a: "b\\rc"', "need a text without control characters"),
    "C1 in a text": ('a: "\\N"', 'got "U+0085 in '),
    "long text": (f"a: {'x' * 65537}", "need a text of at most 65536 characters"),
    "long block text": (f"a: |\n  {'x' * 65537}", "need a text of at most 65536 characters"),
    "long number": (f"a: 0.{'1' * 65537}", "need a text of at most 65536 characters"),
    "deep lists": (
        "[" * 33 + "]" * 33,
        'got "33 levels", need lists and mappings nested at most 32',
    ),
    "deep blocks": ("- " * 33, 'got "33 levels", need lists and mappings nested at most 32'),
    "bottomless": ("[" * 1_000_000, 'got "33 levels"'),
    "bottomless mappings": ("{a: " * 100_000, 'got "33 levels"'),
    "bottomless keys": ("? " * 100_000, 'got "33 levels"'),
    "many directives": ("%TAG !a! b\n" * 17 + "---\na: 1", 'got "17 lines", need at most 16 lines'),
    "directives at the end": ("a: 1\n..." + "\n%TAG !a! b" * 17, "need at most 16 lines"),
    "no value": ("", "app.yaml:1: got nothing, need a YAML document; the file is empty"),
    "only a comment": ("# later\n", "got nothing, need a YAML document; the file is empty"),
    "only a start": ("---\n", "got nothing, need a YAML document; the file is empty"),
    "colon in a value": (
        "a: 1\nb: c: d\n",
        'app.yaml:2: got "b: c: d", need valid YAML: mapping v',
    ),
    "colon in a value, its column": ("a: 1\nb: c: d\n", "(column 5). Hint: check the indentation"),
    "tab as indentation": ("a:\n\tb: 1\n", "app.yaml:2: got "),
    "tab as indentation, advice": ("a:\n\tb: 1\n", "Hint: indent with spaces, not tabs."),
    "tab after spaces": ("a:\n  b: 1\n  \tc: 2\n", "Hint: indent with spaces, not tabs."),
    "unclosed list": ("a: [1, 2\nb: 3\n", "from line 1"),
    "unclosed quote": ('a: 1\nb: "c\n', "quoted scalar from line 2"),
    "stray indentation": (
        "a:\n  b: 1\n c: 2\n",
        "Hint: give the entries of one block the same ind",
    ),
    "special start": ("a: @b", 'app.yaml:1: got "a: @b", need valid YAML: found character'),
    "undefined tag handle": ("a: !x!y 1", "need valid YAML: found undefined tag handle"),
    "half a character": ('a: "\\ud800"', "app.yaml"),
    "more than Unicode": ('a: "\\U00110000"', "app.yaml"),
}


@pytest.mark.parametrize("case", BAD_YAML)
@pytest.mark.usefixtures("either_parser")
def test_bad_yaml_is_refused(case: str) -> None:
    source, expected = BAD_YAML[case]
    message = str(refused(source))
    assert message.startswith("app.yaml")
    assert expected in message


def test_directives_and_an_end_mark_are_accepted() -> None:
    assert parse("%YAML 1.2\n---\na: 1\n...\n") == {"a": 1}


def test_a_quoted_merge_sign_is_a_key() -> None:
    assert parse('"<<": 1') == {"<<": 1}


def test_a_list_as_key_is_one_problem_and_its_value_is_read_on() -> None:
    places = [(d.line, d.path) for d in refused("? [1, {b: 2}]\n: 3\nc: .inf").defects]
    assert places == [(1, "?"), (3, "c")]


def test_every_problem_is_reported_at_once_and_in_order() -> None:
    source = "a: &x 1\na: *x\nb: [.inf, !t 2]\n1: 2\n<<: {}\nc: d: e\n"
    places = [(defect.line, defect.path) for defect in refused(source).defects]
    assert places[:4] == [(1, "a"), (2, "a"), (2, "a"), (3, "b[0]")]
    assert places[4:] == [(3, "b[1]"), (4, "1"), (5, "<<"), (6, "")]


def test_what_stops_the_reading_is_told_after_a_long_list_of_problems() -> None:
    defects = refused("a: 1\n" * 200 + "b: c: d\n").defects
    assert "valid YAML" in defects[-2].rule
    assert defects[-1].value == "and 99 more"


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


class PlainDumper(yaml.SafeDumper):
    """Writes no anchors, and quotes the texts that YAML 1.2 (not 1.1) takes for numbers."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, value: str) -> yaml.ScalarNode:
        try:
            float(value)
        except ValueError:
            return self.represent_str(value)
        return self.represent_scalar("tag:yaml.org,2002:str", value, style="'")


PlainDumper.add_representer(str, PlainDumper.represent_text)


def same(a: object, b: object) -> bool:
    """Equal, with 1, 1.0 and True told apart."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@settings(deadline=None)
@given(data=nested(SCALARS, KEYS), flow=st.booleans(), wide=st.booleans())
def test_what_yaml_writes_is_read_back(data: object, flow: bool, wide: bool) -> None:
    source = yaml.dump(
        data, Dumper=PlainDumper, default_flow_style=flow, allow_unicode=wide, sort_keys=False
    )
    assert same(parse(source), data)


YAML_PIECES = [
    *"[]{},:-?#&*!|>%@`\"' \n\ta1",
    *[
        "a: ",
        "- ",
        "\n  ",
        "\n- ",
        "b: 1\n",
        "--- ",
        "\n...\n",
        "? ",
        "<<: ",
        "&x ",
        "*x ",
        "!t ",
        '"c"',
    ],
]


def shape(data: object) -> object:
    if isinstance(data, dict):
        return {key: shape(value) for key, value in data.items()}
    return [shape(item) for item in data] if isinstance(data, list) else "leaf"


@settings(deadline=None, max_examples=500)
@given(source=st.lists(st.sampled_from(YAML_PIECES), max_size=14).map("".join))
def test_accepted_yaml_has_the_shape_that_pyyaml_builds(source: str) -> None:
    try:
        data = parse(source)
    except InvalidInput:
        return
    # The base loader builds every scalar as a text.
    assert shape(data) == shape(yaml.load(source, Loader=yaml.CBaseLoader))  # noqa: S506
