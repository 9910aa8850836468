"""Options of browsers, and their command lines."""

from __future__ import annotations

import operator
import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from py_ort.boundary import public
from py_ort.browser import find, sandbox
from py_ort.browser.certificate import key_hash
from py_ort.exceptions import InvalidArgument
from py_ort.providers import PROVIDERS

#: `browser=` for browsers that people open a URL in.
CAPTURE = "capture"
LAUNCHERS = ("auto", "playwright", "process")
WEBGPU = ("auto", "hardware", "software", "off")

#: Flags that stop Chromium's own network use, and its throttling of pages in the background.
QUIET = (
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-renderer-backgrounding",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
)
#: A window's address bar prepares two pages in a process of their own, which is half the time of a start. Features that
#: ask servers for contents of these pages are off as well. Chromium uses only the last of several such flags, so the
#: list includes features that Playwright switches off for pages like ours.
NO_ADDRESS_BAR = "--disable-features=" + ",".join((
    "AimEnabled",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxPopup",
))  # fmt: skip
NO_SANDBOX = "--no-sandbox"
_FEATURES = "--enable-features="
TRUSTED_KEYS = "--ignore-certificate-errors-spki-list"
#: User, password and parameters in a URL.
_SECRETS = re.compile(r"(?<=//)[^/@?#]*@|\?[^#]*")


def without_secrets(url: str) -> str:
    """Return a URL without its user, password and parameters."""
    return _SECRETS.sub("", url)


