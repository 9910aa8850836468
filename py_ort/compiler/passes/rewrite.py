"""Passes that are functions of a node: each is tried on all nodes of some operators.

    @rewrite("Softmax", needs=runs("Attention"), before=("nhwc",))
    def pass_name(node: ir.Node, target: Target) -> bool: ...

The function changes the graph around the node and returns how many places it changed. Without the second parameter it
does not depend on the target.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import NamedTuple, TypeVar

import onnx_ir as ir

from py_ort.compiler.passes.match import nodes_of
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target

Needs = Callable[[Target], bool]
"""Return True if a pass is of use for a target."""
AnyFunction = Callable[..., int]
Function = TypeVar("Function", bound=AnyFunction)


class _Step(NamedTuple):
    function: AnyFunction
    op_types: tuple[str, ...]
    domain: str | None
    repeat: bool


class Rewrite(Pass):
    """A pass made by `rewrite`, with its functions in their order. A call with a target returns the pass for it."""

    def __init__(self, name: str, needs: Needs | None, after: tuple[str, ...], before: tuple[str, ...]) -> None:
        """See `rewrite`."""
        self._name, self._needs, self.after, self.before = name, needs, after, before
        self._steps: list[_Step] = []
        self._target: Target | None = None

    @property
    def name(self) -> str:
        """The name for reports."""
        return self._name

    def __call__(self, target: Target) -> Rewrite:
        """Return the pass for a target."""
        bound = copy(self)
        bound._target = target
        return bound

    def also(self, *op_types: str, domain: str | None = "", repeat: bool = False) -> Callable[[Function], Function]:
        """Add a function that is tried after the earlier ones have seen the whole model; arguments as of `rewrite`."""

        def add(function: Function) -> Function:
            self._steps.append(_Step(function, op_types, domain, repeat))
            return function

        return add

    def call(self, model: ir.Model) -> int:
        """Try the functions."""
        if self._needs is not None and not self._needs(self._known_target()):
            return 0
        return sum(self._try(step, model) for step in self._steps)

    def _try(self, step: _Step, model: ir.Model) -> int:
        arguments = [self._known_target()] if step.function.__code__.co_argcount > 1 else []
        count = 0
        while changed := sum(
            step.function(node, *arguments) for node in nodes_of(model, *step.op_types, domain=step.domain)
        ):
            count += changed
            if not step.repeat:
                break
        return count

    def _known_target(self) -> Target:
        assert self._target is not None, "the pass depends on a target: call it with one first"
        return self._target


def rewrite(
    *op_types: str,
    domain: str | None = "",
    repeat: bool = False,
    needs: Needs | None = None,
    after: tuple[str, ...] = (),
    before: tuple[str, ...] = (),
) -> Callable[[AnyFunction], Rewrite]:
    """Make a pass of a function, and of its name.

    Args:
        op_types: The operators whose nodes it is tried on.
        domain: Their domain; None: any.
        repeat: Try it on all nodes again until it changes none.
        needs: The pass does nothing for targets of which this is False.
        after: See `Pass`.
        before: See `Pass`.
    """

    def make(function: AnyFunction) -> Rewrite:
        made = Rewrite(function.__name__, needs, after, before)
        made.also(*op_types, domain=domain, repeat=repeat)(function)
        return made

    return make


def runs(op_type: str, domain: str = "") -> Needs:
    """Return a need: the first provider runs an operator."""
    return lambda target: target.has(domain, op_type) is True


def launches(target: Target) -> bool:
    """Return True if kernels are launched on a device, where each one less counts."""
    return target.launches
