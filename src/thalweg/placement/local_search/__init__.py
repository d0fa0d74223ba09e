"""Moves that lower the aggregate latency of a placement; what `improve` is made of."""
