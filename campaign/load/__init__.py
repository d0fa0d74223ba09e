"""How much the demo deployment bears: its maximum, a soak below it, twice of it, and what stays."""
