"""Files: the only door for untrusted input. What comes in is checked; what goes out comes in again.

These modules are light: they load pydantic, PyYAML and pyarrow when a file is at hand.
"""

from thalweg.files.load import load_application, load_network, load_plan, load_workload
from thalweg.files.save import save
from thalweg.files.schema import json_schema

__all__ = ["json_schema", "load_application", "load_network", "load_plan", "load_workload", "save"]
