"""Gathers and scatters."""

import numpy as np
from case import Case, i64, r


def _indices(shape: tuple[int, ...], dim: int) -> np.ndarray:
    return np.random.default_rng(3).integers(-dim, dim, shape)


def _permutations(shape: tuple[int, ...], axis: int) -> np.ndarray:
    """Indices without repetitions along the axis."""
    return np.argsort(np.random.default_rng(3).random(shape), axis=axis)


GATHERS = [
    *(
        Case("Gather", [r(*shape), indices], {"axis": axis}, tolerance="exact")
        for shape, indices, axis in [
            ((5, 4), i64(0, -1, 2), 0),
            ((5, 3), i64(0, -1, 2), 0),
            ((2, 3, 4), np.array([[1, -1], [0, 2]], np.int32), 1),
            ((3, 4), np.array(1, np.int64), 0),
            ((3, 8), i64(1, 2, 0), -1),
            ((7,), i64(3, 3), 0),
            ((3, 4), i64(), 0),
        ]
    ),
    *(
        Case("GatherElements", [r(*shape), _indices(indices, shape[axis])], {"axis": axis}, tolerance="exact")
        for shape, indices, axis in [((3, 4), (5, 4), 0), ((3, 4), (3, 6), 1), ((2, 3, 5), (2, 5, 5), -2)]
    ),
    Case("GatherND", [r(2, 3, 4), np.array([[0, 1], [1, -1]])]),
    Case("GatherND", [r(2, 3, 4), np.array([[0], [2]])], {"batch_dims": 1}),
    Case("GatherND", [r(2, 3, 4), np.array([[[0, 1, 2]], [[1, 2, 3]]])]),
    Case("GatherND", [r(2, 3, 4), np.array([[1]])]),
]


def _scatters(reduction: str, dtype: str) -> list[Case]:
    alone = reduction == "none"
    more = 0 if alone else 2
    numbers = {"dtype": dtype, "low": -9, "high": 9}
    cases = []
    for shape, axis in [((3, 4), 0), ((3, 4), 1), ((2, 5, 3), -2)]:
        updates = tuple(dim + more if k == axis % len(shape) else dim for k, dim in enumerate(shape))
        indices = _permutations(shape, axis) if alone else _indices(updates, shape[axis])
        inputs = [r(*shape, **numbers), indices, r(*updates, **numbers)]
        cases.append(Case("ScatterElements", inputs, {"axis": axis, "reduction": reduction}, expected="onnx"))
    for tuples in ([[0], [2]], [[0, 1], [2, -1]]):
        # With a reduction, two updates have the same place.
        indices = np.array(tuples if alone else [*tuples, tuples[0]])
        updates = (len(indices), 5, 3)[: 4 - indices.shape[1]] if indices.shape[1] == 1 else (len(indices), 3)
        inputs = [r(4, 5, 3, **numbers), indices, r(*updates, **numbers)]
        cases.append(Case("ScatterND", inputs, {"reduction": reduction}, expected="onnx"))
    return cases


def _cached(cache: np.ndarray, update: np.ndarray, places: np.ndarray) -> np.ndarray:
    result = cache.copy()
    for batch, place in enumerate(places):
        for row in range(update.shape[2]):
            result[batch, :, (place + row) % cache.shape[2]] = update[batch, :, row]
    return result


CASES = [
    Case("TensorScatter", [r(2, 3, 6, 4), r(2, 3, 2, 4), i64(1, 3)], expected=_cached, tolerance="exact"),
    Case("TensorScatter", [r(2, 3, 6, 5), r(2, 3, 2, 5), i64(5, -3)], {"mode": "circular"}, expected=_cached),
    *GATHERS,
    *(
        case
        for reduction in ("none", "add", "mul", "min", "max")
        for dtype in ("float32", "int64")
        for case in _scatters(reduction, dtype)
    ),
]
