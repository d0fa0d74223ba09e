"""Loops that run compiled. Strategies import these when they decide, not when they are listed.

Numba keeps compiled code per file: after a change in one of them, touch the files that call it.
"""
