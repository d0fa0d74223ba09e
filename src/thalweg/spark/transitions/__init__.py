"""Counting how vehicles go from leaf to leaf, in traces of any size."""
