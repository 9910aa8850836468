"""Convolutions whose images and weights change their sizes from run to run, or have more than three spatial axes."""

from __future__ import annotations

from typing import Any

import pytest
from array_models import any_size, assert_as_native, model_of, random_floats
from contributed_cases import PROVIDERS
from onnx import helper

#: Sizes of X and of the weights, in the order of runs: one of them changes, or both do, and return.
_RUNS = (
    ((1, 4, 9, 8), (6, 4, 3, 3)),
    ((2, 4, 5, 11), (6, 4, 3, 3)),
    ((2, 4, 5, 11), (8, 4, 1, 5)),
    ((1, 3, 7, 7), (5, 3, 2, 2)),
    ((1, 4, 9, 8), (6, 4, 3, 3)),
)


def test_each_run_goes_by_its_own_sizes(new_session):
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 0, 1, 2], strides=[1, 2])
    runs = [random_floats(seed, x=x, w=w) for seed, (x, w) in enumerate(_RUNS)]
    model = model_of([node], runs[0], ["y"], sizes=any_size(runs[0]))
    session = new_session(model, providers=["wasm"])
    assert_as_native(session, model, *runs, rtol=1e-4, atol=1e-4)


_WINDOW: dict[str, Any] = {"group": 2, "strides": [2, 1, 2, 1], "pads": [1, 0, 1, 0, 1, 1, 0, 0]}
_X, _W = (2, 4, 5, 4, 6, 5), (4, 2, 3, 2, 3, 2)
#: Over four spatial axes, and five: the operator, attributes, sizes of X and of the weights.
_MANY_AXES: dict[str, tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...]]] = {
    "window": ("Conv", {**_WINDOW, "dilations": [1, 2, 1, 1]}, _X, _W),
    "same": ("Conv", {"auto_pad": "SAME_UPPER", "strides": [2, 1, 2, 1]}, _X, (3, 4, 3, 2, 3, 2)),
    "five axes": ("Conv", {}, (1, 2, 4, 3, 3, 3, 3), (3, 2, 2, 2, 2, 2, 2)),
    "transposed": ("ConvTranspose", {**_WINDOW, "output_padding": [1, 0, 0, 0]}, (2, 4, 3, 2, 3, 2), _W),
    "transposed, sizes": ("ConvTranspose", {"strides": [2, 1, 2, 1], "output_shape": [6, 3, 7, 4]}, _X, _W),
    "transposed, same": ("ConvTranspose", {"auto_pad": "SAME_LOWER", "strides": [2, 1, 2, 1]}, _X, _W),
}


@pytest.mark.parametrize("known", [True, False], ids=["", "free"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("op", "attributes", "x", "w"), _MANY_AXES.values(), ids=_MANY_AXES)
def test_many_axes(new_session, op, attributes, x, w, provider, known):
    channels = w[0] if op == "Conv" else w[1] * attributes.get("group", 1)
    held, feeds = random_floats(2, w=w, b=(channels,)), random_floats(3, x=x)
    node = helper.make_node(op, ["x", *held], ["y"], **attributes)
    model = model_of([node], feeds, ["y"], held, sizes=None if known else any_size(feeds))
    session = new_session(model, providers=[provider])
    assert_as_native(session, model, feeds, rtol=1e-4, atol=1e-4)
