"""Everything that has to be right before a run starts, looked at before anything is started."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from thalweg.adapt.forecast import Forecaster
from thalweg.adapt.trigger import LIVE_TRIGGER, Trigger
from thalweg.errors import Defect, Defects, InvalidInput, nearest
from thalweg.files.load import load_application, load_network
from thalweg.model import Application, Network, Plan, Problem
from thalweg.model.addresses import LOCAL
from thalweg.planning import SCHEDULING_STRATEGY
from thalweg.spark.deployment.decisions import LIVE_FORECASTER, Adapter
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.hand_over import outline
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.deployment.plan import (
    Cuts,
    RunSites,
    find_sites,
    fingerprint_graph,
    require_cuts,
)
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.examples import EXAMPLES
from thalweg.spark.link import LinkError, open_link, parse_link
from thalweg.spark.pipeline import Pipeline, load_pipeline
from thalweg.spark.pipeline.code import code_of
from thalweg.spark.query.spec import BAD_ROWS, DEAD_LETTER, require_bad_rows
from thalweg.spark.site.site import SiteSpec, check_site
from thalweg.strategy import find_strategy, require_options
from thalweg.units import DURATION, parse_quantity

_LOCAL_MASTER = "local[1]"


@dataclass(frozen=True, kw_only=True)
class RunWishes:
    """What a run is asked to be, as its user says it; nothing of it is checked yet.

    - `pipeline`: the name of an example, or `package.module:attribute`.
    - `network`: a network, or the file that describes it.
    - `rates`: events/s by source and site to plan with first; else what the sources declare.
    - `interval`: how often to look at the run; `trigger`: the least time from batch to batch.
    - `adapt`: when to change cuts; None leaves them as they are. `forecast`: how rates are looked
      ahead; None looks at those that are there.
    - `profile`: the application with measured figures to begin with, or its file; else those that
      the pipeline declares.
    - `link`: how rows come from the fogs to the cloud, see `thalweg.spark.link.parse_link`; without
      one, all sites have one log.
    - `bad_rows`: what becomes of a row on which an operator fails: `dead-letter` or `fail`.
    - `heap_mb`, `config`: of every site's Spark.
    - `resume`: to go on with a run that is in the folder, and to begin none where there is none.
    """

    pipeline: str
    network: Network | str | os.PathLike[str]
    folder: Path | str = "run"
    strategy: str = SCHEDULING_STRATEGY
    options: Mapping[str, Any] = field(default_factory=dict)
    rates: Mapping[tuple[str, str], float] | None = None
    interval: str = "2 s"
    trigger: str = "1 s"
    adapt: Trigger | None = LIVE_TRIGGER
    forecast: Forecaster | None = LIVE_FORECASTER
    profile: Application | str | os.PathLike[str] | None = None
    rows_per_batch: int | None = None
    link: str | None = None
    bad_rows: str = DEAD_LETTER
    heap_mb: int = 768
    config: Mapping[str, str] = field(default_factory=dict)
    resume: bool = False


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """A run that may start: everything it needs was found right."""

    wishes: RunWishes
    folder: RunFolder
    pipeline: Pipeline
    sites: RunSites
    adapter: Adapter
    plan: Plan
    cuts: Cuts
    """What to deploy first."""
    spec: DeploymentSpec
    site_specs: tuple[SiteSpec, ...]
    manifest: RunManifest
    interval_s: float

    def outline(self) -> tuple[str, ...]:
        """The steps that a start would take, in words."""
        state = Journal(self.spec.journal).state(self.spec.fogs, self.pipeline.openings)
        again = [
            f"start again epoch {site.epoch} on {site.site}: {', '.join(site.cut) or 'nothing'}"
            for site in state.sites.values()
            if site.phase == "running"
        ]
        wanted = {fog: cut for fog, cut in self.cuts.items() if fog not in state.cuts}
        head = f"start {self.sites.cloud}: the whole of {self.pipeline.name}"
        return (head, *again, *outline(state, wanted))

    def require_cuts(self, cuts: Cuts) -> None:
        """Raise `InvalidInput` unless the sites can run these cuts."""
        require_cuts(self.pipeline, self.sites, cuts)


def prepare(wishes: RunWishes, *, dry: bool = False) -> PreparedRun:
    """Look at everything, and plan; raises `InvalidInput` with all that is in the way of a start.

    With `dry`, nothing is written, and no site has to answer.
    """
    defects, folder = Defects(), RunFolder(wishes.folder)
    found = defects.attempt("", lambda: find_pipeline(wishes.pipeline))
    loaded = defects.attempt("", lambda: _network(wishes.network))
    interval_s = defects.attempt("", lambda: _duration("interval", wishes.interval))
    trigger_s = defects.attempt("", lambda: _duration("trigger", wishes.trigger))
    is_strategy = _holds(defects, lambda: _require_strategy(wishes))
    # What is to go on where there is nothing must not be begun there.
    is_there = _holds(defects, lambda: _require_run(wishes, folder))
    is_free = is_there and (dry or _holds(defects, folder.require_free))
    adapter = None
    if found is not None and loaded is not None:
        adapter = defects.attempt("", partial(_adapter, wishes, found, loaded, interval_s or 2.0))
    is_link = _holds(defects, lambda: _require_link(wishes.link))
    require_bad_rows(defects, wishes.bad_rows)
    if adapter is None or trigger_s is None or not is_link or wishes.bad_rows not in BAD_ROWS:
        defects.raise_if_any()
    pipeline, network = cast(Pipeline, found), cast(Network, loaded)
    adapter = cast(Adapter, adapter)
    spec = DeploymentSpec(
        pipeline=_reference(wishes.pipeline),
        folder=folder.path,
        fogs=adapter.sites.fogs,
        cloud=adapter.sites.cloud,
        trigger=wishes.trigger,
        rows_per_batch=wishes.rows_per_batch,
        link=wishes.link,
        bad_rows=wishes.bad_rows,
        code=code_of(pipeline),
    )
    manifest = _manifest(spec, pipeline, network)
    if folder.exists:
        defects.attempt("", lambda: manifest.require_same(folder.read_manifest()))
    planned = defects.attempt("", lambda: _plan(adapter, pipeline, wishes)) if is_strategy else None
    specs = defects.attempt("", lambda: _site_specs(wishes, folder, network, adapter.sites)) or ()
    # In a folder that cannot be written, no site's can: that is told once.
    if is_free and not dry:
        _check_sites(defects, specs)
        _check_link(defects, spec)
    defects.raise_if_any()
    plan, cuts = cast("tuple[Plan, Cuts]", planned)
    return PreparedRun(
        wishes=wishes,
        folder=folder,
        pipeline=pipeline,
        sites=adapter.sites,
        adapter=adapter,
        plan=plan,
        cuts=cuts,
        spec=spec,
        site_specs=specs,
        manifest=manifest,
        interval_s=cast(float, interval_s),
    )


def find_pipeline(name: str) -> Pipeline:
    """The pipeline of an example's name or of a reference `package.module:attribute`."""
    if isinstance(name, str) and name not in EXAMPLES and ":" not in name:
        rule = "package.module:attribute, or the name of an example"
        hint = nearest(name, EXAMPLES)
        raise InvalidInput([Defect(path="pipeline", value=name, rule=rule, hint=hint)])
    return load_pipeline(_reference(name))


