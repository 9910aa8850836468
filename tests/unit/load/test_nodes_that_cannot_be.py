"""Invalid nodes that ONNX's checker accepts: refused with a reason, before compilation."""

from __future__ import annotations

import pytest
from graphs import compiled, parse

from py_ort.exceptions import InvalidGraph

#: id: (inputs, nodes). Bodies with too few or too many inputs or outputs, and axes that no tensor has.
CASES = {
    "Loop whose body reads nothing": (
        "int64 n, bool c, float[2] x",
        "y = Loop(n, c, x) <body = b () => (bool d, float[2] z) { d = Identity(c)  z = Neg(x) }>",
    ),
    "Loop whose body has no state": (
        "int64 n, bool c, float[2] x",
        "y = Loop(n, c, x) <body = b (int64 i, bool d, float[2] s) => (bool e) { e = Identity(d) }>",
    ),
    "Scan whose body reads too much": (
        "float[3,2] x",
        "y = Scan<num_scan_inputs=1, body = b (float[2] e, float[2] f) => (float[2] z) { z = Neg(e) }>(x)",
    ),
    "Scan of more than it has": (
        "float[3,2] x",
        "y = Scan<num_scan_inputs=2, body = b (float[2] e) => (float[2] z) { z = Neg(e) }>(x)",
    ),
    "Scan along an axis beyond": (
        "float[3,2] x",
        "y = Scan<num_scan_inputs=1, scan_input_axes=[7], body = b (float[2] e) => (float[2] z) { z = Neg(e) }>(x)",
    ),
    "Scan that stacks beyond": (
        "float[3,2] x",
        "y = Scan<num_scan_inputs=1, scan_output_axes=[7], body = b (float[2] e) => (float[2] z) { z = Neg(e) }>(x)",
    ),
    "SequenceMap of more than is made": (
        "seq(float[2]) x",
        "z, w = SequenceMap(x) <body = b (float[2] e) => (float[2] f) { f = Neg(e) }>  y = SequenceAt(z, w)",
    ),
    "Sum with a hole": ("float[2] x", 'y = Sum(x, "")'),
    "Conv with one stride too many": ("float[1,1,5,5] x, float[1,1,3,3] w", "y = Conv<strides=[1,1,1]>(x, w)"),
    "Conv with a stride of 0": (
        "float[1,1,5,5] x, float[1,1,3,3] w",
        'y = Conv<strides=[0,1], auto_pad="SAME_UPPER">(x, w)',
    ),
    "ConvTranspose with too few dilations": (
        "float[1,1,5,5] x, float[1,1,3,3] w",
        'y = ConvTranspose<dilations=[1], auto_pad="SAME_UPPER">(x, w)',
    ),
    "LpPool of negative size": ("float[1,1,5,5] x", 'y = LpPool<kernel_shape=[-3,2], auto_pad="SAME_UPPER">(x)'),
    "MaxPool of endless size": (
        "float[1,1,5,5] x",
        'y = MaxPool<kernel_shape=[4611686018427387904,2], auto_pad="SAME_UPPER">(x)',
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("level", ["disabled", "all"])
def test_nodes_that_cannot_be(case: str, level: str) -> None:
    inputs, nodes = CASES[case]
    model = parse(f"g ({inputs}) => (float[a] y) {{ {nodes} }}")
    with pytest.raises(InvalidGraph):
        compiled(model, level=level)


def test_rms_normalization_of_a_number() -> None:
    model = parse("g (float x, float[1] s) => (float y) { y = RMSNormalization<axis=0>(x, s) }", opset=23)
    with pytest.raises(InvalidGraph):
        compiled(model)


def test_a_list_reshaped_to_a_number() -> None:
    model = parse(
        "g (float[2] x) => (int64 y) { s = Constant<value_ints=[-1, 2, 3]>()  e = Constant<value_ints=[0]>()"
        "  z = ConstantOfShape(e)  t = Cast<to=7>(z)  y = Reshape(s, t) }"
    )
    compiled(model)  # fails in the run


def test_slice_of_endless_starts() -> None:
    model = parse("g (float[2] x, int64[4611686018427387904] s) => (float[a] y) { y = Slice(x, s, s) }")
    compiled(model)  # cannot be fed
