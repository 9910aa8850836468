"""The kernels of providers: manifests, which the builds of page and core write into the assets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import onnx_ir as ir

from py_ort.exceptions import EngineError
from py_ort.folders import ASSETS
from py_ort.ir.graph import attribute
from py_ort.providers import AVAILABLE, FOLDERS, on_device

_DTYPE_NAMES = {"float": "float32", "double": "float64", "string_": "string", "bool_": "bool"}


def dtype_name(dtype: ir.DataType) -> str:
    """Return a dtype's name in manifests: "float32", "int64", …"""
    name = dtype.name.lower()
    return _DTYPE_NAMES.get(name, name)


_MOST_AXES = 64


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


@dataclass(frozen=True)
class Requirement:
    """A condition on a node, besides its inputs' dtypes: Requirement in web/src/contract/kernel.ts."""

    otherwise: str
    attribute: str = ""
    values: frozenset[Any] = frozenset()
    no_input: int | None = None
    no_output: int | None = None
    constant: int | None = None
    rank: tuple[int, int, int] | None = None  # an input, and its smallest and largest rank
    of: frozenset[str] = frozenset()

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Requirement:
        """Return a requirement from a manifest's entry."""
        return cls(
            entry["otherwise"],
            entry.get("attribute", ""),
            frozenset(entry.get("values", ())),
            entry.get("noInput"),
            entry.get("noOutput"),
            entry.get("constant"),
            None
            if (axes := entry.get("rank")) is None
            else (axes["input"], axes.get("min", 0), axes.get("max", _MOST_AXES)),
            frozenset(entry.get("of", ())),
        )

    def holds(self, node: ir.Node, dtypes: Sequence[ir.DataType | None]) -> bool:
        """Return True if a node meets it."""
        if self.of and (not dtypes or dtypes[0] is None or dtype_name(dtypes[0]) not in self.of):
            return True
        if self.attribute and (given := attribute(node, self.attribute)) is not None:
            values = given if isinstance(given, (list, tuple)) else [given]
            if not self.values.issuperset(values):
                return False
        if self.no_input is not None and len(node.inputs) > self.no_input and node.inputs[self.no_input] is not None:
            return False
        if (
            self.constant is not None
            and (given := _input(node, self.constant)) is not None
            and given.const_value is None
        ):
            return False
        if self.rank is not None and (given := _input(node, self.rank[0])) is not None:
            axes = None if given.shape is None else len(given.shape)
            if axes is None or not self.rank[1] <= axes <= self.rank[2]:
                return False
        outputs = node.outputs[self.no_output : self.no_output + 1] if self.no_output is not None else ()
        return not any(output.uses() or output.is_graph_output() for output in outputs)


@dataclass(frozen=True)
class Manifest:
    """The kernels of one provider.

    Attributes:
        provider: Its name.
        kernels: For each (domain, op_type) the dtypes that each input accepts; the last entry applies to all further
            inputs, an empty entry accepts all.
        requirements: Further conditions on nodes.
        features: Further abilities of kernels, by name: `Feature` in web/src/contract/kernel.ts explains each.
    """

    provider: str
    kernels: Mapping[tuple[str, str], Sequence[frozenset[str]]] = field(default_factory=dict)
    requirements: Mapping[tuple[str, str], Sequence[Requirement]] = field(default_factory=dict)
    features: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    @property
    def launches(self) -> bool:
        """True if kernels are dispatched to a device."""
        return on_device(self.provider)

    @classmethod
    def of(cls, provider: str, entries: Iterable[Mapping[str, Any]]) -> Manifest:
        """Read a manifest's JSON: [{domain, op_type, types, requires?, features?}]. Joins an operator's entries."""
        kernels: dict[tuple[str, str], list[frozenset[str]]] = {}
        requirements: dict[tuple[str, str], list[Requirement]] = {}
        features: dict[tuple[str, str], frozenset[str]] = {}
        for entry in entries:
            key = (entry.get("domain", ""), entry["op_type"])
            types = [frozenset(_DTYPE_NAMES.get(name, name) for name in names) for names in entry.get("types", [])]
            known = kernels.get(key)
            kernels[key] = types if known is None else _union(known, types)
            features[key] = features.get(key, frozenset()) | frozenset(entry.get("features") or ())
            requirements.setdefault(key, []).extend(Requirement.read(item) for item in entry.get("requires", ()))
        return cls(provider, kernels, requirements, features)

    def has(self, domain: str, op_type: str) -> bool:
        """Return True if there is a kernel of this operator."""
        return (domain, op_type) in self.kernels

    def offers(self, feature: str, domain: str, op_type: str) -> bool:
        """Return True if its kernel of this operator has a feature."""
        return feature in self.features.get((domain, op_type), ())

    def refusal(
        self, domain: str, op_type: str, dtypes: Sequence[ir.DataType | None], node: ir.Node | None = None
    ) -> str | None:
        """Return the reason why this provider cannot run the operator on inputs of these dtypes; None if it can.

        Args:
            domain: The operator's domain.
            op_type: Its name.
            dtypes: The dtype of each input; None if it does not matter (omitted, host or unknown).
            node: The node, for kernels with further requirements.
        """
        types = self.kernels.get((domain, op_type))
        if types is None:
            return "no kernel"
        for index, dtype in enumerate(dtypes):
            if dtype is None or not types:
                continue
            accepted = types[min(index, len(types) - 1)]
            if accepted and dtype_name(dtype) not in accepted:
                return f"no kernel for {dtype_name(dtype)} (input {index})"
        requirements = self.requirements.get((domain, op_type), ()) if node is not None else ()
        for requirement in requirements:
            if node is not None and not requirement.holds(node, dtypes):
                return f"no kernel for {requirement.otherwise}"
        return None


def _union(a: list[frozenset[str]], b: list[frozenset[str]]) -> list[frozenset[str]]:
    """Join two lists of accepted dtypes; an empty entry accepts all."""
    if not a or not b:
        return []
    width = max(len(a), len(b))
    a, b = a + [a[-1]] * (width - len(a)), b + [b[-1]] * (width - len(b))
    return [x | y if x and y else frozenset() for x, y in zip(a, b, strict=True)]


@cache
def load_manifests() -> dict[str, Manifest]:
    """Return the manifests of the built page and core, by provider.

    Raises:
        EngineError: They were not built.
    """
    found: dict[str, Manifest] = {}
    for provider in AVAILABLE:
        path = ASSETS / f"kernels.{provider}.json"
        try:
            found[provider] = Manifest.of(provider, json.loads(path.read_text()))
        except FileNotFoundError as e:
            how = "node web/build.mjs --out of PY_ORT_ASSETS" if FOLDERS else "make build"
            raise EngineError(f"{path} is missing: the page and the core are not built (run `{how}` in a clone)") from e
    return found
