"""One run of one model: by native onnxruntime, and by py_ort in a page. A child calls each function; see `child.py`."""

from __future__ import annotations

import logging
import os
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Feeds = Mapping[str, Any]
NATIVE_LEVELS = {0: "ORT_DISABLE_ALL", 1: "ORT_ENABLE_BASIC", 2: "ORT_ENABLE_EXTENDED", 99: "ORT_ENABLE_ALL"}


@dataclass(frozen=True)
class Outcome:
    """The result of running a model.

    Attributes:
        status: "ok", "refused" (a typed error), or a fault: "untyped", "internal", "late", "lost", "unclear" (an error
            of the page that is no answer to a model), "replayed otherwise", "mistyped".
        stage: "create", "run", or "again": the run with other feeds.
        error: The exception's class.
        place: Where it was raised.
        text: Its message.
        outputs: Of a run.
        others: Outputs of the run with other feeds.
        log: Lines that were logged as errors, and failures that were only logged.
    """

    status: str
    stage: str = "create"
    error: str = ""
    place: str = ""
    text: str = ""
    outputs: Sequence[Any] = ()
    others: Sequence[Any] = ()
    log: Sequence[str] = field(default=())

    @property
    def is_fault(self) -> bool:
        """True if this is a bug, whatever the model."""
        return self.status not in ("ok", "refused") or bool(self.log)

    def __str__(self) -> str:
        lines = [f"{self.status} in {self.stage}: {self.error} at {self.place}: {self.text}", *self.log]
        return "\n".join(lines)


def native(model: bytes, feeds: Feeds | None, level: int = 0) -> Outcome:
    """Run a model in native onnxruntime; without feeds, only load it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, NATIVE_LEVELS[level])
    stage = "create"
    try:
        # The class that `InferenceSession` wraps, which prints before it raises.
        session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"], enable_fallback=False
        )
        if feeds is None:
            return Outcome("ok")
        stage = "run"
        return Outcome("ok", stage, outputs=session.run(None, dict(feeds)))
    except Exception as e:
        return Outcome("refused", stage, type(e).__name__, text=str(e)[:1500])


def ours(
    model: bytes, feeds: Feeds | None, provider: str, level: int, shapes: str = "first", others: Feeds | None = None
) -> Outcome:
    """Run a model in a page, twice (the second run is a replay), and with other feeds; without feeds, make a session.

    `shapes`: "first", with a plan for the shapes of the feeds, or "0", with the one for all shapes.
    """
    os.environ.setdefault("PY_ORT_CACHE", "0")
    os.environ.setdefault("PY_ORT_CHECK_PASSES", "1")
    warnings.simplefilter("ignore")
    from py_ort import BrowserOptions, InferenceSession, SessionOptions

    log = _Errors.listen()
    logging.getLogger("onnx_ir").setLevel(logging.CRITICAL)
    options = SessionOptions()
    options.graph_optimization_level = level
    options.create_timeout = options.run_timeout = _LIMIT
    options.add_session_config_entry("session.specialize_shapes", shapes)
    stage = "create"
    try:
        browser = BrowserOptions(webgpu="software", idle_timeout=3600)
        with InferenceSession(model, options, [provider], browser=browser) as session:
            stage, found = "run", []
            for _ in range(2 if feeds is not None else 0):
                found.append(session.run(None, feeds))
            given = session.get_outputs() if found else []
            stage = "again"
            again = session.run(None, others) if others is not None else ()
        wrong = [arg for arg, value in zip(given, found[0] if found else [], strict=True) if _mistyped(arg, value)]
        if wrong:
            return Outcome("mistyped", stage, text=f"not what get_outputs() says: {wrong}", log=log.take())
        if len(found) > 1 and not _same(*found[:2]):
            return Outcome("replayed otherwise", stage, outputs=found[1], log=log.take())
        return Outcome("ok", stage, outputs=found[0] if found else (), others=again, log=log.take())
    except Exception as e:
        return _failure(e, stage, log.take())


_LIMIT = 40.0


def _failure(error: Exception, stage: str, log: Sequence[str]) -> Outcome:
    from py_ort import exceptions

    name = type(error).__name__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "py_ort" in frame.filename]
    place = f"{frames[-1].filename.rpartition('py_ort/')[2]}:{frames[-1].lineno}" if frames else ""
    try:
        text = str(error)[:2000]
    except Exception as e:
        return Outcome("untyped", stage, f"{name}, whose text raises {type(e).__name__}", place, repr(e), log=log)
    unclear = (
        exceptions.CoreCrashed,
        exceptions.DeviceLost,
        exceptions.EngineError,
        exceptions.NoSuchSession,
        exceptions.ShaderError,
    )
    if isinstance(error, exceptions.InternalError):
        cause = type(error.__cause__).__name__
        return Outcome("internal", stage, cause, error.place, text, log=log)
    if isinstance(error, exceptions.Timeout):
        return Outcome("late", stage, name, text=text, log=log)
    if isinstance(error, (exceptions.PageCrashed, exceptions.BrowserCrashed, exceptions.ConnectionLost)):
        return Outcome("lost", stage, name, text=text, log=log)
    if isinstance(error, unclear):
        return Outcome("unclear", stage, name, text=text, log=log)
    if isinstance(error, exceptions.PyOrtError):
        return Outcome("refused", stage, name, place, text, log=log)
    return Outcome("untyped", stage, name, place, text, log=log)


def _mistyped(arg: Any, value: Any) -> bool:
    """Return True if a tensor of numbers has another dtype than in `get_outputs()`."""
    if (
        not isinstance(value, np.ndarray)
        or value.dtype.isbuiltin != 1
        or value.dtype.kind not in "iufb"
        or not arg.type
    ):
        return False
    said = arg.type.removeprefix("tensor(").removesuffix(")")
    return {"float": "float32", "double": "float64"}.get(said, said) != value.dtype.name


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, np.ndarray) and a.dtype.kind in "fV":
        return isinstance(b, np.ndarray) and a.tobytes() == b.tobytes()
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else a == b


class _Errors(logging.Handler):
    """Collects errors logged by the page, and our bugs that are only logged."""

    _instance: _Errors | None = None

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    @classmethod
    def listen(cls) -> _Errors:
        if cls._instance is None:
            cls._instance = cls()
            logger = logging.getLogger("py_ort")
            logger.addHandler(cls._instance)
            logger.setLevel(logging.INFO)
            logger.propagate = False
        return cls._instance

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno >= logging.ERROR or "a bug of py_ort" in text:
            self.lines.append(f"{record.name}: {text[:500]}")

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines
