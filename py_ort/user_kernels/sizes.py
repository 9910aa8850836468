"""The language of sizes: shapes, uniforms and numbers of workgroups as expressions of input shapes and attributes.

A text is parsed once, here, into a tree of lists, which goes to the page as JSON. Python evaluates it with symbols, to
infer shapes; the page (`web/src/providers/webgpu/user_kernels/sizes.ts`) evaluates it with numbers, to run. A test
compares both. Neither evaluates code.

The language has `x.shape`, `x.rank`, `x.size`, `k.values` (of a host input), `present(x)`, attributes by name, numbers,
texts, lists, `a[i]`, `a[i:j]`, `+ - * / // %`, comparisons, `and or not`, `a if c else b`, and the functions below.
"""

from __future__ import annotations

import ast
import math
import operator as op
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]

from py_ort.exceptions import InvalidArgument

#: A number, a text, a list of them, or None: unknown before the run.
Value = Any
Tree = Any

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
#: Functions, with their numbers of arguments.
_FUNCTIONS = {
    "abs": (1, 1),
    "broadcast": (1, 16),
    "ceil": (1, 1),
    "ceil_div": (2, 2),
    "f32": (1, 1),
    "floor": (1, 1),
    "i32": (1, 1),
    "len": (1, 1),
    "max": (1, 16),
    "min": (1, 16),
    "prod": (1, 1),
    "u32": (1, 1),
}
_OF_TENSORS: dict[str, Callable[[str], Tree]] = {
    "shape": lambda name: ["shape", name],
    "rank": lambda name: ["len", ["shape", name]],
    "size": lambda name: ["prod", ["shape", name]],
    "values": lambda name: ["values", name],
}


class SizeError(ValueError):
    """An expression without a value for these inputs."""


def parse(text: str, tensors: Collection[str], attributes: Collection[str], where: str) -> Tree:
    """Return the tree of an expression.

    Args:
        text: The expression.
        tensors: Names of tensors.
        attributes: The names of attributes.
        where: Place of the expression, for error messages.

    Raises:
        InvalidArgument: The text is not in this language; the message has the place and the alternatives.
    """

    def fail(why: str) -> InvalidArgument:
        return InvalidArgument(f"{where}: {text!r}: {why}")

    def walk(node: ast.expr) -> Tree:
        match node:
            case ast.Constant(value=bool(value)):
                return int(value)
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Constant(value=str(word)):
                return ["text", word]
            case ast.Name(id=name) if name in attributes:
                return ["attribute", name]
            case ast.Name(id=name) if name in tensors:
                raise fail(f"{name} is a tensor: write {name}.shape, {name}.size or {name}.rank")
            case ast.Name(id=name):
                known = ", ".join([*(f"{tensor}.shape" for tensor in tensors), *attributes])
                raise fail(f"there is no {name!r}: there are {known}")
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in tensors and attr in _OF_TENSORS:
                return _OF_TENSORS[attr](name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return ["-", 0, walk(operand)]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ["not", walk(operand)]
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
                return [_BINARY[type(sign)], walk(left), walk(right)]
            case ast.BoolOp(op=sign, values=values):
                return ["and" if isinstance(sign, ast.And) else "or", *map(walk, values)]
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
                return [_COMPARISONS[type(sign)], walk(left), walk(right)]
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return ["if", walk(test), walk(body), walk(orelse)]
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return ["list", *map(walk, items)]
            case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=None)):
                return ["slice", walk(value), *(None if end is None else walk(end) for end in (lower, upper))]
            case ast.Subscript(value=value, slice=index):
                return ["at", walk(value), walk(index)]
            case ast.Call(func=ast.Name(id="present"), args=[ast.Name(id=name)], keywords=[]) if name in tensors:
                return ["present", name]
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                least, most = _FUNCTIONS[name]
                if not least <= len(args) <= most:
                    raise fail(f"{name} takes {least if least == most else f'{least} to {most}'} arguments")
                return [name, *map(walk, args)]
            case ast.Call(func=ast.Name(id=name)):
                raise fail(f"there is no function {name!r}: there are present, {', '.join(_FUNCTIONS)}")
        raise fail(f"{ast.unparse(node)} is not of the language of sizes (see docs/user_kernels.md)")

    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as e:
        raise fail(f"{e.msg}") from None
    return walk(parsed)


def scalar_type(tree: Tree, attributes: Mapping[str, Any]) -> str:
    """Return the type of a uniform: f32 if the expression has a float, i32 for an integer attribute, else u32."""
    if isinstance(tree, list) and tree[0] in ("f32", "i32", "u32"):
        return str(tree[0])
    if isinstance(tree, list) and tree[0] == "attribute" and attributes[tree[1]] in ("i", "is"):
        return "i32"
    return "f32" if _has_float(tree, attributes) else "u32"


def _has_float(tree: Tree, attributes: Mapping[str, Any]) -> bool:
    if not isinstance(tree, list):
        return isinstance(tree, float)
    if tree[0] == "attribute":
        return attributes[tree[1]] in ("f", "fs")
    if tree[0] in ("floor", "ceil", "i32", "u32", "len", "text"):
        return False
    return tree[0] == "/" or any(_has_float(item, attributes) for item in tree[1:])


