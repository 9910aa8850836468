"""Attention: found, with its masks, heads, caches and rotations, and fed by few products."""
