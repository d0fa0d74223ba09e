"""A call that no command understands, as problems like those of any other input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import typer

from thalweg.errors import Defect, InvalidInput, nearest

UsageError: Any = typer.BadParameter.__base__
"""Whatever Typer raises for a wrong call: it comes from click, or from Typer's own copy of it."""


def show_usage(error: Any) -> str:
    """How the command is called; empty where that is not known."""
    return "" if error.ctx is None else str(error.ctx.get_usage())


def is_help(error: Any) -> bool:
    """Whether nothing is wrong but that no command was named, so that help is shown."""
    return type(error).__name__ == "NoArgsIsHelpError"


def read_problem(error: Any, words: Sequence[str]) -> InvalidInput:
    """What is wrong with the call: the option or argument, its value, the rule and a hint."""
    name, command = type(error).__name__, _command(error)
    parameter = getattr(error, "param", None)
    if name == "NoSuchOption":
        option = str(error.option_name)
        defect = Defect(
            path=option,
            value=option,
            rule=f"an option of `{command}`",
            hint=_meant(option, _options(error)),
        )
    elif name == "MissingParameter" and parameter is not None:
        defect = Defect(path=_path(parameter), value=None, rule=f"a value for `{command}`")
        defect = _with_help(defect, parameter)
    elif name == "BadParameter" and parameter is not None:
        defect = _refused(error, parameter)
    elif name == "BadOptionUsage":
        rule = "a value after it" if "requires an argument" in str(error.message) else ""
        defect = Defect(path=str(error.option_name), value=None, rule=rule or _lower(error.message))
    else:
        defect = _unknown_word(error, words, command)
    return InvalidInput([defect])


def _command(error: Any) -> str:
    return "thalweg" if error.ctx is None else str(error.ctx.command_path)


def _path(parameter: Any) -> str:
    """The option, or the name of the argument as help shows it."""
    if getattr(parameter, "param_type_name", "") == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name).strip("[]").upper()


def _with_help(defect: Defect, parameter: Any) -> Defect:
    from dataclasses import replace

    text = str(getattr(parameter, "help", "") or "").rstrip(".")
    return replace(defect, hint=text)


def _refused(error: Any, parameter: Any) -> Defect:
    """A value that its option does not take; the words of Typer and of click differ."""
    message, value = str(error.message), _value(error)
    _, separator, listed = message.partition(" is not one of ")
    choices = re.findall(r"'([^']*)'", listed)
    if separator and choices:
        rule, hint = " or ".join(choices), nearest(str(value), choices)
        hint = "" if hint.startswith("known:") else hint
        return Defect(path=_path(parameter), value=value, rule=rule, hint=hint)
    bounds = re.search(r"(greater|less) than or equal to (\S+)", message)
    if bounds:
        rule = f"a number {'>=' if bounds[1] == 'greater' else '<='} {bounds[2]}"
    elif "integer" in message:
        rule = "a whole number"
    elif "number" in message or "float" in message:
        rule = "a number"
    elif "not in the range" in message:
        rule = f"a number in the range {message.partition('not in the range')[2].strip(' .')}"
    else:
        rule = _lower(message)
    return Defect(path=_path(parameter), value=value, rule=rule)


def _value(error: Any) -> object:
    """The value that was refused, where it is known."""
    listed = getattr(error.__cause__, "errors", None)
    if callable(listed) and (found := listed()):
        return found[0].get("input")
    quoted = re.match(r"'(.*?)' is not ", str(error.message)) or re.match(
        r"(\S+) is not ", error.message
    )
    return quoted[1] if quoted else None


def _unknown_word(error: Any, words: Sequence[str], command: str) -> Defect:
    """A command that does not exist, or arguments that no command takes."""
    message = str(error.message)
    known = list(getattr(getattr(error.ctx, "command", None), "commands", ()) or ())
    found = re.search(r"'(.*?)'", message)
    if message.startswith("No such command") and found:
        from thalweg.cli.entry import VERBS

        # Only the commands that this call needs were loaded.
        names = list(VERBS) if command == "thalweg" else known
        rule = f"a command of `{command}`"
        return Defect(path="COMMAND", value=found[1], rule=rule, hint=_meant(found[1], names))
    if message.startswith("Missing command"):
        return Defect(path="COMMAND", value=None, rule=f"one of {', '.join(known)}")
    extra = re.search(r"extra argument\S* \((.*)\)", message)
    if extra:
        rule = f"no more arguments: `{command}` takes those of its usage"
        return Defect(path="arguments", value=extra[1], rule=rule)
    return Defect(path="arguments", value=" ".join(words), rule=_lower(message))


def _options(error: Any) -> list[str]:
    parameters = [] if error.ctx is None else error.ctx.command.params
    return [
        name
        for parameter in parameters
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    ]


def _meant(word: str, known: Sequence[str]) -> str:
    return nearest(word, known) or (f"known: {', '.join(known)}" if known else "")


def _lower(message: str) -> str:
    text = message.strip().rstrip(".")
    return text[:1].lower() + text[1:]
