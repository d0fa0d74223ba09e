"""The identity of a run: its pipeline with its code, its network and its sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from thalweg.errors import Defects
from thalweg.spark.pipeline.code import PipelineCode


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """What a folder's run is: of this pipeline, with this graph, on these sites."""

    pipeline: str
    graph: str
    """A fingerprint of the pipeline's steps: what checkpoints are tied to."""
    network: str
    fogs: tuple[str, ...]
    cloud: str
    ships: bool = False
    """Whether its fogs have logs of their own, from which rows go over a link."""
    code: PipelineCode | None = None
    """The code of the pipeline; None: an earlier version of Thalweg did not record it."""
    code_since_s: float | None = None
    """Since when it is that code; None: from the beginning. Of rows before, it is unknown."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {**asdict(self), "code": None if self.code is None else self.code.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunManifest:
        """The manifest that `to_dict` gave these values for.

        Raises:
            KeyError, TypeError, ValueError: for anything else.
        """
        code, since_s = values.get("code"), values.get("code_since_s")
        read = {
            "fogs": tuple(values["fogs"]),
            "code": None if code is None else PipelineCode.from_dict(code),
            "code_since_s": None if since_s is None else float(since_s),
        }
        return cls(**{**values, **read})

    def require_same(self, found: RunManifest) -> None:
        """Raise `InvalidInput` for everything in which this run differs from the one found."""
        defects = Defects()
        new = "a new folder for another run, or"
        for name, noun in (
            ("pipeline", "the pipeline"),
            ("network", "the network"),
            ("fogs", "the fog sites"),
            ("cloud", "the cloud site"),
        ):
            before, now = getattr(found, name), getattr(self, name)
            rule = f"{new} {noun} that this folder's run has: {_shown(before)}"
            defects.require(before == now, name, _shown(now), rule)
        if self.pipeline == found.pipeline:
            defects.attempt("", lambda: self._require_same_code(found))
        has = "a link: its fogs have logs of their own" if found.ships else "no link that ships"
        defects.require(self.ships == found.ships, "link", None, f"{new} {has}, as in this folder")
        defects.raise_if_any()

    def _require_same_code(self, found: RunManifest) -> None:
        if self.code is not None and found.code is not None and self.code.is_like(found.code):
            self.code.require_same(found.code)
            return
        new, hint = "a new folder for another run, or", "checkpoints know the old one"
        rule = f"{new} the pipeline as it was: its operators have changed"
        defects = Defects()
        defects.require(self.graph == found.graph, "pipeline", self.pipeline, rule, hint)
        defects.raise_if_any()

    def following(self, found: RunManifest, now_s: float) -> RunManifest:
        """The same with the time since when its code is known to be that of the run found."""
        if self.code is None or found.code is None or not self.code.is_like(found.code):
            return replace(self, code_since_s=now_s)
        return replace(self, code_since_s=found.code_since_s)


def _shown(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else ", ".join(value)
