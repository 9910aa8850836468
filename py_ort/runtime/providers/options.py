"""Options of providers: checked, and as the strings that they are in onnxruntime.

Those of webgpu are declared once, in the core (wasm_build/include/py_ort/webgpu_provider_options.h); its build leaves
their table in the assets. That of wasm is here, and the page reads it (web/src/core/microkernels.ts).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from py_ort.exceptions import EngineError, InvalidArgument
from py_ort.folders import ASSETS
from py_ort.wire.json_fields import DeviceOptions, Opening

if TYPE_CHECKING:
    from py_ort.browser.options import BrowserOptions

_TABLE = ASSETS / "options.webgpu.json"
#: onnxruntime's prefix of the same options among a session's configuration entries.
PREFIX = "ep.webgpuexecutionprovider."
#: Options of onnxruntime's native CPU provider, which have no effect here.
_NATIVE = ("arena_extend_strategy", "use_arena", "enable_cpu_mem_arena", "device_id")
#: Decided by the compiler, before there is anything in a page.
_FOR_COMPILER = ("preferredLayout", "forceCpuNodeNames")


@dataclass(frozen=True)
class Option:
    """One option: `kind` is "number", "flag", "choice" or "text"; `values` are those of a flag or a choice."""

    key: str
    kind: str
    values: tuple[str, ...]
    default: str
    provider: str = "webgpu"

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


#: Instructions of the CPU kernels' inner loops: those that every browser has, or relaxed SIMD, which may fuse steps.
_OF_WASM = {"simd": Option("simd", "choice", ("auto", "relaxed", "fixed"), "auto", "wasm")}


@cache
def webgpu_options() -> dict[str, Option]:
    """Return the options of webgpu, by key.

    Raises:
        EngineError: The core was not built.
    """
    try:
        entries = json.loads(_TABLE.read_text())
    except FileNotFoundError as e:
        raise EngineError(f"{_TABLE.name} is missing: the core is not built (run `make build` in a clone)") from e
    return {e["key"]: Option(e["key"], e["kind"], tuple(e["values"]), e["default"]) for e in entries}


def check_options(provider: str, given: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return a provider's options as strings, and the keys that have no effect here.

    Args:
        provider: "webgpu" or "wasm".
        given: As a user gives them: numbers, truths and lists of names are fine too.

    Raises:
        InvalidArgument: A key or a value is unknown; says what there is.
    """
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"options of a provider are a dict, not {given!r}", provider=provider)
    known, ignored = _options_of(provider), _NATIVE if provider == "wasm" else ()
    checked = {}
    for key, value in given.items():
        short = key[len(PREFIX) :] if provider == "webgpu" and of_webgpu(key) else key
        if short in known:
            checked[short] = known[short].text(value)
        elif short not in ignored:
            raise InvalidArgument(f"provider {provider} has no option {key!r}{_meant(short, known)}", provider=provider)
    return checked, sorted(key for key in given if key in ignored)


def _options_of(provider: str) -> Mapping[str, Option]:
    return webgpu_options() if provider == "webgpu" else _OF_WASM


def _meant(key: str, known: Iterable[str]) -> str:
    keys = list(known)
    flat = {name.lower(): name for name in keys}
    close = difflib.get_close_matches(key.replace("_", "").lower(), list(flat), 1)
    meant = f"; did you mean {flat[close[0]]!r}?" if close else ""
    return f"{meant} It has {', '.join(keys)}" if meant else f": it has {', '.join(keys)}"


def of_webgpu(entry: str) -> bool:
    """Whether a session's configuration entry is an option of webgpu."""
    return entry.lower().startswith(PREFIX)


def entries_for_webgpu(entries: Mapping[str, str]) -> dict[str, str]:
    """Return the options of webgpu among a session's configuration entries, which have a prefix there."""
    return {key[len(PREFIX) :]: value for key, value in entries.items() if of_webgpu(key)}


def all_options(provider: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a provider with those that were not given."""
    return {key: given.get(key, option.default) for key, option in _options_of(provider).items()}


def names_in(text: str) -> list[str]:
    """Return the node names in forceCpuNodeNames: one on each line."""
    return [line for line in text.split("\n") if line]


def for_page(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that the page is told."""
    return {key: value for key, value in options.items() if key not in _FOR_COMPILER}


def for_opening(browser: BrowserOptions) -> Opening:
    """Return how the page shall look for an adapter: whether among GPUs, and for how long."""
    told: Opening = {"timeoutMs": int(browser.launch_timeout * 1000)}
    if browser.settled().webgpu == "hardware":
        # "auto" takes what there is.
        told["hardware"] = "required" if browser.webgpu == "hardware" else "expected"
    return told


def for_adapter(options: Mapping[str, str], browser: BrowserOptions) -> DeviceOptions:
    """Return what a device is opened with: what `navigator.gpu.requestAdapter` takes, and `for_opening`."""
    asked: DeviceOptions = {**for_opening(browser)}
    if options.get("powerPreference"):
        asked["powerPreference"] = options["powerPreference"]
    if options.get("forceFallbackAdapter") == "1":
        asked["forceFallbackAdapter"] = True
    if options.get("subgroupMatrix") == "1":
        asked["subgroupMatrix"] = True
    return asked
