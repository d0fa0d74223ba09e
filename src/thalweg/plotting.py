"""What every drawing needs: matplotlib, and colours that anybody can tell apart."""

from __future__ import annotations

from thalweg.errors import MissingExtra

COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#F0E442", "#000000")
"""Okabe and Ito's, which people with any colour vision can tell apart."""
PLOT_ENDINGS = (".png", ".svg", ".pdf")


def require_plotting() -> None:
    """Raise `MissingExtra` unless there is matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtra("a plot needs matplotlib. Hint: pip install 'thalweg[plot]'") from error