def _reference(name: str) -> str:
    return EXAMPLES.get(name, name) if isinstance(name, str) else name


def _network(given: Network | str | os.PathLike[str]) -> Network:
    return given if isinstance(given, Network) else load_network(given)


def _duration(path: str, text: str) -> float:
    found = parse_quantity(text, DURATION, path=path)
    if not found > 0:
        raise InvalidInput([Defect(path=path, value=text, rule='a duration > 0, such as "2 s"')])
    return found


def _holds(defects: Defects, require: Callable[[], None]) -> bool:
    """Whether something that is required holds; else its defects are remembered."""
    try:
        require()
    except InvalidInput as error:
        defects.absorb(error)
        return False
    return True


def _require_run(wishes: RunWishes, folder: RunFolder) -> None:
    if wishes.resume and not folder.exists:
        rule = "a folder with a run to go on with"
        hint = "its disk may be away; without resume, a new run is begun there"
        raise InvalidInput([Defect(path="folder", value=str(folder.path), rule=rule, hint=hint)])


def _require_strategy(wishes: RunWishes) -> None:
    find_strategy(wishes.strategy)
    require_options(wishes.strategy, dict(wishes.options))


def _require_link(link: str | None) -> None:
    if link is not None:
        parse_link(link)


def _check_link(defects: Defects, spec: DeploymentSpec) -> None:
    """Remember a defect for a link at which nobody answers."""
    if spec.link is None or not spec.ships:
        return
    try:
        open_link(parse_link(spec.link)).close()
    except LinkError as error:
        cause, _, _ = str(error).partition(" Hint: ")
        defects.add("link", spec.link, "a link at which somebody answers", cause)


