"""Passes made from functions of a node, and passes that alternate."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from graphs import parse
from provisional import manifests

from py_ort.compiler.passes.pass_base import Pass, PassManager, run_passes
from py_ort.compiler.passes.rewrite import Rewrite, rewrite, runs
from py_ort.compiler.target import Target
from py_ort.exceptions import InternalError
from py_ort.ir.graph import all_nodes, attribute, set_attributes
from py_ort.ir.schemas import CANONICAL_OPSET


def _model() -> ir.Model:
    text = "g (float[2] x) => (float[2] y) { a = LeakyRelu<alpha=4.0>(x)  b = Elu<alpha=3.0>(a)  y = Relu(b) }"
    model = ir.from_proto(parse(text))
    model.opset_imports[""] = CANONICAL_OPSET
    return model


def _alphas(model: ir.Model) -> list[float]:
    return [attribute(node, "alpha") for node in all_nodes(model.graph) if "alpha" in node.attributes]


def _lower(node: ir.Node) -> bool:
    alpha = attribute(node, "alpha")
    if alpha > 1:
        set_attributes(node, alpha=alpha - 1)
    return bool(alpha > 1)


def test_functions_see_the_nodes_of_their_operators_one_after_the_other() -> None:
    seen: list[str] = []

    def note(node: ir.Node) -> int:
        seen.append(node.op_type)
        return 2

    made = rewrite("Relu", "LeakyRelu", before=("nhwc",))(note)
    assert made.also("Elu")(note) is note
    made.also("Elu", domain="com.microsoft")(note)
    assert made.call(_model()) == 6
    assert seen == ["LeakyRelu", "Relu", "Elu"]
    assert (made.name, made.after, made.before) == ("note", (), ("nhwc",))


@pytest.mark.parametrize(("repeat", "count", "left"), [(False, 2, [3.0, 2.0]), (True, 5, [1.0, 1.0])])
def test_one_that_repeats_goes_on_until_it_changes_nothing(repeat: bool, count: int, left: list[float]) -> None:
    model = _model()
    assert rewrite("LeakyRelu", "Elu", repeat=repeat)(_lower).call(model) == count
    assert _alphas(model) == left


def test_the_target_is_passed_to_functions_that_have_a_parameter_for_it() -> None:
    target = Target.of(["webgpu", "wasm"], manifests())
    given: list[Target] = []

    def ask(node: ir.Node, target: Target) -> bool:
        given.append(target)
        return False

    made = rewrite("Relu")(ask)
    assert made(target).call(_model()) == 0 and given == [target]
    with pytest.raises(AssertionError, match="call it with one"):
        made.call(_model())
    assert made(target).name == made.name


@pytest.mark.parametrize(("op_type", "count"), [("Relu", 1), ("Nonsense", 0)])
def test_nothing_is_done_for_targets_that_lack_what_it_needs(op_type: str, count: int) -> None:
    target = Target.of(["webgpu", "wasm"], manifests())
    assert rewrite("Relu", needs=runs(op_type))(lambda node: True)(target).call(_model()) == count


class _Turns(Pass):
    """Raises the smallest alpha of one operator to one above the other's, down to 1."""

    def __init__(self, name: str, op_type: str) -> None:
        self._name, self._op_type = name, op_type

    @property
    def name(self) -> str:
        return self._name

    def call(self, model: ir.Model) -> int:
        own, other = sorted(
            (node for node in all_nodes(model.graph) if "alpha" in node.attributes),
            key=lambda node: node.op_type != self._op_type,
        )
        wanted = max(1.0, attribute(other, "alpha") - 1)
        changes = attribute(own, "alpha") > wanted
        if changes:
            set_attributes(own, alpha=wanted)
        return int(changes)


def test_passes_take_turns_until_none_changes_anything() -> None:
    model = _model()
    passes = [_Turns("first", "LeakyRelu"), _Turns("second", "Elu")]
    manager = PassManager(model)
    assert manager.run(passes, settle=True)
    assert _alphas(model) == [1.0, 1.0]
    assert [(each.name, each.changes) for each in manager.reports] == [
        ("first", 1),
        ("second", 1),
        ("first", 1),
        ("second", 0),
    ]


def test_passes_that_undo_each_other_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PY_ORT_CHECK_PASSES", "0")

    def change(name: str) -> Rewrite:
        def write(node: ir.Node) -> bool:
            changes = node.name != name
            node.name = name
            return changes

        write.__name__ = name
        return rewrite("Relu")(write)

    manager = PassManager(_model())
    manager.run([change("a"), change("b")], settle=True)
    assert 2 < len(manager.reports) < 100 and all(each.changes for each in manager.reports)


def test_one_call_must_do_all_of_it() -> None:
    with pytest.raises(InternalError, match=r"_lower: .*a second call changes 2 more"):
        run_passes(_model(), [rewrite("LeakyRelu", "Elu")(_lower)])
