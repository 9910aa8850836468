"""Passes that say the same with fewer nodes, and without old forms."""
