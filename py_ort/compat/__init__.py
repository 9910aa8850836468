"""Standing in for onnxruntime: `install_as_onnxruntime`, and the parts of its package that only code of its own asks for."""

from py_ort.compat.install import Installed, install_as_onnxruntime

__all__ = ["Installed", "install_as_onnxruntime"]
