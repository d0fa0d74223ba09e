"""Which modules are the user's: those whose code counts as that of a pipeline."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_EXAMPLES = "thalweg.spark.examples"
_NEVER_FOLLOWED = frozenset({"thalweg", "pyspark", "py4j", *sys.stdlib_module_names} - {"__main__"})
_INSTALLED = ("site-packages", "dist-packages")


class OwnModules:
    """The modules of some packages, and all others that are not installed as tools are."""

    def __init__(self, modules: Iterable[str]) -> None:
        """`modules` are some of the packages: those of a pipeline's functions."""
        self.packages = {package for module in modules if (package := package_of(module))}
        self.roots = tuple(sorted(_find_roots(self.packages), key=len, reverse=True))
        """The folders where these packages are, longest first."""

    def owns(self, module: str) -> bool:
        """Whether a module is the user's: of the pipeline's packages, or in no place of tools."""
        package = package_of(module)
        if package in self.packages:
            return True
        if not package:
            return False
        found = sys.modules.get(package)
        with suppress(Exception):
            spec = getattr(found, "__spec__", None) or importlib.util.find_spec(package)
            places = [*(spec.submodule_search_locations or ()), spec.origin] if spec else []
            return bool(places) and not any(map(_is_installed, filter(None, places)))
        return False


def package_of(module: str) -> str:
    """The package of the user's that a module is in; empty for Thalweg, Spark and Python."""
    if f"{module}.".startswith(f"{_EXAMPLES}."):
        return _EXAMPLES
    top = module.partition(".")[0]
    return "" if top in _NEVER_FOLLOWED else top


def _find_roots(packages: Iterable[str]) -> Iterator[str]:
    """The folders where packages lie."""
    for package in packages:
        module = sys.modules.get(package)
        for folder in getattr(module, "__path__", ()):
            yield str(Path(folder).parents[package.count(".")])
        file = getattr(module, "__file__", None)
        if file and not hasattr(module, "__path__"):
            yield str(Path(file).parent)


def _is_installed(place: str) -> bool:
    """Whether a module's place is one where tools are, and no code that its user edits."""
    path = Path(place)
    standard = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    is_standard = any(path.is_relative_to(root) for root in standard if root)
    return is_standard or any(part in _INSTALLED for part in path.parts)
