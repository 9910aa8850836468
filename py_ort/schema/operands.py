"""The language of contracts: the sizes that an operator's inputs must have, declared once for Python and the core.

Python holds static sizes against a contract when it compiles (`py_ort/compiler/canonical/size_checks.py`), the core all
sizes before each kernel of any provider runs (`wasm_build/src/ep/operand_contracts.cc`): both read the program that
`compiled` makes of the text. It uses the standard library only, because the build runs it before anything is installed.

A contract is a text of clauses, separated by semicolons:

- `W[M, C / group, ...]` declares the next input. Each item is the size of an axis: an expression, alternatives
  (`M or 1`), `_` for any size, or `...` for any number of axes. The first use of a symbol (a capital letter first)
  defines it. `[...] | [...]` are alternatives, of which the rank selects one.
- `rank(W) == rank(X)` must hold where all that it names is known.
- `group = 1` gives an attribute's default: an integer, or a text in quotes.
- `weight_layout == '' ? CLAUSE` applies only if the condition holds.

Functions: `rank(X)`, `size(X)` (number of elements), `dim(X, axis)`, `given(X)`, `broadcasts(B, X)` (B broadcasts to
X), `same(A, B)`, `prefix(A, B, n)` and `suffix(A, B, n)` (the first or last n axes have the same sizes),
`within(A, B, axis)` (no axis of A but this one is longer than that of B). An expression with an omitted input is
unknown, and an unknown clause holds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, auto


class Instruction(IntEnum):
    """Instructions of expressions, in reverse Polish notation; the core has the same, from `operand_code.py`."""

    CONSTANT = 0
    SYMBOL = auto()
    ATTRIBUTE = auto()
    TEXT_IS = auto()
    DIM = auto()
    RANK = auto()
    SIZE = auto()
    GIVEN = auto()
    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    MODULO = auto()
    EQUAL = auto()
    UNEQUAL = auto()
    AT_MOST = auto()
    BELOW = auto()
    AND = auto()
    OR = auto()
    NOT = auto()
    BROADCASTS = auto()
    SAME = auto()
    PREFIX = auto()
    SUFFIX = auto()
    WITHIN = auto()


_BINARY = {
    ast.Add: Instruction.ADD,
    ast.Sub: Instruction.SUBTRACT,
    ast.Mult: Instruction.MULTIPLY,
    ast.Div: Instruction.DIVIDE,
    ast.Mod: Instruction.MODULO,
    ast.Eq: Instruction.EQUAL,
    ast.NotEq: Instruction.UNEQUAL,
    ast.LtE: Instruction.AT_MOST,
    ast.Lt: Instruction.BELOW,
}
_FUNCTIONS = {
    "rank": Instruction.RANK,
    "size": Instruction.SIZE,
    "given": Instruction.GIVEN,
    "broadcasts": Instruction.BROADCASTS,
    "same": Instruction.SAME,
}
#: Functions of two operands and a number.
_OF_NUMBERS = {"prefix": Instruction.PREFIX, "suffix": Instruction.SUFFIX, "within": Instruction.WITHIN}


@dataclass(frozen=True)
class Contract:
    """A contract in the form that programs evaluate.

    Attributes:
        operands: Names of the inputs, in order.
        symbols: Names of sizes.
        attributes: Defaults of the attributes that expressions read.
        texts: The texts with which expressions compare attributes.
        clauses: The text of each clause, for messages.
        code: Per clause: the length of its condition, the condition, and a shape or an expression; see `_Compiler`.
    """

    operands: Sequence[str]
    symbols: Sequence[str]
    attributes: Mapping[str, int | str]
    texts: Sequence[str]
    clauses: Sequence[str]
    code: Sequence[int]


def compiled(text: str) -> Contract:
    """Compile the text of a contract.

    Raises:
        ValueError: A clause is malformed.
    """
    compiler = _Compiler()
    for clause in filter(None, (" ".join(part.split()) for part in text.split(";"))):
        try:
            compiler.clause(clause)
        except (SyntaxError, KeyError) as e:
            raise ValueError(f"no clause of a contract: {clause}") from e
    return compiler.result()


@dataclass
class _Compiler:
    operands: list[str] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    attributes: dict[str, int | str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    clauses: list[str] = field(default_factory=list)
    code: list[int] = field(default_factory=list)

    def result(self) -> Contract:
        return Contract(self.operands, self.symbols, self.attributes, self.texts, self.clauses, self.code)

    def clause(self, text: str) -> None:
        condition, question, rest = text.rpartition("?")
        rest = rest.strip()
        if not question and (default := re.fullmatch(r"([a-z_]\w*) = (.+)", rest)):
            self.attributes[default[1]] = ast.literal_eval(default[2])
            return
        guard = self._expression(condition.strip()) if question else []
        shape = re.match(r"[A-Z]\w*\[", rest)
        body = self._shape(rest) if shape else [1, *_counted(self._expression(rest))]
        self.clauses.append(rest)
        self.code += [*_counted(guard), *body]

    def _shape(self, text: str) -> list[int]:
        """0, the operand, the number of forms; of each: whether `...` is in it, how many items before and behind it."""
        name, _, rest = text.partition("[")
        if name not in self.operands:
            self.operands.append(name)
        forms = re.findall(r"\[(.*?)\](?=\s*\||$)", "[" + rest)
        if not forms:
            raise SyntaxError(text)
        code = [0, self.operands.index(name), len(forms)]
        for form in forms:
            items = [item.strip() for item in _split(form)]
            open_ended = "..." in items
            head = items[: items.index("...")] if open_ended else items
            tail = items[items.index("...") + 1 :] if open_ended else []
            code += [int(open_ended), len(head), len(tail)]
            for item in head + tail:
                choices = [] if item == "_" else item.split(" or ")
                code.append(len(choices))
                for choice in choices:
                    code += _counted(self._expression(choice.strip(), defines=True))
        return code

    def _expression(self, text: str, defines: bool = False) -> list[int]:
        return self._visit(ast.parse(text, mode="eval").body, defines)

    def _visit(self, node: ast.expr, defines: bool = False) -> list[int]:
        match node:
            case ast.Constant(value=int(value)):
                return [Instruction.CONSTANT, value]
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return [Instruction.CONSTANT, -value]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return [*self._visit(operand, defines), Instruction.NOT]
            case ast.Name(id=name) if name[0].isupper():
                if name not in self.symbols:
                    if not defines:
                        raise KeyError(name)
                    self.symbols.append(name)
                return [Instruction.SYMBOL, self.symbols.index(name)]
            case ast.Name(id=name):
                return [Instruction.ATTRIBUTE, list(self.attributes).index(self._attribute(name))]
            case ast.BinOp(left=left, op=op, right=right):
                return [*self._visit(left, defines), *self._visit(right, defines), _BINARY[type(op)]]
            case ast.BoolOp(op=op, values=values):
                code = self._visit(values[0], defines)
                for other in values[1:]:
                    code += [
                        *self._visit(other, defines),
                        Instruction.AND if isinstance(op, ast.And) else Instruction.OR,
                    ]
                return code
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=str(text))]):
                if text not in self.texts:
                    self.texts.append(text)
                attribute = list(self.attributes).index(self._attribute(name))
                return [
                    Instruction.TEXT_IS,
                    attribute,
                    self.texts.index(text),
                    *([Instruction.NOT] if isinstance(op, ast.NotEq) else []),
                ]
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return [*self._visit(left, defines), *self._visit(right, defines), _BINARY[type(op)]]
            case ast.Call(func=ast.Name(id="dim"), args=[ast.Name(id=name), axis]):
                return [*self._visit(axis), Instruction.DIM, self.operands.index(name)]
            case ast.Call(func=ast.Name(id=function), args=[ast.Name(id=a), ast.Name(id=b), number]):
                return [*self._visit(number), _OF_NUMBERS[function], self.operands.index(a), self.operands.index(b)]
            case ast.Call(func=ast.Name(id=function), args=args):
                names = [self.operands.index(arg.id) for arg in args if isinstance(arg, ast.Name)]
                return [_FUNCTIONS[function], *names]
        raise SyntaxError(ast.dump(node))

    def _attribute(self, name: str) -> str:
        if name not in self.attributes:
            raise KeyError(f"the attribute {name} has no default")
        return name


def _counted(code: Sequence[int]) -> list[int]:
    return [len(code), *code]


def _split(items: str) -> list[str]:
    """Cut at commas outside of parentheses."""
    return [item for item in re.split(r",\s*(?![^()]*\))", items) if item.strip()]
