"""Standing in for onnxruntime: `install_as_onnxruntime`, and what its package has besides the API."""

from py_ort.compat.install import Installed, install_as_onnxruntime

__all__ = ["Installed", "install_as_onnxruntime"]
