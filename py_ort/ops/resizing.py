"""Resize and its old forms, and grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, dims, required, set_attributes
from py_ort.ir.operators import MICROSOFT, Operator, lowering
from py_ort.ir.symbolic_dims import refine_resize
from py_ort.schema.dialect import RESIZE_INTO, X_COLUMNS

OPERATORS = [
    Operator(
        "Resize",
        refine=refine_resize,
        host=(1, 2, 3),
        layout="resize",
        heavy=True,
        columns={0: X_COLUMNS},
        into=RESIZE_INTO,
    ),
    Operator("GridSample", layout="channels", heavy=True),
    Operator("AffineGrid", host=(1,)),
    Operator("CropAndResize", domain=MICROSOFT, host=(3,)),
    Operator("ImageDecoder", host=(0,)),
]


def _legacy_resize(node: ir.Node, build: Builder, scales: ir.Value) -> Any:
    """Resize of old: no offset, nearest is the floor (the ceiling when shrinking)."""
    factors = array(scales)
    shrinks = factors is not None and bool(np.any(factors < 1))
    mode = attribute(node, "mode", "nearest")
    return build.op(
        "Resize",
        node.inputs[0],
        None,
        scales,
        mode={"bilinear": "linear"}.get(mode, mode),
        coordinate_transformation_mode="asymmetric",
        nearest_mode="ceil" if shrinks else "floor",
    )


@lowering("Upsample")
def upsample(node: ir.Node, build: Builder) -> Any:
    """Upsample's scales were two attributes, then one, then an input."""
    if len(node.inputs) > 1:
        return _legacy_resize(node, build, required(node.inputs[1]))
    scales = attribute(node, "scales") or [1.0, 1.0, attribute(node, "height_scale"), attribute(node, "width_scale")]
    return _legacy_resize(node, build, build.constant(np.array(list(scales), np.float32)))


@lowering("Resize", before=11)
def resize_of_scales(node: ir.Node, build: Builder) -> Any:
    """Resize-10 had no choice of coordinates."""
    return _legacy_resize(node, build, required(node.inputs[1]))


@lowering("Resize", since=11, before=13)
def resize_of_sizes(node: ir.Node, build: Builder) -> None:
    """Scales had to be given: with sizes, as an empty tensor, which may be computed or fed."""
    sizes = node.inputs[3] if len(node.inputs) > 3 else None
    if sizes is not None and dims(sizes) != [0]:
        node.replace_input_with(2, None)


_SCALES = 2


@lowering("Resize")
def resize(node: ir.Node, build: Builder) -> None:
    """Leave out what is empty, and give scales and sizes for all axes where only some were named."""
    for index in range(1, len(node.inputs)):
        contents = node.inputs[index]
        # Scales that are fed, without sizes: the run will fail, as natively, and not the session.
        alone = index == _SCALES and contents is not None and contents.const_value is None and len(node.inputs) == 3
        if (
            contents is not None
            and not alone
            and (dims(contents) == [0] or (contents.const_value is not None and contents.const_value.size == 0))
        ):
            node.replace_input_with(index, None)
    if attribute(node, "coordinate_transformation_mode") != "tf_crop_and_resize" and len(node.inputs) > 1:
        node.replace_input_with(1, None)
    axes = attribute(node, "axes")
    known = dims(node.inputs[0])
    if axes is None or known is None or attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
        return
    full = [a % len(known) for a in axes]
    given: dict[int, np.ndarray | None] = {
        at: array(value) for at, value in enumerate(node.inputs) if at > 0 and value is not None
    }
    if any(contents is None for contents in given.values()):
        return
    if 3 in given and not all(isinstance(known[i], int) for i in range(len(known)) if i not in full):
        return
    neutral: dict[int, list[Any]] = {1: [0.0] * len(known) + [1.0] * len(known), 2: [1.0] * len(known), 3: known}
    places = {1: [*full, *(a + len(known) for a in full)], 2: full, 3: full}
    for at, numbers in given.items():
        assert numbers is not None
        wide = np.array([d if isinstance(d, (int, float)) else 0 for d in neutral[at]]).astype(numbers.dtype)
        wide[places[at]] = numbers
        node.replace_input_with(at, build.constant(wide))
    set_attributes(node, axes=None)


@lowering("GridSample", before=20)
def grid_sample_modes(node: ir.Node, build: Builder) -> None:
    """The interpolations had other names."""
    mode = attribute(node, "mode", "bilinear")
    set_attributes(node, mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))
