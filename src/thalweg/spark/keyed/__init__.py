"""Operators with keyed state that move between sites while rows flow."""
