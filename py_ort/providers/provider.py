"""Execution providers as values: compiler, sessions and tools ask what one has, and never for its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from py_ort.exceptions import InvalidArgument

if TYPE_CHECKING:
    from py_ort.providers.packing import Packing


@dataclass(frozen=True)
class Option:
    """One option of a provider.

    Attributes:
        key: Its name.
        kind: "number", "flag", "choice" or "text".
        values: Those of a flag or a choice.
        default: What it is where nobody says.
        provider: Whose it is.
    """

    key: str
    kind: str
    values: tuple[str, ...]
    default: str
    provider: str

    def text(self, value: Any) -> str:
        """Return a value as a string.

        Raises:
            InvalidArgument: It is none of this option's.
        """
        if isinstance(value, bool):
            value = "1" if value else "0"
        elif self.kind == "flag" and isinstance(value, str) and value.lower() in ("true", "false"):
            value = "1" if value.lower() == "true" else "0"
        elif self.kind == "text" and not isinstance(value, str):
            value = "\n".join(value)
        text = str(value)
        if self.kind == "number" and not (text.isascii() and text.isdigit()):
            raise InvalidArgument(
                f"option {self.key} of {self.provider} is a whole number from 0, not {value!r}", provider=self.provider
            )
        if self.kind in ("flag", "choice") and text not in self.values:
            known = ", ".join(value for value in self.values if value)
            raise InvalidArgument(
                f"option {self.key} of {self.provider} is one of {known}; not {value!r}", provider=self.provider
            )
        return text


def _none() -> dict[str, Option]:
    return {}


def _unpacked() -> Packing:
    from py_ort.providers.packing import Packing

    return Packing()


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
        elements: As what elements of a type lie on its device, types as manifests name them; none elsewhere.
        device_names: Names of its device: the one that `OrtValue.device_name` gives, then those that are taken, too.
        user_kernels: Whether users' own kernels run on it.
        options: Its options, by key.
        for_compiler: Keys of those that are settled before there is anything in a page.
        without_effect: Options of onnxruntime's provider of the same name that do nothing here.
        packing: In which order its kernels read constant weights.
    """

    name: str
    aliases: tuple[str, ...]
    order: int
    default: bool = False
    unavailable: str = ""
    on_device: bool = True
    elements: Mapping[str, str] = field(default_factory=dict)
    device_names: tuple[str, ...] = ()
    user_kernels: bool = False
    options: Callable[[], Mapping[str, Option]] = _none
    for_compiler: frozenset[str] = frozenset()
    without_effect: frozenset[str] = frozenset()
    packing: Callable[[], Packing] = _unpacked

    @property
    def prefix(self) -> str:
        """The beginning of its options' keys among a session's configuration entries, as in onnxruntime."""
        return f"ep.{self.aliases[0].lower()}."

    def for_page(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the options that the page is told."""
        return {key: value for key, value in given.items() if key not in self.for_compiler}
