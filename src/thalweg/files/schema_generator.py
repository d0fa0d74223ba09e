"""How entries become JSON Schema."""

from __future__ import annotations

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema


class Generator(GenerateJsonSchema):
    """Leaves out what says nothing: defaults that mean "not given", titles of single fields."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """The schema of a field that may be left out."""
        described = super().default_schema(schema)
        default = described.get("default")
        # A quantity is a text in a file, but a number once it is read.
        misleads = described.get("type") == "string" and not isinstance(default, str)
        if misleads or default in (None, []):
            return {k: v for k, v in described.items() if k != "default"}
        return described

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's
        """Names of fields are titles enough."""
        return False
