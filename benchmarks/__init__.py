"""How fast, how small, how good: one file per question, run with `python -m benchmarks NAME`."""
