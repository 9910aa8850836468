"""I/O: launching browsers, serving them the page, and the connection to it, all in one background thread."""

from py_ort.browser.options import BrowserOptions

__all__ = ["BrowserOptions"]
