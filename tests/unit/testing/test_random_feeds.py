"""Random inputs: sizes that fit each other, and values for which the model has a branch."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import parse

from py_ort.compiler import NodeArg
from py_ort.compiler.load import load_model
from py_ort.exceptions import InvalidArgument
from py_ort.testing.accepted_values import accepted_values
from py_ort.testing.random_feeds import random_feeds

DECODER = [
    NodeArg("input_ids", "tensor(int64)", ["batch_size", "sequence_length"]),
    NodeArg("attention_mask", "tensor(int64)", ["batch_size", "total_sequence_length"]),
    NodeArg("past.0.key", "tensor(float)", ["batch_size", 2, "past_sequence_length", 8]),
]


def shapes(args: list[NodeArg], *more, **options) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in random_feeds(args, *more, **options).items()}


def test_a_mask_is_as_long_as_the_past_and_what_is_new():
    assert shapes(DECODER) == {"input_ids": (1, 128), "attention_mask": (1, 256), "past.0.key": (1, 2, 128, 8)}
    found = shapes(DECODER, dims={"past_sequence_length": 7, "batch_size": 3})
    assert found == {"input_ids": (3, 128), "attention_mask": (3, 135), "past.0.key": (3, 2, 7, 8)}
    assert shapes(DECODER, {"input_ids": [1, 1]})["attention_mask"] == (1, 129)
    assert shapes(DECODER, {"attention_mask": [1, 9]})["attention_mask"] == (1, 9)
    assert np.all(random_feeds(DECODER)["attention_mask"] == 1)


def test_sums_of_names():
    args = [
        DECODER[0],
        NodeArg("m", "tensor(float)", [1, "past + sequence_length", "2*past"]),
        NodeArg("p", "tensor(float)", ["past"]),
    ]
    assert shapes(args, dims={"past": 5, "sequence_length": 3}) == {
        "input_ids": (1, 3), "m": (1, 8, 10), "p": (5,)
    }  # fmt: skip
    assert shapes([NodeArg("x", "tensor(float)", ["a.b/c::d", "N-1"])], dims={"N": 4}) == {"x": (1, 3)}


def test_one_name_is_one_size():
    image = NodeArg("image", "tensor(float)", [1, 3, "H", "W"])
    rows = NodeArg("rows", "tensor(float)", ["H", 4])
    assert shapes([rows, image], None, (48, 320)) == {"rows": (48, 4), "image": (1, 3, 48, 320)}
    assert shapes([rows, image], {"rows": [5, 4]}, (48, 320))["image"] == (1, 3, 5, 320)
    assert shapes([rows, image], None, (48, 320), given={"rows": np.ones((6, 4), np.float32)})["image"][2] == 6


@pytest.mark.parametrize(
    "given, said",
    [
        ({"rows": [5]}, "does not fit"),
        ({"rows": [5, 3]}, "does not fit"),
        ({"rows": [5, 4], "more": [6]}, "H is 5 already"),
    ],
)
def test_shapes_that_do_not_fit(given, said):
    args = [NodeArg("rows", "tensor(float)", ["H", 4]), NodeArg("more", "tensor(float)", ["H"])]
    with pytest.raises(InvalidArgument, match=said):
        random_feeds(args, given)


def test_values_that_a_model_compares_an_input_with():
    """As in a speech model with its sample rate."""
    text = """g (float[N] x, int64 sr, int64[1] other, int64[N] many) => (float[N] y) {
        rate = Constant<value_int=16000>()
        same = Identity(sr)
        is = Equal(rate, same)
        a = Cast<to=1>(is)
        one = Constant<value_ints=[8000]>()
        b = Equal(other, one)
        c = Cast<to=1>(b)
        d = Equal(many, one)
        e = Cast<to=1>(d)
        f = Mul(x, a)
        h = Mul(f, c)
        y = Mul(h, e)
    }"""
    found = accepted_values(load_model(parse(text).SerializeToString()).model)
    assert found == {"sr": [16000], "other": [8000]}
    feeds = random_feeds([NodeArg("sr", "tensor(int64)", [])], values=found)
    assert feeds["sr"].shape == () and feeds["sr"] == 16000


def test_what_is_no_name_is_no_size() -> None:
    image = NodeArg("x", "tensor(float)", ["?", 3, "?", "?"])
    assert random_feeds([image], {"x": [1, 3, 48, 192]})["x"].shape == (1, 3, 48, 192)
    assert random_feeds([image], image_size=(8, 9))["x"].shape == (1, 3, 8, 9)
