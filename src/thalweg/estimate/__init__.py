"""Estimators: rates, latency, response time, usage and coordinates, as pure functions on arrays."""
