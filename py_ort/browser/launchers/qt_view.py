"""A view of QtWebEngine that opens a page: `python -P qt_view.py FILE FLAG…`. Its process does not import py_ort.

FILE leads to the page. When py_ort ends, or ends the process, the process removes the file's folder.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import threading
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtWebEngineCore import QWebEngineProfile, QWebEngineSettings
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication

_PR_SET_PDEATHSIG = 1


def remove_at_the_end(folder: Path) -> None:
    """Remove the folder and end the process when it is asked to end, or when its parent has ended (Linux).

    A thread without Qt waits for that: Qt's event loop may hang, and does not run Python's signal handlers.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    def wait() -> None:
        signal.sigwait([signal.SIGTERM])
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def main(file: str, *flags: str) -> int:
    """Open the file; return the exit status: 1 if its page crashed."""
    if sys.platform == "linux":
        remove_at_the_end(Path(file).parent)
    application = QApplication([sys.argv[0], "--webEngineArgs", *flags])
    profile = QWebEngineProfile()  # a profile without a name is not written to the disk
    view = QWebEngineView(profile)

    def crashed(how: object, code: int) -> None:
        print(f"the page crashed: {how}, status {code}", file=sys.stderr)
        application.exit(1)

    view.page().renderProcessTerminated.connect(crashed)
    view.settings().setAttribute(QWebEngineSettings.WebAttribute.LocalContentCanAccessRemoteUrls, True)
    view.load(QUrl.fromLocalFile(file))
    view.show()
    status = application.exec()
    del view  # before its profile
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
