"""From a session's requested providers to those to try."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from py_ort.exceptions import InvalidArgument, WrongType
from py_ort.providers import DEFAULT, PROVIDERS, canonical_provider, find_provider
from py_ort.providers.provider_options import check_options, in_entries

#: The configuration entry by which no provider of the list may be skipped.
REQUIRE = "session.require_providers"


@dataclass
class Wanted:
    """The providers that a session requests.

    Attributes:
        providers: Providers to open, best first, with their options.
        dropped: Providers that cannot be opened anywhere, with the reason.
        repeated: Repeated names.
        ignored: Options without effect, by provider.
        required: True if none may be skipped.
        cpu_may_stand_in: True if the CPU may run the nodes of a skipped provider.
    """

    providers: dict[str, dict[str, str]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    ignored: dict[str, list[str]] = field(default_factory=dict)
    required: bool = False
    cpu_may_stand_in: bool = True


def resolve(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    provider_options: Sequence[Mapping[str, Any]] | None = None,
    entries: Mapping[str, str] | None = None,
) -> Wanted:
    """Read the arguments `providers` and `provider_options` of a session.

    Args:
        providers: Names, or pairs of a name and its options.
        provider_options: Options for each of them.
        entries: The session's configuration entries, which may include options of providers.

    Raises:
        InvalidArgument: A name that is not a provider anywhere, or options that do not match or are unknown.
    """
    if isinstance(providers, str):
        raise InvalidArgument(f"providers is a list of names: [{providers!r}]")
    if providers is not None and not isinstance(providers, Collection):
        raise WrongType(f"providers is a list of names, not {type(providers).__name__}")
    items = list(providers) if providers else list(DEFAULT)
    if provider_options is not None and len(provider_options) != len(items):
        raise InvalidArgument(f"there are {len(items)} providers and {len(provider_options)} provider_options")
    entries = entries or {}
    required = entries.get(REQUIRE, "0")
    if required not in ("0", "1"):
        raise InvalidArgument(f'{REQUIRE}={required!r}: "0" or "1"')
    may_stand_in = entries.get("session.disable_cpu_ep_fallback") != "1"
    wanted = Wanted(required=required == "1", cpu_may_stand_in=may_stand_in)
    for index, item in enumerate(items):
        name, options = (item, {}) if isinstance(item, str) else (item[0], dict(item[1]))
        if provider_options is not None:
            options = {**options, **provider_options[index]}
        if find_provider(name) is None and name.endswith("ExecutionProvider"):
            wanted.dropped[name] = "it runs natively only, not in a browser"
            continue
        canonical = canonical_provider(name)
        if why := PROVIDERS[canonical].unavailable:
            wanted.dropped[canonical] = why
        elif canonical in wanted.providers:
            wanted.repeated.append(name)
        else:
            options = {**in_entries(canonical, entries), **options}
            wanted.providers[canonical], ignored = check_options(canonical, options)
            if ignored:
                wanted.ignored[canonical] = ignored
    return wanted
