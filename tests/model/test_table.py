from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from thalweg.model.table import WIDTH, fit_columns, format_table, wrap

CELLS = st.text(st.sampled_from("abcde éß→  "), max_size=120)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    columns = draw(st.integers(1, 14))
    row = st.lists(CELLS, min_size=columns, max_size=columns)
    names = st.lists(st.text("abc ", min_size=1, max_size=16), min_size=columns, max_size=columns)
    return draw(names), draw(st.lists(row, min_size=1, max_size=6))


def words_in(texts: list[str]) -> Counter[str]:
    return Counter(word for text in texts for word in text.split())


@given(tables(), st.integers(1, 160))
def test_no_line_is_wider_than_asked_unless_one_word_is(table, width):
    names, rows = table
    for line in format_table(names, rows, width=width).split("\n"):
        assert len(line) <= width or len(line.split()) == 1


@given(tables(), st.integers(1, 160))
def test_no_word_is_lost_or_made_up(table, width):
    names, rows = table
    shown = words_in(format_table(names, rows, width=width).split("\n"))
    cells = words_in([cell for row in rows for cell in row])
    if fit_columns(names, rows, width) is not None:
        assert shown == cells + words_in(names)
    else:
        told = [f"{n}: {c}" for row in rows for n, c in zip(names, row, strict=True)]
        assert shown == words_in(told)


@given(tables(), st.integers(1, 160))
def test_what_fits_is_not_wrapped(table, width):
    names, rows = table
    natural = [max(len(row[k]) for row in [names, *rows]) for k in range(len(names))]
    fits = sum(natural) + 2 * (len(natural) - 1) <= width
    assert (fit_columns(names, rows, width) == natural) == fits
    if fits:
        assert format_table(names, rows, width=width).count("\n") == len(rows)


@given(tables(), st.integers(1, 160))
def test_the_columns_have_the_widths_that_were_fitted(table, width):
    names, rows = table
    widths = fit_columns(names, rows, width)
    if widths is None:
        return
    assert sum(widths) + 2 * (len(widths) - 1) <= width
    begins = [sum(widths[:k]) + 2 * k for k in range(len(widths))]
    for line in format_table(names, rows, width=width).split("\n"):
        for begin, wide in zip(begins, widths, strict=True):
            assert line[begin + wide : begin + wide + 2].strip() == ""


def test_the_longest_column_gives_way_and_quantities_stay_whole():
    rows = [["fog-1", "12.3 ms", "the least usage that keeps every limit of all"]]
    assert format_table(["site", "latency", "why"], rows, width=40).split("\n") == [
        "site   latency  why",
        "fog-1  12.3 ms  the least usage that",
        "                keeps every limit of all",
    ]


def test_a_row_that_cannot_be_wrapped_becomes_a_block():
    names = ["a", "b", ""]
    rows = [["x" * 12, "y" * 12, "z"], ["1", "2", "3 4"]]
    assert format_table(names, rows, width=20).split("\n") == [
        f"a: {'x' * 12}",
        f"b: {'y' * 12}",
        "z",
        "",
        "a: 1",
        "b: 2",
        "3 4",
    ]


def test_wrapped_text_goes_on_below_with_an_indent():
    assert wrap("short") == ["short"]
    long = "cpu: fog/a: needs much more " * 6
    lines = wrap(long, indent="  ")
    assert max(map(len, lines)) <= WIDTH
    assert all(line.startswith("  ") for line in lines[1:])
    assert " ".join(lines).split() == long.split()
