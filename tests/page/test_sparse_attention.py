"""SparseAttention compared with onnxruntime, whose caches must be one buffer each, on both providers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from array_models import any_size, model_of
from contributed_cases import PROVIDERS
from native import native_session
from onnx import helper

HEADS, KV_HEADS, SIZE, BLOCK, BLOCKS = 4, 2, 16, 16, 4
CAPACITY = BLOCK * BLOCKS
ANGLES = np.arange(CAPACITY, dtype=np.float32)[:, None] / np.array([1, 3, 10, 30, 100, 300, 1000, 3000], np.float32)
LAYOUTS = np.array(
    [[[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]], [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 0, 1]]]
)
INPUTS = (
    *("query", "key", "value", "past_key", "past_value", "block_rows", "block_columns"),
    *("total", "lengths", "cos", "sin"),
)


def listed(layouts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The start of each row's columns, and the columns, padded by -1."""
    rows = np.concatenate([np.zeros((len(layouts), 1), int), layouts.sum(2).cumsum(1)], 1)
    columns = np.full((len(layouts), rows.max()), -1)
    for i, layout in enumerate(layouts):
        found = np.nonzero(layout)[1]
        columns[i, : len(found)] = found
    return rows.astype(np.int32), columns.astype(np.int32)


@dataclass(frozen=True)
class Step:
    """New rows of texts with these lengths afterwards; heads alternate between the layouts."""

    name: str
    rows: int
    lengths: tuple[int, ...]
    layouts: np.ndarray
    rotates: bool = False
    packed: bool = False
    scale: float | None = None

    def __str__(self) -> str:
        return self.name

    def feeds(self) -> dict[str, np.ndarray]:
        rng, batch = np.random.default_rng(4), len(self.lengths)
        widths = [HEADS * SIZE, KV_HEADS * SIZE, KV_HEADS * SIZE]
        shapes = [(batch, self.rows, width) for width in ([sum(widths)] if self.packed else widths)]
        found = dict(zip(INPUTS, (rng.standard_normal(shape).astype(np.float32) for shape in shapes), strict=False))
        for name in ("past_key", "past_value"):
            found[name] = rng.standard_normal((batch, KV_HEADS, CAPACITY, SIZE)).astype(np.float32)
        found["block_rows"], found["block_columns"] = listed(self.layouts)
        found["total"] = np.array([max(self.lengths)], np.int32)
        found["lengths"] = np.array(self.lengths, np.int32)
        return found | ({"cos": np.cos(ANGLES), "sin": np.sin(ANGLES)} if self.rotates else {})

    @staticmethod
    def alone(feeds: dict[str, np.ndarray], b: int) -> dict[str, np.ndarray]:
        """One text of the batch."""
        texts = ("query", "key", "value", "past_key", "past_value", "lengths")
        found = {name: x[b : b + 1] if name in texts else x for name, x in feeds.items()}
        return found | {"total": found["lengths"]}

    def model(self, feeds: dict[str, np.ndarray]) -> onnx.ModelProto:
        attributes: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, "sparse_block_size": BLOCK}
        attributes |= {"do_rotary": int(self.rotates)} | ({} if self.scale is None else {"scale": self.scale})
        names = [name if name in feeds else "" for name in INPUTS]
        outputs = ["y", "present_key", "present_value"]
        node = helper.make_node("SparseAttention", names, outputs, domain="com.microsoft", **attributes)
        return model_of([node], feeds, outputs, sizes=any_size(feeds))


def native(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """With present caches in the memory of the past ones."""
    session = native_session(model)
    binding = session.io_binding()
    memory = {name: x.copy() for name, x in feeds.items()}
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(x) for name, x in memory.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y")
    for kind in ("key", "value"):
        binding.bind_ortvalue_output(f"present_{kind}", values[f"past_{kind}"])
    session.run_with_iobinding(binding)
    return [value.numpy().copy() for value in binding.get_outputs()]


DENSE = np.tril(np.ones((1, BLOCKS, BLOCKS), int))
STEPS = [
    Step("a prompt", 40, (40, 40), LAYOUTS),
    Step("a prompt, rotated", 64, (64,), LAYOUTS, rotates=True),
    Step("a prompt of one layout, packed", 33, (33,), LAYOUTS[:1], packed=True),
    Step("a token", 1, (60, 35), LAYOUTS),
    Step("a token, rotated and packed", 1, (50, 17), LAYOUTS, rotates=True, packed=True),
    Step("some tokens, scaled", 3, (51, 34), LAYOUTS, scale=0.3),
    Step("a layout with all blocks", 20, (20,), DENSE),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_equals_native(step, provider, new_session):
    """Each text as it is alone: onnxruntime's sums are wrong for texts that are shorter than others of the batch.

    Rows of caches after a text are undefined: native leaves the old ones.
    """
    feeds = step.feeds()
    model = step.model(feeds)
    session = new_session(model, providers=PROVIDERS[provider])
    y, *caches = session.run(None, feeds)
    for b, length in enumerate(step.lengths):
        wanted, *wanted_caches = native(model, step.alone(feeds, b))
        np.testing.assert_allclose(y[b : b + 1], wanted, rtol=2e-5, atol=2e-5)
        for mine, cache in zip(caches, wanted_caches, strict=True):
            assert (mine.dtype, mine.shape[1:]) == (cache.dtype, cache.shape[1:])
            np.testing.assert_allclose(mine[b, :, :length], cache[0, :, :length], rtol=2e-5, atol=2e-5)
