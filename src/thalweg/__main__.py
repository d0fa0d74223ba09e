"""`python -m thalweg` is `thalweg`."""

from thalweg.cli import main

main()
