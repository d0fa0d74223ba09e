"""Follows the functions of a pipeline to all code of the user's that they reach.

What is reached has a name, `module.function`, and a digest of its own, which leaves out what it
reaches in turn: so a change is found where it was made. Functions without a name of their own
(lambdas, functions inside functions) are part of what holds them.

Not seen: names put together at run time (`getattr(module, name)`), and the contents of files. The
guide on running lists the rest.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, partial, partialmethod, singledispatchmethod
from hashlib import sha256
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from thalweg.spark.pipeline.kinds import Step
from thalweg.spark.pipeline.module_names import Setting, list_changed, names_of, written_keys
from thalweg.spark.pipeline.own_modules import OwnModules
from thalweg.spark.pipeline.source_code import (
    describe_function,
    list_attributes,
    list_imports,
    list_reads,
)
from thalweg.spark.pipeline.values_text import describe_plain, describe_scalar, describe_type

# Of a class: what Python writes down by itself, and what says nothing of what it does.
_UNTOLD_MEMBERS = frozenset(
    [
        "__module__",
        "__dict__",
        "__weakref__",
        "__doc__",
        "__qualname__",
        "__firstlineno__",
        "__static_attributes__",
        "__annotations_cache__",
        "__annotate__",
        "__annotate_func__",
        "_abc_impl",
    ]
)
_SUBCLASSES = "__subclasses__"
_DIGEST_LENGTH = 16


def digest_of(text: str) -> str:
    """A short digest of a text."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


