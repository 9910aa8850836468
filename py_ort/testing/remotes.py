"""`--ort-remote`: the browsers elsewhere that pytest's workers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from py_ort import BrowserOptions
    from py_ort.exceptions import PyOrtError

#: The name of any remote browser in ids of tests, which must be the same in each worker.
ANY_REMOTE = "remote"


def add_options(group: pytest.OptionGroup) -> None:
    """Declare the options."""
    group.addoption(
        "--ort-remote",
        action="append",
        metavar="BROWSER",
        help="playwright:, webdriver: or cdp: with a URL; may be repeated: pytest-xdist's workers share them",
    )
    group.addoption("--ort-host", default="", metavar="ADDRESS", help="where browsers elsewhere reach this machine")
    group.addoption("--ort-certificate", nargs=2, metavar=("FILE", "KEY"), help="TLS for --ort-host")


class Remotes:
    """The browsers of one worker, the one that it uses first in front."""

    def __init__(self, config: pytest.Config) -> None:
        from py_ort import BrowserOptions
        from py_ort.testing.nodes import nodes_of

        certificate = config.getoption("--ort-certificate")
        like = BrowserOptions(
            host=config.getoption("--ort-host"),
            certificate=certificate and tuple(certificate),
            idle_timeout=3600,
        )
        like = BrowserOptions.of(like, webgpu=config.getoption("--ort-webgpu"))
        nodes = nodes_of(config.getoption("--ort-remote"), like)
        worker = getattr(config, "workerinput", {"workerid": "gw0"})["workerid"]  # of pytest-xdist
        first = int(worker.removeprefix("gw")) % len(nodes)
        self._nodes = [*nodes[first:], *nodes[:first]]

    @classmethod
    def of(cls, config: pytest.Config) -> Remotes | None:
        """Return the remote browsers of this process; None if the command line names none."""
        if not config.getoption("--ort-remote"):
            return None
        if _KEY not in config.stash:
            config.stash[_KEY] = cls(config)
        return config.stash[_KEY]

    @property
    def browser(self) -> BrowserOptions:
        """The browser in use."""
        return self._nodes[0]

    @property
    def name(self) -> str:
        """Which that is."""
        return f"{self.browser.instance} {self.browser.name}"

    def without(self, error: PyOrtError) -> bool:
        """Return whether there is another browser, after this one could not be had. It is not asked again."""
        from py_ort.testing.fleet import GONE

        if len(self._nodes) == 1 or not isinstance(error, GONE):
            return False
        del self._nodes[0]
        return True


_KEY = pytest.StashKey[Remotes]()
