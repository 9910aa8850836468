"""Cases of folds: shapes, elements and places, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

Shape = tuple[int, ...]
I64_MIN, I64_MAX = -(2**63), 2**63 - 1


@dataclass
class Case:
    """One node: its inputs (None: omitted), attributes, and the number of its outputs."""

    inputs: list[np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1


class Draw:
    """The parts of a case, drawn by one random generator."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def chance(self, likely: float = 0.5) -> bool:
        return self.rng.random() < likely

    def pick(self, *items: Any) -> Any:
        return items[self.rng.integers(len(items))]

    def between(self, low: int, high: int) -> int:
        """Return a number from `low` to `high`."""
        return int(self.rng.integers(low, high + 1))

    def shape(self, low: int = 0, high: int = 4, *, empty: bool = True) -> Shape:
        rank = self.between(low, high)
        return tuple(0 if empty and self.chance(0.06) else self.between(1, 4) for _ in range(rank))

    def like(self, shape: Shape) -> Shape:
        """Return a shape that broadcasts with another one."""
        return tuple(1 if self.chance(0.3) else d for d in shape)[self.between(0, len(shape)) if self.chance() else 0 :]

    def values(self, dtype: ir.DataType, shape: Shape, *, tame: bool = False) -> np.ndarray:
        """Return elements of all sizes, with extreme ones; `tame`: so that sums and squares stay in range."""
        if dtype == ir.DataType.STRING:
            return np.array(
                [self.pick("", "a", "äö", "a longer text") for _ in range(int(np.prod(shape)))], object
            ).reshape(shape)
        to = dtype.numpy()
        if dtype == ir.DataType.BOOL:
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.is_floating_point():
            found = (self.rng.standard_normal(shape) * self.pick(1, 10)).astype(to)
            limits = ml_dtypes.finfo(to)
            extremes = [0, -0.0, np.inf, -np.inf, np.nan, limits.max, limits.min, limits.tiny, 1, -1, 0.5, 2.5]
            return found if tame else self._sprinkled(found, extremes)
        limits = ml_dtypes.iinfo(to)
        if tame or self.chance():
            return self.rng.integers(max(-9, int(limits.min)), min(9, int(limits.max)), shape, endpoint=True).astype(to)
        low, high = int(limits.min), int(limits.max)
        found = self.rng.integers(low, high, shape, np.uint64 if high > I64_MAX else np.int64, endpoint=True)
        return self._sprinkled(found.astype(to), [low, high, 0, 1, *([-1] if low < 0 else [])])

    def _sprinkled(self, found: np.ndarray, extremes: list[Any]) -> np.ndarray:
        flat = np.array(found).reshape(-1)
        for _ in range(self.pick(0, 0, 2, len(flat) // 2) if flat.size else 0):
            flat[self.rng.integers(flat.size)] = self.pick(*extremes)
        return flat.reshape(found.shape)

    def axis(self, rank: int) -> int:
        return self.between(-rank, rank - 1)

    def axes(self, rank: int) -> list[int]:
        chosen = self.rng.permutation(rank)[: self.between(1, rank)] if rank else []
        return [int(a) - (rank if self.chance() else 0) for a in chosen]

    def bound(self, size: int) -> int:
        return self.pick(self.between(-size - 2, size + 2), self.between(-size - 2, size + 2), I64_MIN, I64_MAX, 2**31)
