"""Where nodes of a model would run, without a session."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from py_ort.browser.browser_options import BrowserOptions
from py_ort.compiler.load.model_files import DATA_FOLDER_ENTRY
from py_ort.log import SessionLog
from py_ort.runtime.model_changes import changes_of
from py_ort.runtime.options import SessionOptions
from py_ort.runtime.session_creation import Progress, Providers, SessionCreation
from py_ort.runtime.session_model import Origin

if TYPE_CHECKING:
    from py_ort.providers import Placement


def place(
    model: str | os.PathLike[str] | bytes,
    options: SessionOptions,
    providers: Providers | None = None,
    provider_options: Sequence[Mapping[str, Any]] | None = None,
    *,
    browser: BrowserOptions,
    progress: Progress,
) -> Placement:
    """Return the placement of a session with these arguments; the browser compiles no shader and gets no weight.

    Raises:
        PyOrtError: As `InferenceSession` does.
    """
    origin = Origin(model, options.config_entries.get(DATA_FOLDER_ENTRY, ""))
    log = SessionLog(options.log_severity_level, options.logid)
    asked = (providers, provider_options)
    return SessionCreation(origin, options, asked, browser, progress, log, changes_of(options)).place()
