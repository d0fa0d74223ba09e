"""Holds what a command prints as JSON against the schema that it promises."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from tools.cli_surface import read_commands

from thalweg.cli.documents import SHAPES, document_schema


@cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(document_schema(kind))


def find_faults(kind: str, document: Any) -> list[str]:
    """Where the document is not as the schema has it."""
    found = validator(kind).iter_errors(document)
    return [f"{'/'.join(map(str, fault.path))}: {fault.message[:200]}" for fault in found]


@cache
def kinds_of(command: str) -> tuple[str, ...]:
    """The documents that a command prints."""
    kinds = [
        kind
        for kind, shape in SHAPES.items()
        for each in shape.commands
        if f"{each} ".startswith(f"{command} ") or f"{command} ".startswith(f"{each} ")
    ]
    return tuple(["plan", *kinds] if command == "plan" else kinds)


def find_command(words: Sequence[str]) -> str:
    """The command of these words; empty where there is none."""
    known = {command.name for command in read_commands()}
    return next((w for n in (2, 1) if (w := " ".join(words[:n])) in known), "")


def require_document(words: Sequence[str], code: int, out: str) -> None:
    """Fail unless the output is a document that the command promises."""
    document = json.loads(out)
    assert next(iter(document)) == "thalweg", "every document begins with its version"
    assert document["thalweg"] == 1
    kinds = ("problems",) if "problems" in document else kinds_of(find_command(words))
    assert code == 2 or kinds != ("problems",)
    faults = {kind: find_faults(kind, document) for kind in kinds}
    assert not all(faults.values()), faults
