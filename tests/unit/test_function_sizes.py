"""Functions of the core: browsers optimize each as a whole, and run its slow form until then."""

from __future__ import annotations

import pytest

from py_ort.folders import ASSETS

#: Bytes of code. A function of 38 kB took a browser a second, and all others waited behind it.
MOST = 24_576
CODE_SECTION = 10


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned LEB128 and its end."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def function_sizes(module: bytes) -> list[int]:
    at, sizes = 8, []
    while at < len(module):
        section = module[at]
        size, start = read_number(module, at + 1)
        at = start + size
        if section == CODE_SECTION:
            count, inside = read_number(module, start)
            for _ in range(count):
                body, inside = read_number(module, inside)
                sizes.append(body)
                inside += body
    return sizes


@pytest.mark.parametrize("name", ["core.wasm", "rare_kernels.wasm", "relaxed_simd.wasm", "simd128.wasm"])
def test_no_function_is_late_to_be_optimized(name: str) -> None:
    assert max(function_sizes((ASSETS / name).read_bytes()), default=0) <= MOST
