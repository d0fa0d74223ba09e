"""The source of loaded functions, without docstrings, comments, formatting and positions.

A function counts as it was loaded: where its file has changed since, or there is none, its
bytecode takes the place of its syntax tree.
"""

from __future__ import annotations

import ast
import dis
import linecache
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Comments on types, the `u` before a text, and whether a name is read or bound: seen elsewhere.
_SKIPPED_FIELDS = frozenset({"type_comment", "kind", "ctx"})
# Of the flags of a code object those of its kind and arguments; the others say how it was written.
_MEANT_FLAGS = 0x3AF
_ATTRIBUTE_READS = ("LOAD_ATTR", "LOAD_METHOD")


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuleSource:
    """A module's source: its tree, and its functions as code and as trees."""

    tree: ast.Module | None = None
    functions: tuple[tuple[CodeType, Definition], ...] = ()


def source_of(file: str, scope: Mapping[str, Any]) -> ModuleSource:
    """The source of a module as it is in its file now; an empty one where it cannot be read."""
    linecache.checkcache(file)
    try:
        return _parse("".join(linecache.getlines(file, dict(scope))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ModuleSource()


def describe_function(code: CodeType, scope: Mapping[str, Any]) -> str:
    """A function's code as text; the same text for functions that differ in form only."""
    tree = tree_of(code, scope)
    return describe_bytecode(code) if tree is None else describe_tree(tree)


def tree_of(code: CodeType, scope: Mapping[str, Any]) -> Definition | None:
    """A function's syntax tree; None where its source is not there, or another one by now."""
    source = source_of(code.co_filename, scope)
    bytecode = describe_bytecode(code)
    same = [
        (found, tree)
        for found, tree in source.functions
        if found.co_name == code.co_name and describe_bytecode(found) == bytecode
    ]
    # Of equal functions, the one in the same place: their trees may still differ.
    return min(same, key=lambda pair: _distance(pair[0], code))[1] if same else None


def describe_tree(tree: object) -> str:
    """A syntax tree as text; of a function at its root, without decorators.

    Decorators at the root hold the operator's planning figures; what they do to a function is in
    what the name means. Annotations count: pandas UDFs take their types from them.
    """
    return _dump(tree, is_root=True)


def describe_bytecode(code: CodeType) -> str:
    """A function's instructions as text, without positions and docstrings."""
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    shown = [repr(counts), repr(code.co_flags & _MEANT_FLAGS), *named]
    steps = dis.get_instructions(code)
    shown += [f"{step.opname} {_describe_constant(step.argval)}" for step in steps]
    return f"({'; '.join(shown)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A name that a function reads, with the attributes that it reads of it."""

    name: str
    attributes: tuple[str, ...]
    is_global: bool
    """Else it is a local variable, here or in a function around it."""


def list_reads(code: CodeType) -> tuple[Read, ...]:
    """The names that a function reads, in order; functions and classes inside it are part of it."""
    found: dict[Read, None] = {}
    for each in _nested(code):
        steps = list(dis.get_instructions(each))
        for at, step in enumerate(steps):
            if step.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST")):
                name = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
                read = Read(
                    name=str(name),
                    attributes=tuple(_attributes(steps[at + 1 :])),
                    is_global=step.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME")),
                )
                found[read] = None
    return tuple(found)


def list_attributes(code: CodeType) -> frozenset[str]:
    """The names of all attributes that a function reads, of whatever object."""
    steps = (step for each in _nested(code) for step in dis.get_instructions(each))
    return frozenset(str(step.argval) for step in steps if step.opname in _ATTRIBUTE_READS)


def list_global_names(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The names of its module that a function reads, and those that it binds or deletes."""
    read, bound = set[str](), set[str]()
    for each in _nested(code):
        for step in dis.get_instructions(each):
            if step.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME")):
                read.add(str(step.argval))
            elif step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                bound.add(str(step.argval))
    return frozenset(read), frozenset(bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImport:
    """An import inside a function: the name that it binds there, and what to."""

    name: str
    module: str
    level: int
    """The number of dots before the module's name."""
    attribute: str | None = None
    """The attribute of the module that is meant; None: the module itself."""


def list_imports(code: CodeType) -> tuple[LocalImport, ...]:
    """What a function imports itself."""
    found: dict[LocalImport, None] = {}
    for each in _nested(code):
        steps = list(dis.get_instructions(each))
        for at, step in enumerate(steps):
            if step.opname == "IMPORT_NAME":
                level, wanted = int(steps[at - 2].argval or 0), steps[at - 1].argval or ()
                for one in _bound_names(steps[at + 1 :], str(step.argval), level, len(wanted)):
                    found[one] = None
    return tuple(found)


def _bound_names(
    steps: Iterable[dis.Instruction], module: str, level: int, wanted: int
) -> Iterator[LocalImport]:
    """What an import binds; `wanted` is the number of attributes that it takes."""
    attribute: str | None = None
    left = wanted or 1
    for step in steps:
        if step.opname == "IMPORT_FROM":
            attribute = str(step.argval)
        elif step.opname.startswith("STORE_"):
            name = str(step.argval[0] if isinstance(step.argval, tuple) else step.argval)
            if wanted:
                yield LocalImport(name=name, module=module, level=level, attribute=attribute)
            else:
                # `import a.b` binds a; `import a.b as c` binds the module a.b.
                top = module.partition(".")[0]
                bound = top if name == top and attribute is None else module
                yield LocalImport(name=name, module=bound, level=level)
            left -= 1
        if left == 0:
            return


@lru_cache(maxsize=512)
def _parse(text: str) -> ModuleSource:
    tree = ast.parse(text)
    compiled = compile(tree, "<source>", "exec", dont_inherit=True)
    trees = [node for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)]
    pairs = ((code, _find_tree(code, trees)) for code in _nested(compiled))
    functions = tuple((code, node) for code, node in pairs if node is not None)
    return ModuleSource(tree=tree, functions=functions)


def _find_tree(code: CodeType, trees: Iterable[Definition]) -> Definition | None:
    """The definition that compiled to this code; None for modules, classes and the like."""
    named = [t for t in trees if code.co_name == getattr(t, "name", "<lambda>")]
    if code.co_name != "<lambda>":
        return next((t for t in named if _first_line(t) == code.co_firstlineno), None)
    # Instructions that nobody wrote, such as the return, have a position without width.
    spans = [p for p in code.co_positions() if None not in p and (p[0], p[2]) != (p[1], p[3])]
    if not spans:
        alone = [t for t in named if t.lineno == code.co_firstlineno]
        return alone[0] if len(alone) == 1 else None
    begin, end = min((p[0], p[2]) for p in spans), max((p[1], p[3]) for p in spans)
    around = [t for t in named if isinstance(t, ast.Lambda) and _holds(t.body, begin, end)]
    return min(around, key=_size, default=None)


def _first_line(tree: Definition) -> int:
    decorators = getattr(tree, "decorator_list", None)
    return int(decorators[0].lineno if decorators else tree.lineno)


def _holds(tree: ast.expr, begin: tuple[Any, ...], end: tuple[Any, ...]) -> bool:
    last = (tree.end_lineno or tree.lineno, tree.end_col_offset or 0)
    return (tree.lineno, tree.col_offset) <= begin and end <= last


def _size(tree: Definition) -> tuple[int, int]:
    lines = (tree.end_lineno or tree.lineno) - tree.lineno
    return lines, (tree.end_col_offset or 0) - (0 if lines else tree.col_offset)


def _distance(code: CodeType, other: CodeType) -> tuple[bool, int]:
    # In one line two functions can be told apart by their columns alone.
    is_there = list(code.co_positions()) == list(other.co_positions())
    return not is_there, abs(code.co_firstlineno - other.co_firstlineno)


def _dump(tree: object, *, is_root: bool = False) -> str:
    if isinstance(tree, ast.Constant):
        return _describe_constant(tree.value)
    if isinstance(tree, ast.AST):
        fields = []
        for name, value in ast.iter_fields(tree):
            if name in _SKIPPED_FIELDS or (is_root and name == "decorator_list"):
                continue
            is_body = name == "body" and isinstance(tree, _DOCUMENTED)
            given = _without_docstring(value) if is_body else value
            # Newer versions of Python add fields that are empty in older code.
            if given is not None and given != []:
                fields.append(f"{name}={_dump(given)}")
        return f"{type(tree).__name__}({', '.join(fields)})"
    if isinstance(tree, list):
        return f"[{', '.join(map(_dump, tree))}]"
    return repr(tree)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return body[1:] if isinstance(first.value.value, str) else body
    return body


def _describe_constant(value: object) -> str:
    if isinstance(value, CodeType):
        return describe_bytecode(value)
    if isinstance(value, (tuple, frozenset)):
        shown = list(map(_describe_constant, value))
        # The order of a set depends on the hash seed of the process.
        parts = sorted(shown) if isinstance(value, frozenset) else shown
        return f"{type(value).__name__}({', '.join(parts)})"
    return f"{type(value).__name__} {value!r}"


def _nested(code: CodeType) -> Iterator[CodeType]:
    """A code object and all inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _attributes(steps: Iterable[dis.Instruction]) -> Iterator[str]:
    for step in steps:
        if step.opname not in _ATTRIBUTE_READS:
            return
        yield str(step.argval)
