"""Loops that run compiled. Strategies import these when they decide, not when they are listed.

Numba keeps compiled code per file: after a change in `latency.py`, delete `__pycache__` here.
"""
