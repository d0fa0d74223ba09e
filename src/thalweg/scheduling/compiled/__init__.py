"""Loops that run compiled. Strategies import these when they decide, not when they are listed."""
