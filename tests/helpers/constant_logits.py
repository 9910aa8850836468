"""Decoders from ONNX's text form, whose logits are the same for any input."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import onnx
from text_form import parse

#: Logits of which some are equal.
SCORES = np.array([2.0, 0.5, 1.0, -1.0, 0.0, 1.5, -30.0, 0.5, -100.0, 1.0, -2.0, 1.7], np.float32)


@cache
def constant_logits(*scores: float) -> bytes:
    """A decoder with these logits at each place, and a cache that it does not use."""
    text = f"""g (int64[batch,rows] input_ids, float[batch,1,past,1] past_key_values_0_key)
        => (float[batch,rows,{len(scores)}] logits, float[batch,1,all,1] present_0_key) {{
        rows = Shape(input_ids)  wide = Concat<axis=0>(rows, size)  logits = Expand(scores, wide)
        shape = Concat<axis=0>(rows, one, one)  new = ConstantOfShape(shape)
        turned = Transpose<perm=[0,2,1,3]>(new)  present_0_key = Concat<axis=2>(past_key_values_0_key, turned) }}"""
    constants = {"scores": np.array(scores, np.float32), "size": np.array([len(scores)]), "one": np.array([1])}
    return dotted(parse(text, constants, opset=17))


def dotted(model: onnx.ModelProto) -> bytes:
    """Write dots into the names of caches, as exporters do: the text form has none."""
    return re.sub(rb"(past_key_values|present)_(\d)_(key|value)", rb"\1.\2.\3", model.SerializeToString())
