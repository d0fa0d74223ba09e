"""One streaming query of a site: what it reads, computes and publishes, and how it ends."""
