"""Strategies that cut each stream between fog and cloud, now and after every change."""
