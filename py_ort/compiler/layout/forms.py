"""The forms of a value: tensors with the value's elements and permuted axes.

A permutation `perm` names, for each axis of the form, the axis of the value it is: form = Transpose(value, perm).
Transposes are lazy: a node that can work on a permuted form gives a permuted form out, and only who cannot asks for the
plain one, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, dims, origins, rank, set_origins, tensor_of
from py_ort.ir.infer import infer_node

Perm = tuple[int, ...]


def identity(count: int) -> Perm:
    """The permutation that changes nothing."""
    return tuple(range(count))


def inverse(perm: Sequence[int]) -> Perm:
    """The permutation that undoes `perm`: for each axis of the value, where the form has it."""
    found = [0] * len(perm)
    for at, axis in enumerate(perm):
        found[axis] = at
    return tuple(found)


def channels_last(count: int) -> Perm:
    """N, C, spatial… → N, spatial…, C."""
    return (0, *range(2, count), 1)


def same_memory(perm: Sequence[int], known: Sequence[Any] | None) -> bool:
    """Return True if the form has the value's bytes: only axes of size 1 change places."""
    if known is None:
        return False
    moved = [axis for axis in perm if not (isinstance(known[axis], int) and known[axis] == 1)]
    return moved == sorted(moved)


def without_axes(perm: Sequence[int], gone: Sequence[int]) -> Perm:
    """The permutation that is left when axes of the value disappear."""
    left = [axis for axis in range(len(perm)) if axis not in gone]
    return tuple(left.index(axis) for axis in perm if axis not in gone)


