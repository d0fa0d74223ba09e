"""Whatever a file says: it is understood, or refused in words. Nothing else.

Each claim has a quick variant that repeats the same cases in every run, and a slow one with more.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from property.spoiling import (
    APPLICATION,
    CITY,
    NETWORKS,
    PIECES,
    PLAN,
    VALUES,
    fuzzed,
    spoilt,
    spoilt_bytes,
    spoilt_text,
)
from thalweg.errors import InvalidInput
from thalweg.files.application_reader import read_application
from thalweg.files.application_writer import application_data
from thalweg.files.load import load_any, load_application, load_network, load_plan, read_back
from thalweg.files.network_reader import read_network
from thalweg.files.network_writer import network_data
from thalweg.files.plan_reader import read_plan
from thalweg.files.save import save
from thalweg.model import Application, Network, Plan

MOST_MESSAGES = 102


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
@given(st.sampled_from(["f.json", "f.yaml"]), st.lists(st.sampled_from(PIECES)).map("".join))
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


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("networks") / "city"
    save(CITY, folder)
    return folder


def check_folder(city: Path, data: st.DataObject) -> None:
    names = sorted(path.name for path in city.iterdir())
    name = data.draw(st.sampled_from(names))
    contents = data.draw(spoilt_bytes((city / name).read_bytes()))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "city")
        shutil.copytree(city, folder)
        (folder / name).write_bytes(contents)
        try:
            assert isinstance(load_network(folder), Network)
        except InvalidInput as error:
            require_words(error)
            assert all(defect.file.startswith(str(folder)) for defect in error.defects)


@fuzzed(150)
@given(data=st.data())
def test_a_spoilt_folder_is_loaded_or_refused(city: Path, data: st.DataObject) -> None:
    check_folder(city, data)


@pytest.mark.slow
@fuzzed(1500)
@given(data=st.data())
def test_many_spoilt_folders_are_loaded_or_refused(city: Path, data: st.DataObject) -> None:
    check_folder(city, data)
