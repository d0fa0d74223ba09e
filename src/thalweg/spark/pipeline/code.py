"""The code of a pipeline as a value: digests of its functions, its settings in words.

What decides which rows come out is in it: each operator's function with all code of the user's
that it reaches, kinds, inputs, schemas, keys, windows, delays and conditions. What is declared for
planning (rates, sizes, selectivities, CPU, memory, limits) is not, and may differ freely.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from thalweg.errors import Defect, InvalidInput
from thalweg.model import TimeWindow
from thalweg.spark.pipeline.code_walk import CodeWalk
from thalweg.spark.pipeline.kinds import Step
from thalweg.units import DURATION, format_quantity

if TYPE_CHECKING:
    from thalweg.spark.pipeline.pipeline import Pipeline

_METHOD = 2
_SHOWN_DIGITS = 12
_NOUNS = {"source": "source", "sink": "sink"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCode:
    """One source, operator or sink: its settings, its function, and what that reaches."""

    settings: Mapping[str, str]
    """In words, by name; what is not set is left out."""
    function: str | None = None
    """The digest of the function itself; None: it has none."""
    reaches: tuple[str, ...] = ()
    """The names of all code and constants of the user's that the function reaches, sorted."""

    @property
    def noun(self) -> str:
        """The word for such a step."""
        return _NOUNS.get(self.settings.get("kind", ""), "operator")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineCode:
    """The code of a pipeline: its steps by name, and the digests of what their functions reach."""

    steps: Mapping[str, StepCode]
    definitions: Mapping[str, str] = field(default_factory=dict)
    """The digest of each function, class and constant that is reached, by its name."""
    method: int = _METHOD
    """How digests are made: those of another method cannot be compared."""

    @property
    def digest(self) -> str:
        """One digest for all of it."""
        text = json.dumps(asdict(self), sort_keys=True)
        return sha256(text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, with its digest for people."""
        return {"digest": self.digest, **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PipelineCode:
        """The code that `to_dict` gave these values for.

        Raises:
            ValueError: for anything else.
        """
        try:
            steps = {
                str(name): StepCode(
                    settings=_texts(step["settings"]),
                    function=None if step["function"] is None else str(step["function"]),
                    reaches=tuple(map(str, step["reaches"])),
                )
                for name, step in values["steps"].items()
            }
            definitions, method = _texts(values["definitions"]), int(values["method"])
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"not the code of a pipeline: {error!r}") from error
        return cls(steps=steps, definitions=definitions, method=method)

    def list_changes(self, before: PipelineCode) -> tuple[str, ...]:
        """Everything in which this code differs from the one before, in words.

        >>> before = PipelineCode(steps={"rides": StepCode(settings={"kind": "source"})})
        >>> PipelineCode(steps={}).list_changes(before)
        ('source rides: is gone',)
        """
        found: list[str] = []
        for name in dict.fromkeys((*before.steps, *self.steps)):
            old, new = before.steps.get(name), self.steps.get(name)
            if old is None or new is None:
                step, word = (new, "is new") if new is not None else (old, "is gone")
                found.append(f"{step.noun if step else 'step'} {name}: {word}")
                continue
            changes = (*_settings_changes(old, new), *self._function_changes(old, new, before))
            found += [f"{new.noun} {name}: {change}" for change in changes]
        return tuple(found)

    def _function_changes(
        self, old: StepCode, new: StepCode, before: PipelineCode
    ) -> Iterator[str]:
        if old.function != new.function:
            yield "its function has changed"
        for name in sorted({*old.reaches, *new.reaches}):
            if name not in old.reaches:
                yield f"reaches {name}, which it did not before"
            elif name not in new.reaches:
                yield f"does not reach {name} any more"
            elif before.definitions.get(name) != self.definitions.get(name):
                yield f"reaches {name}, which has changed"

    def is_like(self, other: PipelineCode) -> bool:
        """Whether both can be compared: versions of Thalweg may make digests in other ways."""
        return self.method == other.method

    def require_same(self, before: PipelineCode) -> None:
        """Raise `InvalidInput` with every difference from the code that a run began with.

        Codes that cannot be compared are let pass.
        """
        if not self.is_like(before):
            return
        rule = f"{shorten(before.digest)}, the code that this run began with"
        hint = "go back to that code, or run this one in another folder"
        changes = self.list_changes(before)
        if changes:
            value = f"code {shorten(self.digest)}"
            raise InvalidInput(Defect(path=c, value=value, rule=rule, hint=hint) for c in changes)


def shorten(digest: str | None) -> str:
    """A digest of code as people see it."""
    return digest[:_SHOWN_DIGITS] if digest else "unknown"


_known: WeakKeyDictionary[Pipeline, tuple[int, PipelineCode]] = WeakKeyDictionary()


def code_of(pipeline: Pipeline) -> PipelineCode:
    """The code of a pipeline as it was when this was first asked.

    Ask before its functions run: what they fill while they run, such as a cache, is not code.
    """
    size, code = _known.get(pipeline, (-1, None))
    if code is None or size != len(pipeline.steps):
        code = _find_code(pipeline)
        _known[pipeline] = len(pipeline.steps), code
    return code


def _find_code(pipeline: Pipeline) -> PipelineCode:
    functions = {step.name: step.function for step in pipeline.steps if step.function is not None}
    state: frozenset[str] = frozenset()
    while True:
        walk = CodeWalk(functions.values(), state)
        found = {name: walk.follow(function) for name, function in functions.items()}
        # Which names functions fill is known once all that is reached has been seen.
        if walk.changed <= state:
            break
        state |= walk.changed
    steps = {}
    for step in pipeline.steps:
        function, reached = found.get(step.name, (None, frozenset[str]()))
        steps[step.name] = StepCode(
            settings=_settings_of(step), function=function, reaches=tuple(sorted(reached))
        )
    used = {name for step in steps.values() for name in step.reaches}
    definitions = {name: walk.definitions[name] for name in sorted(used)}
    return PipelineCode(steps=steps, definitions=definitions)


def _settings_of(step: Step) -> dict[str, str]:
    """The settings of a step that decide which rows come out."""
    given = {
        "kind": step.role,
        "inputs": ", ".join(sender.name for sender in step.inputs),
        "schema": " ".join(step.schema.split()),
        "key": step.key,
        "determines_key": ", ".join(step.determines_key),
        "by": ", ".join(step.by),
        "must": "; ".join(step.must),
        "time": step.time or "",
        # What a merge takes in is in windows already.
        "window": "" if step.window is None or step.role == "merge" else _shown(step.window),
    }
    if step.role == "source":
        given["delay"] = format_quantity(step.delay_s, DURATION)
    return {name: value for name, value in given.items() if value}


def _shown(window: TimeWindow) -> str:
    length, slide = (format_quantity(s, DURATION) for s in (window.length, window.slide))
    return length if window.length == window.slide else f"{length} every {slide}"


def _settings_changes(old: StepCode, new: StepCode) -> Iterator[str]:
    for name in dict.fromkeys((*old.settings, *new.settings)):
        before, now = old.settings.get(name, "nothing"), new.settings.get(name, "nothing")
        if before != now:
            yield f"{name} {before} → {now}"


def _texts(values: Mapping[Any, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in values.items()}
