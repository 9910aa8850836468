"""Generating tokens with a decoder: the loop itself is the page's (web/src/generate)."""
