"""Random inputs that several tests share."""
