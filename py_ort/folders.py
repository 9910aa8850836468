"""Where this package lies, and what is built into it."""

from pathlib import Path

PACKAGE = Path(__file__).parent
#: The page, the core and what they say of their kernels.
ASSETS = PACKAGE / "assets"
