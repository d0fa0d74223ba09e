"""Finds a pipeline by the name of its module and of the variable that holds it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from thalweg.errors import Defect, InvalidInput, nearest
from thalweg.spark.session import require_pyspark

if TYPE_CHECKING:
    from thalweg.spark.pipeline.pipeline import Pipeline


def load_pipeline(reference: str) -> Pipeline:
    """The pipeline that "package.module:attribute" names, as on the command line.

    Importing a module runs it, so a reference comes from the person at the keyboard, never from
    an input file.

    >>> load_pipeline("thalweg.spark.examples.taxi:taxi_fares").name
    'taxi-fares'
    """
    from thalweg.spark.pipeline.code import code_of
    from thalweg.spark.pipeline.pipeline import Pipeline

    module_name, colon, attribute = str(reference).partition(":")
    parts = [*module_name.split("."), attribute]
    if not colon or not all(part.isidentifier() for part in parts):
        rule = "package.module:attribute, such as thalweg.spark.examples.taxi:taxi_fares"
        raise InvalidInput([Defect(path="pipeline", value=reference, rule=rule)])
    require_pyspark()
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        hint = f"{error}; it has to be installed, or on the PYTHONPATH"
        raise _wrong_reference(reference, "a module that can be imported", hint) from error
    except Exception as error:
        # Whatever the module does while it is imported is the user's own code.
        hint = f"importing {module_name} raised {type(error).__name__}: {error}"
        raise _wrong_reference(reference, "a module that can be imported", hint) from error
    pipelines = [name for name, value in vars(module).items() if isinstance(value, Pipeline)]
    found = getattr(module, attribute, None)
    if isinstance(found, Pipeline):
        # Now, before its functions run: what they fill then is no part of their code.
        code_of(found)
        return found
    if hasattr(module, attribute):
        hint = f"{attribute} is of type {type(found).__name__}; {nearest(attribute, pipelines)}"
        raise _wrong_reference(reference, "a Pipeline", hint.rstrip("; "))
    hint = nearest(attribute, pipelines) or f"{module_name} defines no pipeline"
    raise _wrong_reference(reference, f"a pipeline of {module_name}", hint)


def _wrong_reference(reference: str, rule: str, hint: str) -> InvalidInput:
    return InvalidInput([Defect(path="pipeline", value=reference, rule=rule, hint=hint)])
