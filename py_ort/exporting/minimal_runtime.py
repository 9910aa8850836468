"""Minimal runtimes: scripts with the WebGPU kernels of some models only (`py-ort export --runtime minimal`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from py_ort.compiler.package.read import Package
from py_ort.exceptions import InvalidArgument
from py_ort.exporting.runtime_files import MINIMAL, RARE_KERNELS, put_runtime, runtime_files
from py_ort.folders import ASSETS
from py_ort.providers import CPU
from py_ort.schema.gen.Plan import Plan

_DEVICE = "webgpu"
#: The name in the scripts in whose place the kernels are written: web/src/providers/webgpu/linked_kernels.ts.
_PLACE = "PY_ORT_KERNELS"


def copy_minimal_runtime(folder: Path, models: Mapping[str, Package]) -> list[Path]:
    """Write the runtime with the kernels of these models into a folder, in place of an earlier runtime.

    Args:
        folder: The folder; made if need be.
        models: Exported models by their names.

    Returns:
        The runtime's files, the module first.

    Raises:
        InvalidArgument: A model has a plan for a provider that no minimal runtime has.
        EngineError: The runtime was not built.
        OSError: The folder cannot be written.
    """
    used = set()
    for name, model in models.items():
        for provider, *operator in _nodes(model):
            if provider not in (CPU, _DEVICE):
                raise InvalidArgument(
                    f"{name} has a plan for {provider}, and a minimal runtime has {_DEVICE} and {CPU} only: export it "
                    "without --runtime minimal, or for these providers"
                )
            used.add((provider, *operator))
    is_used = {provider: _entries(provider, used) for provider in (CPU, _DEVICE)}
    kernels = _linked({entry["source"] for entry in is_used[_DEVICE]})
    contents = {}
    for file in runtime_files(MINIMAL):
        if file.name == RARE_KERNELS and not any(entry.get("rare") for entry in is_used[CPU]):
            continue
        content = file.read_bytes()
        if MINIMAL in file.name:
            content = content.replace(_PLACE.encode(), kernels.encode())
        contents[file.name.replace(f"py_ort{MINIMAL}.mjs", "py_ort.mjs")] = content
    return put_runtime(folder, contents)


def _nodes(model: Package) -> Iterator[tuple[str, str, str]]:
    """Yield provider, domain and operator of each node of each plan."""
    for data in model.plans():
        plan = Plan.GetRootAs(data)
        providers = [plan.Providers(i).Name().decode() for i in range(plan.ProvidersLength())]
        for graph in (plan.Graphs(i) for i in range(plan.GraphsLength())):
            for node in (graph.Nodes(i) for i in range(graph.NodesLength())):
                yield providers[node.Provider()], (node.Domain() or b"").decode(), node.OpType().decode()


def _entries(provider: str, used: set[tuple[str, ...]]) -> list[dict[str, Any]]:
    """Return the entries of a provider's manifest for operators that are used; user kernels have none."""
    entries = json.loads((ASSETS / f"kernels.{provider}.json").read_text())
    return [entry for entry in entries if (provider, entry["domain"], entry["op_type"]) in used]


def _linked(sources: Iterable[str]) -> str:
    """Return JavaScript: the modules of these sources of kernels, and the modules that they require."""
    built = json.loads((ASSETS / "kernel_modules.json").read_text())
    lists = sorted(built["lists"][source] for source in sources)
    wanted, found = [*lists], {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = built["modules"][name]["code"]
            wanted += built["modules"][name]["requires"]
    modules = ",".join(f"{json.dumps(name)}:(require,module)=>{{{code}\n}}" for name, code in sorted(found.items()))
    return f"{{lists:{json.dumps(lists)},modules:{{{modules}}}}}"
