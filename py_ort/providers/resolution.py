"""From the providers that a session asks for to those that can be tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from py_ort.exceptions import InvalidArgument
from py_ort.providers.names import ALIASES, canonical_provider
from py_ort.providers.options import check_options, entries_for_webgpu

#: Used when a session names none.
DEFAULT = ("webgpu", "wasm")
#: Real names without kernels so far, and why they are left out.
UNAVAILABLE = {
    "webgl": "py_ort has no WebGL kernels yet",
    "webnn": "py_ort has no WebNN backend yet",
}


@dataclass
class Wanted:
    """Providers to open, best first, with their options; those that cannot be, with the reason; what came twice; and
    options without effect, by provider.
    """

    providers: dict[str, dict[str, str]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    ignored: dict[str, list[str]] = field(default_factory=dict)


def resolve(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    provider_options: Sequence[Mapping[str, Any]] | None = None,
    entries: Mapping[str, str] | None = None,
) -> Wanted:
    """Read the arguments `providers` and `provider_options` of a session.

    Args:
        providers: Names, or pairs of a name and its options.
        provider_options: Options for each of them.
        entries: The session's configuration entries, where those of webgpu may be too.

    Raises:
        InvalidArgument: A name that is no provider anywhere, or options that do not match or are unknown.
    """
    if isinstance(providers, str):
        raise InvalidArgument(f"providers is a list of names: [{providers!r}]")
    items = list(providers) if providers else list(DEFAULT)
    if provider_options is not None and len(provider_options) != len(items):
        raise InvalidArgument(f"there are {len(items)} providers and {len(provider_options)} provider_options")
    wanted = Wanted()
    for index, item in enumerate(items):
        name, options = (item, {}) if isinstance(item, str) else (item[0], dict(item[1]))
        if provider_options is not None:
            options = {**options, **provider_options[index]}
        if name.lower() not in ALIASES and name.endswith("ExecutionProvider"):
            wanted.dropped[name] = "it runs natively only, not in a browser"
            continue
        canonical = canonical_provider(name)
        if canonical in UNAVAILABLE:
            wanted.dropped[canonical] = UNAVAILABLE[canonical]
        elif canonical in wanted.providers:
            wanted.repeated.append(name)
        else:
            if canonical == "webgpu":
                options = {**entries_for_webgpu(entries or {}), **options}
            wanted.providers[canonical], ignored = check_options(canonical, options)
            if ignored:
                wanted.ignored[canonical] = ignored
    return wanted
