"""Loops that run compiled. Strategies import these when they decide, not when they are listed.

Numba keeps compiled code for each file as long as the text of that file stays the same. After a
change in one file, delete `__pycache__` here: those that call it do not notice.
"""
