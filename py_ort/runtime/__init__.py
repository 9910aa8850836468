"""Sessions: opening in a page, runs, values, options and engines."""
