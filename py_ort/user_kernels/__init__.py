"""WebGPU kernels of one's own, from Python: see docs/user_kernels.md.

    sizes.py      the language of shapes and uniforms, which Python and the page share
    formula.py    elementwise formulas in Python's syntax, as WGSL
    kernel.py     `UserKernel`: the declaration, checked and as plain data for the page
    inference.py  shape inference
    registry.py   what makes it an operator like any other
    files.py      kernels from .wgsl and .py files
    trial.py      running one on arrays; watch.py runs it again whenever its file changes

In the page: `web/src/user_kernels`.
"""

from py_ort.user_kernels.kernel import UserKernel, required
from py_ort.user_kernels.registry import (
    find_kernel,
    register_kernel,
    registered_kernels,
    unregister_kernel,
    with_user_kernels,
)

__all__ = [
    "UserKernel",
    "find_kernel",
    "register_kernel",
    "registered_kernels",
    "required",
    "unregister_kernel",
    "with_user_kernels",
]
