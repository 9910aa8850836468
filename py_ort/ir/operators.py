"""Traits of operators that the compiler reads, and the declarations of a family of operators.

A module of `py_ort.ops` is a family. It declares its operators in a list `OPERATORS`, and rewrites of their old forms
with `@lowering`. Nothing is listed anywhere else: every module of that folder is imported when the first operator is
asked for.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Protocol

from py_ort.schema.dialect import (
    A_PERM,
    B_PERM,
    INTERNAL_DOMAIN,
    INTO,
    NHWC_DOMAIN,
    RESIDUAL_COLUMNS,
    X_COLUMNS,
    X_PARTS,
    Y_COLUMNS,
    Y_PARTS,
    Y_PERM,
)

if TYPE_CHECKING:
    import onnx_ir as ir

    from py_ort.ir.builder import Builder  # for types only: it imports inference, which imports this module
    from py_ort.wire.json_fields import UserDefinition

NCHWC = "com.microsoft.nchwc"
MICROSOFT = "com.microsoft"
INTERNAL, NHWC = INTERNAL_DOMAIN, NHWC_DOMAIN
ML = "ai.onnx.ml"
#: Transposes of a product's operands, and of its result.
PERMS = (A_PERM, B_PERM, Y_PERM)
#: Attributes by which passes tell kernels more of nodes that are placed, whatever the operator.
PLACED = (X_COLUMNS, Y_COLUMNS, RESIDUAL_COLUMNS, INTO, X_PARTS, Y_PARTS, *PERMS)


class UserKernel(Protocol):
    """The part of a user's kernel (`py_ort.user_kernels`) that the compiler reads."""

    @property
    def name(self) -> str:
        """Domain and operator: "domain::Operator"."""

    @property
    def definition(self) -> UserDefinition:
        """The definition that the page makes the kernel from."""

    @property
    def input_types(self) -> Sequence[frozenset[str]]:
        """The dtypes that each input takes; none where it takes all."""


@dataclass(frozen=True)
class Operator:
    """One operator, in the form of the newest opset.

    Attributes:
        op_type: Its name.
        domain: Its domain; "" is ai.onnx.
        host: Inputs that a kernel reads on the CPU (shapes, axes, pads).
        host_if_constant: Inputs that are host inputs if they are constants, else device inputs.
        shape_only: Inputs of which only dtype and dims are read.
        lengths: Inputs with the number of elements of other inputs that count in a run.
        layout: The rule (a word of `py_ort.compiler.layout.rules`) by which the operator accepts permuted axes; "" if
            it cannot.
        infer: Sets the outputs' types, for operators that ONNX has no schema of, or knows less about than we do.
        refine: Adds to ONNX's inference where sizes are symbols.
        pure: True if equal inputs give equal outputs, so that nodes may be shared; all others are random.
        view: True if the output is input 0 under another shape: no element moves, and a device dispatches nothing.
        moves: True if the outputs consist of elements of input 0, at other places; true of views without being said.
        converts: True if the output is input 0 in another type.
        neutral: The second operand that changes nothing.
        commutative: True if its operands may change places.
        in_chains: True if ElementwiseChain has it for floats: as an instruction, or as the reduction after them.
        grows: True if its result may be larger than its inputs together, to any size.
        heavy: True if its computation is worth the transfer of its inputs to a GPU.
        optional_outputs: True if outputs after the first may be omitted, and are omitted where no node reads them.
        indices: Inputs that are places along axes.
        columns: Inputs that may be columns of wider tensors, with the attributes that name the columns.
        into: The input that is the tensor to write columns of, for kernels with the feature `columns`.
        rounds_to: The bits of the integers to whose steps it rounds floats.
        integer_weights: Inputs with the 8-bit weights that are packed for the CPU, and with their zero points.
        skip: The operator of com.microsoft that does the same to the sum of two tensors.
        bodies: True if it has graphs in its attributes; every such operator of ai.onnx says so.
        lenient: True if unknown attributes are ignored, as native onnxruntime ignores them.
        walked: True if the executor walks it itself, on whatever provider its nodes run.
        kernel: The user's own kernel, of such an operator.
        expand: True if ONNX's own function body is preferred to a NotImplemented error; False keeps the operator whole.
    """

    op_type: str
    domain: str = ""
    host: Sequence[int] = ()
    host_if_constant: Sequence[int] = ()
    shape_only: Sequence[int] = ()
    lengths: Sequence[int] = ()
    layout: str = ""
    infer: Callable[[ir.Node], None] | None = None
    refine: Callable[[ir.Node], None] | None = None
    pure: bool = True
    view: bool = False
    moves: bool = False
    converts: bool = False
    neutral: float | None = None
    commutative: bool = False
    in_chains: bool = False
    grows: bool = False
    heavy: bool = False
    optional_outputs: bool = False
    indices: Sequence[int] = ()
    columns: Mapping[int, str] = field(default_factory=dict)
    into: int | None = None
    rounds_to: int | None = None
    integer_weights: tuple[int, int] | None = None
    skip: str = ""
    bodies: bool = False
    lenient: bool = False
    walked: bool = False
    expand: bool = True
    kernel: UserKernel | None = None

    def use(self, node: ir.Node, index: int) -> Literal["device", "host", "shape"]:
        """Return how the operator reads input `index` of `node`."""
        if index in self.shape_only:
            return "shape"
        if index in self.host:
            return "host"
        value = node.inputs[index]
        if index in self.host_if_constant and value is not None and value.const_value is not None:
            return "host"
        return "device"


