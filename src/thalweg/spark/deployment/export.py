"""Has sites hand over open windows, and sees to it that those that wait in files are not lost.

Between the step that hands them over and the one that starts the next epoch, the rows of windows
that stay at a site lie in files. What these are is written down with the step; a file that is not
as it was is made again, as all of it is computed from the rows in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from thalweg.spark.deployment.hand_over import ExportState, SiteState, edges_into
from thalweg.spark.deployment.restarts import DeploymentFailed
from thalweg.spark.pipeline.windows import Opening
from thalweg.spark.query.carry import CarryOrder, carry_file
from thalweg.spark.query.kept import KeptRows, describe_file, find_fault

if TYPE_CHECKING:
    from thalweg.spark.deployment.spec import DeploymentSpec
    from thalweg.spark.query.spec import QuerySpec


class HandsOver(Protocol):
    """A site that can hand over open windows."""

    def carry(self, query: QuerySpec, order: CarryOrder) -> Mapping[str, int] | None:
        """Hand over the open windows of a query that was drained; gives the rows by edge.

        What stays at the site is in files of the order's folder then; None: it is kept elsewhere.
        """
        ...


def export_windows(
    spec: DeploymentSpec,
    openings: Mapping[str, Opening],
    site: HandsOver,
    step: ExportState,
    state: SiteState,
) -> dict[str, Any]:
    """Hand over open windows; gives what the files are that stay at the site, as plain data.

    Raises:
        DeploymentFailed: where it is done again, and rows are gone from which it was done.
    """
    folder = spec.carried(step.site, step.epoch)
    order = CarryOrder(
        offsets=state.offsets or {},
        batch=step.batch,
        folder=str(folder),
        keep=step.keep,
        send=step.send,
    )
    rows = site.carry(spec.query(step.site, step.epoch, state), order)
    if rows is None:
        return {}
    edges = edges_into(step.keep, openings)
    made = {edge: describe_file(carry_file(folder, edge), rows[edge]) for edge in edges}
    _require_as_many(spec, step, state.kept or {}, made)
    return {edge: asdict(kept) for edge, kept in made.items()}


def has_lost_windows(spec: DeploymentSpec, state: SiteState) -> bool:
    """Whether what was handed over to the next epoch of a site has to be handed over again."""
    if state.phase not in ("exported", "fenced"):
        return False
    if state.kept is None:
        # A journal that is older than these notes: nobody knows what the files have to be.
        return True
    folder = spec.carried(state.site, state.epoch)
    return any(find_fault(carry_file(folder, edge), kept) for edge, kept in state.kept.items())


def _require_as_many(
    spec: DeploymentSpec,
    step: ExportState,
    before: Mapping[str, KeptRows],
    made: Mapping[str, KeptRows],
) -> None:
    """Refuse files that were made again, and not of the same rows."""
    for edge, kept in sorted(before.items()):
        rows = made[edge].rows if edge in made else 0
        if rows != kept.rows:
            raise DeploymentFailed(
                f"open windows that epoch {step.epoch} of {step.site} has handed over along {edge} "
                f"were lost, and made again they have {rows} rows, not {kept.rows}: rows of the "
                "sources are gone or were changed. Hint: restore the whole folder from a copy; "
                f"without one, `thalweg doctor {spec.folder} --rebuild --yes` works on all rows "
                "again."
            )
