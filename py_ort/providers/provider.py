"""Execution providers as values: compiler, sessions and tools ask what one has, and never for its name."""

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
    """The price of a piece of a graph on a device between nodes on the CPU, and what the piece saves there.

    Attributes:
        ms: Milliseconds that a piece costs besides its work.
        ms_per_mb: Milliseconds for each MB that goes to the piece or back.
        gain: The share of the CPU's time for a piece that the device saves.
    """

    ms: float
    ms_per_mb: float
    gain: float


@dataclass(frozen=True)
class Provider:
    """An execution provider.

    Attributes:
        name: As sessions are told it, and as reports have it.
        aliases: Its other names; the first is onnxruntime's.
        order: Its place among all, the best one first; that of the CPU is the last.
        default: Whether sessions want it that name no provider.
        unavailable: Why there are no kernels of it, if there are none.
        on_device: Whether its tensors live outside of the core's heap.
        whole_graphs: Whether it wants whole graphs: nodes in bodies of control flow are left to others.
        asked: Whether placement asks its device about each node: browsers differ in the calls of a kernel they take.
        empty_tensors: Whether it knows tensors without elements.
        elements: As what elements of a type lie on its device, types as manifests name them; none elsewhere.
        device_names: Names of its device: the one that `OrtValue.device_name` gives, then those that are taken, too.
        user_kernels: Whether users' own kernels run on it.
        tiles: Whether its products take tiles of a table that was measured on the device.
        needs: What a browser needs to offer it.
        options: Its options.
        c_name: Its name in C ("OrtNAMEProviderOptions"), if the core has a header of its options.
        without_effect: Options of onnxruntime's provider of the same name that do nothing here.
        packing: In which order its kernels read constant weights.
        crossing: Returns the price of its pieces by the options given to it; None: it is not looked at.
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
        """The name that `OrtValue.device_name` gives of its device."""
        return self.device_names[0]

    @property
    def prefix(self) -> str:
        """The beginning of its options' keys among a session's configuration entries, as in onnxruntime."""
        return f"ep.{self.aliases[0].lower()}."

    def for_page(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the options that the page is told."""
        return {each.key: given[each.key] for each in self.options if each.key in given and not each.compiles}

    def for_compiler(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the fields of `CompileOptions` that its options set."""
        return {
            each.compiles: each.read(given[each.key]) for each in self.options if each.compiles and each.key in given
        }
