"""Devices of a session's outputs: onnxruntime-web's `preferredOutputLocation`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from py_ort.exceptions import InvalidArgument
from py_ort.runtime.values.ort_device import DEVICES, PROVIDER_OF, device_kind

if TYPE_CHECKING:
    from py_ort.compiler.plan.node_arg import NodeArg
    from py_ort.runtime.devices import Device
    from py_ort.runtime.values.device_tensor import DeviceTensor
    from py_ort.wire.json_fields import BoundOutput, RunOptions, Timed

#: Device of all outputs, or devices by name; outputs without a device stay on the CPU.
OutputLocation: TypeAlias = "str | Mapping[str, str]"
#: Outputs to leave on the GPU, each with a tensor to write it into, or None for a new tensor.
OnGpu: TypeAlias = "Mapping[str, DeviceTensor | None]"


def check_location(value: Any) -> OutputLocation:
    """Return a location of names in lower case.

    Raises:
        InvalidArgument: There is no such device.
        TypeError: The value is neither a string nor a mapping of strings.
    """
    if isinstance(value, str):
        device_kind(value)
        return value.lower()
    if isinstance(value, Mapping) and all(isinstance(item, str) for pair in value.items() for item in pair):
        return {name: cast(str, check_location(place)) for name, place in value.items()}
    raise TypeError(f"preferred_output_location is a place, or places by the names of outputs; not {value!r}")


def resolved(location: OutputLocation, own: Device | None) -> OutputLocation:
    """Return a location with the first name of each device; "gpu" is the session's own."""
    provider = None if own is None else own.provider
    if isinstance(location, str):
        return device_kind(location, provider)
    return {name: device_kind(place, provider) for name, place in location.items()}


def preferred(location: OutputLocation, outputs: Sequence[NodeArg], wanted: Sequence[str]) -> OnGpu:
    """Return the wanted outputs that stay on the GPU. A device for all outputs skips those without a form there.

    Raises:
        InvalidArgument: There is no output of a name, or its type has no form on the GPU.
    """
    if isinstance(location, str):
        if location not in DEVICES:
            return {}
        fitting = (arg.name for arg in outputs if _fits(arg, PROVIDER_OF[location]))
        return dict.fromkeys(name for name in fitting if name in wanted)
    known = [arg.name for arg in outputs]
    for name in location:
        if name not in known:
            raise InvalidArgument(
                f"preferred_output_location: the model has no output {name!r}: it has {', '.join(map(repr, known))}"
            )
    for name, place in location.items():
        if place in DEVICES:
            check_forms([name], outputs, PROVIDER_OF[place])
    return dict.fromkeys(name for name in wanted if location.get(name) in DEVICES)


def impossible(location: OutputLocation, own: Device | None) -> str:
    """Return the reason why a session on this device, or on none, cannot use a location; or ""."""
    places = {location} if isinstance(location, str) else set(location.values())
    if all(own is not None and PROVIDER_OF[place] == own.provider for place in places & DEVICES):
        return ""
    return "no node runs on a device" if own is None else f"the session's device is that of {own.provider}"


def check_forms(names: Collection[str], outputs: Sequence[NodeArg], provider: str) -> None:
    """Check that the named outputs can stay on a provider's device.

    Raises:
        InvalidArgument: The type of an output has no form there.
    """
    for arg in outputs:
        if arg.name in names and not _fits(arg, provider):
            raise InvalidArgument(
                f"output {arg.name!r} is {arg.type}, which has no form on {provider}: bind it to the CPU"
            )


def _fits(arg: NodeArg, provider: str) -> bool:
    return arg.keys is None and _has_form(arg.type, provider)


@cache
def _has_form(type_text: str, provider: str) -> bool:
    from py_ort.runtime.values.device_tensor import has_form
    from py_ort.wire.tensors import TYPE_NUMBERS

    element = type_text.removeprefix("tensor(").removesuffix(")")
    return element in TYPE_NUMBERS and has_form(provider, TYPE_NUMBERS[element])


def run_options(on_gpu: OnGpu, graph_id: int | None, profile: Timed | None) -> str:
    """Return the page's options of a run whose outputs are there."""
    bind: dict[str, BoundOutput] = {
        name: {"gpuId": tensor.live(), "dtype": tensor.dtype, "dims": tensor.shape}
        for name, tensor in on_gpu.items()
        if tensor is not None
    }
    options: RunOptions = {"bind": bind} if bind else {}
    if graph_id is not None:
        options["graphId"] = graph_id
    if profile:
        options["profile"] = profile
    return json.dumps(options)
