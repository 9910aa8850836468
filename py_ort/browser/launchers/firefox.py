"""Firefox as a plain process, with a profile that keeps it quiet."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py_ort.browser import find
from py_ort.browser.launchers.process import Command, ProcessLauncher
from py_ort.providers import PROVIDERS

if TYPE_CHECKING:
    from py_ort.browser.browser_options import BrowserOptions

#: Preferences without questions at the start, network use of its own, and updates.
QUIET: dict[str, Any] = {
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.newtabpage.enabled": False,
    "browser.preonboarding.enabled": False,
    "browser.region.network.url": "",
    "browser.region.update.enabled": False,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.sessionstore.resume_from_crash": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.startup.page": 0,
    "browser.topsites.contile.enabled": False,
    "datareporting.healthreport.uploadEnabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.push.connection.enabled": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.systemAddon.update.enabled": False,
    "extensions.update.enabled": False,
    "media.gmp-manager.updateEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.http.speculative-parallel-limit": 0,
    "network.trr.mode": 5,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "termsofuse.bypassNotification": True,
    "toolkit.telemetry.server": "",
}
#: Preferences that make a page in the background as fast as one in front.
UNTHROTTLED: dict[str, Any] = {
    "dom.min_background_timeout_value": 4,
    "dom.timeout.enable_budget_timer_throttling": False,
}


def devices(options: BrowserOptions) -> dict[str, Any]:
    """Return the preferences that switch the providers' devices on or off."""
    device = options.settled().webgpu
    return {key: value for each in PROVIDERS.values() for key, value in each.needs.firefox(device).items()}


class FirefoxLauncher(ProcessLauncher):
    """Firefox, headless by itself. WebGPU takes the Vulkan driver that the system gives it (VK_DRIVER_FILES).

    WebGL needs a display, headless or not: without one Firefox gets a virtual one, where Xvfb is installed.
    """

    def command(self, url: str, profile: Path) -> Command:
        binary = find.binary(self.options.browser)
        preferences = {**QUIET, **UNTHROTTLED, **devices(self.options)}
        lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items())
        (profile / "user.js").write_text("".join(lines))
        headless = ["--headless"] if self.options.headless else []
        # On Windows the started process starts another one and ends, without this flag.
        stay = ["--wait-for-browser"] if sys.platform == "win32" else []
        # Its own home: it writes there besides the profile.
        environment = {**self.options.environment(), "HOME": str(profile), "MOZ_CRASHREPORTER_DISABLE": "1"}
        if headless and sys.platform == "linux" and not environment.get("DISPLAY"):
            with suppress(OSError):
                environment |= self.virtual_display(profile)
        return Command(
            [str(binary), *headless, *stay, "--no-remote", "--profile", str(profile), *self.options.flags, url],
            environment,
            find.version(binary) or binary.name,
        )
