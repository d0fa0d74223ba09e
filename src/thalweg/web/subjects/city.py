"""Vehicles, brokers and operators of a city in motion, as `thalweg mobility run` keeps them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from thalweg.errors import Defect, InvalidInput
from thalweg.files.own_file import read_own_bytes
from thalweg.files.plain_json import parse_plain_json
from thalweg.migration.view.packed import CITY_FILE
from thalweg.web.subject import Plain, Subject
from thalweg.web.subjects.results import ResultsSubject

_MOST_BYTES = 200 * 2**20
# As the page of a city has it, to the letter: a pattern would try again at every `<script`.
_DATA_BEGIN, _DATA_END = b'<script type="application/json" id="data">', b"</script>"
_PARTS = ("brokers", "vehicles", "instances", "approaches", "moments", "operators", "users")


class CitySubject(Subject):
    """A city from `city.json` in a folder of results, or from a page that was drawn before."""

    kind = "city"
    views: tuple[str, ...] = ("city",)

    def __init__(self, place: Path) -> None:
        file = place / CITY_FILE if place.is_dir() else place
        self._packed = read_city(file, place if place.is_dir() else None)
        super().__init__(str(self._packed.get("title") or place.name))
        self._results: ResultsSubject | None = None
        # A city can be shown without the tables that were kept with it.
        with suppress(InvalidInput):
            self._results = ResultsSubject(place) if place.is_dir() else None
        if self._results is not None:
            self.views = ("city", "results")

    def city(self) -> Plain:
        """The packed city."""
        return self._packed

    def results(self) -> Plain:
        """The tables beside it."""
        return super().results() if self._results is None else self._results.results()

    def image(self, name: str) -> Path:
        """A picture beside it."""
        return super().image(name) if self._results is None else self._results.image(name)


def is_city(place: Path) -> bool:
    """Whether a city is kept there."""
    return (place / CITY_FILE).is_file() or place.suffix == ".html"


def read_city(file: Path, folder: Path | None = None) -> Plain:
    """A packed city; nothing in the file is run, it is read as data.

    In a folder it has to be a file of that folder, and no link to another place.

    Raises:
        InvalidInput: where there is none.
    """
    try:
        content = read_own_bytes(folder or file.resolve().parent, file, _MOST_BYTES)
        packed = parse_plain_json(_data_of(content) if file.suffix == ".html" else content)
        if not isinstance(packed, dict) or any(part not in packed for part in _PARTS):
            raise ValueError("not a city")
    except (OSError, ValueError) as error:
        rule = "a city as `thalweg mobility run --plot` or `--output` keeps it"
        defect = Defect(file=str(file), path="", value=str(error)[:200], rule=rule)
        raise InvalidInput([defect]) from None
    return packed


def _data_of(page: bytes) -> bytes:
    _, begin, rest = page.partition(_DATA_BEGIN)
    data, end, _ = rest.partition(_DATA_END)
    if not (begin and end):
        raise ValueError("no page of a city")
    return data
