"""What results are about, kept beside them: the application, the network, and maybe the plan."""

from __future__ import annotations

from pathlib import Path

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.files.load import load_application, load_network, load_plan
from thalweg.files.own_file import require_own
from thalweg.files.save import save
from thalweg.model import Application, Network, Plan

APPLICATION, NETWORK, PLAN = "application.json", "network.json", "plan.json"
_FILES = (APPLICATION, NETWORK, PLAN)
NETWORK_FOLDER = "network"
_MOST_NODES_AS_TEXT = 5_000


def save_model(
    folder: Path, application: Application, network: Network, plan: Plan | None = None
) -> None:
    """Write `application.json`, `network.json` (a Parquet folder if it is large), `plan.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    save(application, folder / APPLICATION)
    large = network.node_count > _MOST_NODES_AS_TEXT
    save(network, folder / (NETWORK_FOLDER if large else NETWORK))
    if plan is not None:
        save(plan, folder / PLAN)


def has_model(folder: Path) -> bool:
    """Whether an application and a network are kept there."""
    network = (folder / NETWORK).is_file() or (folder / NETWORK_FOLDER).is_dir()
    return network and (folder / APPLICATION).is_file()


def load_model(folder: Path) -> tuple[Application, Network, Plan | None]:
    """What is kept there; raises `InvalidInput` where that is nothing, or cannot be read."""
    if not has_model(folder):
        rule, hint = "a folder with an application and a network", f"{APPLICATION}, {NETWORK}"
        raise InvalidInput([Defect(path="", value=str(folder), rule=rule, hint=hint)])
    _require_own_files(folder)
    small = (folder / NETWORK).is_file()
    network = load_network(folder / (NETWORK if small else NETWORK_FOLDER))
    plan = load_plan(folder / PLAN) if (folder / PLAN).is_file() else None
    return load_application(folder / APPLICATION), network, plan


def _require_own_files(folder: Path) -> None:
    """Raise `InvalidInput` for files of the model that are only pointed to from the folder."""
    defects = Defects()
    for file in (*(folder / name for name in _FILES), *(folder / NETWORK_FOLDER).glob("*")):
        try:
            if file.exists():
                require_own(folder, file)
        except (OSError, ValueError) as error:
            rule = "a regular file of the folder itself"
            found = Defect(file=str(file), path="", value=str(error), rule=rule)
            defects.absorb(InvalidInput([found]))
    defects.raise_if_any()
