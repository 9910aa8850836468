"""`UserKernel`: the declaration of a user's WebGPU kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py_ort.boundary import public
from py_ort.exceptions import InvalidArgument
from py_ort.user_kernels import sizes
from py_ort.user_kernels.formula import translate

if TYPE_CHECKING:
    import numpy as np

    from py_ort.wire.json_fields import UserDefinition

DTYPES = (
    *("float32", "float16", "int64", "int32", "int16", "int8"),
    *("uint64", "uint32", "uint16", "uint8", "bool"),
)
FLOATS = ("float32", "float16")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_UNIFORM = re.compile(r"\bu\.(\w+)")
#: Names with another meaning in a kernel's text.
_RESERVED = {
    "u",
    "i",
    "main",
    "fn",
    "let",
    "var",
    "const",
    "if",
    "else",
    "for",
    "while",
    "loop",
    "return",
    "true",
    "false",
}
_KINDS: dict[type, str] = {bool: "i", int: "i", float: "f", str: "s"}
_FORMS = ("expression", "body", "wgsl")


class RequiredAttribute(str):
    """An attribute without a default; see `required`."""


def required(kind: type) -> RequiredAttribute:
    """Declare an attribute that every node must have: `attributes={"axis": required(int)}`.

    Args:
        kind: int, float or str.
    """
    if kind not in _KINDS:
        raise InvalidArgument(f"a required attribute is an int, a float or a str, not {kind!r}")
    return RequiredAttribute(_KINDS[kind])


@public
@dataclass(frozen=True, kw_only=True, eq=False)
class UserKernel:
    """A WebGPU kernel for an operator of the user's own domain. docs/user_kernels.md explains it with examples.

    Exactly one of `expression`, `body` and `wgsl` defines the computation.

    Attributes:
        name: "domain::Operator"; nodes of this domain and type run it.
        inputs: Their names; "bias?" is one that may be omitted (only at the end, and not with `expression`).
        outputs: Their names.
        types: Accepted dtypes: one list for all inputs, which then must have one dtype; or by input a list, or the name
            of another input whose dtype it must have. Default: float32 and float16.
        dtypes: Dtypes of the outputs, by name or one for all: a dtype, or the name of an input with the same dtype.
            Default: the first input's.
        shape: The outputs' shape, by name or one for all, in the language of sizes: "x.shape[:-1] + [2]". Default: with
            `expression` the broadcast shape of the inputs, otherwise the first input's.
        attributes: By name the default (int, float, str, or a list of one of them), or `required(kind)`.
        expression: An elementwise formula in Python's syntax, with broadcasting: "x * sigmoid(alpha * x)".
        body: WGSL of one thread, which computes element `i` of the first output (see `threads`).
        wgsl: A whole WGSL module with entry point `main`, without its bindings; needs `workgroups`.
        functions: WGSL of functions that `expression` or `body` call.
        uniforms: Further uniforms `u.NAME`, in the language of sizes. Numeric attributes are uniforms by themselves.
        constants: `const NAME` in the text, in the language of sizes: each value makes a separate pipeline.
        threads: Number of threads of `body`. Default: the first output's size.
        workgroups: One to three numbers of workgroups for `wgsl`, in the language of sizes.
        workgroup_size: Threads of a workgroup of `body`.
        host: Inputs that are read on the CPU: the language of sizes has their elements as `k.values`.
        example: For `py-ort kernel`: by input an array, or a shape to be filled with random numbers; attributes too.
        reference: For `check` and `py-ort kernel`: the same in numpy, called with arrays and attributes by name.
        doc: Its purpose.
    """

    name: str
    inputs: Sequence[str] = ("x",)
    outputs: Sequence[str] = ("y",)
    types: Sequence[str] | Mapping[str, Any] = FLOATS
    dtypes: str | Mapping[str, str] | None = None
    shape: str | Mapping[str, str] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    expression: str = ""
    body: str = ""
    wgsl: str = ""
    functions: str = ""
    uniforms: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    threads: str = ""
    workgroups: Sequence[str | int] = ()
    workgroup_size: int = 64
    host: Sequence[str] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    doc: str = ""

    def __post_init__(self) -> None:
        self._check()
        _ = self.definition  # so that every error is raised where the kernel is declared

    @property
    def domain(self) -> str:
        """The operator's domain."""
        return self.name.partition("::")[0]

    @property
    def op_type(self) -> str:
        """The operator's name in its domain."""
        return self.name.partition("::")[2]

    @property
    def input_names(self) -> list[str]:
        """The inputs' names, without the mark of optional ones."""
        return [name.rstrip("?") for name in self.inputs]

    @property
    def form(self) -> str:
        """The one of "expression", "body" and "wgsl" that it has."""
        return next(form for form in _FORMS if getattr(self, form))

    @cached_property
    def attribute_kinds(self) -> dict[str, str]:
        """By attribute: i, f or s; is, fs or ss for lists."""
        return {name: _kind(name, value) for name, value in self.attributes.items()}

    @cached_property
    def accepted(self) -> list[list[str] | str]:
        """By input: the accepted dtypes, or the name of the input whose dtype it must have."""
        names = self.input_names
        if not isinstance(self.types, Mapping):
            device = [name for name in names if name not in self.host]
            return [
                ["int64", "int32"] if n in self.host else list(self.types) if n == device[0] else device[0]
                for n in names
            ]
        return [
            given if isinstance(given, str) and given in names else _as_list(given)
            for given in (self.types.get(name, FLOATS) for name in names)
        ]

    @cached_property
    def input_types(self) -> list[frozenset[str]]:
        """The dtypes of each input; an empty set, which means all, for inputs read on the CPU."""
        return [frozenset(self._accepted(i)) for i in range(len(self.inputs))]

    def _accepted(self, index: int) -> list[str]:
        if self.input_names[index] in self.host:
            return []
        given = self.accepted[index]
        return given if isinstance(given, list) else self._accepted(self.input_names.index(given))

    @cached_property
    def output_dtypes(self) -> list[str]:
        """By output: a dtype, or the name of the input with the same dtype."""
        first = self.input_names[0]
        if isinstance(self.dtypes, Mapping):
            return [self.dtypes.get(name, first) for name in self.outputs]
        return [self.dtypes or first] * len(self.outputs)

    @cached_property
    def shapes(self) -> list[sizes.Tree]:
        """By output: the tree of its shape."""
        names = self.input_names
        device = [name for name in names if name not in self.host]
        default = f"{device[0]}.shape"
        if self.expression:
            default = f"broadcast({', '.join(f'{name}.shape' for name in device)})"
        texts = [
            (self.shape.get(name) if isinstance(self.shape, Mapping) else self.shape) or default
            for name in self.outputs
        ]
        return [self._parse(text, names, f"shape of {name}") for name, text in zip(self.outputs, texts, strict=True)]

    @cached_property
    def definition(self) -> UserDefinition:
        """The kernel's definition for the page."""
        tensors = [*self.input_names, *self.outputs]
        formula = None
        text = getattr(self, self.form)
        if self.expression:
            numeric = [name for name, kind in self.attribute_kinds.items() if kind in ("i", "f")]
            formula = translate(self.expression, self.input_names, numeric, self.functions, f"{self.name}: ")
        read = [text, self.functions]
        uniforms = {
            name: self._parse(self.uniforms.get(name, name), tensors, f"uniform {name}")
            for name in self._uniforms_read(read, formula.attributes if formula else ())
        }
        return {
            "domain": self.domain,
            "op": self.op_type,
            "inputs": [
                {"name": name.rstrip("?"), "optional": name.endswith("?"), "host": name in self.host}
                for name in self.inputs
            ],
            "outputs": [
                {"name": name, "dtype": dtype, "shape": shape}
                for name, dtype, shape in zip(self.outputs, self.output_dtypes, self.shapes, strict=True)
            ],
            "attributes": {
                name: {"kind": kind, "default": None if isinstance(self.attributes[name], RequiredAttribute) else value}
                for (name, kind), value in zip(
                    self.attribute_kinds.items(), map(_plain, self.attributes.values()), strict=True
                )
            },
            "form": self.form,
            "text": text if formula is None else formula.text,
            "isBool": formula.is_bool if formula else False,
            "functions": self.functions,
            "helpers": formula.helpers if formula else "",
            "uniforms": [
                {"name": name, "type": sizes.scalar_type(tree, self.attribute_kinds), "value": tree}
                for name, tree in uniforms.items()
            ],
            "constants": [
                {"name": name, "value": self._parse(text, tensors, f"constant {name}")}
                for name, text in self.constants.items()
            ],
            "threads": self._parse(self.threads or f"{self.outputs[0]}.size", tensors, "threads"),
            "workgroups": [self._parse(str(text), tensors, "workgroups") for text in self.workgroups],
            "workgroupSize": self.workgroup_size,
        }

    def __call__(self, *arrays: Any, **options: Any) -> Any:
        """Run it once on arrays in a browser, as a model of one node.

        Args:
            arrays: The inputs, in order; None for an omitted one.
            options: Attributes; `browser=` as for `InferenceSession`.

        Returns:
            The output, or a tuple of several.
        """
        from py_ort.user_kernels.trial import run_once

        results = run_once(self, arrays, **options)
        return results[0] if len(results) == 1 else tuple(results)

    def check(self, *arrays: np.ndarray, **options: Any) -> float:
        """Run it like `__call__`, and its `reference`; return the largest error relative to the largest result.

        Raises:
            InvalidArgument: There is no reference, it raises an exception, or it returns another shape or number of
                outputs.
        """
        from py_ort.user_kernels.trial import compare

        return compare(self, arrays, options)

    def _parse(self, text: str, tensors: Sequence[str], what: str) -> sizes.Tree:
        return sizes.parse(text, tensors, list(self.attributes), f"{self.name}: {what}")

    def _uniforms_read(self, texts: Sequence[str], others: Sequence[str]) -> list[str]:
        """The uniforms that the text reads: a shader's interface has no others."""
        read = dict.fromkeys([*others, *(name for text in texts for name in _UNIFORM.findall(text))])
        numeric = [name for name, kind in self.attribute_kinds.items() if kind in ("i", "f")]
        for name in read:
            if name not in self.uniforms and name not in numeric:
                known = ", ".join([*self.uniforms, *numeric]) or "none"
                raise InvalidArgument(
                    f"{self.name}: the text reads u.{name}, which is neither of its uniforms nor a numeric "
                    f"attribute: there are {known}"
                )
        return list(read)

    def _check(self) -> None:
        where = self.name or "a user kernel"

        def refuse(why: str) -> InvalidArgument:
            return InvalidArgument(f"{where}: {why}")

        domain, colons, op_type = self.name.partition("::")
        if not colons or not domain or not _NAME.fullmatch(op_type):
            raise refuse("a name is 'domain::Operator', e.g. 'my.ops::Swoosh'")
        if domain.startswith(("ai.onnx", "com.microsoft", "com.ms.")):
            raise refuse(f"the domain {domain} is ONNX's or Microsoft's: give the operator a domain of your own")
        given = [form for form in _FORMS if getattr(self, form)]
        if len(given) != 1:
            raise refuse(f"it needs one of {', '.join(_FORMS)}, and has {', '.join(given) or 'none'}")
        names = [*self.input_names, *self.outputs, *self.attributes]
        for name in (*names, *self.uniforms, *self.constants):
            if not _NAME.fullmatch(name) or name in _RESERVED:
                raise refuse(f"{name!r} cannot be a name here: letters, digits and _, and none of WGSL's words")
        if len(set(names)) < len(names):
            raise refuse(f"inputs, outputs and attributes need different names: {', '.join(names)}")
        optional = [name.endswith("?") for name in self.inputs]
        if optional != sorted(optional) or (optional and optional[0]) or not optional:
            raise refuse("the first input must be there, and optional ones come last")
        if self.expression and (any(optional) or len(self.outputs) != 1):
            raise refuse("an expression has one output, and no optional inputs: use body= or wgsl=")
        if self.wgsl and not 1 <= len(self.workgroups) <= 3:
            raise refuse("wgsl= needs workgroups=, one to three numbers: ['ceil_div(y.size, 64)']")
        if not self.wgsl and self.workgroups:
            raise refuse("workgroups= goes with wgsl=; a body runs once for each of threads=")
        if set(self.host) - set(self.input_names) or self.input_names[0] in self.host:
            raise refuse("host= names inputs, other than the first")
        self._check_dtypes(refuse)

    def _check_dtypes(self, refuse: Callable[[str], InvalidArgument]) -> None:
        if isinstance(self.types, Mapping) and (unknown := set(self.types) - set(self.input_names)):
            raise refuse(f"types= names {unknown.pop()!r}, which is no input")
        for index, given in enumerate(self.accepted):
            others = self.input_names[:index]
            if isinstance(given, str) and given not in others:
                raise refuse(f"input {self.input_names[index]!r} has the dtype of {given!r}, which must come before it")
            if isinstance(given, list) and not (given and set(given) <= set(DTYPES)):
                wrong = ", ".join(name for name in given if name not in DTYPES) or "nothing"
                raise refuse(f"types= has {wrong}; dtypes on the GPU are {', '.join(DTYPES)}")
        for given in self.output_dtypes:
            if given not in DTYPES and given not in self.input_names:
                raise refuse(f"an output's dtype is one of {', '.join(DTYPES)}, or an input's name, not {given!r}")


def _as_list(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _kind(name: str, value: Any) -> str:
    if isinstance(value, RequiredAttribute):
        return str(value)
    if isinstance(value, (list, tuple)) and value:
        kinds = {_KINDS.get(type(item), "") for item in value}
        kind = "f" if kinds == {"i", "f"} else kinds.pop() if len(kinds) == 1 else ""
        if kind:
            return f"{kind}s"
    elif type(value) in _KINDS:
        return _KINDS[type(value)]
    raise InvalidArgument(
        f"attribute {name!r}: its default is an int, a float, a str or a list of one of them, or required(kind), "
        f"not {value!r}"
    )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (list, tuple)) else int(value) if isinstance(value, bool) else value