@dataclass(frozen=True)
class Lowering:
    """Rewrites a node of an opset below `before` to the newest form.

    The function changes the node in place and returns None, or returns the values that replace the node's outputs.
    """

    op_type: str
    before: int
    since: int
    rewrite: Callable[[ir.Node, Builder], Any]
    domain: str = ""
    replaces: bool = False

    @property
    def returns(self) -> bool:
        """True if the function returns values for some nodes; else it only fills in attributes and inputs."""
        return signature(self.rewrite).return_annotation not in (None, "None")


@dataclass(frozen=True)
class Parts:
    """An operator made of others, where the first provider has no kernel of it, but runs all of them.

    `of` names them, by domain and operator; the function returns what replaces the node's outputs, or None where it
    does not know the node's form.
    """

    of: Sequence[tuple[str, str]]
    make: Callable[[ir.Node, Builder], Any]


PARTS: dict[tuple[str, str], Parts] = {}


def in_parts(op_type: str, *of: str | tuple[str, str], domain: str = MICROSOFT) -> Callable[[Any], Any]:
    """Declare a function that makes an Operator for each of these names: of ai.onnx, or (domain, op_type)."""

    def declare(make: Callable[[ir.Node, Builder], Any]) -> Callable[[ir.Node, Builder], Any]:
        PARTS[domain, op_type] = Parts([("", name) if isinstance(name, str) else name for name in of], make)
        return make

    return declare


FLOAT_FORMS: dict[tuple[str, str], Callable[[ir.Node, Builder], Any]] = {}


def in_floats(op_type: str, domain: str = MICROSOFT) -> Callable[[Any], Any]:
    """Declare a function that makes an operator on quantized tensors of one on floats.

    It has DequantizeLinear before and QuantizeLinear behind it; None where the function does not know the node's form.
    """

    def declare(make: Callable[[ir.Node, Builder], Any]) -> Callable[[ir.Node, Builder], Any]:
        FLOAT_FORMS[domain, op_type] = make
        return make

    return declare


LOWERINGS: dict[tuple[str, str], list[Lowering]] = {}


def lowering(
    *op_types: str, before: int = 10_000, since: int = 1, domain: str = "", replaces: bool = False
) -> Callable[[Any], Any]:
    """Declare a function that rewrites nodes of these operators whose opset is in [since, before).

    Args:
        op_types: The operators.
        before: The first opset whose form is not rewritten.
        since: The first one whose form is.
        domain: Theirs.
        replaces: Others take their place, always: no plan has a node of them, and kernels of them are for
            `py_ort.JsepBackend` only.
    """

    def declare(rewrite: Callable[[ir.Node, Builder], Any]) -> Callable[[ir.Node, Builder], Any]:
        for op_type in op_types:
            entry = Lowering(op_type, before, since, rewrite, domain, replaces)
            LOWERINGS.setdefault((domain, op_type), []).append(entry)
        return rewrite

    return declare


_FAMILIES = "py_ort.ops"

#: Functions, by domain, that return the schema of an operator at an opset, or None, where ONNX has no schemas.
EARLIER_SCHEMAS: dict[str, Callable[[str, int], Any | None]] = {}

#: Operators of user kernels, by domain and name.
REGISTERED: dict[tuple[str, str], Operator] = {}


@cache
def operators() -> Mapping[tuple[str, str], Operator]:
    """Return every declared operator by (domain, op_type)."""
    found: dict[tuple[str, str], Operator] = {}
    # By name: families stand on this floor, which imports none of them.
    for module_info in pkgutil.iter_modules(importlib.import_module(_FAMILIES).__path__):
        module = importlib.import_module(f"{_FAMILIES}.{module_info.name}")
        for declared in getattr(module, "OPERATORS", ()):
            key = (declared.domain, declared.op_type)
            assert key not in found, f"{key} is declared twice"
            found[key] = declared
    return found


def operator(domain: str, op_type: str) -> Operator:
    """Return the declaration of an operator; one without special traits when nothing is declared."""
    own = REGISTERED.get((domain, op_type)) if REGISTERED else None
    return own or _declared(domain, op_type)


def reads(node: ir.Node, index: int) -> bool:
    """Return True if a node reads elements of its input `index`, not only the input's shape."""
    return operator(node.domain, node.op_type).use(node, index) != "shape"


@cache
def roundings() -> Mapping[int, str]:
    """Return the names of the operators that round floats, by the bits of the integers."""
    return {declared.rounds_to: declared.op_type for declared in operators().values() if declared.rounds_to}


@cache
def op_types(trait: str) -> frozenset[str]:
    """Return the names of ai.onnx's operators with a trait, the name of a field that is set."""
    return frozenset(
        name for (domain, name), declared in operators().items() if domain == "" and getattr(declared, trait)
    )


@cache
def _declared(domain: str, op_type: str) -> Operator:
    return operators().get((domain, op_type)) or Operator(op_type, domain)


def lowerings(domain: str, op_type: str) -> list[Lowering]:
    """Return the rewrites of an operator's old forms, in order of declaration."""
    operators()
    return LOWERINGS.get((domain, op_type), [])


def earlier_schema(domain: str, op_type: str, version: int) -> Any | None:
    """Return the schema of an operator at an opset where ONNX has none but onnxruntime has, or None."""
    operators()
    find = EARLIER_SCHEMAS.get(domain)
    return None if find is None else find(op_type, version)


def float_form(domain: str, op_type: str) -> Callable[[ir.Node, Builder], Any] | None:
    """Return the declared function that converts an operator on floats to one on quantized tensors, or None."""
    operators()
    return FLOAT_FORMS.get((domain, op_type))


def parts(domain: str, op_type: str) -> Parts | None:
    """Return how an operator is made of others, if it is declared."""
    operators()
    return PARTS.get((domain, op_type))
