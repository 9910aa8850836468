"""The model as its author has it, with less in it: for tools that look for operators as exporters write them.

Operators keep the forms and opsets of the source. What is known of its values (constants, shapes) comes from a second
copy, in the newest forms, which is all that passes compute with; each value is an output there, so that it is found
again whatever became of the nodes that made it.

Sessions write it below the extended level, or where fusions are disabled. It goes no further than native onnxruntime's
basic level: where a difference of unknown sizes is known to be 0, it stays, since tools look for it.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir

from py_ort.compiler.compile_options import Level
from py_ort.compiler.passes.clean.canonicalize import Canonicalize
from py_ort.compiler.passes.clean.dead_code import DeadCode
from py_ort.compiler.passes.clean.folding import Folding
from py_ort.compiler.passes.clean.identity import Identity
from py_ort.compiler.passes.clean.subexpressions import Subexpressions
from py_ort.compiler.passes.fuse.behind_convolutions import BehindConvolutions
from py_ort.compiler.passes.match import nodes_of
from py_ort.compiler.passes.norms.layer_norm import fuse_plain
from py_ort.ir.graph import all_nodes

#: Weights stay quantized.
_NOT_FOLDED = ("DequantizeLinear",)
#: Operators that patterns of such tools contain, even where they have no effect.
_IN_PATTERNS = ("Expand", "Flatten", "Reshape", "Transpose")
_WITH_LAYER_NORMALIZATION = 17  # the opset
#: In their order, once it is noted what is known.
PASSES = (Identity(but=_IN_PATTERNS), BehindConvolutions(), Subexpressions(constants=False), DeadCode())


def source_form(model: ir.Model, level: Level) -> ir.Model:
    """Optimize a model as far as it can keep its operators.

    Args:
        model: As loaded, its inputs' dimensions named; it is changed.
        level: Below BASIC only shapes of outputs are noted.

    Returns:
        The model. Its nodes state all attributes that have defaults, as onnxruntime's do: tools ask for them.
    """
    if level >= Level.BASIC:
        _optimize(model)
    else:
        outputs = [value for value in model.graph.outputs if value.producer() is not None]
        for value, found in zip(outputs, _computed(model, outputs), strict=True):
            _note_shape(value, found)
    for node in all_nodes(model.graph):
        _state_defaults(node, model.opset_imports)
    return model


def _optimize(model: ir.Model) -> None:
    _inline(model)
    _note_what_is_known(model)
    if model.opset_imports.get("", 0) >= _WITH_LAYER_NORMALIZATION:
        for node in nodes_of(model, "Div"):
            fuse_plain(node)
    for each in PASSES:
        each.call(model)


def _state_defaults(node: ir.Node, opsets: Mapping[str, int]) -> None:
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 0), node.domain)
    except onnx.defs.SchemaError:
        return  # an operator of others
    for name, attribute in schema.attributes.items():
        if attribute.default_value.type and name not in node.attributes:
            node.attributes.add(ir.serde.deserialize_attribute(attribute.default_value))


def _inline(model: ir.Model) -> None:
    """Functions become their nodes, unless these are of other opsets."""
    opsets = model.opset_imports
    for function in model.functions.values():
        if any(opsets.setdefault(domain, version) != version for domain, version in function.opset_imports.items()):
            return
    if model.functions:
        from onnx_ir.passes.common import InlinePass  # which imports much

        InlinePass()(model)


def _note_what_is_known(model: ir.Model) -> None:
    values = [output for node in model.graph for output in node.outputs if output.name]
    known = _computed(model, values)
    for value, found in zip(values, known, strict=True):
        _note_shape(value, found)
        if value.is_graph_output():
            continue
        maker = found.producer()
        copied = maker.inputs[0] if maker is not None and maker.op_type == "Identity" else None
        if copied is not None and copied.is_initializer() and copied.const_value is not None and value.uses():
            _become_constant(value, copied.const_value)
    DeadCode().call(model)


def _note_shape(value: ir.Value, found: ir.Value) -> None:
    if value.shape is None or not value.is_graph_output():
        value.type, value.shape = found.type, found.shape


def _computed(model: ir.Model, values: list[ir.Value]) -> list[ir.Value]:
    """Return for each value of a graph its counterpart in a folded copy of the model."""
    places = {value: place for place, value in enumerate(output for node in model.graph for output in node.outputs)}
    copy = model.clone()
    copies = [output for node in copy.graph for output in node.outputs]
    first = len(copy.graph.outputs)
    copy.graph.outputs.extend(copies[places[value]] for value in values)
    for each in (Canonicalize(), Folding(inferred=False, but=_NOT_FOLDED)):
        each.call(copy)
    return list(copy.graph.outputs)[first:]


def _become_constant(value: ir.Value, tensor: ir.TensorProtocol) -> None:
    graph = value.graph
    assert isinstance(graph, ir.Graph)
    name = value.name
    value.name = f"{name}__folded"
    constant = ir.Value(
        name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()), const_value=tensor
    )
    graph.register_initializer(constant)
    value.replace_all_uses_with(constant)
