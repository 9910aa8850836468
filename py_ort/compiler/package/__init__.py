"""A compiled model in a file of its own, `.pyort`: the format, and how it is written and read."""
