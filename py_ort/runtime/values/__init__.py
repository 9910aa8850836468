"""Feeds and outputs of runs: values, their devices, and their bindings by name."""
