"""Which operators native onnxruntime's CPU provider has: a list beside this module, and how it is made.

`python -m py_ort.compiler.native_operators` writes the list again, from the installed onnxruntime.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_suffix(".json")
#: Domains whose operators onnxruntime's own optimizer makes, for itself.
_OWN = ("com.microsoft.nchwc", "com.ms.internal.nhwc")
#: Copies between devices, which no model has.
_COPIES = ("MemcpyFromHost", "MemcpyToHost")


def native_operators() -> dict[str, Any]:
    """Return the list: `onnxruntime`, the version it was taken from, and `operators`, the names by domain."""
    found: dict[str, Any] = json.loads(LIST.read_text())
    return found


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
    return {
        "onnxruntime": onnxruntime.__version__,
        "operators": {domain: sorted(names[domain]) for domain in sorted(names)},
    }


if __name__ == "__main__":
    LIST.write_text(json.dumps(installed(), indent=1) + "\n")
