"""The plan: what the page is told of a compiled model, on the way and on disk."""
