"""Static sizes of operands against a contract, as the core does it with all sizes (`ep/operand_contracts.cc`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from py_ort.schema.operand_contracts import CONTRACTS
from py_ort.schema.operands import Contract, Instruction, compiled

#: Of an axis: None where it is not known.
Size = int | None
#: Of a division with a rest: equal to no size.
_NO_SIZE = -1
_BINARY = {
    Instruction.ADD: lambda a, b: a + b,
    Instruction.SUBTRACT: lambda a, b: a - b,
    Instruction.MULTIPLY: lambda a, b: a * b,
    Instruction.DIVIDE: lambda a, b: a // b if b > 0 and a % b == 0 else _NO_SIZE,
    Instruction.MODULO: lambda a, b: a % b if b > 0 else _NO_SIZE,
    Instruction.EQUAL: lambda a, b: int(a == b),
    Instruction.UNEQUAL: lambda a, b: int(a != b),
    Instruction.AT_MOST: lambda a, b: int(a <= b),
    Instruction.BELOW: lambda a, b: int(a < b),
    Instruction.AND: lambda a, b: int(bool(a and b)),
    Instruction.OR: lambda a, b: int(bool(a or b)),
}


@cache
def contract(domain: str, op_type: str) -> Contract | None:
    """Return an operator's contract, or None where none is declared."""
    text = CONTRACTS.get((domain, op_type))
    return None if text is None else compiled(text)


def check(contract: Contract, inputs: Sequence[Sequence[Size] | None], attributes: Mapping[str, Any]) -> str | None:
    """Return the fault of the sizes of a node's inputs, or None.

    Args:
        contract: The operator's contract.
        inputs: By input, the sizes of its axes; None where it is omitted, or its rank is not known.
        attributes: The node's attributes, at least those that the contract has defaults of.
    """
    return _Check(contract, inputs, attributes).run()


