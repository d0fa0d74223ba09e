"""Strategies for the first placement on a large network of clouds and edge sites."""
