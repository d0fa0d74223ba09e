"""How a declared shape becomes JSON Schema."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from thalweg.files.schema_generator import Generator


class _Generator(Generator):
    """Allows no field that is not declared."""

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """The schema of a document or a part of one."""
        return {"additionalProperties": False, **super().typed_dict_schema(schema)}


def schema_of(shape: type) -> dict[str, Any]:
    """The JSON Schema of a declared shape."""
    found = TypeAdapter(shape).json_schema(schema_generator=_Generator)
    return {"$schema": Generator.schema_dialect, **found}
