"""The moving city as a page to look at."""
