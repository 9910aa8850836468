"""Session options of tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py_ort import SessionOptions


def settings(profile: Path | None = None, *, entries: dict[str, str] | None = None, **fields: Any) -> SessionOptions:
    """Return session options.

    Args:
        profile: A folder for the profile of the session, which is switched on then.
        entries: Configuration entries.
        fields: Values of attributes.
    """
    made = SessionOptions()
    if profile:
        made.enable_profiling, made.profile_file_prefix = True, str(profile / "profile")
    for name, value in (entries or {}).items():
        made.add_session_config_entry(name, value)
    for name, value in fields.items():
        setattr(made, name, value)
    return made