class CodeWalk:
    """What the functions of a pipeline reach, collected as they are followed."""

    def __init__(self, functions: Iterable[object], state: Collection[str] = ()) -> None:
        """`state` are the names of the user's modules whose values functions change."""
        self._own = OwnModules(map(_home_of, functions))
        self._state = state
        self._changed: set[str] = set()
        self._objects: dict[str, object] = {}
        self._waiting: list[tuple[str, object, Callable[[Any], str] | None]] = []
        self._named: set[str] = set()
        self._at_name = ""
        self._open: list[int] = []
        self._names_of: dict[str, frozenset[str]] = {}
        self.definitions: dict[str, str] = {}
        """The digest of everything that was reached, by its name."""

    @property
    def changed(self) -> frozenset[str]:
        """The names that were reached and that a function that was reached rebinds or fills."""
        return frozenset(self._changed & self.definitions.keys())

    def follow(self, function: object) -> tuple[str, frozenset[str]]:
        """The digest of a function itself, and the names of all that it reaches."""
        self._at_name = ""
        with self._collect() as named:
            is_plain = isinstance(function, FunctionType)
            text = self._describe(function, self._describe_code if is_plain else None)
        self._work_off()
        reached, left = set[str](), set(named)
        while left:
            name = left.pop()
            reached.add(name)
            left |= self._names_of[name] - reached
        own = {n for n in reached if self._objects[n] is _plain_function(function)}
        return digest_of(text), frozenset(reached - own)

    # Names

    @contextmanager
    def _collect(self) -> Iterator[set[str]]:
        """Collect the names that are reached within the block."""
        before, self._named = self._named, set()
        try:
            yield self._named
        finally:
            self._named = before

    def _reach(self, name: str, target: Any, describe: Callable[[Any], str] | None = None) -> str:
        """Give the name under which something is reached; what it is follows later."""
        unique, number = name, 2
        while unique in self._objects and self._objects[unique] is not target:
            unique, number = f"{name}#{number}", number + 1
        if unique not in self._objects:
            self._objects[unique] = target
            self._waiting.append((unique, target, describe))
        self._named.add(unique)
        return f"<{unique}>"

    def _work_off(self) -> None:
        while self._waiting:
            name, target, describe = self._waiting.pop(0)
            self._at_name = name
            with self._collect() as named:
                self.definitions[name] = digest_of(self._describe(target, describe))
            self._names_of[name] = frozenset(named)

    # Values

    def _describe(self, value: Any, describe: Callable[[Any], str] | None = None) -> str:
        """A value as text; what has a name of its own is named, and followed later."""
        quick = describe_scalar(value, self._own.roots) if describe is None else None
        if quick is not None:
            return quick
        if id(value) in self._open:
            return f"<again {len(self._open) - self._open.index(id(value))}>"
        self._open.append(id(value))
        try:
            return (describe or self._describe_once)(value)
        except Exception:
            # A stranger among objects may raise whatever it likes when it is looked at.
            return describe_type(type(value))
        finally:
            self._open.pop()

    def _describe_once(self, value: Any) -> str:
        if isinstance(value, Step):
            return f"step {self._describe(value.function)}"
        if isinstance(value, FunctionType):
            name = f"{_home_of(value)}.{value.__code__.co_qualname}"
            # What a decorator has put around a function has its name, and is described with it.
            is_wrapped = self._at_name == name and self._objects.get(name) is not value
            if self._own.owns(_home_of(value)) and _has_name(value) and not is_wrapped:
                return self._reach(name, value, self._describe_code)
            return self._describe_code(value)
        if isinstance(value, type):
            return self._describe_class(value)
        if isinstance(value, ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, (partial, MethodType, BuiltinFunctionType)):
            return self._describe_bound(value)
        if isinstance(value, (staticmethod, classmethod)):
            return f"{type(value).__name__} {self._describe(value.__func__)}"
        if isinstance(value, property):
            return f"property {[self._describe(f) for f in (value.fget, value.fset, value.fdel)]}"
        if isinstance(value, (cached_property, partialmethod, singledispatchmethod)):
            return self._describe_descriptor(value)
        if "__wrapped__" in getattr(value, "__dict__", {}):
            return f"{describe_type(type(value))} {self._describe(value.__wrapped__)}"
        plain = describe_plain(value, self._describe, self._own.roots)
        kind = self._describe(type(value)) if self._own.owns(type(value).__module__) else ""
        if plain is None and kind:
            return f"{kind} {self._describe(_attributes_of(value))}"
        return f"{kind}{plain or describe_type(type(value))}"

    def _describe_bound(self, value: Any) -> str:
        if isinstance(value, partial):
            given = self._describe([list(value.args), value.keywords])
            return f"partial {self._describe(value.func)} {given}"
        if isinstance(value, MethodType):
            return f"method {self._describe(value.__func__)} {self._describe(value.__self__)}"
        of = value.__self__
        bound = "" if of is None or isinstance(of, ModuleType) else self._describe(of)
        return f"{value.__module__}.{value.__qualname__} {bound}"

    def _describe_descriptor(self, value: Any) -> str:
        name = describe_type(type(value))
        if isinstance(value, partialmethod):
            return f"{name} {self._describe([value.func, list(value.args), value.keywords])}"
        if isinstance(value, singledispatchmethod):
            return f"{name} {self._describe([value.func, value.dispatcher])}"
        return f"{name} {self._describe(value.func)}"

    def _describe_class(self, kind: type) -> str:
        name = describe_type(kind)
        if not self._own.owns(kind.__module__):
            return name
        if "<" in kind.__qualname__:
            return self._describe_members(kind)
        return self._reach(name, kind, self._describe_members)

    def _describe_members(self, kind: type) -> str:
        shown = [self._describe(base) for base in kind.__bases__]
        if self._own.owns(type(kind).__module__):
            shown.append(f"metaclass {self._describe(type(kind))}")
        for name, member in sorted(vars(kind).items()):
            if name not in _UNTOLD_MEMBERS:
                shown.append(f"{name}: {self._describe(member)}")
        own = (base for base in kind.__mro__ if self._own.owns(base.__module__))
        if any(_looks_for_subclasses(member) for base in own for member in vars(base).values()):
            shown.append(self._describe_subclasses(kind))
        return f"{describe_type(kind)} {shown}"

    def _describe_subclasses(self, kind: type) -> str:
        # In the order of their names: that of their making may be that of imports.
        return f"subclasses {sorted(map(self._describe, type.__subclasses__(kind)))}"

    # Functions

    def _describe_code(self, function: FunctionType) -> str:
        code, scope = function.__code__, function.__globals__
        home, is_own = _home_of(function), self._own.owns(_home_of(function))
        cells = _cells_of(function)
        if is_own:
            for name in list_changed(code, scope) & scope.keys():
                self._changed.add(".".join(self._find_origin(home, name, scope[name])))
            meanings = self._list_meanings(code, scope, home, cells)
            shown = [describe_function(code, scope), *meanings]
            shown.append(self._describe([function.__defaults__, function.__kwdefaults__]))
        else:
            shown = [f"{home}.{code.co_qualname}"]
        if is_own or not _has_name(function):
            # A library's function that it has made for the user holds what the user gave it.
            shown.append(self._describe(_held_by(function, cells)))
        return f"function {shown}"

    def _list_meanings(
        self,
        code: CodeType,
        scope: Mapping[str, Any],
        module_name: str,
        cells: Mapping[str, object],
    ) -> list[str]:
        """What the names mean that code reads, as text."""
        local: dict[str, object] = dict(cells)
        shown = []
        for found in list_imports(code):
            module = self._import(found.module, found.level, scope)
            if module is None:
                continue
            meant: Any = module
            if found.attribute is not None:
                meant = getattr(module, found.attribute, None)
                meaning = self._name(module.__name__, found.attribute, meant, {})
                shown.append(f"import {found.name}: {meaning}")
            local[found.name] = meant
        for read in list_reads(code):
            names = scope if read.is_global else local
            if read.name.startswith("__") or read.name not in names:
                if read.is_global and not hasattr(builtins, read.name):
                    shown.append(f"{read.name}: nothing")
                continue
            home, name, value = module_name, read.name, names[read.name]
            left = list(read.attributes)
            while left and isinstance(value, ModuleType) and self._own.owns(value.__name__):
                home, name = value.__name__, left.pop(0)
                value = getattr(value, name, None)
            if read.is_global or isinstance(names[read.name], ModuleType):
                path = ".".join((read.name, *read.attributes))
                shown.append(f"{path}: {self._name(home, name, value, scope)}")
            if (
                isinstance(value, type)
                and left == [_SUBCLASSES]
                and self._own.owns(value.__module__)
            ):
                shown.append(self._describe_subclasses(value))
            if isinstance(value, ModuleType) and not left and self._own.owns(value.__name__):
                shown += self._list_used(value, code)
        return shown

    def _list_used(self, module: ModuleType, code: CodeType) -> list[str]:
        """What code may read of a module under another name: all of it whose names it reads."""
        home, names = module.__name__, vars(module)
        used = sorted(list_attributes(code) & names.keys())
        return [f"{home}.{name}: {self._name(home, name, names[name], names)}" for name in used]

    def _name(self, home: str, name: str, value: object, scope: Mapping[str, Any]) -> str:
        """What a name of a module means, as text: a value goes by the name."""
        is_named = isinstance(value, FunctionType) and _has_name(value)
        if is_named or isinstance(value, (Step, type, ModuleType)) or not self._own.owns(home):
            return self._describe(value)
        home, name = self._find_origin(home, name, value)
        module = sys.modules.get(home)
        names, path = names_of(scope if module is None else vars(module)), f"{home}.{name}"
        setting = names.setting_of(name) if path in self._state else None
        if module is not None and setting is not None:
            scope = vars(module)
            return self._reach(path, value, lambda v: self._describe_state(v, setting, scope))
        literal = names.literal_of(name)
        return self._reach(path, value, lambda v: self._describe_written(v, literal))

    def _find_origin(self, home: str, name: str, value: object) -> tuple[str, str]:
        """The module of the user's that a name was imported from, and its name there."""
        seen = set()
        while (home, name) not in seen:
            seen.add((home, name))
            module = sys.modules.get(home)
            found = names_of(vars(module)).imports.get(name) if module is not None else None
            if module is None or found is None:
                break
            origin = self._import(found.module, found.level, vars(module))
            if origin is None or vars(origin).get(found.attribute) is not value:
                break
            home, name = origin.__name__, found.attribute
        return home, name

    def _describe_state(self, value: object, setting: Setting, scope: Mapping[str, Any]) -> str:
        """How a name is set when its module is loaded; its value is of this moment."""
        with suppress(Exception):
            # The functions and classes in it are followed: decorators may have put them there.
            self._describe_once(value)
        others = {name: meant for name, meant in scope.items() if name not in setting.bound}
        meanings = self._list_meanings(setting.code, others, str(scope["__name__"]), {})
        return f"state {setting.text} {meanings}"

    def _describe_written(self, value: object, literal: ast.expr | None) -> str:
        """A value, with the order of what its source writes out in an order."""
        order = [[self._describe(key) for key in keys] for keys in written_keys(literal, value)]
        return f"{self._describe_once(value)}{order or ''}"

    def _import(self, name: str, level: int, scope: Mapping[str, Any]) -> ModuleType | None:
        """The module that a function imports when it runs, if it is one of the user's."""
        with suppress(Exception):
            package = scope.get("__package__") or ""
            full = importlib.util.resolve_name("." * level + name, package)
            if self._own.owns(full):
                return importlib.import_module(full)
        return None


