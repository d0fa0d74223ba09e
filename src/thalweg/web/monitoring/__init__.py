"""What monitors a run from outside: metrics, alert rules, a dashboard, an example set-up."""

from __future__ import annotations

from importlib.resources import files

SHIPPED = {
    "rules": "thalweg.rules.yml",
    "dashboard": "thalweg.dashboard.json",
    "prometheus": "prometheus.yml",
}


def read_shipped(name: str) -> str:
    """Return the text of a file that comes with the package, by its name in `SHIPPED`."""
    return (files(__name__) / SHIPPED[name]).read_text(encoding="utf-8")
