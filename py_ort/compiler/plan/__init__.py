"""The plan: the form of a compiled model for the page, with its cache on disk."""
