"""Execution providers as values: compiler, sessions and tools ask for capabilities, and never for a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from py_ort.providers.needs import NOTHING, Needs
from py_ort.providers.option import Option

if TYPE_CHECKING:
    from py_ort.providers.packing import Packing


def _unpacked() -> Packing:
    from py_ort.providers.packing import Packing

    return Packing()


@dataclass(frozen=True)
class Crossing:
    """The price of a piece of a graph on a device between nodes on the CPU, and the time that the piece saves there.

    Attributes:
        ms: Milliseconds that a piece costs besides its work.
        ms_per_mb: Milliseconds for each MB that is transferred to the piece or back.
        gain: The share of the CPU's time for a piece that the device saves.
    """

    ms: float
    ms_per_mb: float
    gain: float


@dataclass(frozen=True)
class Provider:
    """An execution provider.

    Attributes:
        name: Its name in sessions and reports.
        aliases: Its other names; the first is onnxruntime's.
        order: Its rank, the best one first; the CPU's is the last.
        default: True if sessions that name no provider use it.
        unavailable: Reason why it has no kernels; "" if it has some.
        on_device: True if its tensors are outside of the core's heap.
        whole_graphs: True if it needs whole graphs: nodes in bodies of control flow run on other providers.
        asked: True if placement asks its device about each node: browsers support different calls of a kernel.
        empty_tensors: True if it supports tensors without elements.
        elements: The stored type of each element type on its device, types as in manifests; empty for the CPU.
        device_names: Names of its device: first that of `OrtValue.device_name`, then other accepted names. A name of
            several providers' devices means that of a session, and without a session the best provider's.
        user_kernels: True if users' own kernels run on it.
        tiles: True if its products use a table of tiles measured on the device.
        needs: Requirements on a browser to offer it.
        options: Its options.
        c_name: Its name in C ("OrtNAMEProviderOptions"), if the core has a header of its options.
        without_effect: Options of onnxruntime's provider of the same name that have no effect here.
        packing: The order of constant weights for its kernels.
        crossing: Returns the price of its pieces for given options; None: prices are ignored.
    """

    name: str
    aliases: tuple[str, ...]
    order: int
    default: bool = False
    unavailable: str = ""
    on_device: bool = True
    whole_graphs: bool = False
    asked: bool = False
    empty_tensors: bool = True
    elements: Mapping[str, str] = field(default_factory=dict)
    device_names: tuple[str, ...] = ()
    user_kernels: bool = False
    tiles: bool = False
    needs: Needs = NOTHING
    options: tuple[Option, ...] = ()
    c_name: str = ""
    without_effect: frozenset[str] = frozenset()
    packing: Callable[[], Packing] = _unpacked
    crossing: Callable[[Mapping[str, str]], Crossing | None] = lambda given: None

    @property
    def device_name(self) -> str:
        """The name of its device in `OrtValue.device_name`."""
        return self.device_names[0]

    @property
    def prefix(self) -> str:
        """The prefix of its options' keys among a session's configuration entries, as in onnxruntime."""
        return f"ep.{self.aliases[0].lower()}."

    def for_page(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the options for the page."""
        return {each.key: given[each.key] for each in self.options if each.key in given and not each.compiles}

    def for_compiler(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the fields of `CompileOptions` that its options set."""
        return {
            each.compiles: each.read(given[each.key]) for each in self.options if each.compiles and each.key in given
        }