@public
@dataclass(frozen=True)
class BrowserOptions:
    """Options of a browser. Sessions with equal options share one browser and one page.

    Attributes:
        browser: "chromium", "firefox", "webkit" (WebKitGTK) or "qtwebengine" (the web view of apps, of PySide6); the
            path of a browser's binary; "cdp:URL" of one that runs already; "playwright:WSURL" or
            "webdriver:URL#BROWSER" of a server that starts one (Playwright's, or a WebDriver, like Selenium Grid's
            hub); "capture" prints one URL, and uses the browsers that open it.
            Default: variable PY_ORT_BROWSER, else "chromium".
        launcher: "playwright" (Chromium only), "process" (the binary with a URL, without Playwright), or "auto":
            Playwright where possible. Default: variable PY_ORT_LAUNCHER, else "auto".
        webgpu: Flags for WebGPU: "hardware", which refuses adapters on the CPU; "software" (SwiftShader, on the CPU);
            "off"; "auto": hardware if there is a GPU, else software. Default: variable PY_ORT_WEBGPU, else
            "auto".
        flags: Further flags for the browser's command line. Variable CHROMIUM_FLAGS replaces all flags that py_ort
            chooses for Chromium, except the sandbox's.
        env: Further environment variables for the browser. Variable CHROMIUM_LD becomes its LD_LIBRARY_PATH.
        sandbox: Sandbox of Chromium, QtWebEngine and WebKit. True: required. False: off. None: on, or off with a
            warning if this user is root (not WebKit), a tool is missing (WebKit) or the system forbids it. Default:
            variable PY_ORT_SANDBOX ("1" or "0"), else None. Firefox decides for itself. See docs/security.md.
        headless: True to start without a window.
        launch_timeout: Seconds to wait for the browser and its page, and for a WebGPU device; with "capture", for a
            browser to open the URL, while none has. After that, `Timeout` is raised.
        idle_timeout: Seconds from the close of a browser's last session to the browser's end.
        pages: Largest number of workers over which a browser spreads its sessions. Sessions of one worker share its
            core and devices, and run in turn; sessions of different workers run at the same time. A worker is started
            when all others are in use.
        instance: Number that separates browsers: options with different numbers use different browsers.
        host: An address of this machine for browsers of other machines, "0.0.0.0" for all; "": loopback only. One port
            serves page, weights and websocket; its URL contains a secret.
        port: The number of that port; 0: any free port.
        public_url: The origin that browsers use, if it is not https://ADDRESS:PORT: of a reverse proxy or a tunnel.
        certificate: Files (PEM) of a TLS certificate and its key. Without TLS, from here or from a proxy, remote
            browsers give a page neither WebGPU nor threads. A Chromium that is started for this page accepts any
            signer; other browsers must trust the signer.
    """

    browser: str = field(default_factory=lambda: os.environ.get("PY_ORT_BROWSER") or "chromium")
    launcher: str = field(
        default_factory=lambda: os.environ.get("PY_ORT_LAUNCHER") or "auto", metadata={"values": LAUNCHERS}
    )
    webgpu: str = field(default_factory=lambda: os.environ.get("PY_ORT_WEBGPU") or "auto", metadata={"values": WEBGPU})
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    sandbox: bool | None = field(default_factory=lambda: _switch("PY_ORT_SANDBOX"))
    headless: bool = True
    launch_timeout: float = 60.0
    idle_timeout: float = 60.0
    pages: int = 1
    instance: int = 0
    host: str = ""
    port: int = 0
    public_url: str = ""
    certificate: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value, allowed = getattr(self, each.name), each.metadata.get("values")
            if allowed and value not in allowed:
                raise InvalidArgument(f"{each.name} is one of {', '.join(allowed)}, not {value!r}")
        if not isinstance(self.browser, str):
            raise InvalidArgument(f"browser is a name, a path or a URL, not {type(self.browser).__name__}")
        if operator.index(self.pages) < 1:
            raise InvalidArgument(f"pages is 1 or more, not {self.pages}")
        if not self.host and (self.port or self.public_url or self.certificate):
            raise InvalidArgument("port, public_url and certificate are for a host: host='0.0.0.0', or an address")
        if self.public_url and not re.match(r"https?://[^/?#]+/?$", self.public_url):
            raise InvalidArgument(f"public_url is like https://tests.example:8443, not {self.public_url!r}")
        if self.certificate is not None:
            certificate, key = self.certificate
            object.__setattr__(self, "certificate", (os.fspath(certificate), os.fspath(key)))
        if isinstance(self.flags, str):
            object.__setattr__(self, "flags", tuple(shlex.split(self.flags)))
        # Hashable, so that equal options find the same browser.
        object.__setattr__(self, "flags", tuple(self.flags))
        object.__setattr__(self, "env", tuple(sorted(dict(self.env).items())))

    @property
    def name(self) -> str:
        """`browser` without possible secrets in a remote browser's address."""
        return without_secrets(self.browser)

    @classmethod
    def of(
        cls,
        browser: str | BrowserOptions | None,
        launcher: str | None = None,
        pages: int | None = None,
        webgpu: str | None = None,
    ) -> BrowserOptions:
        """Return options from the arguments of a session.

        Args:
            browser: Options, or their attribute `browser`; None: the default.
            launcher: Replaces the options' attribute of this name, if it is not None.
            pages: As `launcher`.
            webgpu: As `launcher`.

        Raises:
            InvalidArgument: A value is not allowed.
        """
        options = browser if isinstance(browser, BrowserOptions) else cls(browser=browser) if browser else cls()
        launcher, pages, webgpu = launcher or options.launcher, pages or options.pages, webgpu or options.webgpu
        return replace(options, launcher=launcher, pages=pages, webgpu=webgpu)

    def settled(self) -> BrowserOptions:
        """Return options without "auto", as on this machine: options that start the same browser become equal."""
        webgpu, launcher = self.webgpu, self.launcher
        if webgpu == "auto":
            webgpu = "hardware" if has_gpu() else "software"
        if launcher == "auto":
            launcher = "playwright" if find.family(self.browser) == "chromium" else "process"
        return replace(self, webgpu=webgpu, launcher=launcher)

    def command_line(self) -> list[str]:
        """Return the flags of a Chromium for our page, without those of the profile and of debugging."""
        return self._with_sandbox([NO_ADDRESS_BAR, *self._trust(), *self._chosen_flags()])

    def flags_for_any_page(self) -> list[str]:
        """Return the flags of a Chromium for pages of others, without flags that change the browser for them."""
        return self._with_sandbox(self._chosen_flags())

    def _with_sandbox(self, chosen: list[str]) -> list[str]:
        own = os.environ.get("CHROMIUM_FLAGS")
        flags = [*(chosen if own is None else shlex.split(own)), *self.flags]
        if NO_SANDBOX not in flags and sandbox.off(self.browser, self.sandbox, obstacle=sandbox.root()):
            flags.insert(0, NO_SANDBOX)
        return _together(flags)

    def flags_elsewhere(self) -> list[str]:
        """Return the flags of a Chromium that another machine starts, as a user unknown here."""
        own = [NO_ADDRESS_BAR, *self._trust(), *self._chosen_flags()]
        return [*([NO_SANDBOX] if self.sandbox is False else []), *_together([*own, *self.flags])]

    def _trust(self) -> list[str]:
        """Return the flag with which Chromium accepts our own certificate with any signer, and no other."""
        return [f"{TRUSTED_KEYS}={key_hash(self.certificate[0])}"] if self.certificate else []

    def _chosen_flags(self) -> list[str]:
        device = self.settled().webgpu
        wanted = (flag for each in PROVIDERS.values() for flag in each.needs.chromium(device))
        return [*QUIET, *dict.fromkeys(wanted)]

    def no_adapter_hint(self, provider: str) -> str:
        """Return advice for a browser that has no device of a provider."""
        hints, family = PROVIDERS[provider].needs.hints, find.family(self.browser)
        if self.browser == CAPTURE or self.browser.startswith("given:"):
            family = "given"
        elif self.webgpu == "hardware" and family not in ("webkit", "qtwebengine"):
            family = self.webgpu
        return hints.get(family, hints.get("", "another browser"))

    def environment(self) -> dict[str, str]:
        """Return the environment for the browser."""
        env = {**os.environ, **dict(self.env)}
        if libraries := os.environ.get("CHROMIUM_LD"):
            env["LD_LIBRARY_PATH"] = libraries
        return env


def _together(flags: list[str]) -> list[str]:
    """Return the flags with all features joined in one, because Chromium uses only the last such flag."""
    features = [flag.partition("=")[2] for flag in flags if flag.startswith(_FEATURES)]
    others = [flag for flag in flags if not flag.startswith(_FEATURES)]
    return [*others, _FEATURES + ",".join(dict.fromkeys(features))] if features else flags


def _switch(variable: str) -> bool | None:
    value = os.environ.get(variable, "")
    if value not in ("", "0", "1"):
        raise InvalidArgument(f"variable {variable} is 0 or 1, not {value!r}")
    return value == "1" if value else None


def has_gpu() -> bool:
    """Return True if this machine seems to have a real GPU (outside Linux: always)."""
    if sys.platform != "linux":
        return True
    device = Path("/dev")
    return any(device.glob("nvidia[0-9]*")) or any((device / "dri").glob("renderD*"))
