"""What a pass is: it may state what it needs and what it leaves, and says how much it changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import onnx_ir as ir

from py_ort.ops.builder import all_nodes

HasOperator = Callable[[str, str], "bool | None"]
"""Of (domain, op_type): True, the first provider has a kernel; False, another one has; None, nobody."""


class Pass:
    """One optimisation of a whole model, in place. Its name is that of its module."""

    @property
    def name(self) -> str:
        """The name for reports."""
        return type(self).__module__.rpartition(".")[2]

    def requires(self, model: ir.Model) -> None:
        """Raise AssertionError when the model is not what the pass works on."""

    def call(self, model: ir.Model) -> int:
        """Change the model; return how many places changed (0: nothing did)."""
        raise NotImplementedError

    def ensures(self, model: ir.Model) -> None:
        """Raise AssertionError when the model is not what the pass promises."""


@dataclass(frozen=True)
class PassReport:
    """What a pass did: places changed, nodes before and after, milliseconds."""

    name: str
    changes: int
    before: int
    after: int
    ms: float


def count_nodes(model: ir.Model) -> int:
    """Return the number of nodes at all depths."""
    return sum(1 for _ in all_nodes(model.graph))


def run_passes(model: ir.Model, passes: Iterable[Pass]) -> list[PassReport]:
    """Run passes in order and report on each."""
    reports = []
    before = count_nodes(model)
    for each in passes:
        start = time.perf_counter()
        each.requires(model)
        changes = each.call(model)
        each.ensures(model)
        after = count_nodes(model)
        reports.append(PassReport(each.name, changes, before, after, (time.perf_counter() - start) * 1e3))
        before = after
    return reports
