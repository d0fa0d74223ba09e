"""Loops that run compiled; see `thalweg.placement.local_search.compiled`."""
