"""Execution providers, each in a folder here, whose `PROVIDER` describes it; and reports of placement.

The environment variable PY_ORT_PROVIDERS names folders elsewhere, as PATH does. The page and the manifests are built
with the same variable (web/build.mjs), into the folder of PY_ORT_ASSETS.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from py_ort.exceptions import InvalidArgument
from py_ort.lazy_imports import lazily
from py_ort.providers.option import Option
from py_ort.providers.provider import Provider
from py_ort.suggestion import did_you_mean

if TYPE_CHECKING:
    from py_ort.providers.placement_table import PlacedNode as PlacedNode
    from py_ort.providers.placement_table import Placement as Placement


def _loaded(folder: Path) -> Provider:
    """Return the provider of a folder elsewhere; its module becomes part of this package."""
    name = f"{__name__}.{folder.name}"
    spec = spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None or not (folder / "__init__.py").is_file():
        raise InvalidArgument(f"PY_ORT_PROVIDERS names {str(folder)!r}, which has no __init__.py")
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, "PROVIDER", None)
    if not isinstance(found, Provider) or found.name != folder.name:
        raise InvalidArgument(f"{folder / '__init__.py'} has no PROVIDER of the name {folder.name!r}")
    return found


#: Folders elsewhere.
FOLDERS = [Path(folder) for folder in os.environ.get("PY_ORT_PROVIDERS", "").split(os.pathsep) if folder]
_FOUND: list[Provider] = [
    *(import_module(f"{__name__}.{each.name}").PROVIDER for each in pkgutil.iter_modules(__path__) if each.ispkg),
    *map(_loaded, FOLDERS),
]
if len({each.name for each in _FOUND}) < len(_FOUND):
    raise InvalidArgument(f"PY_ORT_PROVIDERS names a provider that there is: {', '.join(each.name for each in _FOUND)}")
#: All providers by name, the best one first.
PROVIDERS: dict[str, Provider] = {each.name: each for each in sorted(_FOUND, key=lambda each: each.order)}
#: The providers with kernels.
AVAILABLE: tuple[str, ...] = tuple(name for name, each in PROVIDERS.items() if not each.unavailable)
#: The providers of sessions that name none.
DEFAULT: tuple[str, ...] = tuple(name for name in AVAILABLE if PROVIDERS[name].default)
#: The provider whose tensors are in the core's heap. It runs the nodes that no other one can run.
CPU: str = next(name for name in AVAILABLE if not PROVIDERS[name].on_device)
#: The best default provider with a device.
FIRST_DEVICE: str = next(name for name in DEFAULT if PROVIDERS[name].on_device)


#: The main name of each provider by all its names, in lower case.
ALIASES: dict[str, str] = {
    alias.lower(): each.name for each in PROVIDERS.values() for alias in (each.name, *each.aliases)
}


def find_provider(name: str) -> Provider | None:
    """Return the provider of a name, py_ort's or onnxruntime's in any case; None if there is none."""
    found = ALIASES.get(name.lower())
    return None if found is None else PROVIDERS[found]


def canonical_provider(name: str) -> str:
    """Return py_ort's own name of a provider: "webgpu".

    Raises:
        InvalidArgument: The name is unknown.
    """
    found = find_provider(name)
    if found is None:
        raise InvalidArgument(
            f"Unknown Provider Type: {name}{did_you_mean(name, PROVIDERS)}. There are {', '.join(PROVIDERS)} "
            "(onnxruntime's names are known too)"
        )
    return found.name


def onnxruntime_name(name: str) -> str:
    """Return the provider's name in onnxruntime's manner: "WebGpuExecutionProvider"."""
    return PROVIDERS[canonical_provider(name)].aliases[0]


def on_device(name: str) -> bool:
    """Return True if a provider's tensors are outside of the core's heap."""
    return PROVIDERS[name].on_device


def with_cpu(*names: str) -> list[str]:
    """Return the providers followed by the CPU, which as in onnxruntime runs the remaining nodes, named or not."""
    return list(dict.fromkeys([*names, CPU]))


_WHERE = {"PlacedNode": "placement_table", "Placement": "placement_table"}
__all__ = [
    "ALIASES",
    "AVAILABLE",
    "CPU",
    "DEFAULT",
    "FIRST_DEVICE",
    "FOLDERS",
    "PROVIDERS",
    "Option",
    "PlacedNode",
    "Placement",
    "Provider",
    "canonical_provider",
    "find_provider",
    "on_device",
    "onnxruntime_name",
    "with_cpu",
]
__getattr__ = lazily(__name__, _WHERE)
