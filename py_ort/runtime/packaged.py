"""Plans from a `.pyort` file, instead of the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from py_ort.boundary import typed_errors
from py_ort.compiler.saved.target import SavedModel
from py_ort.exceptions import NotImplemented, PyOrtError
from py_ort.log import SessionLog
from py_ort.providers import PROVIDERS
from py_ort.runtime.model_changes import ModelChanges
from py_ort.runtime.planning import Planned
from py_ort.runtime.session_model import Origin

if TYPE_CHECKING:
    from py_ort.compiler import CompileOptions
    from py_ort.compiler.package.read import Package


class PackagedPlans:
    """The plans of a file, with the methods of `Planner`.

    Args:
        origin: The file.
        changes: The session's changes to the model.
        log: Receives a warning about options that come too late.

    Raises:
        NotImplemented: There are changes to the model.
    """

    def __init__(self, origin: Origin, changes: ModelChanges, log: SessionLog) -> None:
        if changes:
            raise NotImplemented(
                "an exported model is what it is: other initializers, or fewer outputs, need the ONNX file"
            )
        self._origin, self._log = origin, log
        self._package: Package | None = None

    @typed_errors("reading the .pyort file")
    def expect(self, providers: Sequence[str], options: CompileOptions) -> None:
        """Open the file."""
        self._open()
        late = [name for name, changed in _decided_by_export(options).items() if changed]
        if late:
            self._log.warning("decided when the model was exported, so without effect: %s", ", ".join(late))

    @typed_errors("reading the .pyort file")
    def plan(self, providers: Sequence[str], options: CompileOptions, optimized: SavedModel | None = None) -> Planned:
        """Return the plan for these providers and input shapes.

        Raises:
            NotImplemented: The file has no such plan, or the optimized model is to be written.
            NoSuchFile, InvalidProtobuf: The file cannot be read.
            Fail: The file has changed.
        """
        if optimized is not None:
            raise NotImplemented("optimized_model_filepath: an exported model has no ONNX graph to write")
        planned = self._open().planned(providers, options.input_shapes)
        if options.disable_cpu_fallback:
            from py_ort.compiler.compile import refuse_fallback

            refuse_fallback(planned.placement)
        return planned

    def offers(self, shapes: Mapping[str, Sequence[int]]) -> bool:
        """Return True if there is a plan for only these shapes."""
        return any(plan.is_for(shapes) for plan in self._open().header.plans)

    def has_shapes(self) -> bool:
        """Return True if there are plans for single shapes."""
        return any(plan.shapes for plan in self._open().header.plans)

    def reject(self, planned: Planned, why: PyOrtError) -> bool:
        """Return False: the file has no other plan."""
        return False

    def store(self) -> None:
        """Do nothing: the plans are stored already."""

    def _open(self) -> Package:
        from py_ort.compiler.package.read import Package

        if self._package is None:
            self._package = Package(self._origin.source)
        return self._package


def _decided_by_export(options: CompileOptions) -> dict[str, bool]:
    from py_ort.compiler.compile_options import CompileOptions

    plain = CompileOptions()
    return {
        "graph_optimization_level": options.level() != plain.level(),
        "free dimension overrides": bool(
            options.free_dimension_overrides or options.free_dimension_overrides_by_denotation
        ),
        **{
            option.key: getattr(options, option.compiles) != getattr(plain, option.compiles)
            for provider in PROVIDERS.values()
            for option in provider.options
            if option.compiles
        },
        "session.wide_integers": options.wide_integers,
    }
