"""Studies: strategies side by side, on several problems, seeds and values of a parameter."""

import sys
from types import ModuleType
from typing import Any

from thalweg.study.comparison import Comparison, compare
from thalweg.study.result import Study
from thalweg.study.run import study

__all__ = ["Comparison", "Study", "compare", "study"]


class _Room(ModuleType):
    """`thalweg.study` is where studies are at home, and what runs one."""

    def __call__(self, *arguments: Any, **options: Any) -> Study:
        return study(*arguments, **options)


sys.modules[__name__].__class__ = _Room
