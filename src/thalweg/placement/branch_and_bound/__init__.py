"""A search of all placements that leaves out what cannot be best; what `exact` is made of."""
