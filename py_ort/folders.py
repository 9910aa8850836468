"""Where this package lies, what is built into it, and where the user's programs keep what can be made again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent
#: The page, the core and what they say of their kernels; PY_ORT_ASSETS names another build's.
ASSETS = Path(os.environ.get("PY_ORT_ASSETS") or PACKAGE / "assets")


def user_caches() -> Path:
    """Return the folder of the user's caches, by the system's custom; XDG_CACHE_HOME names another one.

    Raises:
        RuntimeError: The user has no home.
    """
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named)
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
