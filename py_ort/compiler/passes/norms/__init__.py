"""Normalizations, from their parts to single operators."""
