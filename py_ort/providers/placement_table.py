"""The result of placement, as a report: reading one needs no compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from py_ort.html_table import html_table
from py_ort.providers import CPU, on_device
from py_ort.typed_json import read

SHAPE_ARITHMETIC = "shape arithmetic"
CONTROL = "control flow"
FORCED = "force_cpu_node_names"
SMALL_PARTITION = "between nodes on the CPU"
SMALL_PIECE = "between nodes on the CPU, and its piece of the graph saves less than bringing tensors there costs"
LENGTHS = "lengths of feeds"
COUNTED_THERE = "its result's shape depends on data, and the CPU has them or is as quick"
#: Columns of `Placement.by_operator`.
COLUMNS = ("nodes", "operator", "provider", "why")
#: Kernels that only look at their input under another shape: nothing is launched for them.
#: `Operator.view`, once more: with a plan from the cache, a report is read without loading operators.
_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"})


@dataclass(frozen=True)
class PlacedNode:
    """The placement of a node.

    Attributes:
        name: The node's, in the plan.
        op_type: Its operator.
        domain: The operator's domain; "" is ai.onnx.
        provider: The name of its provider.
        kernel: The kernel that runs it, as "domain::Operator" or "Operator"; followed by " (user kernel)" for a user's.
        reason: Reason why it is not on the first requested provider, or "".
        origin: The names of the model's nodes from which it was made.
    """

    name: str
    op_type: str
    domain: str
    provider: str
    kernel: str
    reason: str = ""
    origin: tuple[str, ...] = ()

    @property
    def on_device(self) -> bool:
        """True if its tensors are outside of the core's heap."""
        return on_device(self.provider)


@dataclass(repr=False)
class Placement:
    """The placement of every node of a plan.

    Attributes:
        nodes: In the plan's order.
        providers: The providers that may run them, best first.
        left_out: Other requested providers, and the reasons why they cannot run in this browser.
    """

    nodes: list[PlacedNode] = field(default_factory=list)
    providers: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Return the number of nodes per provider."""
        counted = Counter(node.provider for node in self.nodes)
        return {provider: counted.get(provider, 0) for provider in dict.fromkeys((*self.providers, *counted))}

    def launches(self) -> dict[str, int]:
        """Return the number of kernels dispatched on each provider in a run: without views and shape arithmetic."""
        counted = Counter(
            node.provider
            for node in self.nodes
            if node.reason not in (SHAPE_ARITHMETIC, CONTROL) and node.kernel not in _VIEWS
        )
        return {provider: counted.get(provider, 0) for provider in dict.fromkeys((*self.providers, *counted))}

    def on_device(self) -> bool:
        """Return True if any node's tensors are outside of the core's heap."""
        return any(node.on_device for node in self.nodes)

    def device(self) -> str | None:
        """Return the provider whose device may have feeds and outputs: the best one with nodes on a device."""
        return next(iter(self.on()[1:]), None)

    def on(self) -> list[str]:
        """Return the providers of nodes, in the order of plans: the CPU, with or without nodes, then by rank."""
        used = {node.provider for node in self.nodes}
        return [CPU, *(name for name in self.providers if name in used and name != CPU)]

    def arithmetic(self) -> int:
        """Return the number of nodes that compute shapes."""
        return sum(node.reason == SHAPE_ARITHMETIC for node in self.nodes)

    def looks_at_shapes(self) -> bool:
        """True if any node reads a size that was unknown to the compiler."""
        return any(node.op_type in ("Shape", "Size") for node in self.nodes)

    def fallbacks(self) -> list[PlacedNode]:
        """Return the nodes that the first provider cannot run, or should not run, without control flow."""
        first = self.providers[0] if self.providers else ""
        willing = (SHAPE_ARITHMETIC, CONTROL, SMALL_PARTITION, SMALL_PIECE, COUNTED_THERE, LENGTHS)
        return [node for node in self.nodes if node.provider != first and node.reason not in willing]

    def on_first(self) -> list[PlacedNode]:
        """Return the nodes that run on the first provider."""
        return [node for node in self.nodes if node.provider in self.providers[:1]]

    def by_operator(self) -> list[tuple[int, str, str, str]]:
        """Return a row for each operator on each provider: number of nodes, operator, provider, reason."""
        groups = Counter((node.provider, node.kernel, node.reason) for node in self.nodes)
        order = {provider: i for i, provider in enumerate(self.providers)}
        ranked = sorted(groups.items(), key=lambda item: (order.get(item[0][0], len(order)), -item[1], item[0][1]))
        return [(count, kernel, provider, reason) for (provider, kernel, reason), count in ranked]

    def by_node(self) -> list[tuple[str, str, str, str]]:
        """Return a row for each node, in order: its name in the model, operator, provider, reason."""
        return [(", ".join(n.origin) or n.name, n.kernel, n.provider, n.reason) for n in self.nodes]

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(COLUMNS, self.by_operator(), self.summary())

    def __str__(self) -> str:
        """Return the report as a table: a line for each operator on each provider, and the sums."""
        rows = [COLUMNS]
        rows += [(str(count), kernel, provider, reason) for count, kernel, provider, reason in self.by_operator()]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            f"{n:>{widths[0]}}  {kernel:<{widths[1]}}  {provider:<{widths[2]}}  {reason}".rstrip()
            for n, kernel, provider, reason in rows
        ]
        return "\n".join([*lines, *self.summary()])

    def summary(self) -> list[str]:
        """Return the sums, and a line for each provider that was skipped."""
        sums = ", ".join(f"{count} nodes on {provider}" for provider, count in self.counts().items())
        return [sums, *(f"{provider} is left out: {reason}" for provider, reason in self.left_out.items())]

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "providers": list(self.providers),
            "left_out": dict(self.left_out),
            "counts": self.counts(),
            "nodes": [asdict(node) for node in self.nodes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Placement:
        """Read the result of `to_json`.

        Raises:
            KeyError, TypeError: The data have another form.
        """
        nodes, providers = read(list[PlacedNode], data["nodes"]), read(tuple[str, ...], data["providers"])
        return cls(nodes, providers, read(dict[str, str], data["left_out"]))
