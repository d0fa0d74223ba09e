"""Files: the only door for untrusted input."""
