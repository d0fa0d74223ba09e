"""Published evaluations, run again: each of them a sweep, figures, and a table of claims."""
