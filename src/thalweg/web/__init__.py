"""The page: what runs where, what that costs over time, and what would be if."""
