"""Flags, preferences and hints of browsers that offer a provider."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Needs:
    """Flags and preferences with which a browser offers a provider, and advice for browsers that do not.

    Attributes:
        flags: Chromium's flags, by the kind of device, "hardware" or "software"; "hardware linux" has additional flags
            for one system.
        preferences: Firefox's preferences that are on unless devices are off.
        hints: Advice if there is no device, by the browser's family; "given": for browsers that py_ort does not
            start; "hardware": if software devices are refused; "": for all others.
        in_page: True if some browsers offer it in the page's own thread only.
        features: The device's feature that an element type needs, by the type's name.
    """

    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    preferences: tuple[str, ...] = ()
    hints: Mapping[str, str] = field(default_factory=dict)
    in_page: bool = False
    features: Mapping[str, str] = field(default_factory=dict)

    def chromium(self, device: str) -> tuple[str, ...]:
        """Return Chromium's flags for a kind of device on this system."""
        return (*self.flags.get(device, ()), *self.flags.get(f"{device} {sys.platform}", ()))

    def firefox(self, device: str) -> dict[str, bool]:
        """Return Firefox's preferences for a kind of device."""
        return dict.fromkeys(self.preferences, device != "off")


#: Every browser offers it.
NOTHING = Needs()
