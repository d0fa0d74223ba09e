"""Operators that follow moving users: a plan of moves carried out on real sites, and measured."""
