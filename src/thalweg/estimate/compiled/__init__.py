"""Formulas of the estimators for loops that run compiled; imported by such loops alone.

Numba keeps compiled code per file: after a change here, delete the `__pycache__` of those who call.
"""
