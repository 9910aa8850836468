"""Shows a plan as text: `python -m py_ort.compiler.plan.dump MODEL.onnx [provider…]`, or a file that holds a plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from py_ort.schema.gen.Attributes import Attributes, AttributesT
from py_ort.schema.gen.DType import DType
from py_ort.schema.gen.Plan import Plan, PlanT

_DTYPES = {number: name for name, number in vars(DType).items() if name[0] != "_"}
_USES = {1: "^", 2: "#"}


def read_plan(data: bytes) -> PlanT:
    """Read a plan into the generated objects.

    Raises:
        ValueError: It is not a plan.
    """
    if data[4:8] != b"PORT":
        raise ValueError(f"expected a plan, got {data[:16]!r}")
    return PlanT.InitFromObj(Plan.GetRootAs(data))


def node_attributes(node: Any) -> dict[str, Any]:
    """Return a plan node's attributes by name."""
    if node.attributes is None or len(node.attributes) == 0:
        return {}
    table = AttributesT.InitFromObj(Attributes.GetRootAs(bytes(node.attributes)))
    kinds = ("", "i", "f", "s", "ints", "floats", "strings", "tensor")
    found = {}
    for item in table.items:
        value = getattr(item, kinds[item.type])
        found[_text(item.name)] = value.tolist() if hasattr(value, "tolist") else _text(value)
    return found


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def dump(data: bytes) -> str:
    """Return the text: one line per node; ^ marks host inputs, # inputs of which only the shape is read."""
    plan = read_plan(data)
    constants = {weight.value: weight for weight in plan.weights or []}

    def value(index: int) -> str:
        if index < 0:
            return "-"
        item = plan.values[index]
        dims = (
            ""
            if not item.rankKnown
            else "[" + ",".join("?" if d < 0 else str(d) for d in (item.dims if item.dims is not None else [])) + "]"
        )
        return f"{'@' if index in constants else '%'}{index}:{_DTYPES[item.dtype]}{dims}"

    lines = [
        f"plan {plan.version} of {_text(plan.modelName)!r}: {len(plan.values)} values, {len(constants)} "
        f"weights, {plan.weightsSize} bytes"
    ]
    for number, graph in enumerate(plan.graphs):
        lines.append(f"graph {number} {_text(graph.name)!r} ({', '.join(value(i) for i in graph.inputs)})")
        for node in graph.nodes or []:
            uses = list(node.uses) if node.uses is not None else []
            inputs = [
                _USES.get(uses[i] if i < len(uses) else 0, "") + value(v)
                for i, v in enumerate(node.inputs if node.inputs is not None else [])
            ]
            name = f"{_text(node.domain)}::{_text(node.opType)}" if node.domain else _text(node.opType)
            attributes = " ".join(f"{k}={v}" for k, v in node_attributes(node).items())
            where = _text(plan.providers[node.provider].name)
            outputs = ", ".join(value(o) for o in node.outputs)
            lines.append(f"  {where} {outputs} = {name}({', '.join(inputs)}) {attributes}".rstrip())
            for subgraph in node.subgraphs or []:
                lines.append(f"        {_text(subgraph.name)}: graph {subgraph.graph}")
        lines.append(f"  -> {', '.join(value(i) for i in graph.outputs)}")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Print the plan of a model, or a plan."""
    from py_ort.compiler import compile_model
    from py_ort.providers import DEFAULT

    data = Path(arguments[0]).read_bytes()
    if data[4:8] != b"PORT":
        data = compile_model(arguments[0], providers=arguments[1:] or DEFAULT).plan
    print(dump(data))


if __name__ == "__main__":
    main(sys.argv[1:])
