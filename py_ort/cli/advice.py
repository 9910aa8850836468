"""Messages for Python, in the words of the command line."""

from __future__ import annotations

import logging
import re

#: Words of messages, and the flag or variable with the same effect.
_FLAGS = (
    (r"BrowserOptions\(sandbox=\w+\) or (?=PY_ORT_SANDBOX)", ""),
    (r"BrowserOptions\(sandbox=True\)", "PY_ORT_SANDBOX=1"),
    (r"BrowserOptions\((webgpu|launcher|browser)='([^']*)'\)", r"--\1 \2"),
    (r"\b(launcher|browser|webgpu)='([^']*)'", r"--\1 \2"),
    (r"BrowserOptions\(launch_timeout=…\)", "--launch-timeout"),
    (r"\bgive browser= ", "give --browser "),
    (r"an operator of your own goes to py_ort\.register_kernel first", "--kernels FILE names an operator of your own"),
    (r"\bproviders=\['(\w+)'\]", r"--provider \1"),
)


def in_flags(text: str) -> str:
    """Return a message with flags in place of arguments."""
    for spoken, flag in _FLAGS:
        text = re.sub(spoken, flag, text)
    return text


class Formatter(logging.Formatter):
    """Formats log lines with flags in place of arguments."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        return in_flags(super().format(record))
