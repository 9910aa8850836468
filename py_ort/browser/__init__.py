"""I/O in one background thread: starts browsers, serves the page to them, and talks to the page."""

from py_ort.browser.browser_options import BrowserOptions

__all__ = ["BrowserOptions"]
