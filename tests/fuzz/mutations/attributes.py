"""Mutations of nodes' attributes."""

from __future__ import annotations

import random
from typing import Any

import onnx
from onnx import AttributeProto, helper

from mutations.places import Changes, Mutation, change_list, reorder_drop_or_repeat, some_attribute, some_node

MUTATIONS: Changes[Mutation] = Changes()
_NUMBERS = (0, 1, -1, 2, -2, 3, 7, 100, 65537, 2**31 - 1, 2**31, -(2**31), 2**62, -(2**63), 2**63 - 1)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, 3e38, float("inf"), float("-inf"), float("nan"))
#: Flags: ONNX does not say what numbers but 0 and 1 mean, and onnxruntime takes some for 0 and some for 1.
_FLAGS = {"keepdims", "largest", "sorted", "select_last_index", "is_causal", "noop_with_empty_axes", "ceil_mode"}


@MUTATIONS.add
def _attributes_of_node(decide: random.Random, model: onnx.ModelProto) -> bool:
    node = some_node(decide, model)
    return node is not None and reorder_drop_or_repeat(decide, node.attribute)


@MUTATIONS.add
def _number(decide: random.Random, model: onnx.ModelProto) -> bool:
    item = some_attribute(decide, model)
    if item is None:
        return False
    if item.type == AttributeProto.INT:
        item.i = decide.choice((0, 1) if item.name in _FLAGS else _NUMBERS)
    elif item.type == AttributeProto.FLOAT:
        item.f = decide.choice(_FLOATS)
    elif item.type == AttributeProto.INTS:
        return change_list(decide, item.ints, _NUMBERS)
    elif item.type == AttributeProto.FLOATS:
        return change_list(decide, item.floats, _FLOATS)
    elif item.type == AttributeProto.STRING:
        item.s = _text(decide, item.s)
    elif item.type == AttributeProto.STRINGS:
        return change_list(decide, item.strings, (b"", b"x", b"\xff\xfe", b"relu", b"a" * 1000))
    else:
        return False
    return True


def _text(decide: random.Random, text: bytes) -> bytes:
    return decide.choice(
        [b"", b"\xff\xfe\xfd", text.upper(), text.lower(), text + b"x", b"linear", b"SAME_UPPER", b"\0"]
    )


@MUTATIONS.add
def _type_of_attribute(decide: random.Random, model: onnx.ModelProto) -> bool:
    item = some_attribute(decide, model)
    if item is None:
        return False
    if decide.random() < 0.3:
        item.type = decide.choice(range(15))
    elif decide.random() < 0.3:
        item.ref_attr_name = "outer"
    else:
        value: Any = decide.choice([1, 0.5, "text", [1, 2], [0.5], ["a", "b"]])
        item.CopyFrom(helper.make_attribute(item.name, value))
    return True


@MUTATIONS.add
def _new_attribute(decide: random.Random, model: onnx.ModelProto) -> bool:
    """An attribute that the operator has, or one that it has not."""
    node = some_node(decide, model)
    if node is None:
        return False
    try:
        known = list(onnx.defs.get_schema(node.op_type, domain=node.domain).attributes)
    except onnx.defs.SchemaError:
        known = []
    name = decide.choice([*known, *known, "axis", "bogus"])
    value: Any = decide.choice([0, 1, -1, 2, 7, 2**40, 0.5, -3.0, "text", "SAME_LOWER", [0], [1, 1], [2, 2, 2], [0.5]])
    if name in _FLAGS:
        value = decide.choice([0, 1])
    node.attribute.append(helper.make_attribute(name, value))
    return True
