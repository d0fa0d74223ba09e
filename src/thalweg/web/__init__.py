"""The page: what runs where and why, what that costs over time, and what would be if.

```python
import thalweg as tw
from thalweg.web import PlanSubject, serve

app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
with serve(PlanSubject(app, net, tw.plan(app, net))) as page:
    print(page.address)
```
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from thalweg.web.opening import open_subjects
from thalweg.web.server import PageServer
from thalweg.web.subject import Subject
from thalweg.web.subjects.plan import PlanSubject

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PageServer", "PlanSubject", "Subject", "open_subjects", "serve"]


def serve(
    *things: Subject | str | PathLike[str],
    port: int = 0,
    token: str | None = None,
    strategy: str | None = None,
) -> PageServer:
    """Serve subjects, and whatever is at these places, from now until `stop` or the block's end.

    Raises:
        InvalidInput: for places that cannot be shown, and for a port that is taken.

    >>> import thalweg as tw
    >>> app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    >>> with serve(PlanSubject(app, net, tw.plan(app, net))) as page:
    ...     print(page.address.partition(":")[0], len(page.token) > 20)
    http True
    """
    subjects = [thing for thing in things if isinstance(thing, Subject)]
    places: list[Path | str] = [str(thing) for thing in things if not isinstance(thing, Subject)]
    found = open_subjects(places, strategy=strategy) if places else []
    return PageServer([*subjects, *found], port=port, token=token).start()
