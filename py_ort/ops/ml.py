"""The operators of ai.onnx.ml: features, linear and vector machines, trees. Always on the CPU."""

from __future__ import annotations

import math

import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import attribute, set_attributes
from py_ort.ir.operators import ML, Operator, lowering

_FEATURES = ("Binarizer", "FeatureVectorizer", "Imputer", "Normalizer", "Scaler")
_LABELS = ("CategoryMapper", "LabelEncoder", "OneHotEncoder")
_MACHINES = ("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor")
_TREES = ("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor")

OPERATORS = [Operator(name, ML) for name in (*_FEATURES, *_LABELS, *_MACHINES, *_TREES)]


@lowering("LabelEncoder", before=2, domain=ML)
def keys_and_values(node: ir.Node, build: Builder) -> None:
    """There was one list of classes, whose places were the numbers; the input's type said which way it goes."""
    classes = attribute(node, "classes_strings")
    value = node.inputs[0]
    if not classes:
        raise inconsistent(node, "it has no classes_strings")
    if value is not None and value.dtype == ir.DataType.STRING:
        # Of equal classes the last one counted.
        numbers = {name: number for number, name in enumerate(classes)}
        set_attributes(node, keys_strings=list(numbers), values_int64s=list(numbers.values()))
    else:
        set_attributes(node, keys_int64s=list(range(len(classes))), values_strings=list(classes))
    set_attributes(node, classes_strings=None)


_DEFAULTS = {"values_floats": ("default_float", -0.0), "values_int64s": ("default_int64", -1)}
_DEFAULT_TEXT = ("default_string", "_Unused")


@lowering("LabelEncoder", before=4, domain=ML)
def keys_that_are_none(node: ir.Node, build: Builder) -> None:
    """A NaN was equal to no other one: it becomes the default."""
    keys = attribute(node, "keys_floats") or []
    for name in ("values_floats", "values_int64s", "values_strings"):
        values = attribute(node, name)
        if values and any(map(math.isnan, keys)):
            default = attribute(node, *_DEFAULTS.get(name, _DEFAULT_TEXT))
            found = [default if math.isnan(key) else value for key, value in zip(keys, values, strict=False)]
            set_attributes(node, **{name: found})
