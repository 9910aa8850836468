"""Normalisations, from their parts to single operators."""
