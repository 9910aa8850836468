"""The operators of native onnxruntime's CPU provider, and the signatures of its own ones, from a list in this folder.

`python -m py_ort.compiler.native_operators` writes the list again, from the installed onnxruntime.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from onnx.defs import OpSchema, get_all_schemas_with_history

from py_ort.ir.operators import MICROSOFT, NCHWC, NHWC

LIST = Path(__file__).with_suffix(".json")
#: Domains whose operators onnxruntime's own optimizer makes, for itself.
_OWN = (NCHWC, NHWC)
#: Copies between devices, which no model has.
_COPIES = ("MemcpyFromHost", "MemcpyToHost")


def native_operators() -> dict[str, Any]:
    """Return the list.

    `onnxruntime`: the version it was taken from. `operators`: the names, by domain. `schemas`: of operators that onnx
    does not know, inputs and outputs [name, option] and attributes {name: [type, required]}.
    """
    found: dict[str, Any] = json.loads(LIST.read_text())
    return found


@cache
def contributed_schemas() -> dict[str, Any]:
    """Return schemas (OpSchema) by name, without types of inputs and outputs.

    Of com.microsoft's operators, and those of ai.onnx that only onnxruntime has.
    """
    enums: tuple[Any, Any] = OpSchema.FormalParameterOption, OpSchema.AttrType
    options, kinds = ({each.value: each for each in enum.__members__.values()} for enum in enums)

    def formal(parameters: list[list[Any]]) -> list[OpSchema.FormalParameter]:
        return [OpSchema.FormalParameter(name, "T", param_option=options[option]) for name, option in parameters]

    return {
        name: OpSchema(
            name,
            MICROSOFT,
            1,
            inputs=formal(each["inputs"]),
            outputs=formal(each["outputs"]),
            type_constraints=[("T", ["tensor(float)"], "")],
            attributes=[
                OpSchema.Attribute(key, kinds[kind], required=required)
                for key, (kind, required) in each["attributes"].items()
            ],
        )
        for name, each in native_operators()["schemas"].items()
    }


def installed() -> dict[str, Any]:
    """Make the list of the installed onnxruntime.

    Raises:
        ImportError: There is none.
    """
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    names: dict[str, set[str]] = {}
    for kernel in native.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and kernel.domain not in _OWN and kernel.op_name not in _COPIES:
            names.setdefault(kernel.domain, set()).add(kernel.op_name)
    onnx_names = {each.name for each in get_all_schemas_with_history() if each.domain == ""}
    schemas = [
        each
        for each in native.get_all_operator_schema()
        if each.domain == MICROSOFT or (each.domain == "" and each.name not in onnx_names)
    ]
    return {
        "onnxruntime": onnxruntime.__version__,
        "operators": {domain: sorted(names[domain]) for domain in sorted(names)},
        "schemas": {
            each.name: {
                **{kind: _parameters(getattr(each, kind)) for kind in ("inputs", "outputs")},
                "attributes": {key: [int(spec.type), spec.required] for key, spec in sorted(each.attributes.items())},
            }
            for each in sorted(schemas, key=lambda each: str(each.name))
        },
    }


def _parameters(parameters: Any) -> list[list[Any]]:
    return [[each.name, int(each.option)] for each in parameters]


def _text(found: dict[str, Any]) -> str:
    """A line for each schema."""
    schemas = [f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in found.pop("schemas").items()]
    rest = json.dumps(found, indent=1)
    return rest.removesuffix("\n}") + ',\n "schemas": {\n' + ",\n".join(schemas) + "\n }\n}\n"


if __name__ == "__main__":
    LIST.write_text(_text(installed()))
