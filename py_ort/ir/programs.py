"""Programs of elementwise steps, as attributes have them: text, with an instruction for each, separated by `;`.

An instruction is an operator, registers, and numbers with `#` ("Mul 0 1;LeakyRelu 2 #0.1"). Registers are what the
program is given, then the instructions' results, the last of which is the program's; all are floats, truths 0 and 1.
Functions of one number are those of `py_ort/schema/scalar_functions.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """One step."""

    op: str
    registers: tuple[int, ...] = ()
    numbers: tuple[float, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.op, *map(str, self.registers), *map(_literal, self.numbers)])


def program_text(instructions: Iterable[Instruction]) -> str:
    """Write a program."""
    return ";".join(map(str, instructions))


def parse_program(text: str) -> list[Instruction]:
    """Parse a text of `program_text`."""
    found = []
    for line in filter(None, text.split(";")):
        op, *words = line.split(" ")
        registers = tuple(int(word) for word in words if word[0] != "#")
        found.append(Instruction(op, registers, tuple(float(word[1:]) for word in words if word[0] == "#")))
    return found


def _literal(number: float) -> str:
    # As both readers, C's strtof and JavaScript's Number, know them.
    return f"#{float(number)!r}".replace("inf", "Infinity").replace("nan", "NaN")
