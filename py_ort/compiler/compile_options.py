"""Options of a compilation."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from py_ort.exceptions import InvalidArgument
from py_ort.providers.provider import Crossing


class Level(enum.IntEnum):
    """How far to optimize; numbers as onnxruntime's GraphOptimizationLevel.

    DISABLED: only what kernels need: operators in their newest forms, functions in their parts. BASIC: rewrites into
    ONNX's own operators, as every runtime makes them. EXTENDED: also operators with others fused into them, and packed
    weights. LAYOUT: also NHWC. ALL: also plans for the shapes that a session sees (`py_ort.runtime.shape_plans`).
    """

    DISABLED = 0
    BASIC = 1
    EXTENDED = 2
    LAYOUT = 3
    ALL = 99


_LEVELS = {level.name.lower(): level for level in Level}


@dataclass(frozen=True)
class CompileOptions:
    """Options of `compile_model`, with the names of onnxruntime and onnxruntime-web.

    Attributes:
        graph_optimization_level: "disabled", "basic", "extended", "layout" or "all", or onnxruntime's number.
        free_dimension_overrides: Numbers for the inputs' symbolic dimensions, by name.
        free_dimension_overrides_by_denotation: The same, by denotation.
        input_shapes: Numbers for open dimensions, by the names of inputs.
        preferred_layout: "NHWC", at any level, or "NCHW"; None: NHWC from the level "layout" on.
        force_cpu_node_names: Nodes to run on wasm, by name.
        disable_cpu_fallback: Refuse a plan in which a node runs on another provider than the first one, shape
            arithmetic aside.
        crossings: The prices of pieces, of providers whose options change them; see `Provider.crossing`.
        refused: Nodes that a browser did not take in a run: by name the provider, and the reason.
        wide_integers: Integers that are fed may need 64 bits: what reads them runs on the CPU.
    """

    graph_optimization_level: str | int = "all"
    free_dimension_overrides: Mapping[str, int] = field(default_factory=dict)
    free_dimension_overrides_by_denotation: Mapping[str, int] = field(default_factory=dict)
    input_shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    preferred_layout: str | None = None
    force_cpu_node_names: Collection[str] = ()
    disable_cpu_fallback: bool = False
    crossings: Mapping[str, Crossing] = field(default_factory=dict)
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    wide_integers: bool = False

    def level(self) -> Level:
        """Return how far to optimize.

        Raises:
            InvalidArgument: There is no such level.
        """
        given = self.graph_optimization_level
        if isinstance(given, str):
            if given.lower() not in _LEVELS:
                raise InvalidArgument(f"graph_optimization_level {given!r}: one of {', '.join(_LEVELS)}")
            return _LEVELS[given.lower()]
        if int(given) not in list(Level):
            raise InvalidArgument(f"graph_optimization_level {given}: one of {', '.join(map(str, map(int, Level)))}")
        return Level(int(given))

    def to_json(self) -> dict[str, Any]:
        """Return the options as plain data: equal for equal plans."""
        return {**asdict(self), "force_cpu_node_names": sorted(self.force_cpu_node_names)}

    def nhwc(self) -> bool:
        """Return True if the layout pass shall choose NHWC.

        Raises:
            InvalidArgument: preferred_layout is neither.
        """
        if self.preferred_layout not in (None, "NHWC", "NCHW"):
            raise InvalidArgument(f"preferred_layout {self.preferred_layout!r}: NHWC or NCHW")
        if self.preferred_layout is None:
            return self.level() >= Level.LAYOUT
        return self.preferred_layout == "NHWC"
