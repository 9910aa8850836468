"""The file that receives the optimized graph, from a session's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from py_ort.exceptions import InvalidArgument, NotImplemented

#: onnxruntime's configuration entries: a file for large initializers, and the least size, in bytes, of a large one.
DATA_ENTRY = "session.optimized_model_external_initializers_file_name"
LEAST_ENTRY = "session.optimized_model_external_initializers_min_size_in_bytes"
#: The file's format; by default its name decides.
FORMAT_ENTRY = "session.save_model_format"
#: Names of native onnxruntime's optimizers, with ";" between them.
DISABLED_ENTRY = "optimization.disable_specified_optimizers"
#: Suffix of the names of optimizers that fuse several operators into one.
_FUSION = "Fusion"
_EXTENDED = 2


@dataclass(frozen=True)
class SavedModel:
    """An ONNX file to write.

    Attributes:
        path: The file.
        data: A file for large initializers, relative to its folder; "": `<file>.data`, and for models above 1 GiB only.
        least: Initializers from so many bytes on are large.
        as_source: True to write the opsets and operators of the source (see `plan.source_form`), False for those that
            the passes made.
    """

    path: Path
    data: str = ""
    least: int = 1024
    as_source: bool = False

    @classmethod
    def of(cls, path: str, entries: Mapping[str, str], level: int = 99) -> SavedModel | None:
        """Return the file that a session's options request; None if they request none.

        With a level below the extended one, or with a disabled fusion, the file keeps the source's opsets and
        operators: such users have tools that look for operators as exporters write them.

        Args:
            path: The file; "": none.
            entries: The session's configuration.
            level: Its `graph_optimization_level`.

        Raises:
            InvalidArgument: An entry is not a number, or the file would be where no model may have its data.
            NotImplemented: The file is to be of onnxruntime's own format.
        """
        if not path:
            return None
        if entries.get(FORMAT_ENTRY, "ORT" if path.endswith(".ort") else "ONNX") == "ORT":
            raise NotImplemented(
                f"{path!r}: py_ort reads onnxruntime's own format (.ort), and writes ONNX only: name a file .onnx, or "
                f"set {FORMAT_ENTRY} to ONNX"
            )
        data, least = entries.get(DATA_ENTRY, ""), entries.get(LEAST_ENTRY, str(cls.least))
        if not least.isdecimal():
            raise InvalidArgument(f"{LEAST_ENTRY} is a number of bytes, not {least!r}")
        if PurePath(data).is_absolute() or ".." in PurePath(data).parts or data == Path(path).name:
            raise InvalidArgument(f"{DATA_ENTRY}={data!r}: a file of its own in the folder of {path!r}, or below")
        disabled = (name.strip() for name in entries.get(DISABLED_ENTRY, "").split(";"))
        apart = level < _EXTENDED or any(name.endswith(_FUSION) for name in disabled)
        return cls(Path(path), data, int(least), apart)