def _plain_function(function: object) -> object:
    return function.function if isinstance(function, Step) else function


def _home_of(function: object) -> str:
    """The module whose names a function reads; decorators set `__module__` to another one."""
    while isinstance(function, (partial, MethodType, Step)):
        if isinstance(function, partial):
            function = function.func
        else:
            function = function.__func__ if isinstance(function, MethodType) else function.function
    if isinstance(function, FunctionType):
        return str(function.__globals__.get("__name__", ""))
    return str(getattr(type(function), "__module__", ""))


def _has_name(function: FunctionType) -> bool:
    """Whether it is a function of a module or class, rather than one inside another function."""
    return "<" not in function.__code__.co_qualname


def _cells_of(function: FunctionType) -> dict[str, object]:
    """The closure of a function; what is not set yet is left out."""
    cells: dict[str, object] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            cells[name] = cell.cell_contents
    return cells


def _held_by(function: FunctionType, cells: Mapping[str, object]) -> dict[str, object]:
    """The closure and the attributes of a function."""
    attributes = dict(vars(function))
    if _home_of(function) == "functools" and "registry" in attributes:
        # The cache of a dispatcher has a token that other code of the process counts up.
        return {"registry": attributes["registry"]}
    return {**cells, "": attributes}


def _attributes_of(value: object) -> dict[str, object]:
    """The attributes of an object, also of one with slots."""
    slots = [slot for kind in type(value).__mro__ for slot in _slots_of(kind)]
    held = {slot: getattr(value, slot) for slot in slots if hasattr(value, slot)}
    return {**held, **getattr(value, "__dict__", {})}


def _slots_of(kind: type) -> Collection[str]:
    slots = vars(kind).get("__slots__", ())
    named = (slots,) if isinstance(slots, str) else tuple(slots)
    return [slot for slot in named if slot not in ("__dict__", "__weakref__")]


def _looks_for_subclasses(member: object) -> bool:
    """Whether a function of a class asks for subclasses."""
    function = getattr(member, "__func__", member)
    return isinstance(function, FunctionType) and _SUBCLASSES in list_attributes(function.__code__)
