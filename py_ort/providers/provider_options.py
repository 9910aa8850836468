"""Options of providers: checked, and as onnxruntime's strings."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from py_ort.exceptions import InvalidArgument
from py_ort.providers import AVAILABLE, PROVIDERS


def check_options(provider: str, given: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return a provider's options as strings, and the keys without an effect.

    Args:
        provider: Its name.
        given: The user's options: numbers, bools and lists of names are accepted, too.

    Raises:
        InvalidArgument: A key or a value is unknown; the message lists the known ones.
    """
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"options of a provider are a dict, not {given!r}", provider=provider)
    asked = PROVIDERS[provider]
    known, ignored, checked = {each.key: each for each in asked.options}, set(), {}
    for key, value in given.items():
        short = key[len(asked.prefix) :] if key.lower().startswith(asked.prefix) else key
        if short in known:
            checked[short] = known[short].text(value, provider)
        elif short in asked.without_effect:
            ignored.add(short)
        else:
            raise InvalidArgument(f"provider {provider} has no option {key!r}{_meant(short, known)}", provider=provider)
    return checked, sorted(ignored)


def _meant(key: str, known: Iterable[str]) -> str:
    keys = list(known)
    flat = {name.lower(): name for name in keys}
    close = difflib.get_close_matches(key.replace("_", "").lower(), list(flat), 1)
    meant = f"; did you mean {flat[close[0]]!r}?" if close else ""
    return f"{meant} It has {', '.join(keys)}" if meant else f": it has {', '.join(keys)}"


def of_provider(entry: str) -> bool:
    """Return True if a session's configuration entry is an option of a provider."""
    return any(entry.lower().startswith(PROVIDERS[name].prefix) for name in AVAILABLE)


def in_entries(provider: str, entries: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a provider among a session's configuration entries, without their prefix."""
    prefix = PROVIDERS[provider].prefix
    return {key[len(prefix) :]: value for key, value in entries.items() if key.lower().startswith(prefix)}


def all_options(provider: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return all options of a provider, with defaults for missing ones."""
    return {each.key: given.get(each.key, each.default) for each in PROVIDERS[provider].options}
