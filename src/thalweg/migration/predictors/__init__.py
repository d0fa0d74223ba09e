"""Ways to know where vehicles will connect: one module for each."""
