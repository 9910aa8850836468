"""`ModelCompiler`: onnxruntime's interface to optimize a model in advance and write it.

No provider of a browser has compiled parts for a model, so the written model is ONNX, as native onnxruntime writes it
for the CPU. Sessions keep their plans of it in a cache.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from py_ort.boundary import public
from py_ort.compiler.load import read_proto
from py_ort.compiler.load.model_files import DATA_FOLDER_ENTRY
from py_ort.compiler.saved.target import SavedModel
from py_ort.exceptions import Fail, InvalidArgument, WrongType
from py_ort.providers import with_cpu
from py_ort.providers.resolution import resolve
from py_ort.runtime.options import GraphOptimizationLevel, SessionOptions
from py_ort.runtime.planning import Planner
from py_ort.runtime.session_model import Origin
from py_ort.runtime.values.ort_value import OrtValue

#: Numbers of onnxruntime's OrtCompileApiFlags.
_NODES_COMPILED, _NEW_FILE = 1, 2


@dataclass(frozen=True)
class OrtExternalInitializerInfo:
    """The place of an initializer's bytes: a range of a file."""

    filepath: str
    file_offset: int
    byte_size: int


Locate: TypeAlias = Callable[[str, OrtValue, "OrtExternalInitializerInfo | None"], "OrtExternalInitializerInfo | None"]


