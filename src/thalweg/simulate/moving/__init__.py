"""Operators that move between brokers, event by event."""

from thalweg.simulate.moving.execution import Execution, execute

__all__ = ["Execution", "execute"]
