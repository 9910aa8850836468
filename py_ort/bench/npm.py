"""The benchmark's name for where packages of npm are kept."""

from py_ort.runtime.peer.npm import npm_package

__all__ = ["npm_package"]
