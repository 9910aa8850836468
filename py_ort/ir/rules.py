"""Tables of functions by operator; a decorator adds a function to a table."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeVar

Function = TypeVar("Function")


class _Node(Protocol):
    """A node, of the IR or of a file."""

    @property
    def domain(self) -> str: ...

    @property
    def op_type(self) -> str: ...


class Rules(dict[str, Function]):
    """The functions by operator, or by a word for several. With a `Rules` named rule, `@rule("Concat")` declares one.

    Args:
        domains: The domains of the operators.
    """

    def __init__(self, domains: Collection[str] = ("",)) -> None:
        super().__init__()
        self._domains = domains

    def __call__(self, *op_types: str) -> Callable[[Function], Function]:
        """Declare the function of these operators."""

        def declare(function: Function) -> Function:
            for op_type in op_types:
                assert op_type not in self, f"{op_type} has a rule already"
                self[op_type] = function
            return function

        return declare

    def of(self, node: _Node) -> Function | None:
        """Return the function of a node's operator, or None."""
        return self.get(node.op_type) if node.domain in self._domains else None
