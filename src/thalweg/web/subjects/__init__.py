"""The kinds of things that a page can be about, one file each."""
