"""Where the time goes: a session's profile, its trace file, and tables and pages made of it.

clock.py    the page's clock on Python's
profile.py  the spans of a session with `SessionOptions.enable_profiling`
trace.py    Chrome trace files: written, read, and added up by kernel
report.py   the table and the HTML page of `py-ort profile`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.profiling.profile import Profile as Profile
    from py_ort.profiling.trace import GpuTimes as GpuTimes
    from py_ort.profiling.trace import KernelRow as KernelRow
    from py_ort.profiling.trace import Trace as Trace

_WHERE = {"GpuTimes": "trace", "KernelRow": "trace", "Profile": "profile", "Trace": "trace"}
__all__ = list(_WHERE)
__getattr__ = lazily(__name__, _WHERE)
