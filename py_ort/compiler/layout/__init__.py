"""Channels last: which values are kept with permuted axes, and weights in the order that kernels read them."""

from py_ort.compiler.layout.nhwc import Nhwc
from py_ort.compiler.layout.packing import pack_weights

__all__ = ["Nhwc", "pack_weights"]
