"""What the files of a simulation say, and which file a problem comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thalweg.errors import Defects, InvalidInput
    from thalweg.model import Application, Network, Plan
    from thalweg.model.changes import Change
    from thalweg.simulate import Experiment


class SimulationCase:
    """What the files say."""

    def __init__(
        self, defects: Defects, application: Path, network: Path, plan: Path, beside: Sequence[str]
    ) -> None:
        from thalweg.files.load import load_application, load_network, load_plan

        self._defects = defects
        self._paths = (application, network, plan)
        pairs = [(application, plan)]
        self._plan_files = [plan]
        for text in beside:
            app, colon, placed = text.partition(":")
            defects.require(bool(app and colon and placed), "--also", text, "APP:PLAN")
            if app and colon and placed:
                pairs.append((Path(app), Path(placed)))
                self._plan_files.append(Path(placed))
        self.network: Network | None = defects.attempt("", lambda: load_network(network))
        loaded = [
            (
                defects.attempt("", partial(load_application, app)),
                defects.attempt("", partial(load_plan, placed)),
            )
            for app, placed in pairs
        ]
        self.applications: list[Application] = [app for app, _ in loaded if app is not None]
        self.plans: list[Plan] = [placed for _, placed in loaded if placed is not None]
        self._changes: Path | None = None

    def read(self, workload: Path | None, changes: Path | None) -> dict[str, Any]:
        """The options that are in files."""
        from thalweg.cli.inputs import pose, require_births
        from thalweg.files.load import load_changes, load_workload

        defects = self._defects
        options: dict[str, Any] = {}
        if workload is not None:
            load = defects.attempt("", lambda: load_workload(workload))
            if load is not None and self.applications and self.network is not None:
                app, net = self.applications[0], self.network
                posed = defects.attempt("", lambda: pose(self._paths[0], app, net))
                if posed is not None:
                    load = defects.attempt("", partial(require_births, workload, load, posed))
            options["workload"] = load
        if changes is not None:
            self._changes = changes
            options["changes"] = defects.attempt("", lambda: load_changes(changes)) or ()
        return options

    def prepare(self, factor: float, options: dict[str, Any]) -> Experiment:
        """The experiment at so many times the rates, with the files that errors come from."""
        from thalweg.errors import InvalidInput
        from thalweg.simulate import prepare

        net = self.network
        if net is None or not self.applications:  # Told before.
            raise InvalidInput([])
        if factor != 1.0:
            options = {**options, **_scaled(self.applications[0], net, factor, options)}
        try:
            return prepare(self.applications, net, self.plans, **options)
        except InvalidInput as error:
            raise self._with_files(error) from None

    def _with_files(self, error: InvalidInput) -> InvalidInput:
        """The same problems, each with the file and line that it comes from, if it does."""
        from dataclasses import replace

        from thalweg.errors import InvalidInput
        from thalweg.files.load import find_lines

        found = []
        for defect in error.defects:
            path, file = defect.path, None
            number, which = 0, re.match(r"plans\[(\d+)\]\.", path)
            if which is not None:
                number, path = int(which[1]), path[which.end() :]
            if path.startswith("changes["):
                file = self._changes
            elif path.startswith(("placement", "plan.")):
                file = self._plan_files[number]
                path = path.removeprefix("plan.")
            if file is None:
                found.append(defect)
                continue
            found += find_lines(InvalidInput([replace(defect, path=path)]), file).defects
        return InvalidInput(found)


def _scaled(
    app: Application, net: Network, factor: float, options: dict[str, Any]
) -> dict[str, Any]:
    """The first application's rates, and those of its workload, times a factor."""
    from dataclasses import replace

    from thalweg.model import Problem

    load, scaled = options.get("workload"), {}
    if options.get("changes"):
        scaled["changes"] = tuple(_scale(change, app.name, factor) for change in options["changes"])
    if load is not None:
        return {**scaled, "workload": replace(load, rate=load.rate * factor)}
    rates = Problem(application=app, network=net).birth_rates
    return {**scaled, "rates": {pair: rate * factor for pair, rate in rates.items()}}


def _scale(change: Change, application: str, factor: float) -> Change:
    """A change of the first application's rates, times a factor; others as they are."""
    from dataclasses import replace

    from thalweg.model.changes import RateChange

    own = isinstance(change, RateChange) and change.application in (None, application)
    if not (own and isinstance(change, RateChange)):
        return change
    return replace(change, rates={pair: rate * factor for pair, rate in change.rates.items()})
