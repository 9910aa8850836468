"""Which node goes to which provider."""

from py_ort.compiler.placement.placement import place

__all__ = ["place"]
