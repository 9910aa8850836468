"""Passes that look at where nodes run: chains, columns of wider tensors, counts."""
