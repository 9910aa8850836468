"""Operators that read and write elements by index."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds.declaration import ANY, BOOL, NUMBERS, Arrays, fold
from py_ort.ir.graph import attribute


def _places(indices: np.ndarray, size: int) -> np.ndarray | None:
    """Return indices counted from the front; None if one is outside, of which the kernel complains."""
    if np.any(indices < -size) or np.any(indices >= size):
        return None
    places = indices.astype(np.int64)
    return np.where(places < 0, places + size, places)


@fold("Gather", dtypes=ANY)
def _gathered(node: ir.Node, inputs: Arrays) -> Any:
    data, axis = inputs[0], attribute(node, "axis", 0)
    places = _places(inputs[1], data.shape[axis])
    return None if places is None else np.take(data, places, axis=axis)


@fold("GatherElements", dtypes=(*NUMBERS, *BOOL))
def _gathered_elements(node: ir.Node, inputs: Arrays) -> Any:
    data, axis = inputs[0], attribute(node, "axis", 0)
    places = _places(inputs[1], data.shape[axis])
    grid = _grid(data, places, axis)
    return None if grid is None else data[grid]


@fold("ScatterElements", dtypes=(*NUMBERS, *BOOL))
def _scattered_elements(node: ir.Node, inputs: Arrays) -> Any:
    data, axis = inputs[0].copy(), attribute(node, "axis", 0)
    places = _places(inputs[1], data.shape[axis])
    grid = _grid(data, places, axis)
    if grid is None or attribute(node, "reduction", "none") != "none" or inputs[2].shape != inputs[1].shape:
        return None
    return _put(data, grid, inputs[2])


def _grid(data: np.ndarray, places: np.ndarray | None, axis: int) -> tuple[np.ndarray, ...] | None:
    """Return the index of each element that `places` names along `axis`."""
    if places is None or places.ndim != data.ndim:
        return None
    axis %= data.ndim
    if any(a > b for i, (a, b) in enumerate(zip(places.shape, data.shape, strict=True)) if i != axis):
        return None
    grid: list[np.ndarray] = [*np.indices(places.shape)]
    grid[axis] = places
    return tuple(grid)


def _put(data: np.ndarray, grid: tuple[np.ndarray, ...], updates: np.ndarray) -> np.ndarray | None:
    """Write elements or rows in place; None if two have the same place, which is left to the kernel."""
    flat = np.ravel_multi_index(grid, data.shape[: len(grid)]).reshape(-1)
    if len(np.unique(flat)) != len(flat):
        return None
    data[grid] = updates
    return data


@fold("GatherND", dtypes=(*NUMBERS, *BOOL))
def _gathered_points(node: ir.Node, inputs: Arrays) -> Any:
    data, indices = inputs
    places = None if attribute(node, "batch_dims", 0) else _points(data, indices)
    return None if places is None else data[places]


@fold("ScatterND", dtypes=(*NUMBERS, *BOOL))
def _scattered_points(node: ir.Node, inputs: Arrays) -> Any:
    data, indices, updates = inputs
    places = _points(data, indices) if attribute(node, "reduction", "none") == "none" else None
    if places is None or updates.shape != (*indices.shape[:-1], *data.shape[indices.shape[-1] :]):
        return None
    return _put(data.copy(), places, updates)


def _points(data: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Return the indices of points, one array for each axis that they name."""
    if indices.ndim < 1 or not 1 <= indices.shape[-1] <= data.ndim:
        return None
    found = [_places(indices[..., axis], data.shape[axis]) for axis in range(indices.shape[-1])]
    return None if any(each is None for each in found) else tuple(found)  # type: ignore[arg-type]


@fold("NonZero", dtypes=(*NUMBERS, *BOOL))
def _not_zero(node: ir.Node, inputs: Arrays) -> Any:
    return None if inputs[0].ndim == 0 else np.array(np.nonzero(inputs[0]), np.int64)