class Env:
    """Values for expressions: shapes, elements of host inputs, attributes. Numbers may be symbols or None."""

    def __init__(
        self,
        shapes: Mapping[str, Sequence[Value] | None],
        attributes: Mapping[str, Value],
        values: Mapping[str, Sequence[Value] | None] | None = None,
    ) -> None:
        """A tensor missing in `shapes` is omitted; one whose shape is None has an unknown rank."""
        self.shapes, self.attributes, self.values = shapes, attributes, values or {}


def evaluate(tree: Tree, env: Env) -> Value:
    """Return the value of a tree: a number, sympy's expression, a list, a text, or None if it is not known yet.

    Raises:
        SizeError: It has no value: an index outside of a shape, shapes that do not broadcast.
    """
    if not isinstance(tree, list):
        return tree
    kind, *parts = tree
    match kind:
        case "text":
            return parts[0]
        case "attribute":
            return env.attributes[parts[0]]
        case "present":
            return int(parts[0] in env.shapes)
        case "shape":
            if parts[0] not in env.shapes:
                raise SizeError(f"input {parts[0]!r} is omitted")
            found = env.shapes[parts[0]]
            return None if found is None else list(found)
        case "values":
            found = env.values.get(parts[0])
            return None if found is None else list(found)
        case "list":
            return [evaluate(part, env) for part in parts]
        case "if":
            test = evaluate(parts[0], env)
            return None if test is None else evaluate(parts[1] if test else parts[2], env)
        case "and" | "or":
            found = [evaluate(part, env) for part in parts]
            decided = [item for item in found if item is not None and bool(item) == (kind == "or")]
            return int(kind == "or") if decided else None if None in found else int(kind == "and")
    values = [None if part is None else evaluate(part, env) for part in parts]
    if kind == "slice":
        return _slice(values, [part is not None for part in parts[1:]])
    if any(value is None for value in values):
        return None
    try:
        return _OPERATIONS[kind](*values)
    except TypeError as e:
        raise SizeError(f"{kind} of {', '.join(map(str, values))}: {e}") from None


def _slice(values: list[Value], given: list[bool]) -> Value:
    items, lower, upper = values
    if items is None or (lower is None and given[0]) or (upper is None and given[1]):
        return None
    return items[lower:upper]


def _at(items: list[Value], index: int) -> Value:
    if not -len(items) <= index < len(items):
        raise SizeError(f"index {index} is outside of {items}")
    return items[index]


def _exact(value: Value) -> Value:
    """Without symbols, the value is a plain number."""
    return int(value) if isinstance(value, sympy.Integer) else value


def _symbolic(exact: Callable[..., Value], symbols: Callable[..., Value]) -> Callable[..., Value]:
    def compute(*values: Value) -> Value:
        if any(isinstance(value, sympy.Basic) for value in values):
            return _exact(symbols(*values))
        try:
            return exact(*values)
        except ZeroDivisionError:
            raise SizeError("division by zero") from None

    return compute


def _compare(exact: Callable[[Value, Value], bool], relation: Any) -> Callable[[Value, Value], Value]:
    def compute(a: Value, b: Value) -> Value:
        if not any(isinstance(value, sympy.Basic) for value in (a, b)):
            return int(exact(a, b))
        found = relation(a, b)
        return int(bool(found)) if found in (sympy.true, sympy.false) else None

    return compute


def _product(items: list[Value]) -> Value:
    return None if None in items else _exact(math.prod(items))


def _broadcast(*shapes: list[Value]) -> list[Value]:
    rank = max(map(len, shapes))
    return [_wider([s[axis - rank] for s in shapes if len(s) >= rank - axis], shapes) for axis in range(rank)]


def _wider(sizes: list[Value], shapes: Sequence[list[Value]]) -> Value:
    numbers = {size for size in sizes if isinstance(size, int) and size != 1}
    if len(numbers) > 1:
        raise SizeError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
    if numbers:
        return numbers.pop()
    others = [size for size in sizes if not isinstance(size, int)]
    if not others:
        return 1
    return others[0] if all(size is not None and size == others[0] for size in others) else None


_OPERATIONS: dict[str, Callable[..., Value]] = {
    "+": lambda a, b: _exact(a + b),
    "-": lambda a, b: _exact(a - b),
    "*": lambda a, b: _exact(a * b),
    "/": _symbolic(op.truediv, lambda a, b: a / b),
    "//": _symbolic(op.floordiv, lambda a, b: sympy.floor(sympy.sympify(a) / b)),
    "%": _symbolic(op.mod, sympy.Mod),
    "==": _compare(op.eq, sympy.Eq),
    "!=": _compare(op.ne, sympy.Ne),
    "<": _compare(op.lt, sympy.Lt),
    "<=": _compare(op.le, sympy.Le),
    ">": _compare(op.gt, sympy.Gt),
    ">=": _compare(op.ge, sympy.Ge),
    "not": lambda a: int(not a),
    "abs": _symbolic(abs, sympy.Abs),
    "ceil": _symbolic(math.ceil, sympy.ceiling),
    "floor": _symbolic(math.floor, sympy.floor),
    "ceil_div": _symbolic(lambda a, b: -(-a // b), lambda a, b: sympy.ceiling(sympy.sympify(a) / b)),
    "min": _symbolic(min, sympy.Min),
    "max": _symbolic(max, sympy.Max),
    "f32": lambda a: a,
    "i32": lambda a: a,
    "u32": lambda a: a,
    "at": _at,
    "len": len,
    "prod": _product,
    "broadcast": _broadcast,
}
