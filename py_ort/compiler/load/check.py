"""Is this a model that ONNX allows? Like onnx.checker, with errors that name the node, and on graphs of any size."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir

from py_ort.compiler.load.attributes import check_attributes
from py_ort.compiler.load.function_calls import check_calls
from py_ort.compiler.native_operators import contributed_schemas
from py_ort.exceptions import InvalidGraph, MissingKernel, NotImplemented
from py_ort.ir.block_products import OURS
from py_ort.ir.graph import all_graphs, all_nodes
from py_ort.ir.operators import INTERNAL, MICROSOFT, NCHWC, NHWC, PLACED, operator, operators
from py_ort.ir.schemas import CANONICAL_OPSET, opsets_with, schema

_ONNX_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
_KNOWN_DOMAINS = (*_ONNX_DOMAINS, "com.microsoft")
_IMPLIED_DOMAINS = ("ai.onnx.ml", "com.microsoft")  # onnxruntime takes nodes of these without an import
_REGISTER = "; an operator of your own goes to py_ort.register_kernel first"
_OF_ONE_MACHINE = (
    "; native onnxruntime wrote it for the processor it ran on: have it write the model with the optimization level "
    "ORT_ENABLE_EXTENDED"
)
_REQUIRED = onnx.defs.OpSchema.FormalParameterOption.Single
_VARIADIC = onnx.defs.OpSchema.FormalParameterOption.Variadic
_OPSETS_SINCE_IR = 3  # models before say nothing about opsets: they were written for the first


def check_model(model: ir.Model, known: Collection[tuple[str, str]] = ()) -> None:
    """Check versions, operators and values.

    Args:
        model: The model as it was read.
        known: Further operators, (domain, op_type), that a provider has kernels for.

    Raises:
        InvalidGraph: It breaks ONNX's rules, or uses an operator that ONNX does not have.
        NotImplemented: It is newer than the installed onnx package, or uses an operator of others that has no kernel,
            or its functions become too many nodes.
    """
    newest = onnx.defs.onnx_opset_version()
    if not model.opset_imports and (model.ir_version or 0) < _OPSETS_SINCE_IR:
        model.opset_imports[""] = 1
    elif model.opset_imports:
        model.opset_imports.setdefault("", min(CANONICAL_OPSET, newest))  # as natively, if others only are named
    if model.ir_version is not None and model.ir_version > onnx.IR_VERSION:
        raise NotImplemented(
            f"the model has IR version {model.ir_version}, and the installed onnx {onnx.__version__} knows up "
            f"to {onnx.IR_VERSION}: "
            "upgrade the onnx package"
        )
    opset = model.opset_imports.get("")
    if opset is not None and opset > CANONICAL_OPSET:
        raise NotImplemented(
            f"the model has opset {opset} of ai.onnx, and this py_ort knows up to {CANONICAL_OPSET}: export it "
            "with that opset or an earlier one, or upgrade py_ort"
        )
    if opset is not None and opset > newest:
        raise NotImplemented(
            f"the model has opset {opset} of ai.onnx, and the installed onnx {onnx.__version__} knows up to {newest}: "
            "upgrade the onnx package"
        )
    for key in [key for key in model.functions if _is_operator(key, model, known)]:
        del model.functions[key]  # onnxruntime's operator comes before a function of its name, and so does ours
    check_calls(model)
    missing = [each for graph in all_graphs(model.graph) for each in _check_graph(graph, model, known)]
    for function in model.functions.values():
        for node in all_nodes(function.graph):
            _check_imported(node, function, model)
            _check_arity_and_attributes(node, function.opset_imports, model)
            check_attributes(node, in_function=True)
    if missing:
        raise _no_kernels(missing)


def _no_kernels(missing: Sequence[MissingKernel]) -> NotImplemented:
    first = missing[0]
    full = f"{first.domain or 'ai.onnx'}::{first.op_type}"
    # Scripts look for onnxruntime's own words.
    native = (
        ""
        if first.domain in _ONNX_DOMAINS
        else f" ({first.domain}:{first.op_type}(-1) is not a registered function/op)"
    )
    message = f"node {first.node} uses the operator {full}, for which there is no kernel{native}{_advice(first.domain)}"
    return NotImplemented.of_nodes(message, missing)


def _advice(domain: str) -> str:
    if domain == NCHWC:
        return _OF_ONE_MACHINE
    return "" if domain in _KNOWN_DOMAINS else _REGISTER


def _check_graph(graph: ir.Graph, model: ir.Model, known: Collection[tuple[str, str]]) -> Iterator[MissingKernel]:
    """Check a graph; yield the nodes with an unknown operator."""
    for node in graph:
        if not _check_operator(node, model, known):
            yield MissingKernel(_name(node), node.op_type, node.domain)
        _check_arity_and_attributes(node, model.opset_imports, model)
        check_attributes(node)
    produced: set[str] = set()
    for value in [*graph.inputs, *(o for node in graph for o in node.outputs)]:
        if value.name and value.name in produced:
            raise InvalidGraph(f"the value {value.name!r} is defined twice in graph {graph.name!r}")
        produced.add(value.name or "")
    for output in graph.outputs:
        if output.producer() is None and not (output.is_graph_input() or output.is_initializer()):
            raise InvalidGraph(f"graph {graph.name!r} gives {output.name!r} out, which nothing in it makes")
    for node in graph:
        for read in node.inputs:
            if read is None or read.producer() is not None or read.is_graph_input() or read.is_initializer():
                continue
            raise InvalidGraph(
                f"node {_name(node)} reads {read.name!r}, which nothing in the model makes",
                node=_name(node),
                op_type=node.op_type,
                domain=node.domain,
            )


def _is_operator(key: ir.OperatorIdentifier, model: ir.Model, known: Collection[tuple[str, str]]) -> bool:
    domain, op_type, overload = key
    if overload or domain not in _KNOWN_DOMAINS:
        return False
    return (domain, op_type) in known or schema(domain, op_type, model.opset_imports.get(domain, 1)) is not None


def _check_operator(node: ir.Node, model: ir.Model, known: Collection[tuple[str, str]]) -> bool:
    """Check that a model may use an operator; return whether anybody knows it."""
    if node.op_identifier() in model.functions:
        return True
    if node.domain in (INTERNAL, NHWC):
        raise InvalidGraph(
            f"node {_name(node)} is of the domain {node.domain}, which is py_ort's own and none of models",
            node=_name(node),
            op_type=node.op_type,
            domain=node.domain,
        )
    version = model.opset_imports.get(node.domain)
    key = (node.domain, node.op_type)
    standard = node.domain == "" and schema("", node.op_type, CANONICAL_OPSET) is not None
    if not standard and (key in known or (key in operators() and node.domain != "")):
        return True
    if version is not None and schema(node.domain, node.op_type, version) is not None:
        return True
    where: dict[str, Any] = {"node": _name(node), "op_type": node.op_type, "domain": node.domain}
    full = f"{node.domain or 'ai.onnx'}::{node.op_type}"
    if version is None and node.domain not in _IMPLIED_DOMAINS:
        raise InvalidGraph(
            f"node {_name(node)} uses {full}, and the model imports no opset of that domain{_advice(node.domain)}",
            **where,
        )
    if standard:
        since = min(
            s.since_version
            for s in onnx.defs.get_all_schemas_with_history()
            if s.name == node.op_type and s.domain == ""
        )
        raise InvalidGraph(
            f"node {_name(node)} uses {full}, which opset {version} does not have: it came with opset {since}", **where
        )
    if node.domain in _ONNX_DOMAINS and (others := opsets_with(node.domain, node.op_type)):
        raise InvalidGraph(
            f"node {_name(node)} uses the operator {full}, which opset {version} does not know: "
            f"it is of opset {others[0]}{f' to {others[-1]}' if others[-1] > others[0] else ''}",
            **where,
        )
    return False


def _check_imported(node: ir.Node, function: ir.Function, model: ir.Model) -> None:
    """Check that a function says of which opset a node of its body is."""
    implied = node.domain in (*function.opset_imports, *_IMPLIED_DOMAINS) or node.op_identifier() in model.functions
    if not implied:
        full = f"{node.domain or 'ai.onnx'}::{node.op_type}"
        raise InvalidGraph(
            f"node {_name(node)} of the function {function.name} uses {full}, and the function imports no opset of it",
            node=_name(node),
            op_type=node.op_type,
            domain=node.domain,
        )


def _check_arity_and_attributes(node: ir.Node, opsets: Mapping[str, int], model: ir.Model) -> None:
    found = None if node.domain == MICROSOFT else schema(node.domain, node.op_type, opsets.get(node.domain, 1))
    contributed = None
    if found is None and node.domain in ("", MICROSOFT):
        found = contributed = contributed_schemas().get(node.op_type)
    where: dict[str, Any] = {"node": _name(node), "op_type": node.op_type, "domain": node.domain}
    if node.op_identifier() in model.functions:
        return
    if found is None:
        return
    for kind, count, least, most in (
        ("inputs", len(node.inputs), found.min_input, found.max_input),
        ("outputs", len(node.outputs), found.min_output, found.max_output),
    ):
        if not least <= count <= most:
            allowed = f"{least}" if least == most else f"{least} to {most}"
            raise InvalidGraph(f"node {_name(node)} ({node.op_type}) has {count} {kind}, not {allowed}", **where)
    for kind, formals, values in (("input", found.inputs, node.inputs), ("output", found.outputs, node.outputs)):
        for formal, value in zip(formals, values, strict=False):
            if formal.option == _REQUIRED and (value is None or not value.name):
                raise InvalidGraph(f"node {_name(node)} ({node.op_type}) lacks its {kind} {formal.name!r}", **where)
    alike = bool(found.inputs) and found.inputs[-1].option == _VARIADIC and found.inputs[-1].is_homogeneous
    if alike and any(value is None or not value.name for value in node.inputs[len(found.inputs) - 1 :]):
        raise InvalidGraph(f"node {_name(node)} ({node.op_type}) leaves out one of its inputs", **where)
    last = len(found.inputs)
    if contributed and any(value is None or not value.name for value in node.inputs[last:]):
        raise InvalidGraph(f"node {_name(node)} ({node.op_type}) leaves out an input that others follow", **where)
    for name, spec in found.attributes.items():
        given = node.attributes.get(name)
        if spec.required and given is None:
            raise InvalidGraph(f"node {_name(node)} ({node.op_type}) lacks its attribute {name!r}", **where)
        if given is not None and int(given.type) != spec.type.value and not given.is_ref():
            raise InvalidGraph(
                f"attribute {name!r} of node {_name(node)} ({node.op_type}) is of type {given.type.name}, not "
                f"{spec.type.name}",
                **where,
            )
    unknown = [name for name in node.attributes if name not in found.attributes]
    if operator(node.domain, node.op_type).lenient:  # models must not contain the internal operators of passes
        unknown = [name for name in unknown if name in (*OURS, *PLACED)]
    if unknown:
        raise InvalidGraph(
            f"node {_name(node)} ({node.op_type}) has an attribute {unknown[0]!r}, which the operator does not know",
            **where,
        )


def _name(node: ir.Node) -> str:
    return node.name or (node.outputs[0].name if node.outputs else "") or node.op_type
