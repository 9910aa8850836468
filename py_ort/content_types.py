"""Content types of files, by their names."""

from __future__ import annotations

import mimetypes
from pathlib import PurePath

#: Types that browsers require, whatever the system's tables say; and ours.
_TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".wasm": "application/wasm",
    ".pyort": "application/x-pyort",
    ".onnx": "application/octet-stream",
    ".webmanifest": "application/manifest+json",
}


def content_type(name: str) -> str:
    """Return the type, without a character set."""
    suffix = PurePath(name).suffix.lower()
    return _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
