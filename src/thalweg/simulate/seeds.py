"""Keys of random numbers: one for each purpose, by its name."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where the random numbers of a run, or of a part of it, come from.

    Named, not counted: a queue draws the same numbers whatever else is simulated beside it.

    >>> run = Seeds("0/3")
    >>> bool(run.of("count").key("service") == Seeds("0/3/count").key("service"))
    True
    """

    name: str

    def of(self, part: str) -> Seeds:
        """Those of a part."""
        return Seeds(f"{self.name}/{part}")

    def key(self, purpose: str) -> np.uint64:
        """The key of the draws for a purpose."""
        text = f"{self.name}/{purpose}".encode()
        return np.uint64(int.from_bytes(blake2b(text, digest_size=8).digest(), "little"))