@public
class ModelCompiler:
    """Optimizes a model without a browser, and writes it as ONNX.

    Args:
        sess_options: Options of sessions: providers, dimensions, configuration entries.
        input_model_path_or_bytes: The model.
        embed_compiled_data_into_model: Without effect: there are no compiled parts.
        external_initializers_file_path: A file for large initializers, besides the written file.
        external_initializers_size_threshold: Size in bytes from which an initializer is large.
        flags: Flags of `onnxruntime.OrtCompileApiFlags`: conditions that are errors.
        graph_optimization_level: The passes that run. Default: none.
        get_initializer_location_func: Called for each initializer with its name, its value and its place in a file, if
            any; returns the place in the new model's files, None for the model itself. It writes such files itself.

    Raises:
        InvalidArgument: There is no model, or both ways for initializers are given.
    """

    def __init__(
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes: str | os.PathLike[str] | bytes,
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | os.PathLike[str] | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = 0,
        graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
        get_initializer_location_func: Locate | None = None,
    ) -> None:
        if not isinstance(input_model_path_or_bytes, (str, os.PathLike, bytes)):
            raise WrongType(
                f"a model is the path of a file, or its bytes, not {type(input_model_path_or_bytes).__name__}"
            )
        if not input_model_path_or_bytes:
            raise InvalidArgument("the model is empty")
        if external_initializers_file_path and get_initializer_location_func:
            raise InvalidArgument("external_initializers_file_path and get_initializer_location_func: give one of them")
        self._source, self._flags = input_model_path_or_bytes, int(flags)
        self._options = sess_options._copy()
        self._options.graph_optimization_level = graph_optimization_level
        self._data = os.fspath(external_initializers_file_path or "")
        self._least, self._locate = external_initializers_size_threshold, get_initializer_location_func

    def compile_to_file(self, output_model_path: str | os.PathLike[str] | None = None) -> None:
        """Write the model.

        Args:
            output_model_path: The file; None: beside the model, `<its name>_ctx.onnx`.

        Raises:
            InvalidArgument: The model was given as bytes, and no file is named.
            Fail: A condition of a flag is met.
        """
        if not output_model_path:
            if isinstance(self._source, bytes):
                raise InvalidArgument("a model given as bytes has no name: say which file to write")
            output_model_path = Path(self._source).with_suffix("").as_posix() + "_ctx.onnx"
        path = Path(output_model_path)
        if self._flags & _NEW_FILE and path.exists():
            raise Fail(f"the file {path} exists already, and the flags do not let it be overwritten")
        self._check_flags()
        if self._locate is not None:
            path.write_bytes(self._with_located(self._locate))
        else:
            self._write(SavedModel(path, self._data, self._least, as_source=self._as_source()))

    def compile_to_bytes(self) -> bytes:
        """Return the model; large initializers go to their file in the current folder.

        Raises:
            Fail: A condition of a flag is met.
        """
        self._check_flags()
        if self._locate is not None:
            return self._with_located(self._locate)
        with tempfile.NamedTemporaryFile(dir=Path.cwd() if self._data else None, suffix=".onnx") as file:
            self._write(SavedModel(Path(file.name), self._data, self._least, as_source=self._as_source()))
            return Path(file.name).read_bytes()

    def compile_to_stream(self, write_function: Callable[[bytes], None]) -> None:
        """Pass the model to a function.

        Raises:
            Fail: A condition of a flag is met, or the function failed.
        """
        made = self.compile_to_bytes()
        try:
            write_function(made)
        except Exception as e:  # whatever the caller's function raises
            raise Fail(f"the function that was to write the model failed: {type(e).__name__}: {e}") from e

    def set_ep_context_data_write_func(self, write_func: Callable[[str, Any], None]) -> None:
        """Do nothing: there are no compiled parts to write."""

    def clear_ep_context_data_write_func(self) -> None:
        """Do nothing."""

    def set_ep_context_binary_information(self, output_directory: str | os.PathLike[str], model_name: str) -> None:
        """Check the names: there are no compiled parts to write.

        Args:
            output_directory: Native onnxruntime's folder for them: it ends with a slash, or has an extension.
            model_name: Name of the files.

        Raises:
            InvalidArgument: A name is empty, or the first is not a directory's.
        """
        folder = os.fspath(output_directory)
        if not folder or not model_name:
            raise InvalidArgument("pass output_directory and model_name: both are needed")
        if not folder.endswith("/") and not Path(folder).suffix:
            raise InvalidArgument(f"output_directory {folder!r} is taken for a file: end it with a slash")

    def _check_flags(self) -> None:
        if self._flags & _NODES_COMPILED:
            raise Fail(
                "Unable to compile any nodes: no provider of a browser has compiled parts, and a flag makes it an error"
            )

    def _as_source(self) -> bool:
        return int(self._options.graph_optimization_level) < int(GraphOptimizationLevel.ORT_ENABLE_EXTENDED)

    def _write(self, saved: SavedModel) -> None:
        from py_ort.runtime.compiling import compile_options
        from py_ort.runtime.model_changes import changes_of

        options = self._options
        wanted = resolve(list(options._providers.items()) or None, None, options.config_entries)
        origin = Origin(self._source, options.config_entries.get(DATA_FOLDER_ENTRY, ""))
        planner = Planner(origin, changes_of(options), limit=options.create_timeout)
        planner.plan(with_cpu(*wanted.providers), compile_options(wanted.providers, options), saved)

    def _with_located(self, locate: Locate) -> bytes:
        """Return the model, with initializers at the places of the caller's function."""
        import onnx

        source = read_proto(self._source)
        lay = {tensor.name: _place(tensor) for tensor in source.graph.initializer if tensor.external_data}
        with tempfile.TemporaryDirectory() as folder:
            self._write(SavedModel(Path(folder, "model.onnx"), "", self._least, as_source=self._as_source()))
            made = onnx.load(Path(folder, "model.onnx"))
        for tensor in made.graph.initializer:
            value = OrtValue(np.ascontiguousarray(onnx.numpy_helper.to_array(tensor)))
            place = locate(tensor.name, value, lay.get(tensor.name))
            if place is None:
                continue
            empty = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
            empty.data_location = onnx.TensorProto.EXTERNAL
            for key, entry in (
                ("location", place.filepath),
                ("offset", place.file_offset),
                ("length", place.byte_size),
            ):
                empty.external_data.add(key=key, value=str(entry))
            tensor.CopyFrom(empty)
        return made.SerializeToString()


def _place(tensor: Any) -> OrtExternalInitializerInfo:
    told = {entry.key: entry.value for entry in tensor.external_data}
    length = int(told.get("length", 0))
    return OrtExternalInitializerInfo(told.get("location", ""), int(told.get("offset", 0)), length)
