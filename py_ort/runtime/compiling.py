"""A session's options for the compiler; without imports of browsers, for programs that only export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from py_ort.providers import PROVIDERS

if TYPE_CHECKING:
    from py_ort.compiler import CompileOptions
    from py_ort.runtime.options import SessionOptions


def compile_options(providers: Mapping[str, Mapping[str, Any]], options: SessionOptions) -> CompileOptions:
    """Return the compiler's options for the options of a session and its providers."""
    from py_ort.compiler.compile_options import CompileOptions

    fields = {k: v for name, given in providers.items() for k, v in PROVIDERS[name].for_compiler(given).items()}
    return CompileOptions(
        graph_optimization_level=int(options.graph_optimization_level),
        free_dimension_overrides=options.free_dimensions_by_name,
        free_dimension_overrides_by_denotation=options.free_dimensions_by_denotation,
        input_shapes=options.input_shapes,
        disable_cpu_fallback=options.config_entries.get("session.disable_cpu_ep_fallback") == "1",
        crossings={name: price for name, given in providers.items() if (price := PROVIDERS[name].crossing(given))},
        refused=options._refused,
        wide_integers=options.config_entries.get("session.wide_integers") == "1",
        **fields,
    )