def _adapter(wishes: RunWishes, pipeline: Pipeline, network: Network, interval_s: float) -> Adapter:
    """What plans and decides; raises `InvalidInput` where the pipeline cannot run there."""
    application = _profiled(wishes, pipeline)
    problem = Problem(application=application, network=network, rates=wishes.rates)
    return Adapter(
        application=application,
        network=network,
        sites=find_sites(problem),
        strategy=wishes.strategy,
        options=dict(wishes.options),
        trigger=wishes.adapt or LIVE_TRIGGER,
        forecaster=wishes.forecast,
        interval_s=interval_s,
    )


def _profiled(wishes: RunWishes, pipeline: Pipeline) -> Application:
    """The pipeline's application, with the figures of a profile where one is given."""
    if wishes.profile is None:
        return pipeline.application
    from thalweg.spark.profile.measured_run import with_figures

    given = wishes.profile
    profile = given if isinstance(given, Application) else load_application(given)
    return with_figures(pipeline.application, profile)


def _manifest(spec: DeploymentSpec, pipeline: Pipeline, network: Network) -> RunManifest:
    return RunManifest(
        pipeline=spec.pipeline,
        graph=fingerprint_graph(pipeline),
        network=network.name,
        fogs=spec.fogs,
        cloud=spec.cloud,
        ships=spec.ships,
        code=spec.code,
    )


def _plan(adapter: Adapter, pipeline: Pipeline, wishes: RunWishes) -> tuple[Plan, Cuts]:
    plan, cuts = adapter.plan(wishes.rates)
    require_cuts(pipeline, adapter.sites, cuts)
    return plan, cuts


def _site_specs(
    wishes: RunWishes, folder: RunFolder, network: Network, sites: RunSites
) -> tuple[SiteSpec, ...]:
    def master(site: str) -> str:
        address = network.address_of(site)
        # A site has one core unless the network says otherwise: several share this machine.
        return _LOCAL_MASTER if address == LOCAL else address

    return tuple(
        SiteSpec(
            name=site,
            folder=folder.path / "sites" / site,
            master=master(site),
            heap_mb=wishes.heap_mb,
            config=wishes.config,
        )
        for site in (*sites.fogs, sites.cloud)
    )


def _check_sites(defects: Defects, specs: Sequence[SiteSpec]) -> None:
    """Remember a defect for each site that cannot start; all are asked at the same time."""

    def look(spec: SiteSpec) -> InvalidInput | None:
        try:
            check_site(spec)
        except InvalidInput as error:
            return error
        return None

    if not specs:
        return
    with ThreadPoolExecutor(min(len(specs), 32)) as pool:
        for spec, found in zip(specs, pool.map(look, specs), strict=True):
            if found is not None:
                defects.absorb(found, f"sites.{spec.name}")
