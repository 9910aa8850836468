"""Placement: chooses a provider for each node."""

from py_ort.compiler.placement.placement import place

__all__ = ["place"]
