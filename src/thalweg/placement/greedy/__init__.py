"""What the greedy strategies share. They import it when they decide, not when they are listed."""
