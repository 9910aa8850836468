"""Numbers for the dimensions that a model leaves open, such that its inputs fit each other."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import InvalidArgument

_SEQUENCE = re.compile(r"seq|len|token|time", re.IGNORECASE)
_PAST = re.compile(r"past|cache", re.IGNORECASE)
_MASK = re.compile(r"mask", re.IGNORECASE)
_LENGTH = 128
_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
}


class RandomSizes:
    """The sizes of inputs.

    A dimension of one name has one size. A name that is a sum or product of others ("past_sequence_length + 1") has
    theirs; a mask over a past and what is new is as long as both together. What else is open is 128 if its name
    speaks of a sequence, `image_size` if it is one of the last two of four, else 1.

    Args:
        inputs: All inputs of the model.
        shapes: The known shapes, by input name; they fix dimensions of the same names in other inputs, too.
        dims: Numbers for names of dimensions.
        image_size: Height and width of images.

    Raises:
        InvalidArgument: A shape does not fit its input, or two say different things of one name.
    """

    def __init__(
        self,
        inputs: Sequence[NodeArg],
        shapes: Mapping[str, Sequence[int]] | None = None,
        dims: Mapping[str, int] | None = None,
        image_size: tuple[int, int] = (1, 1),
    ) -> None:
        self._shapes, self._image_size = shapes or {}, image_size
        self._sizes = dict(dims or {})
        for arg in inputs:
            self._learn(arg)
        guesses: dict[str, int] = {}
        for arg, axis, name in _named(inputs):
            for part in _names(name):
                guess = self._guess(arg, axis, part)
                guesses[part] = max(guesses.get(part, 0), guess)
        self._sizes = {**guesses, **self._masks(inputs, {**guesses, **self._sizes}), **self._sizes}

    def of(self, arg: NodeArg) -> list[int]:
        """Return the shape of an input whose rank is known."""
        given = self._shapes.get(arg.name)
        return list(given) if given is not None else [self._size(arg, axis) for axis in range(len(arg.shape))]

    def _learn(self, arg: NodeArg) -> None:
        shape = self._shapes.get(arg.name)
        if shape is None or arg.dims is None:
            return
        declared = ", ".join("?" if d is None else str(d) for d in arg.dims)
        if len(shape) != len(arg.dims):
            raise InvalidArgument(f"input {arg.name!r} has the shape [{declared}], which {list(shape)} does not fit")
        for dim, size in zip(arg.dims, shape, strict=True):
            known = dim if isinstance(dim, int) else self._sizes.setdefault(dim, size) if _is_name(dim) else size
            if known != size:
                why = f": {dim} is {known} already" if isinstance(dim, str) else ""
                raise InvalidArgument(
                    f"input {arg.name!r} has the shape [{declared}], which {list(shape)} does not fit{why}"
                )

    def _guess(self, arg: NodeArg, axis: int, name: str) -> int:
        if _SEQUENCE.search(name):
            return _LENGTH
        return self._image_size[axis - 2] if len(arg.shape) == 4 and axis >= 2 else 1

    def _masks(self, inputs: Sequence[NodeArg], sizes: Mapping[str, int]) -> dict[str, int]:
        """Return the lengths of masks, in models with inputs for the past and for new positions."""
        users: dict[str, list[NodeArg]] = {}
        for arg, _, name in _named(inputs):
            users.setdefault(name, []).append(arg)
        lengths = [name for name in users if _SEQUENCE.search(name)]
        masks = [name for name in lengths if all(_MASK.search(arg.name) for arg in users[name])]
        pasts = [name for name in lengths if all(_PAST.search(arg.name) for arg in users[name])]
        new = [name for name in lengths if name not in masks and name not in pasts]
        if len(pasts) != 1 or len(new) != 1:
            return {}
        return {name: sizes[pasts[0]] + sizes[new[0]] for name in masks if len(_names(name)) == 1}

    def _size(self, arg: NodeArg, axis: int) -> int:
        dim = arg.shape[axis]
        if isinstance(dim, int):
            return dim
        if not _is_name(dim):
            return self._guess(arg, axis, "")
        if dim in self._sizes:
            return self._sizes[dim]
        formula = _formula(dim)
        assert formula is not None, dim
        return max(_value(formula, self._sizes), 0)


def _named(inputs: Sequence[NodeArg]) -> Iterator[tuple[NodeArg, int, str]]:
    for arg in inputs:
        for axis, dim in enumerate(arg.shape):
            if isinstance(dim, str) and _is_name(dim):
                yield arg, axis, dim


def _is_name(dim: str | None) -> TypeGuard[str]:
    """Return True if the text is a name of a size: PaddlePaddle's exporter calls each open one "?"."""
    return dim is not None and any(letter.isalnum() for letter in dim)


def _names(dim: str) -> list[str]:
    """The names that a dimension is made of: itself, as a rule."""
    formula = _formula(dim)
    return [dim] if formula is None else [node.id for node in ast.walk(formula) if isinstance(node, ast.Name)]


def _formula(dim: str) -> ast.expr | None:
    """A dimension's name as an expression of others, None if it is just a name."""
    try:
        found = ast.parse(dim, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, ast.BinOp) and all(map(_is_known, ast.walk(found))) else None


def _is_known(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return type(node.op) in _OPERATIONS
    if isinstance(node, ast.Constant):
        return type(node.value) is int and abs(node.value) < 1 << 31
    return isinstance(node, (ast.Name, ast.expr_context, ast.operator))


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, sizes), _value(node.right, sizes)
        return int(_OPERATIONS[type(node.op)](left, right)) if right or isinstance(node.op, ast.Add) else left
    return sizes[node.id] if isinstance(node, ast.Name) else int(node.value)  # type: ignore[attr-defined]
