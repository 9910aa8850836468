"""Installs it, and prints its variables."""

import lavapipe

print(*(f"{name}={value}" for name, value in lavapipe.environment().items()))
