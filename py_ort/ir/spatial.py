"""Arithmetic of sliding windows: pads and sizes of convolutions and pools, wherever a model's sizes are known.

Sizes that only a run knows are worked out by `web/src/contract/window.ts` and
`wasm_build/src/kernels/shared/spatial.cc`, and nowhere else; a test holds the three together.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from py_ort.exceptions import InvalidGraph
from py_ort.ir.graph import attribute, dims, rank, set_attributes
from py_ort.ir.value_types import like

Dim = Any  # int, SymbolicDim or None
_SIZES = 1 << 62  # of windows are less
#: Attributes of windows: how many numbers for each axis, and their least.
_OF_WINDOWS = {
    "kernel_shape": (1, 1),
    "strides": (1, 1),
    "dilations": (1, 1),
    "pads": (2, -_SIZES),
    "output_padding": (1, 0),
}


def fill_spatial(node: ir.Node) -> None:
    """Fill in strides, dilations and the group.

    Raises:
        InvalidGraph: Attributes of windows do not go together.
    """
    kernel = attribute(node, "kernel_shape")
    spatial = len(kernel) if kernel else (rank(node.inputs[0]) or 0) - 2
    if spatial <= 0:
        return
    reach = [k * d for k, d in zip(kernel or (), attribute(node, "dilations") or (), strict=False)]
    for name, (each, least) in _OF_WINDOWS.items():
        given = attribute(node, name) or []
        numbers = (*given, *reach) if name == "dilations" else given
        if len(given) not in (0, each * spatial) or any(not least <= number < _SIZES for number in numbers):
            where: dict[str, Any] = {"node": node.name or "", "op_type": node.op_type, "domain": node.domain}
            raise InvalidGraph(
                f"{name} of {node.op_type} is {list(given)}, not {each * spatial} numbers of {least} to {_SIZES - 1}",
                **where,
            )
    if not attribute(node, "strides"):
        set_attributes(node, strides=[1] * spatial)
    if not attribute(node, "dilations"):
        set_attributes(node, dilations=[1] * spatial)


def explicit_pads(node: ir.Node) -> None:
    """Turn auto_pad into pads where the input's sizes allow; SAME_* stays where they are unknown."""
    auto = attribute(node, "auto_pad") or "NOTSET"
    kernel, strides, dilations = (attribute(node, name) for name in ("kernel_shape", "strides", "dilations"))
    if auto in ("NOTSET", "VALID"):
        if kernel and (auto == "VALID" or not attribute(node, "pads")):
            set_attributes(node, pads=[0] * (2 * len(kernel)))
        set_attributes(node, auto_pad=None)
        return
    known = _spatial_sizes(node, len(kernel or ()))
    # With stride 1 the pads do not depend on the input's size.
    if not kernel or not strides or (known is None and any(s != 1 for s in strides)):
        set_attributes(node, pads=None)
        return
    totals = []
    for axis, (k, s, d) in enumerate(zip(kernel, strides, dilations or [1] * len(kernel), strict=True)):
        size = known[axis] if known is not None else None
        extent = (k - 1) * d + 1
        if s == 1:
            total = extent - 1
        elif isinstance(size, int):
            total = max(0, (-(-size // s) - 1) * s + extent - size)
        else:
            set_attributes(node, pads=None)
            return
        totals.append(total)
    set_attributes(node, pads=_halves(totals, auto), auto_pad=None)


def conv_transpose_output(node: ir.Node) -> None:
    """Turn output_shape and auto_pad of a transposed convolution into pads, where the input's sizes are known."""
    auto = attribute(node, "auto_pad") or "NOTSET"
    kernel, strides, dilations = (attribute(node, name) for name in ("kernel_shape", "strides", "dilations"))
    wanted = attribute(node, "output_shape")
    if not kernel:
        return
    if auto in ("NOTSET", "VALID") and not wanted:
        if auto == "VALID" or not attribute(node, "pads"):
            set_attributes(node, pads=[0] * (2 * len(kernel)))
        set_attributes(node, auto_pad=None)
        return
    known = _spatial_sizes(node, len(kernel))
    extra = list(attribute(node, "output_padding") or [0] * len(kernel))
    totals = []
    for axis, (k, s, d) in enumerate(zip(kernel, strides, dilations, strict=True)):
        size = known[axis] if known is not None else None
        if wanted:
            if not isinstance(size, int):
                return
            total = (size - 1) * s + extra[axis] + (k - 1) * d + 1 - wanted[-len(kernel) :][axis]
            # A larger output than the window reaches ends in rows that nothing is added to.
            extra[axis] += max(0, -total)
        else:  # SAME: output = input * stride, whatever the size
            total = (k - 1) * d + 1 + extra[axis] - s
        totals.append(max(0, total))
    set_attributes(node, pads=_halves(totals, auto), output_padding=extra, auto_pad=None, output_shape=None)


def _spatial_sizes(node: ir.Node, count: int) -> list[Dim] | None:
    """Sizes of an image's axes; None where these are not known, or not as many (which its contract refuses)."""
    known = dims(node.inputs[0])
    return list(known[2:]) if known is not None and len(known) == count + 2 else None


def _halves(totals: list[int], auto: str) -> list[int]:
    """Pads before and after; an odd one goes to the end with SAME_UPPER, else to the beginning."""
    small, big = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return small + big if auto == "SAME_UPPER" else big + small


def window_size(size: Dim, k: int, s: int, d: int, before: int, after: int, ceil: bool = False) -> Dim:
    """Return the number of places of a window along one axis; None when the size is unknown."""
    if not isinstance(size, int):
        if size is None or (isinstance(size, ir.SymbolicDim) and size.value is None):
            return None
        if ceil:
            return None
        reach = before + after - (k - 1) * d - 1
        if s == 1:
            return size + reach + 1 if reach != -1 else size
        return (size + reach) // s + 1
    span = size + before + after - ((k - 1) * d + 1)
    # If a window is larger than its input, division rounds to zero: there is one place, or none.
    places = (-(-span // s) if ceil or span < 0 else span // s) + 1
    # The last window must start inside the input or the pad before it.
    if ceil and (places - 1) * s >= size + before:
        places -= 1
    return places


def infer_window(node: ir.Node, channels: Dim, *, channels_last: bool) -> None:
    """Infer the output of a convolution or pool, in N, spatial…, C or N, C, spatial… order."""
    known = dims(node.inputs[0])
    output = node.outputs[0]
    if known is None:
        like(output, node.inputs[0], None)
        output.shape = None
        return
    kernel, strides, dilations, pads = (
        attribute(node, name) for name in ("kernel_shape", "strides", "dilations", "pads")
    )
    first = 1 if channels_last else 2
    sizes: list[Dim] = [None] * (len(known) - 2)
    if kernel and not pads and (attribute(node, "auto_pad") or "NOTSET") in ("NOTSET", "VALID"):
        pads = [0] * (2 * len(kernel))
    if kernel and pads:
        spatial = len(kernel)
        strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
        extra = attribute(node, "output_padding") or [0] * spatial
        for axis in range(spatial):
            size, k, s, d = known[axis + first], kernel[axis], strides[axis], dilations[axis]
            before, after = pads[axis], pads[axis + spatial]
            if node.op_type != "ConvTranspose":
                sizes[axis] = window_size(size, k, s, d, before, after, bool(attribute(node, "ceil_mode", 0)))
            elif isinstance(size, int) or size.value is not None:
                grown = size if s == 1 else size * s
                rest = (k - 1) * d + 1 + extra[axis] - before - after - s
                sizes[axis] = grown + rest if rest else grown
    elif (attribute(node, "auto_pad") or "NOTSET") != "NOTSET" and strides:
        for axis, s in enumerate(strides):
            size = known[axis + first]
            sizes[axis] = size if s == 1 else None
    like(output, node.inputs[0])
    output.shape = ir.Shape([known[0], *sizes, channels] if channels_last else [known[0], channels, *sizes])
