"""The base of passes: requirements, work and promises; and the manager that runs passes.

Needs and promises (`contracts.py`) are checked with PY_ORT_CHECK_PASSES=1, as in all tests; an error names the pass.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat

import onnx_ir as ir

from py_ort.boundary import typed_errors
from py_ort.compiler.passes.contracts import check_canonical, check_interface, check_well_formed, interface
from py_ort.compiler.passes.match import PRESENT
from py_ort.compiler.target import Target
from py_ort.ir.errors import node_at_fault
from py_ort.ir.graph import all_graphs, all_nodes, origins
from py_ort.ir.operators import op_types
from py_ort.uninterrupted import check

_ROUNDS = 8  # more than passes in turn need, unless they undo each other's work


class Pass:
    """One optimization of a whole model, in place. Its name is that of its module.

    Contracts are checked where `contracts_checked()`, as in the tests: then the model must also be well-formed after
    each pass, with the inputs and outputs that it had, and a second call must find nothing more to change.

    Attributes:
        after: Passes that must have run when this one does.
        before: Passes that must not have run when this one does for the first time.
        settles: A second call finds nothing to change. Where it may, the pass says why.
    """

    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    settles: bool = True

    def __call__(self, target: Target) -> Pass:
        """Return the pass for a target; most are the same for all."""
        return self

    @property
    def name(self) -> str:
        """The name for reports."""
        return type(self).__module__.rpartition(".")[2]

    def requires(self, model: ir.Model) -> None:
        """Raise AssertionError if the model does not meet the pass's requirements: operators in their newest forms."""
        check_canonical(model)

    def call(self, model: ir.Model) -> int:
        """Change the model; return how many places changed (0: nothing did)."""
        raise NotImplementedError

    def ensures(self, model: ir.Model) -> None:
        """Raise AssertionError if the model does not meet the pass's guarantees."""


@dataclass(frozen=True)
class PassReport:
    """The changes of a pass.

    Attributes:
        name: The pass.
        changes: Places that changed.
        before: Nodes before it.
        after: Nodes after it.
        ms: Milliseconds.
        operators: How many nodes of each operator there are more, or fewer.
        constants: How many constants there are more, or fewer.
        touched: Names of the model's nodes from which the nodes that it removed or made came.
    """

    name: str
    changes: int
    before: int
    after: int
    ms: float
    operators: Mapping[str, int] = field(default_factory=dict)
    constants: int = 0
    touched: Sequence[str] = ()


def count_nodes(model: ir.Model) -> int:
    """Return the number of nodes at all depths."""
    return sum(1 for _ in all_nodes(model.graph))


def count_operators(model: ir.Model) -> Counter[str]:
    """Return how many nodes, at all depths, there are of each operator; of others than ONNX's with their domain."""
    return Counter(f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in all_nodes(model.graph))


def count_constants(model: ir.Model, operators: Iterable[str]) -> int:
    """Return the number of constants at all depths; `operators`: the model's, by name."""
    flat = all("." not in name and name not in op_types("bodies") for name in operators)
    return sum(len(graph.initializers) for graph in ([model.graph] if flat else all_graphs(model.graph)))


def contracts_checked() -> bool:
    """Return True if the contracts of passes are checked, which takes longer than the passes."""
    return os.environ.get("PY_ORT_CHECK_PASSES", "0").lower() not in ("", "0", "off", "no")


class PassManager:
    """Runs passes on a model, which nothing else changes meanwhile, and reports on each.

    Attributes:
        reports: Reports on the passes, in order; the given earlier ones come first.
    """

    def __init__(self, model: ir.Model, earlier: Iterable[PassReport] = ()) -> None:
        """`earlier`: reports on the passes that this model has been through."""
        self.reports = list(earlier)
        self._model = model
        self._operators = count_operators(model)
        self._constants = count_constants(model, self._operators)
        self._nodes = set(all_nodes(model.graph))

    def run(self, passes: Sequence[Pass], *, settle: bool = False) -> bool:
        """Run passes in order.

        Args:
            passes: The passes.
            settle: Run them in turn until none of them changes anything, at most `_ROUNDS` times.

        Returns:
            True if any of them changed anything.

        Raises:
            InternalError: A pass failed, or a contract does not hold; the pass's name is in the text.
        """
        done = len(self.reports)
        for each in chain.from_iterable(repeat(passes, _ROUNDS if settle else 1)):
            if not settle or each.name not in _at_rest(self.reports):
                self.reports.append(self._run(each))
        return any(report.changes for report in self.reports[done:])

    def _run(self, each: Pass) -> PassReport:
        model, before, constants = self._model, self._operators, self._constants
        check()
        start = time.perf_counter()
        model.meta[PRESENT] = {name.rpartition(".")[2] for name in before}
        with typed_errors(
            f"optimization pass {each.name}", "a lower graph_optimization_level may do without it", node_at_fault
        ):
            changes = self._checked(each) if contracts_checked() else each.call(model)
        model.meta.pop(PRESENT, None)
        ms = (time.perf_counter() - start) * 1e3
        if not changes:
            return PassReport(each.name, 0, before.total(), before.total(), ms)
        after = self._operators = count_operators(model)
        left = self._constants = count_constants(model, after)
        more = {name: after[name] - before[name] for name in before | after if after[name] != before[name]}
        nodes, self._nodes = self._nodes, set(all_nodes(model.graph))
        touched = tuple(dict.fromkeys(name for node in nodes ^ self._nodes for name in origins(node)))
        return PassReport(each.name, changes, before.total(), after.total(), ms, more, left - constants, touched)

    def _checked(self, each: Pass) -> int:
        model, done = self._model, [report.name for report in self.reports]
        assert count_operators(model) == self._operators, "the model was changed between two passes"
        missing = [name for name in each.after if name not in done]
        assert not missing, f"comes after {', '.join(missing)}"
        late = [name for name in each.before if name in done and each.name not in done]
        assert not late, f"comes before {', '.join(late)}"
        each.requires(model)
        known, nodes = interface(model), count_nodes(model)
        changes = each.call(model)
        assert changes or count_nodes(model) == nodes, f"of {nodes} nodes {count_nodes(model)} are left, but no change"
        check_well_formed(model)
        check_interface(model, known)
        each.ensures(model)
        if each.settles and changes:
            again = each.call(model)
            assert not again, f"a second call changes {again} more"
        return changes


def run_passes(model: ir.Model, passes: Sequence[Pass], earlier: Sequence[PassReport] = ()) -> list[PassReport]:
    """Run passes on a model once, as a `PassManager` does, and report on each."""
    manager = PassManager(model, earlier)
    manager.run(passes)
    return manager.reports[len(earlier) :]


def _at_rest(reports: Sequence[PassReport]) -> set[str]:
    """Return the passes that have nothing to change: none has changed anything since, and a second call does not."""
    last = next((i for i in reversed(range(len(reports))) if reports[i].changes), 0)
    return {report.name for report in reports[last:]}
