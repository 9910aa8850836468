"""Cast to a type that holds all of the values, and Cast again → one Cast, or none."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import drop, made_by
from py_ort.compiler.passes.rewrite import rewrite

_WIDTHS = {
    **{kind: (8 << i, True) for i, kind in enumerate(("INT8", "INT16", "INT32", "INT64"))},
    **{kind: (8 << i, False) for i, kind in enumerate(("UINT8", "UINT16", "UINT32", "UINT64"))},
}
_FLOATS = {"FLOAT16": (11, 5), "BFLOAT16": (8, 8), "FLOAT": (24, 8), "DOUBLE": (53, 11)}  # of significand and exponent


@rewrite("Cast")
def casts(node: ir.Node) -> bool:
    """Skip the Cast before this one, if the detour through its wider type changes no value."""
    wide = node.inputs[0]
    first = made_by(wide, "Cast")
    if first is None or not _detour(first.inputs[0], first.outputs[0], node.outputs[0]):
        return False
    node.replace_input_with(0, first.inputs[0])
    drop(wide)
    return True


def _detour(source: ir.Value | None, wide: ir.Value, result: ir.Value) -> bool:
    if source is None or source.dtype is None or wide.dtype is None or result.dtype is None:
        return False
    before, between, after = source.dtype.name, wide.dtype.name, result.dtype.name
    # a number out of the result's range becomes different numbers, cast from an integer and from a float
    alike = (before in _FLOATS) == (between in _FLOATS) and after in (*_WIDTHS, *_FLOATS, "BOOL")
    return _holds(between, before) and (alike or _holds(after, before))


def _holds(wide: str, narrow: str) -> bool:
    """Return True if `wide` has every value of `narrow`."""
    if wide == narrow:
        return True
    if narrow == "BOOL":
        return wide in _WIDTHS or wide in _FLOATS
    if narrow in _FLOATS:
        return wide in _FLOATS and all(w >= n for w, n in zip(_FLOATS[wide], _FLOATS[narrow], strict=True))
    if narrow not in _WIDTHS:
        return False
    bits, signed = _WIDTHS[narrow]
    if wide in _FLOATS:
        return bits - signed <= _FLOATS[wide][0] and wide != "FLOAT16"
    if wide not in _WIDTHS:
        return False
    more, wide_signed = _WIDTHS[wide]
    return more >= bits if wide_signed == signed else wide_signed and more > bits
