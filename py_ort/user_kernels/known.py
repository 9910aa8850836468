"""Which kernels are registered. Imports nothing, so that whoever uses none pays for none."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py_ort.user_kernels.kernel import UserKernel

#: By domain and operator; `registry` fills it.
KERNELS: dict[tuple[str, str], UserKernel] = {}


def registered_kernels() -> dict[str, UserKernel]:
    """Return the registered kernels by name."""
    return {kernel.name: kernel for kernel in KERNELS.values()}


def find_kernel(domain: str, op_type: str) -> UserKernel | None:
    """Return the kernel of an operator, if it is a user's."""
    return KERNELS.get((domain, op_type))


def digest() -> str:
    """Return what tells one set of registered kernels from another: plans depend on them."""
    told = {name: kernel.definition for name, kernel in sorted(registered_kernels().items())}
    return hashlib.sha256(json.dumps(told).encode()).hexdigest() if told else ""
