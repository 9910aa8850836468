"""Compiled models in `.pyort` files: format, reader and writer."""
