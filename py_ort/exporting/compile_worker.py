"""The process that compiles models for `py_ort.exporting.compile_process`, one job after the other. Run as a module.

It reads JSON lines: first its settings, then jobs {"model", "output"}. For each job it writes JSON lines: progress
{"stage", "done", "total"}, and at the end {"files", "external"} or {"error", "text"}. It ends with its input.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any

from py_ort.exceptions import PyOrtError

#: Characters of an error that are passed on: names of a model may be as long as the model.
_LONGEST = 4000


def _limit(memory: int) -> None:
    """Bound the memory, where the system can, and leave no file where the process dies."""
    with contextlib.suppress(OSError):  # where memory runs out, Linux ends this process, and not its parent
        Path("/proc/self/oom_score_adj").write_text("1000")
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _read(lines: queue.SimpleQueue[Any]) -> None:
    """Pass on the lines read. At the end of the input end the process, whatever it is doing: its parent has ended."""
    for line in sys.stdin:
        lines.put(json.loads(line))
    os._exit(0)


def main() -> None:
    """Run jobs until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # printed text must not mix with the answers
    lines: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    settings = lines.get()
    _limit(settings["memory"])

    from py_ort.exporting.export import export_model
    from py_ort.exporting.job import ExportOptions
    from py_ort.user_kernels import load_kernels

    options = ExportOptions(**settings["options"])
    for file in options.kernels:
        load_kernels(Path(file))

    def tell(**answer: Any) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    def report(stage: str, done: int, total: int) -> None:
        tell(stage=stage, done=done, total=total)

    while True:
        job = lines.get()
        try:
            made = export_model(
                job["model"],
                Path(job["output"]),
                options.providers,
                options.shapes,
                options.for_session(),
                options.part_size,
                progress=report,
                alone=options.alone,
            )
        except (PyOrtError, OSError) as e:
            tell(error=type(e).__name__ if isinstance(e, PyOrtError) else "OSError", text=_shortened(str(e)))
        except MemoryError:
            tell(error="OutOfMemory", text="the process that compiles it has no memory left")
        else:
            external = {location: stamp.to_json() for location, stamp in made.external.items()}
            tell(files=[file.name for file in made.files], external=external)


if __name__ == "__main__":
    main()
