"""Needs and promises of passes are checked, and the pass that breaks one is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir
import provisional
import pytest
from graphs import compiled, parse
from passes_found import passes_found

from py_ort.compiler.compile_options import CompileOptions
from py_ort.compiler.layout import Nhwc
from py_ort.compiler.passes.clean.canonicalize import Canonicalize
from py_ort.compiler.passes.clean.dead_code import DeadCode
from py_ort.compiler.passes.clean.free_dimensions import FreeDimensions
from py_ort.compiler.passes.pass_base import Pass, PassReport, run_passes
from py_ort.compiler.passes.placed.column_nodes import set_attributes
from py_ort.compiler.passes.placed.columns import Columns
from py_ort.compiler.passes.placed.counts import Counts
from py_ort.compiler.passes.placed.elementwise_chains import ElementwiseChains
from py_ort.compiler.passes.placed.sibling_convolutions import SiblingConvolutions
from py_ort.compiler.saved.source_form import PASSES as SOURCE_PASSES
from py_ort.compiler.stages import STAGES, Compilation
from py_ort.compiler.target import Target
from py_ort.exceptions import InternalError
from py_ort.ir.graph import add_constant, all_nodes, remove

Change = Callable[[ir.Model], int]


def _model(canonical: bool = True) -> ir.Model:
    model = ir.from_proto(parse("g (float[N,2] x) => (float[N,2] y) { a = Relu(x)  b = Abs(a)  y = Add(a, b) }"))
    if canonical:
        run_passes(model, [FreeDimensions({}), Canonicalize()], [_report("constants")])
    return model


def _report(name: str) -> PassReport:
    return PassReport(name, 0, 0, 0, 0.0)


def _named(change: Change, **attributes: object) -> Pass:
    """A pass of this module that makes such a change."""
    return type(
        "Broken", (Pass,), {"call": lambda self, model: change(model), "__module__": "p.broken", **attributes}
    )()


def _reorder(model: ir.Model) -> int:
    first, second = list(model.graph)[:2]
    model.graph.remove(second)
    model.graph.insert_before(first, second)
    return 1


def _rename(model: ir.Model) -> int:
    model.graph.outputs[0].name = "z"
    return 1


def _retype(model: ir.Model) -> int:
    model.graph.inputs[0].type = ir.TensorType(ir.DataType.INT64)
    return 1


def _remove_silently(model: ir.Model) -> int:
    last = list(model.graph)[-1]
    last.outputs[0].replace_all_uses_with(last.inputs[1], replace_graph_outputs=True)
    remove(last)
    model.graph.outputs[0].name = "y"
    return 0


def _lie_about_a_constant(model: ir.Model) -> int:
    add_constant(model.graph, ir.tensor(np.zeros(3, np.float32)), "c").shape = ir.Shape([4])
    return 1


def _unreadable(model: ir.Model) -> int:
    raise KeyError("there is no such thing")


#: id: (the effect of a pass, the error)
BROKEN: dict[str, tuple[Change, str]] = {
    "reads what is not made yet": (_reorder, "reads input 0 .* before it is made"),
    "another name": (_rename, "inputs and outputs were"),
    "another dtype": (_retype, "x was FLOAT, and is INT64"),
    "changes and says nothing": (_remove_silently, "of 3 nodes 2 are left, but no change"),
    "a constant of another shape": (_lie_about_a_constant, "initializer c__const of FLOAT.* is said to be"),
    "never done": (lambda model: 1, "a second call changes 1 more"),
    "an error": (_unreadable, "KeyError: 'there is no such thing'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_pass_is_named(case: str) -> None:
    change, said = BROKEN[case]
    with pytest.raises(InternalError, match=f"optimization pass broken: .*{said}"):
        run_passes(_model(), [_named(change)])


def test_only_errors_are_told_in_production(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PY_ORT_CHECK_PASSES", "0")
    assert [report.changes for report in run_passes(_model(), [_named(lambda model: 1), _named(_rename)])] == [1, 1]
    with pytest.raises(InternalError, match="optimization pass broken: KeyError"):
        run_passes(_model(), [_named(_unreadable)])


def _dead(model: ir.Model) -> ir.Model:
    node = next(all_nodes(model.graph))
    model.graph.append(ir.Node("", "Neg", [node.outputs[0]], num_outputs=1, name="unread"))
    return model


def _old(model: ir.Model) -> ir.Model:
    model.opset_imports[""] = 11
    return model


def _lower(model: ir.Model) -> ir.Model:
    next(all_nodes(model.graph)).version = 6
    return model


def _in_columns(model: ir.Model) -> ir.Model:
    node = next(all_nodes(model.graph))
    set_attributes(node, y_columns=[0, 4])
    return model


def _laid_out(model: ir.Model) -> ir.Model:
    next(all_nodes(model.graph)).domain = "com.ms.internal.nhwc"
    return model


def _unplaced(node: ir.Node) -> bool:
    raise KeyError(node)


class _Idle(DeadCode):
    """Does not keep its promise."""

    def call(self, model: ir.Model) -> int:
        return 0


class _Free(FreeDimensions):
    def call(self, model: ir.Model) -> int:
        return 0


#: id: (a pass, its model, the error)
CONDITIONS: dict[str, tuple[Callable[[], Pass], Callable[[ir.Model], ir.Model], str]] = {
    "canonical operators": (lambda: _named(lambda model: 0), _old, "broken: opset 11 is not the newest"),
    "forms of old opsets": (lambda: _named(lambda model: 0), _lower, "broken: .* has the form of opset 6"),
    "one layout": (lambda: Nhwc(lambda node: True), _laid_out, r"nhwc: node \? \(Relu\) is laid out already"),
    "places, for counts": (lambda: Counts(_unplaced), lambda m: m, r"counts: node \? \(Relu\) has no place yet"),
    "places, for chains": (
        lambda: ElementwiseChains(_unplaced, lambda provider, dtypes: True),  # type: ignore[arg-type]
        lambda m: m,
        "elementwise_chains: .* has no place yet",
    ),
    "places, for columns": (lambda: Columns(_unplaced), lambda m: m, "columns: .* has no place yet"),
    "columns as wide as they say": (
        lambda: Columns(lambda node: True),
        _in_columns,
        r"columns: .* writes \(0, 4\) of 2 columns",
    ),
    "columns that siblings leave": (
        lambda: SiblingConvolutions(lambda node: True),
        _in_columns,
        r"sibling_convolutions: .* writes \(0, 4\) of 2 columns",
    ),
    "nothing dead": (_Idle, _dead, r"nothing reads node unread \(Neg\)"),
    "sizes that were given": (lambda: _Free({"N": 3}), lambda m: m, "dimension N of x is still free"),
}


@pytest.mark.parametrize("case", CONDITIONS)
def test_conditions(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, spoil, said = CONDITIONS[case]
    made = make()
    monkeypatch.setattr(type(made), "settles", False)
    with pytest.raises(InternalError, match=said):
        run_passes(spoil(_model()), [made], [_report(name) for name in made.after])


def test_order() -> None:
    first, second = _named(lambda m: 0), _named(lambda m: 0, __module__="p.later", after=("broken",), before=("last",))
    last = _named(lambda m: 0, __module__="p.last")
    run_passes(_model(), [first, second, last, second])  # an earlier pass may run again
    with pytest.raises(InternalError, match="optimization pass later: comes after broken"):
        run_passes(_model(), [second])
    with pytest.raises(InternalError, match="optimization pass later: comes before last"):
        run_passes(_model(), [last, second], [_report("broken")])


def test_all_passes_run_and_their_order_is_of_passes() -> None:
    """Every module with a pass is in one of two lists, and `after` and `before` name passes."""
    ran = {
        report.name for report in compiled(parse("g (float[2] x) => (float[2] y) { y = Relu(x) }"), chains=True).passes
    }
    known = passes_found()
    assert ran | {each.name for each in SOURCE_PASSES} == set(known)
    assert {name for each in known.values() for name in (*each.after, *each.before)} <= set(known)


def _swapped(passes: Sequence[Pass], first: str, second: str) -> list[Pass]:
    names = [each.name for each in passes]
    made = list(passes)
    a, b = names.index(first), names.index(second)
    made[a], made[b] = made[b], made[a]
    return made


@pytest.mark.parametrize("pair", ["activation conv_affine", "quantized folding", "attention rotary_embedding"])
def test_a_pipeline_in_another_order_is_refused(pair: str) -> None:
    target = Target.of(["webgpu", "wasm"], provisional.manifests(columns=True))
    compilation = Compilation(None, target, CompileOptions(), None)
    passes = [each for stage in STAGES if stage.name == "passes" for each in stage.passes(compilation)]
    run_passes(_model(), passes)
    with pytest.raises(InternalError, match=r"comes (after|before)"):
        run_passes(_model(), _swapped(passes, *pair.split()))
