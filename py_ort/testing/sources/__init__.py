"""Where cases come from: ONNX's node tests, onnxruntime-web's operator tests, folders of models, a user's table."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from py_ort.exceptions import InvalidArgument
from py_ort.testing.case import Case


def load_cases(sources: str | Sequence[str], pattern: str = "") -> list[Case]:
    """Return the cases of one or several sources.

    Args:
        sources: Each "onnx-node"; "ort-web:DIR" (a folder with .jsonc files, or one such file); a folder with models
            and their test_data_set_N folders; or a table of models, a .toml or .py file (see
            `py_ort.testing.sources.table`). Ids that come from several of them begin with the source.
        pattern: A regular expression that the case's id must contain.

    Raises:
        InvalidArgument: There is no such source, or no such case in it.
    """
    sources = [sources] if isinstance(sources, str) else list(sources)
    found = [(source, case) for source in dict.fromkeys(sources) for case in _cases(source)]
    froms = Counter(name for source, name in {(source, case.id) for source, case in found})
    cases = [replace(case, id=f"{source}/{case.id}") if froms[case.id] > 1 else case for source, case in found]
    chosen = [case for case in cases if re.search(pattern, case.id)]
    if not chosen:
        here = ", ".join(sources)
        raise InvalidArgument(f"no case to run: {here} has {len(cases)}, and none of them contains {pattern!r}")
    return chosen


def sampled(cases: Sequence[Case], part: int) -> list[Case]:
    """Return one of `part` cases, chosen by a hash of their names: always the same ones.

    A case without a group, such as a model, is in each sample.
    """
    return [case for case in cases if not case.group or zlib.crc32(case.id.encode()) % part == 0]


def _cases(source: str) -> list[Case]:
    from py_ort.testing.sources import model_folder, onnx_node, ort_web, table

    if source == "onnx-node":
        return onnx_node.cases()
    if source.startswith("ort-web:"):
        return ort_web.cases(_existing(source.removeprefix("ort-web:")), both_shapes=True)
    path = _existing(source)
    if path.is_dir():
        return model_folder.cases(path)
    if path.suffix not in table.SUFFIXES:
        raise InvalidArgument(f"{source} is no source of cases: give a folder, or a table that ends in .toml or .py")
    return table.cases(path)


def _existing(path: str) -> Path:
    if not Path(path).exists():
        raise InvalidArgument(f"no cases at {path!r}: give onnx-node, ort-web:DIR, a folder, or a .toml or .py file")
    return Path(path)
