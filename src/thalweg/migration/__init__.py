"""Strategies that move stateful operators as users move."""
