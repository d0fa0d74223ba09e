"""Every command of `thalweg` with its arguments and options, as data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import typer
from typer.utils import get_params_from_function

from thalweg.cli.entry import VERBS

_KINDS = {Path: "path", str: "text", int: "whole number", float: "number", bool: "flag"}


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """An argument or an option of a command."""

    names: tuple[str, ...]
    """`("--output", "-o")`, or the name of an argument."""
    metavar: str
    annotation: Any
    default: Any
    required: bool
    help: str

    @property
    def is_option(self) -> bool:
        """Whether it is an option."""
        return self.names[0].startswith("-")

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be given more than once."""
        return get_origin(self._type) is list

    @property
    def kind(self) -> str:
        """What its value is: a duration, a path, a flag …; of lists, what each value is."""
        kind = get_args(self._type)[0] if self.is_repeatable else self._type
        if self.metavar == "DURATION":
            return "duration"
        if isinstance(kind, type) and issubclass(kind, Enum):
            return "choice"
        return _KINDS[kind]

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of a choice."""
        if self.kind != "choice":
            return ()
        kind = get_args(self._type)[0] if self.is_repeatable else self._type
        return tuple(str(each.value) for each in kind)

    @cached_property
    def _type(self) -> Any:
        """The annotation without the None of what may be left out."""
        if get_origin(self.annotation) in (Union, UnionType):
            return next(each for each in get_args(self.annotation) if each is not NoneType)
        return self.annotation


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command, those of groups with the name of the group."""

    name: str
    help: str
    parameters: tuple[Parameter, ...]

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """What has a place."""
        return tuple(each for each in self.parameters if not each.is_option)

    @property
    def options(self) -> tuple[Parameter, ...]:
        """What has a name."""
        return tuple(each for each in self.parameters if each.is_option)


def read_commands() -> tuple[Command, ...]:
    """All commands, in the order of the help."""
    return tuple(
        Command(name=name, help=inspect.getdoc(function) or "", parameters=_parameters(function))
        for name, function in _functions()
    )


def _functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for verb, place in VERBS.items():
        module, _, name = place.partition(":")
        found = getattr(import_module(f"thalweg.cli.{module}"), name)
        if not isinstance(found, typer.Typer):
            yield verb, found
            continue
        for command in found.registered_commands:
            if command.callback is not None:
                own = command.name or command.callback.__name__.replace("_", "-")
                yield f"{verb} {own}", command.callback


def _parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    return tuple(_parameter(each) for each in get_params_from_function(function).values())


def _parameter(meta: Any) -> Parameter:
    info, default = meta.default, meta.default.default
    required = default is ...
    is_option = isinstance(info, typer.models.OptionInfo)
    option = f"--{meta.name.replace('_', '-')}"
    names = tuple(info.param_decls or (option,))
    metavar = (info.metavar or ("" if is_option else meta.name.upper())).strip("[]")
    return Parameter(
        names=names if is_option else (metavar,),
        metavar=metavar,
        annotation=meta.annotation,
        default=None if required else default,
        required=required,
        help=info.help or "",
    )