class _Check:
    def __init__(
        self, contract: Contract, inputs: Sequence[Sequence[Size] | None], attributes: Mapping[str, Any]
    ) -> None:
        self._contract, self._inputs = contract, inputs
        self._attributes = [attributes[name] for name in contract.attributes]
        self._symbols: list[Size] = [None] * len(contract.symbols)
        self._at = 0

    def run(self) -> str | None:
        for checks in (False, True):
            self._at = 0
            for clause in self._contract.clauses:
                condition = self._counted()
                skipped = bool(condition) and not self._value(condition)
                if self._next() == 0:
                    operand = self._contract.code[self._at]
                    fits = self._shape(skipped, checks)
                    wrong = f"input {operand} has the shape {_text(self._dims(operand))}, not that of {clause}"
                else:
                    holds = self._value(self._counted())
                    fits = holds is None or bool(holds) or skipped or not checks
                    wrong = f"the shapes of the inputs do not fit: {clause} does not hold"
                if not fits:
                    names = zip(self._contract.symbols, self._symbols, strict=True)
                    known = ", ".join(f"{name} = {size}" for name, size in names if size is not None)
                    return wrong + (f", where {known}" if known else "")
        return None

    def _next(self) -> int:
        self._at += 1
        return self._contract.code[self._at - 1]

    def _counted(self) -> Sequence[int]:
        size = self._next()
        self._at += size
        return self._contract.code[self._at - size : self._at]

    def _dims(self, operand: int) -> Sequence[Size] | None:
        return self._inputs[operand] if operand < len(self._inputs) else None

    def _size(self, operand: int, axis: int) -> Size:
        sizes = self._dims(operand) or ()
        return sizes[axis] if -len(sizes) <= axis < len(sizes) else None

    def _shape(self, skipped: bool, checks: bool) -> bool:
        operand = self._next()
        sizes = self._dims(operand)
        found, fits = False, True
        for _ in range(self._next()):
            open_ended, head, tail = self._next(), self._next(), self._next()
            rank = len(sizes) if sizes is not None else -1
            mine = not found and sizes is not None and (rank >= head + tail if open_ended else rank == head + tail)
            found |= mine
            for item in range(head + tail):
                size = self._size(operand, item if item < head else item - head - tail) if mine else None
                fits &= self._one_of(size, mine and not skipped and not checks) or not mine
        return skipped or not checks or sizes is None or (found and fits)

    def _one_of(self, size: Size, defines: bool) -> bool:
        choices = self._next()
        fits = choices == 0
        for _ in range(choices):
            expression = self._counted()
            if defines and len(expression) == 2 and expression[0] == Instruction.SYMBOL:
                symbol = expression[1]
                self._symbols[symbol] = size if self._symbols[symbol] is None else self._symbols[symbol]
            wanted = self._value(expression)
            fits |= wanted is None or size is None or wanted == size
        return fits

    def _value(self, expression: Sequence[int]) -> Size:
        words, stack = iter(expression), list[Any]()
        for word in words:
            match word:
                case Instruction.CONSTANT:
                    stack.append(next(words))
                case Instruction.SYMBOL:
                    stack.append(self._symbols[next(words)])
                case Instruction.ATTRIBUTE:
                    value = self._attributes[next(words)]
                    stack.append(value if isinstance(value, int) else len(value))
                case Instruction.TEXT_IS:
                    stack.append(int(self._attributes[next(words)] == self._contract.texts[next(words)]))
                case Instruction.DIM:
                    axis, operand = stack.pop(), next(words)
                    stack.append(None if axis is None else self._size(operand, axis))
                case Instruction.RANK:
                    sizes = self._dims(next(words))
                    stack.append(None if sizes is None else len(sizes))
                case Instruction.SIZE:
                    sizes = self._dims(next(words))
                    known = None if sizes is None else [size for size in sizes if size is not None]
                    stack.append(math.prod(known) if known is not None and len(known) == len(sizes or ()) else None)
                case Instruction.GIVEN:
                    stack.append(self._given(next(words)))
                case Instruction.NOT:
                    stack[-1] = None if stack[-1] is None else int(not stack[-1])
                case Instruction.BROADCASTS | Instruction.SAME:
                    stack.append(self._broadcasts(next(words), next(words), word == Instruction.BROADCASTS))
                case Instruction.PREFIX | Instruction.SUFFIX:
                    count, a, b = stack.pop(), next(words), next(words)
                    stack.append(None if count is None else self._agree(a, b, count, word == Instruction.PREFIX))
                case Instruction.WITHIN:
                    axis, a, b = stack.pop(), next(words), next(words)
                    stack.append(None if axis is None else self._within(a, b, axis))
                case _:
                    second, first = stack.pop(), stack.pop()
                    stack.append(None if first is None or second is None else _BINARY[Instruction(word)](first, second))
        return stack[0]

    def _given(self, operand: int) -> Size:
        """An input of unknown rank may be omitted or not."""
        return 1 if self._dims(operand) is not None else None

    def _both(self, a: int, b: int) -> tuple[Sequence[Size], Sequence[Size]] | None:
        first, second = self._dims(a), self._dims(b)
        return None if first is None or second is None else (first, second)

    def _broadcasts(self, a: int, b: int, ones: bool) -> Size:
        both = self._both(a, b)
        if both is None:
            return None
        first, second = both
        if len(first) > len(second) or (not ones and len(first) != len(second)):
            return 0
        pairs = zip(reversed(first), reversed(second), strict=False)
        return int(all(x is None or y is None or x == y or (ones and x == 1) for x, y in pairs))

    def _agree(self, a: int, b: int, count: int, first: bool) -> Size:
        both = self._both(a, b)
        if both is None:
            return None
        if not 0 <= count <= min(len(both[0]), len(both[1])):
            return 0
        x, y = (sizes[:count] if first else sizes[len(sizes) - count :] for sizes in both)
        return int(all(i is None or j is None or i == j for i, j in zip(x, y, strict=True)))

    def _within(self, a: int, b: int, axis: int) -> Size:
        both = self._both(a, b)
        if both is None or len(both[0]) != len(both[1]):
            return None
        pairs = enumerate(zip(*both, strict=True))
        return int(all(x is None or y is None or x <= y or at == axis % len(both[0]) for at, (x, y) in pairs))


def _text(sizes: Sequence[Size] | None) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in sizes or ())}]"
