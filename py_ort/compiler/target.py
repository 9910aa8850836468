"""The target of a compilation: the providers, their kernels, and users' kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import onnx_ir as ir

from py_ort.exceptions import InvalidArgument
from py_ort.ir.operators import INTERNAL, NHWC, REGISTERED, UserKernel, operator
from py_ort.providers import CPU, PROVIDERS, canonical_provider
from py_ort.providers.manifest import Manifest, load_manifests
from py_ort.schema.dialect import ELEMENTWISE_CHAIN

if TYPE_CHECKING:
    from py_ort.compiler.placement.devices import Devices


@dataclass(frozen=True)
class Target:
    """The providers and kernels that a model is compiled for: passes, layout and placement consult it only.

    Attributes:
        providers: Canonical names, the preferred one first.
        manifests: The kernels of each, by name; those of users are in that of a provider that runs them.
        user_kernels: Users' kernels by (domain, op_type).
        forced: True if the user keeps some nodes, possibly any, off the first provider: passes then make no nodes
            that only the first provider can run.
        devices: Asked by placement what they take.
    """

    providers: tuple[str, ...]
    manifests: Mapping[str, Manifest]
    user_kernels: Mapping[tuple[str, str], UserKernel] = field(default_factory=dict)
    forced: bool = False
    devices: Devices | None = None

    @classmethod
    def of(
        cls,
        providers: Sequence[str],
        manifests: Mapping[str, Manifest] | None = None,
        *,
        forced: bool = False,
        devices: Devices | None = None,
    ) -> Target:
        """Describe the providers and kernels of this process.

        Args:
            providers: Names of the providers that may run nodes, the preferred one first.
            manifests: The providers' kernels; those of the built page and core by default.
            forced: See the attribute.
            devices: The devices of the page that runs the plan, if it is known.

        Raises:
            InvalidArgument: There is no such provider.
        """
        names = tuple(dict.fromkeys(canonical_provider(name) for name in providers))
        known = dict(load_manifests() if manifests is None else manifests)
        missing = [name for name in names if name not in known]
        if missing or not names:
            raise InvalidArgument(f"providers {missing or list(names)}: there are {', '.join(known)}")
        own = {key: declared.kernel for key, declared in REGISTERED.items() if declared.kernel is not None}
        kernels = {key: kernel.input_types for key, kernel in own.items()}
        for name in (name for name in known if own and PROVIDERS[name].user_kernels):
            known[name] = replace(known[name], kernels={**known[name].kernels, **kernels})
        return cls(names, known, own, forced, devices)

    @property
    def first(self) -> str:
        """The preferred provider."""
        return self.providers[0]

    @property
    def has_cpu(self) -> bool:
        """True if the CPU may run nodes."""
        return CPU in self.providers

    def has(self, domain: str, op_type: str) -> bool | None:
        """Return True if the first provider runs an operator, False if only another does, None if none does."""
        if operator(domain, op_type).walked:
            return True
        runs = [self.manifests[name].has(domain, op_type) for name in self.providers]
        return True if runs[0] else False if any(runs) else None

    def reads_columns(self, domain: str, op_type: str) -> bool:
        """Tell whether the first provider's kernel reads and writes columns of wider tensors."""
        return self.offers("columns", op_type, domain)

    def offers(self, feature: str, op_type: str, domain: str = "") -> bool:
        """Tell whether nodes of an operator may use a feature that the first provider's kernel has."""
        return not self.forced and self.manifests[self.first].offers(feature, domain, op_type)

    def runs_first(self, node: ir.Node) -> bool:
        """Tell whether the first provider runs a node."""
        dtypes = [None if v is None else v.dtype for v in node.inputs]
        return self.manifests[self.first].refusal(node.domain, node.op_type, dtypes, node) is None

    @property
    def matmul_bias(self) -> bool:
        """True if MatMul accepts a bias on every provider that may run it."""
        return self.takes("bias", "MatMul")

    def takes(self, feature: str, op_type: str, domain: str = "") -> bool:
        """Tell whether an operator has a feature ("epilogue", "residual"), wherever it may run."""
        manifests = [self.manifests[name] for name in self.providers]
        return all(m.offers(feature, domain, op_type) for m in manifests if m.has(domain, op_type))

    @property
    def launches(self) -> bool:
        """True if the first provider dispatches kernels to a device, where fewer dispatches are faster."""
        return self.manifests[self.first].launches

    def has_channels_last(self, node: ir.Node) -> bool:
        """Tell of a node in NCHW whether the first provider that can run it at all has its NHWC form."""
        dtypes = [None if v is None else v.dtype for v in node.inputs]
        for name in self.providers:
            if self.manifests[name].refusal(NHWC, node.op_type, dtypes, node) is None:
                return True
            if self.manifests[name].refusal("", node.op_type, dtypes, node) is None:
                return False
        return False

    def kernel_offers(self, feature: str, provider: str, node: ir.Node) -> bool:
        """Tell whether a provider's kernel of a node has a feature."""
        return self.manifests[provider].offers(feature, node.domain, node.op_type)

    def takes_chain(self, provider: str, dtypes: Sequence[ir.DataType | None], *features: str) -> bool:
        """Tell whether a provider runs chains of elementwise operators on inputs of these dtypes, with all features."""
        manifest, chain = self.manifests[provider], (INTERNAL, ELEMENTWISE_CHAIN)
        return manifest.refusal(*chain, dtypes) is None and all(manifest.offers(each, *chain) for each in features)
