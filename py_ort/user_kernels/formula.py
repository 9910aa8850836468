"""An elementwise formula as WGSL: `x * sigmoid(alpha * x)`, in Python's syntax, on vectors of any width.

The text uses aliases that the page declares for the dtypes of a call: C is the type of computations (a float, or an
integer if all tensors are integers), S its scalar, B the booleans.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import NamedTuple

from py_ort.exceptions import InvalidArgument

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
#: Functions of one number: the name here -> in WGSL, or in the page's own library if WGSL's is too inexact.
_UNARY = {
    **{
        name: name
        for name in ("abs", "ceil", "exp", "exp2", "floor", "fract", "log2", "round", "sign", "sqrt", "trunc")
    },
    **{name: f"{name}_" for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "log")},
    **{name: f"{name}_" for name in ("sin", "sinh", "tan", "tanh")},
    **{name: name for name in ("expm1", "log1p", "sigmoid", "softplus")},
    "rsqrt": "inverseSqrt",
}
_TESTS = {"isnan": "is_nan", "isinf": "is_infinite"}
#: Small functions of our own, expanded where they are used.
_HELPERS = {
    "square": "fn square(x: C) -> C { return x * x; }",
    "relu": "fn relu(x: C) -> C { return max(x, C(S(0))); }",
    "floor_div": "fn floor_div(a: C, b: C) -> C { return floor(a / b); }",
    "floor_mod": "fn floor_mod(a: C, b: C) -> C { return a - b * floor(a / b); }",
}
_FUNCTION = re.compile(r"\bfn\s+(\w+)\s*\(")


class Formula(NamedTuple):
    """The parts of a formula for the page.

    Attributes:
        text: WGSL, an expression in C or B.
        is_bool: True if it is in B.
        helpers: WGSL of functions that it calls.
        attributes: The attributes that it reads, as uniforms `u.NAME`.
    """

    text: str
    is_bool: bool
    helpers: str
    attributes: tuple[str, ...]


def translate(
    text: str, inputs: Collection[str], attributes: Collection[str], functions: str = "", where: str = ""
) -> Formula:
    """Translate a formula.

    Args:
        text: An expression of inputs, attributes and numbers.
        inputs: The names of tensors.
        attributes: The names of numeric attributes.
        functions: WGSL of the user's own functions, from numbers to a number.
        where: For messages.

    Raises:
        InvalidArgument: The text contains an expression that formulas do not support.
    """
    own = set(_FUNCTION.findall(functions))
    helpers: dict[str, str] = {}
    used: dict[str, None] = {}

    def fail(why: str) -> InvalidArgument:
        return InvalidArgument(f"{where}expression {text!r}: {why}")

    def helper(name: str, *args: str) -> str:
        helpers[name] = _HELPERS[name]
        return f"{name}({', '.join(args)})"

    def number(node: ast.expr) -> str:
        written, is_bool = walk(node)
        return f"select(C(S(0)), C(S(1)), {written})" if is_bool else written

    def truth(node: ast.expr) -> str:
        written, is_bool = walk(node)
        return written if is_bool else f"({written} != C(S(0)))"

    def walk(node: ast.expr) -> tuple[str, bool]:
        match node:
            case ast.Constant(value=bool(value)):
                return f"B({str(value).lower()})", True
            case ast.Constant(value=int() | float() as literal):
                return f"C(S({literal!r}))", False
            case ast.Name(id=name) if name in inputs:
                return name, False
            case ast.Name(id=name) if name in attributes:
                used[name] = None
                return f"C(S(u.{name}))", False
            case ast.Name(id=name):
                raise fail(f"there is no {name!r}: there are {', '.join([*inputs, *attributes])}")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{number(operand)})", False
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return number(operand), False
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"(!{truth(operand)})", True
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
                return helper("square", number(left)), False
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return f"power({number(left)}, {number(right)})", False
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return helper("floor_div", number(left), number(right)), False
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return helper("floor_mod", number(left), number(right)), False
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
                return f"({number(left)} {_BINARY[type(sign)]} {number(right)})", False
            case ast.BoolOp(op=sign, values=values):
                return f"({(' & ' if isinstance(sign, ast.And) else ' | ').join(map(truth, values))})", True
            case ast.Compare(left=left, ops=signs, comparators=rights) if all(type(s) in _COMPARISONS for s in signs):
                sides = [number(side) for side in (left, *rights)]
                parts = [f"({a} {_COMPARISONS[type(s)]} {b})" for a, s, b in zip(sides, signs, sides[1:], strict=False)]
                return parts[0] if len(parts) == 1 else f"({' & '.join(parts)})", True
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"select({number(orelse)}, {number(body)}, {truth(test)})", False
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return call(name, args)
        raise fail(f"{ast.unparse(node)} is nothing that a formula can have (see docs/user_kernels.md)")

    def call(name: str, args: list[ast.expr]) -> tuple[str, bool]:
        def takes(count: int) -> None:
            if len(args) != count:
                raise fail(f"{name} takes {count} arguments, not {len(args)}")

        if name in own:
            return f"{name}({', '.join(map(number, args))})", False
        if name in _UNARY:
            takes(1)
            return f"{_UNARY[name]}({number(args[0])})", False
        if name in _TESTS:
            takes(1)
            return f"{_TESTS[name]}({number(args[0])})", True
        if name in ("square", "relu"):
            takes(1)
            return helper(name, number(args[0])), False
        if name in ("min", "max") and len(args) > 1:
            written = [number(arg) for arg in args]
            result = written[0]
            for other in written[1:]:
                result = f"{name}({result}, {other})"
            return result, False
        if name in ("clip", "clamp"):
            takes(3)
            return f"clamp({', '.join(map(number, args))})", False
        if name == "pow":
            takes(2)
            return f"power({number(args[0])}, {number(args[1])})", False
        if name == "where":
            takes(3)
            return f"select({number(args[2])}, {number(args[1])}, {truth(args[0])})", False
        known = sorted([*_UNARY, *_TESTS, "clip", "max", "min", "pow", "relu", "square", "where", *own])
        raise fail(f"there is no function {name!r}: there are {', '.join(known)}")

    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as e:
        raise fail(e.msg) from None
    written, is_bool = walk(parsed)
    return Formula(written, is_bool, "\n".join(helpers.values()), tuple(used))
