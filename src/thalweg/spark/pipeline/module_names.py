"""The names of a module as its source has them: what sets them, and which of them functions change.

The value of a name that a function changes while it runs is of this moment: the statements that
set it when the module is loaded take its place.
"""

from __future__ import annotations
import __future__

import ast
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, MappingProxyType
from typing import Any

from thalweg.spark.pipeline.source_code import (
    ModuleSource,
    describe_tree,
    list_global_names,
    source_of,
    tree_of,
)

# The methods that change a container: those that its unchangeable counterpart does not have.
_MUTATORS = frozenset(name for kind in (list, dict, set, deque) for name in dir(kind)) - {
    *(name for kind in (tuple, frozenset, MappingProxyType) for name in dir(kind))
}
_NOT_SETTING = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedName:
    """Where a module has a name from: the attribute of another module."""

    module: str
    level: int
    """The number of dots before the module's name."""
    attribute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The statements that set a name when its module is loaded."""

    text: str
    code: CodeType
    bound: frozenset[str]
    """The names that these statements bind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleNames:
    """The statements of a module that set its names, and where it imports names from."""

    statements: Mapping[str, tuple[ast.stmt, ...]] = field(default_factory=dict)
    imports: Mapping[str, ImportedName] = field(default_factory=dict)

    def setting_of(self, name: str) -> Setting | None:
        """What sets a name when the module is loaded; None where no statement does."""
        body = self.statements.get(name)
        if body is None:
            return None
        # Annotations as texts: they are evaluated, but decide nothing.
        flags, tree = __future__.annotations.compiler_flag, ast.Module([*body], [])
        code = compile(tree, "<source>", "exec", flags, dont_inherit=True)
        named = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
        bound = {node.id for node in named if not isinstance(node.ctx, ast.Load)}
        text = "; ".join(map(describe_tree, body))
        return Setting(text=text, code=code, bound=frozenset({name, *bound}))

    def literal_of(self, name: str) -> ast.expr | None:
        """The expression that alone gives a name its value, or None."""
        match self.statements.get(name):
            case (ast.Assign(value=value, targets=[ast.Name()]),):
                return value
            case (ast.AnnAssign(value=value, target=ast.Name()),):
                return value
        return None


def names_of(scope: Mapping[str, Any]) -> ModuleNames:
    """The names of the module with this namespace; empty where there is no source."""
    file = scope.get("__file__")
    return _find_names(source_of(file, scope)) if isinstance(file, str) else ModuleNames()


def list_changed(code: CodeType, scope: Mapping[str, Any]) -> frozenset[str]:
    """The names of its module that a function rebinds or fills; its local names are others."""
    return _changed_by(code, tree_of(code, scope))


def written_keys(tree: ast.expr | None, value: object) -> Iterator[tuple[object, ...]]:
    """The keys in order of each mapping that a source writes out, key by key, in a value.

    The order of any other mapping may be that of a set, which differs in every process.
    """
    parts: list[ast.expr] = []
    held: list[Any] = []
    if isinstance(tree, ast.Dict) and isinstance(value, dict) and None not in tree.keys:
        parts, held = tree.values, list(value.values())
    elif isinstance(tree, ast.Call) and isinstance(value, dict) and _is_dict_call(tree):
        parts, held = [keyword.value for keyword in tree.keywords], list(value.values())
    elif isinstance(tree, (ast.List, ast.Tuple)) and isinstance(value, (list, tuple)):
        parts, held = tree.elts, list(value)
    if len(parts) == len(held):
        if isinstance(value, dict) and held:
            yield tuple(value)
        for part, inner in zip(parts, held, strict=True):
            yield from written_keys(part, inner)


def _is_dict_call(tree: ast.Call) -> bool:
    is_dict = isinstance(tree.func, ast.Name) and tree.func.id == "dict"
    return is_dict and not tree.args and all(keyword.arg for keyword in tree.keywords)


@lru_cache(maxsize=512)
def _find_names(source: ModuleSource) -> ModuleNames:
    body = source.tree.body if source.tree is not None else []
    by_function: dict[str, set[str]] = {}
    for code, tree in source.functions:
        by_function.setdefault(code.co_name, set()).update(_changed_by(code, tree))
    statements: dict[str, list[ast.stmt]] = {}
    imports: dict[str, ImportedName] = {}
    for statement in body:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                imports[alias.asname or alias.name] = ImportedName(
                    module=statement.module or "", level=statement.level, attribute=alias.name
                )
        if not isinstance(statement, _NOT_SETTING):
            for name in _set_by(statement, by_function):
                statements.setdefault(name, []).append(statement)
    return ModuleNames(
        statements={name: tuple(found) for name, found in statements.items()}, imports=imports
    )


def _set_by(statement: ast.stmt, by_function: Mapping[str, set[str]]) -> set[str]:
    """The names that a statement of a module sets, itself or in a function that it calls."""
    found = _changed_in(statement)
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= by_function.get(node.func.id, set())
    return found


def _changed_by(code: CodeType, tree: ast.AST | None) -> frozenset[str]:
    read, stored = list_global_names(code)
    return stored if tree is None else stored | (_changed_in(tree) & read)


def _changed_in(tree: ast.AST) -> set[str]:
    """The names of containers that are changed somewhere in a tree."""
    changed: set[str] = set()
    for node in ast.walk(tree):
        at: ast.expr | None = None
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            at = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            at = node.func.value if node.func.attr in _MUTATORS else None
        if isinstance(at, ast.Name):
            changed.add(at.id)
    return changed
