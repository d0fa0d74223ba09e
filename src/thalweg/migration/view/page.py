"""One HTML file that shows a city in motion: it needs nothing but itself."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from thalweg.errors import Defects
from thalweg.migration.drive import Drive
from thalweg.migration.view.packed import pack_city

_PACKAGE = "thalweg.migration.view"


def render_page(drives: Sequence[Drive], *, title: str = "city") -> str:
    """The page about one city under several approaches; the same drives give the same text.

    Names from files are data in it and never run: the page may only run its own script, known by
    its hash, and may load nothing.
    """
    defects = Defects()
    defects.require(len(drives) > 0, "drives", "none", "at least one")
    same = all(drive.city is drives[0].city for drive in drives)
    defects.require(same, "drives", "several cities", "drives of the same city")
    names = [drive.approach for drive in drives]
    distinct = len(set(names)) == len(names)
    defects.require(distinct, "drives", names, "approaches with different names")
    defects.raise_if_any()
    # A module elsewhere, here a part of the one script that the page may run.
    city = _read("city.js").replace("\nexport function ", "\nfunction ", 1)
    script, style = city + _read("page.js"), _read("page.css") + _read("city.css")
    parts = {
        "policy": (
            f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        "title": escape(title),
        "style": style,
        "city": _read("city.html"),
        "data": to_script({"title": title, **pack_city(drives)}),
        "script": script,
    }
    text = _read("page.html")
    # One pass from the front: what is put in is never looked at again.
    pieces = []
    for piece in text.split("{{"):
        name, closed, rest = piece.partition("}}")
        pieces.append(parts[name] + rest if closed else piece)
    return "".join(pieces)


def to_script(data: Any) -> str:
    r"""The data as JSON that may stand inside of a script element.

    >>> to_script({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _read(name: str) -> str:
    return files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}"
