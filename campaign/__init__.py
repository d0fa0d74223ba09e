"""Faults, load and bad input, against everything that Thalweg promises: `python -m campaign`."""
