"""Epilogues of products (Conv, ConvTranspose, Gemm, MatMul): the steps on each value before it is stored.

Softmax and normalizations have epilogues without a residual; of several outputs the first one has the epilogue.

The attribute is a program (`py_ort/ir/programs.py`). Register 0 is the product with its bias, register 1 the residual,
an input of the result's shape, which the node has only if the program reads it. Kernels with the feature "epilogue" run
the epilogues that are `recognized`; kernels with "residual" read the residual. Kernels with "steps" run all epilogues,
and of a MatMul or MatMulNBits the instruction Bias: it adds the product's bias, which is then added nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import onnx_ir as ir

from py_ort.ir.graph import attribute, set_attributes
from py_ort.ir.programs import Instruction, parse_program, program_text
from py_ort.schema.dialect import EPILOGUE
from py_ort.schema.scalar_functions import FUNCTIONS

_VALUE, _RESIDUAL, _FIRST = 0, 1, 2  # registers
_NUMBER, _BIAS = _OPERANDS = ("Number", "Bias")  # instructions that read none


@dataclass(frozen=True)
class Step:
    """One step on the value.

    Attributes:
        kind: "residual", "bias" and "number" are added to it, "function" is a scalar function of it.
        function: Its name in `FUNCTIONS`.
        numbers: The function's parameters, or the number that is added.
    """

    kind: Literal["residual", "bias", "number", "function"]
    function: str = ""
    numbers: tuple[float, ...] = ()

    def __str__(self) -> str:
        if self.kind in ("residual", "bias"):
            return f"+ {self.kind}"
        numbers = ", ".join(f"{number:g}" for number in self.numbers)
        return f"+ {numbers}" if self.kind == "number" else f"{self.function}({numbers})" if numbers else self.function


@dataclass(frozen=True)
class Epilogue:
    """The steps, in order; false where there are none."""

    steps: tuple[Step, ...] = ()

    @classmethod
    def of(cls, node: ir.Node) -> Epilogue:
        """Read that of a node.

        Raises:
            ValueError: Its program is none of an epilogue, which passes never write.
        """
        return cls.parse(attribute(node, EPILOGUE, ""))

    @classmethod
    def parse(cls, text: str) -> Epilogue:
        """Parse the text of `str(epilogue.program)`; errors as in `of`."""
        steps: list[Step] = []
        value, made, added = _VALUE, _FIRST, {_RESIDUAL: Step("residual")}
        for each in parse_program(text):
            if each.op in _OPERANDS:
                added[made] = Step("bias") if each.op == _BIAS else Step("number", numbers=each.numbers)
            elif each.op == "Add" and each.registers[0] == value and each.registers[1] in added:
                steps.append(added[each.registers[1]])
            elif each.op != "Add" and each.registers == (value,):
                steps.append(Step("function", each.op, each.numbers))
            else:
                raise ValueError(f"no epilogue: {text}")
            value = value if each.op in _OPERANDS else made
            made += 1
        return cls(tuple(steps))

    @property
    def program(self) -> str:
        """The attribute's text."""
        lines: list[Instruction] = []
        value = _VALUE
        for step in self.steps:
            if step.kind == "function":
                lines.append(Instruction(step.function, (value,), step.numbers))
            elif step.kind == "residual":
                lines.append(Instruction("Add", (value, _RESIDUAL)))
            else:
                lines.append(Instruction(_BIAS if step.kind == "bias" else _NUMBER, (), step.numbers))
                lines.append(Instruction("Add", (value, _FIRST + len(lines) - 1)))
            value = _FIRST + len(lines) - 1
        return program_text(lines)

    def write(self, node: ir.Node) -> None:
        """Make it that of a node."""
        set_attributes(node, **{EPILOGUE: self.program or None})

    def then(self, function: str, numbers: Sequence[float] = ()) -> Epilogue:
        """Return the epilogue with one more function; missing parameters get the function's defaults."""
        row = FUNCTIONS.get(function)
        defaults = () if row is None else tuple(row.parameters.values())[len(numbers) :]
        return self._with(Step("function", function, (*map(float, numbers), *defaults)))

    def plus(self, number: float) -> Epilogue:
        """Return it with a number added."""
        return self._with(Step("number", numbers=(number,)))

    def plus_bias(self) -> Epilogue:
        """Return it with the product's bias added there."""
        return self._with(Step("bias"))

    def plus_residual(self) -> Epilogue:
        """Return it with the residual added."""
        return self._with(Step("residual"))

    def _with(self, step: Step) -> Epilogue:
        return Epilogue((*self.steps, step))

    @property
    def recognized(self) -> bool:
        """True if every kernel with epilogues has it: a residual first or last, one function, a number added to it."""
        kinds = [step.kind for step in self.steps]
        for at in (0, -1):
            if kinds[at:][:1] == ["residual"]:
                kinds.pop(at)
                break
        known = all(step.function in _ENDS for step in self.steps if step.kind == "function")
        return known and kinds in ([], ["function"], ["function", "number"])

    def has(self, kind: str, function: str = "") -> bool:
        """Tell whether there is such a step."""
        return any((step.kind, step.function) == (kind, function) for step in self.steps)

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __str__(self) -> str:
        return ", ".join(map(str, self.steps))


_ENDS = frozenset(row.name for row in FUNCTIONS.values() if row.ends)


def has_epilogue(node: ir.Node) -> bool:
    """Return True if a node has an epilogue."""
    return EPILOGUE in node.attributes