class Forms:
    """The forms of all values of one graph, while it is walked in order."""

    def __init__(self, graph: ir.Graph) -> None:
        """Start with every value plain."""
        self.graph = graph
        self.changed = 0
        self._forms: dict[ir.Value, dict[Perm, ir.Value]] = {}
        self._at: ir.Node | None = None
        self._tail: list[ir.Node] = []

    def enter(self, node: ir.Node) -> None:
        """New nodes go in front of `node` from now on."""
        self._at = node

    def available(self, value: ir.Value) -> dict[Perm, ir.Value]:
        """Return the existing forms; of a constant, the plain one."""
        found = self._forms.get(value)
        if found is None:
            count = rank(value)
            found = self._forms[value] = {} if count is None else {identity(count): value}
        return found

    def register(self, value: ir.Value, perm: Perm, form: ir.Value, *, only: bool = True) -> None:
        """Say that `form` is `value` permuted; with `only`, the plain value is not made any more."""
        if only:
            self._forms[value] = {perm: form}
        else:
            self.available(value).setdefault(perm, form)

    def is_plain(self, value: ir.Value | None) -> bool:
        """Return True if the value exists in its original order."""
        if value is None or value not in self._forms:
            return True
        there = self._forms[value]
        return not there or identity(len(next(iter(there)))) in there

    def plain(self, value: ir.Value | None) -> ir.Value | None:
        """Return the value itself, transposed back if need be."""
        there = None if value is None else self._forms.get(value)
        return self.form(value, identity(len(next(iter(there))))) if value is not None and there else value

    def form(self, value: ir.Value, perm: Perm) -> ir.Value:
        """Return the value's form under this permutation; make it if it does not exist."""
        there = self.available(value)
        if perm in there:
            return there[perm]
        contents = value.const_value
        made = self._permuted_constant(value, perm) if contents is not None else self._transposed(value, perm, there)
        there[perm] = made
        return made

    def cost(self, value: ir.Value, perm: Perm) -> float:
        """Return the cost of this form: 0 if it exists or no element moves, 1 for a transpose."""
        if value.const_value is not None or perm in self.available(value):
            return 0.0
        known = dims(value)
        if any(same_memory(_relative(perm, source), _permuted(known, source)) for source in self.available(value)):
            return 0.05
        return 1.0

    def emit(
        self,
        node: ir.Node,
        inputs: Sequence[ir.Value | None],
        perm: Perm | None = None,
        perms: Sequence[Perm] | None = None,
        *,
        op_type: str | None = None,
        domain: str | None = None,
        **changes: Any,
    ) -> list[ir.Value]:
        """Copy `node` on other inputs, with attributes changed; its outputs are `node`'s under `perm` (or `perms`)."""
        made = self.insert(
            op_type or node.op_type,
            inputs,
            domain=node.domain if domain is None else domain,
            outputs=len(node.outputs),
            origin=origins(node),
            name=node.name,
            attributes={**node.attributes, **{k: v for k, v in changes.items() if v is not None}},
            without=[k for k, v in changes.items() if v is None],
        )
        for i, (old, new) in enumerate(zip(node.outputs, made, strict=True)):
            chosen = perms[i] if perms is not None else perm
            if chosen is None:
                continue
            if new.type is None:
                new.type = old.type
            if old.shape is not None and new.shape is None:
                new.shape = ir.Shape([old.shape[a] for a in chosen])
            self.register(old, chosen, new)
        self.changed += 1
        return made

    def insert(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | Sequence[int] | np.ndarray | None],
        *,
        domain: str = "",
        outputs: int = 1,
        origin: Sequence[str] = (),
        name: str | None = None,
        attributes: dict[str, Any] | None = None,
        without: Sequence[str] = (),
    ) -> list[ir.Value]:
        """Add a node in front of the one being looked at, or, after the last one, at the end."""
        if self._at is not None:
            build = Builder(self._at, origin=origin or None)
            kept = {k: v for k, v in (attributes or {}).items() if k not in without}
            made = build.op(op_type, *inputs, domain=domain, outputs=outputs, **kept)
            result = [made] if outputs == 1 else list(made)
            if name is not None:
                result[0].producer().name = name
            return result
        values = [v if v is None or isinstance(v, ir.Value) else self.constant(np.asarray(v)) for v in inputs]
        attrs = [
            item if isinstance(item, ir.Attr) else ir.convenience.convert_attribute(k, item)
            for k, item in (attributes or {}).items()
        ]
        node = ir.Node(domain, op_type, values, attrs, num_outputs=outputs)
        set_origins(node, tuple(origin))
        self.graph.append(node)
        infer_node(node)
        return list(node.outputs)

    def constant(self, contents: np.ndarray, name: str | None = None) -> ir.Value:
        """Add a constant."""
        from py_ort.ir.graph import add_constant

        return add_constant(self.graph, tensor_of(contents), name or "layout")

    def _permuted_constant(self, value: ir.Value, perm: Perm) -> ir.Value:
        contents = array(value)
        assert contents is not None
        return self.constant(np.ascontiguousarray(contents.transpose(perm)), value.name)

    def _transposed(self, value: ir.Value, perm: Perm, there: dict[Perm, ir.Value]) -> ir.Value:
        known = dims(value)
        for source, form in there.items():
            if same_memory(_relative(perm, source), _permuted(known, source)):
                target = reshape_target([known[a] for a in perm], _permuted(known, source)) if known else None
                if target is not None:
                    return self._finish(value, perm, self.insert("Reshape", [form, target], origin=_origin(value)))
                return self._finish(value, perm, self._move_ones(value, perm, source, form))
        plain = identity(len(perm))
        source = plain if plain in there else next(iter(there))
        made = self.insert(
            "Transpose", [there[source]], origin=_origin(value), attributes={"perm": list(_relative(perm, source))}
        )
        return self._finish(value, perm, made)

    def _move_ones(self, value: ir.Value, perm: Perm, source: Perm, form: ir.Value) -> list[ir.Value]:
        """Take axes of size 1 out and put them in elsewhere: for shapes that one Reshape cannot name."""
        known = dims(value) or []
        ones = [axis for axis in perm if isinstance(known[axis], int) and known[axis] == 1]
        flat = self.insert("Squeeze", [form, sorted(source.index(a) for a in ones)], origin=_origin(value))
        return self.insert("Unsqueeze", [flat[0], sorted(perm.index(a) for a in ones)], origin=_origin(value))

    def _finish(self, value: ir.Value, perm: Perm, made: list[ir.Value]) -> ir.Value:
        if value.shape is not None:
            made[0].shape = ir.Shape([value.shape[a] for a in perm])
        if made[0].type is None:
            made[0].type = value.type
        return made[0]


def reshape_target(wanted: Sequence[Any], source: Sequence[Any] | None) -> list[int] | None:
    """Write a Reshape's constant shape: numbers, 0 where the source has the same at that place, one -1; or None."""
    target: list[int] = []
    for i, dim in enumerate(wanted):
        if isinstance(dim, int):
            if dim == 0:
                return None
            target.append(dim)
        elif source is not None and i < len(source) and dim.value is not None and source[i] == dim:
            target.append(0)
        else:
            target.append(-1)
    return target if target.count(-1) <= 1 else None


def _relative(perm: Perm, source: Perm) -> Perm:
    """The permutation that takes the form `source` to the form `perm`."""
    return tuple(source.index(axis) for axis in perm)


def _permuted(known: Sequence[Any] | None, perm: Perm) -> list[Any] | None:
    return None if known is None else [known[a] for a in perm]


def _origin(value: ir.Value) -> tuple[str, ...]:
    producer = value.producer()
    return origins(producer) if producer is not None else (value.name or "input",)
