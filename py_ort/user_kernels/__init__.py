"""Users' own WebGPU kernels, from Python: see docs/user_kernels.md.

    sizes.py      the language of shapes and uniforms, which Python and the page share
    formula.py    elementwise formulas in Python's syntax, as WGSL
    kernel.py     `UserKernel`: the declaration, checked and as plain data for the page
    inference.py  shape inference
    registry.py   registration, which makes a kernel an ordinary operator
    files.py      kernels from .wgsl and .py files
    trial.py      runs a kernel on arrays; watch.py runs it again whenever its file changes

In the page: `web/src/providers/webgpu/user_kernels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.user_kernels.kernel import UserKernel as UserKernel
    from py_ort.user_kernels.kernel import required as required
    from py_ort.user_kernels.kernel_files import load_kernels as load_kernels
    from py_ort.user_kernels.registry import register_kernel as register_kernel
    from py_ort.user_kernels.registry import registered_kernels as registered_kernels
    from py_ort.user_kernels.registry import unregister_kernel as unregister_kernel

_WHERE = {
    "UserKernel": "kernel",
    "load_kernels": "kernel_files",
    "register_kernel": "registry",
    "registered_kernels": "registry",
    "required": "kernel",
    "unregister_kernel": "registry",
}
__all__ = list(_WHERE)
__getattr__ = lazily(__name__, _WHERE)
