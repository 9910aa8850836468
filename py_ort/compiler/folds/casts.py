"""Cast, where there is one answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds.declaration import BOOL, NUMBERS, Arrays, fold, is_float
from py_ort.ir.graph import attribute

_TO = frozenset((*NUMBERS, *BOOL))


@fold("Cast", dtypes=(*NUMBERS, *BOOL))
def _cast(node: ir.Node, inputs: Arrays) -> Any:
    """Integers wrap; a float that an integer's type does not hold is the kernel's."""
    x, to = inputs[0], ir.DataType(attribute(node, "to"))
    if to not in _TO:
        return None
    target = to.numpy()
    if is_float(x) and target.kind in "iu":
        limits = np.iinfo(target)
        whole = np.trunc(x.astype(np.float64))
        # The largest 64-bit integers are no floats: the next one up is one too many.
        if not np.all((whole >= float(limits.min)) & (whole < float(limits.max) + (target.itemsize < 8))):
            return None
        return whole.astype(target)
    if to in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16) and x.dtype != target:
        return x.astype(np.float32).astype(target)  # as kernels do, in two steps
    return x.astype(target)
