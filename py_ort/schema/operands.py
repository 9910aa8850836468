"""Contracts of operands: the sizes that an operator's inputs must have, declared once for Python and the core.

Python holds static sizes against a contract when it compiles (`py_ort/compiler/canonical/size_checks.py`), the core all
sizes before each kernel of any provider runs (`wasm_build/src/core/operand_contracts.cc`): both read the program that
`compiled` makes of the text. It uses the standard library only, because the build runs it before anything is installed.

A contract is a text of clauses, separated by semicolons:

- `W[M, C / group, ...]` declares the next input. Each item is the size of an axis: an expression, alternatives
  (`M or 1`), `_` for any size, or `...` for any number of axes. The first use of a symbol (a capital letter first)
  defines it. `[...] | [...]` are alternatives, of which the rank selects one.
- `rank(W) == rank(X)` must hold where all that it names is known.
- `group = 1` gives an attribute's default: an integer, or a text in quotes.
- `weight_layout == '' ? CLAUSE` applies only if the condition holds.

Functions: `rank(X)`, `size(X)` (number of elements), `dim(X, axis)`, `given(X)`, `broadcasts(B, X)` (B broadcasts to
X), `same(A, B)`, `prefix(A, B, n)` and `suffix(A, B, n)` (the first or last n axes have the same sizes),
`within(A, B, axis)` (no axis of A but this one is longer than that of B). An expression with an omitted input is
unknown, and an unknown clause holds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, auto
from functools import cache

MICROSOFT, NHWC = "com.microsoft", "com.ms.internal.nhwc"


class Instruction(IntEnum):
    """Instructions of expressions, in reverse Polish notation; the core has the same, from `operand_code.py`."""

    CONSTANT = 0
    SYMBOL = auto()
    ATTRIBUTE = auto()
    TEXT_IS = auto()
    DIM = auto()
    RANK = auto()
    SIZE = auto()
    GIVEN = auto()
    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    MODULO = auto()
    EQUAL = auto()
    UNEQUAL = auto()
    AT_MOST = auto()
    BELOW = auto()
    AND = auto()
    OR = auto()
    NOT = auto()
    BROADCASTS = auto()
    SAME = auto()
    PREFIX = auto()
    SUFFIX = auto()
    WITHIN = auto()


_BINARY = {
    ast.Add: Instruction.ADD,
    ast.Sub: Instruction.SUBTRACT,
    ast.Mult: Instruction.MULTIPLY,
    ast.Div: Instruction.DIVIDE,
    ast.Mod: Instruction.MODULO,
    ast.Eq: Instruction.EQUAL,
    ast.NotEq: Instruction.UNEQUAL,
    ast.LtE: Instruction.AT_MOST,
    ast.Lt: Instruction.BELOW,
}
_FUNCTIONS = {
    "rank": Instruction.RANK,
    "size": Instruction.SIZE,
    "given": Instruction.GIVEN,
    "broadcasts": Instruction.BROADCASTS,
    "same": Instruction.SAME,
}
#: Functions of two operands and a number.
_OF_NUMBERS = {"prefix": Instruction.PREFIX, "suffix": Instruction.SUFFIX, "within": Instruction.WITHIN}

_CONV = """
    group = 1; out_channels = 0; weight_layout = '';
    weight_layout == '' ? W[M, C / group, ...]; weight_layout == 'HWIO' ? W[..., C / group, M];
    weight_layout == '' ? rank(W) == rank(X); out_channels == 0 ? M % group == 0;
    packed_k = 0; packed_k == 0 or packed_k * group == C
"""
_CONV_BIAS = "out_channels == 0 ? B[M]; out_channels != 0 ? B[out_channels]"
_CONV_TRANSPOSE = """
    group = 1; out_channels = 0; weight_layout = '';
    weight_layout == '' ? W[C, M, ...]; weight_layout == 'HWIO' ? W[..., C, M]; C % group == 0;
    weight_layout == '' ? rank(W) == rank(X);
    out_channels == 0 ? B[M * group]; out_channels != 0 ? B[out_channels]
"""
_ONE = "[] | [1]"
_QUANTIZED_CONV = (
    f"XScale{_ONE}; XZeroPoint{_ONE}; {_CONV}; {{0}}; YScale{_ONE}; YZeroPoint{_ONE}; {_CONV_BIAS}".format(
        """out_channels == 0 ? WScale[] | [M or 1]; out_channels != 0 ? WScale[] | [out_channels or 1];
    WZeroPoint[...]; size(WZeroPoint) == 1 or size(WZeroPoint) == size(WScale)"""
    )
)
_PRODUCT = "transA = 0; transB = 0; packed_n = 0"
_QUANTIZE = """
    axis = 1; block_size = 0; X[...]; block_size == 0 ? Scale[] | [1 or dim(X, axis)];
    block_size != 0 ? rank(Scale) == rank(X); block_size != 0 ? within(X, Scale, axis) and within(Scale, X, axis);
    block_size != 0 ? dim(X, axis) <= dim(Scale, axis) * block_size;
    block_size != 0 ? dim(Scale, axis) * block_size < dim(X, axis) + block_size;
    ZeroPoint[...]; size(ZeroPoint) == size(Scale)
"""


def _recurrent(gates: int, last: str = "") -> str:
    """A state of each direction is [D, batch, H], or with layout 1 [batch, D, H]."""
    return f"""
        layout = 0; hidden_size = 0; X[_, _, I]; W[D, {gates} * H, I]; R[D, {gates} * H, H]; B[D, {2 * gates} * H];
        layout == 0 ? SequenceLens[dim(X, 1)]; layout != 0 ? SequenceLens[dim(X, 0)];
        layout == 0 ? InitialH[D, dim(X, 1), H]; layout != 0 ? InitialH[dim(X, 0), D, H]; {last};
        hidden_size == 0 or hidden_size == H
    """


_LSTM = "layout == 0 ? InitialC[D, dim(X, 1), H]; layout != 0 ? InitialC[dim(X, 0), D, H]; P[D, 3 * H]"
_REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
_TO_FLOATS = ("MatMulIntegerToFloat", "DynamicQuantizeMatMul")
_PAST = "PastKey[B, {0}, P, _]; PastValue[B, {0}, P, _]"

#: By domain and operator, in the canonical form of `docs/internals.md`, section 2, and the forms that passes make.
CONTRACTS: dict[tuple[str, str], str] = {
    ("", "Conv"): f"X[_, C, ...]; {_CONV}; {_CONV_BIAS}",
    (NHWC, "Conv"): f"X[_, ..., C]; {_CONV}; {_CONV_BIAS}",
    ("", "ConvTranspose"): f"X[_, C, ...]; {_CONV_TRANSPOSE}",
    (NHWC, "ConvTranspose"): f"X[_, ..., C]; {_CONV_TRANSPOSE}",
    (MICROSOFT, "NhwcConv"): "group = 1; X[_, ..., C]; W[M, ..., C / group]; B[M]; rank(W) == rank(X)",
    ("", "DeformConv"): """
        group = 1; X[N, C, ...]; W[M, C / group, ...]; Offset[N, _, ...]; B[M]; Mask[N, _, ...];
        rank(W) == rank(X); rank(Offset) == rank(X); rank(Mask) == rank(X)
    """,
    ("", "QLinearConv"): f"X[_, C, ...]; {_QUANTIZED_CONV}",
    (NHWC, "QLinearConv"): f"X[_, ..., C]; {_QUANTIZED_CONV}",
    ("", "ConvInteger"): f"X[_, C, ...]; {_CONV}; XZeroPoint{_ONE}",
    ("", "Gemm"): f"""
        {_PRODUCT}; transA == 0 ? A[M, K]; transA != 0 ? A[K, M];
        packed_n == 0 and transB == 0 ? B[K, N]; packed_n == 0 and transB != 0 ? B[N, K];
        packed_n == 0 ? C[] | [N or 1] | [M or 1, N or 1];
        packed_n != 0 ? C[] | [packed_n or 1] | [M or 1, packed_n or 1]
    """,
    ("", "BatchNormalization"): "X[_, C, ...] | [_]; Scale[C]; B[C]; Mean[C]; Var[C]",
    (NHWC, "BatchNormalization"): "X[_, ..., C]; Scale[C]; B[C]; Mean[C]; Var[C]",
    ("", "LSTM"): _recurrent(4, _LSTM),
    ("", "GRU"): _recurrent(3),
    ("", "RNN"): _recurrent(1),
    ("", "ScatterND"): """
        Data[...]; Indices[..., K]; Updates[...]; K <= rank(Data);
        rank(Updates) == rank(Data) + rank(Indices) - 1 - K;
        prefix(Updates, Indices, rank(Indices) - 1); suffix(Updates, Data, rank(Data) - K)
    """,
    ("", "ScatterElements"): """
        axis = 0; Data[...]; Indices[...]; Updates[...]; rank(Indices) == rank(Data); same(Updates, Indices);
        within(Indices, Data, axis)
    """,
    ("", "GatherElements"): """
        axis = 0; Data[...]; Indices[...]; rank(Indices) == rank(Data); within(Indices, Data, axis)
    """,
    ("", "GatherND"): """
        batch_dims = 0; Data[...]; Indices[..., K]; K + batch_dims <= rank(Data); prefix(Data, Indices, batch_dims)
    """,
    ("", "GridSample"): "X[N, _, ...]; Grid[N, ..., _]; rank(Grid) == rank(X); dim(Grid, -1) == rank(X) - 2",
    (NHWC, "GridSample"): "X[N, ..., _]; Grid[N, ..., _]; rank(Grid) == rank(X); dim(Grid, -1) == rank(X) - 2",
    ("", "RoiAlign"): "X[_, _, _, _]; Rois[R, 4]; BatchIndices[R]",
    ("", "MaxRoiPool"): "X[_, _, _, _]; Rois[_, 5]",
    ("", "OneHot"): f"Indices[...]; Depth{_ONE}; Values[2]",
    ("", "TopK"): f"X[...]; K{_ONE}",
    ("", "Trilu"): f"X[...]; K{_ONE}",
    ("", "Range"): f"Start{_ONE}; Limit{_ONE}; Delta{_ONE}",
    ("", "CumSum"): f"X[...]; Axis{_ONE}",
    ("", "CumProd"): f"X[...]; Axis{_ONE}",
    ("", "ReverseSequence"): "batch_axis = 1; X[...]; SequenceLens[dim(X, batch_axis)]",
    ("", "Slice"): """
        Data[...]; Starts[...]; Ends[...]; Axes[...]; Steps[...]; size(Ends) == size(Starts);
        size(Axes) == size(Starts); size(Steps) == size(Starts)
    """,
    ("", "NegativeLogLikelihoodLoss"): "Scores[_, C, ...] | [C]; Target[...]; Weight[C]",
    ("", "SoftmaxCrossEntropyLoss"): "Scores[_, C, ...] | [C]; Target[...]; Weight[C]",
    ("", "RotaryEmbedding"): "X[...]; Cos[...]; Sin[...]; same(Cos, Sin)",
    (MICROSOFT, "RotaryEmbedding"): "X[...]; PositionIds[...]; Cos[...]; Sin[...]; same(Cos, Sin)",
    ("", "Attention"): """
        offsets = 0; Q[...]; K[...]; V[...]; offsets == 0 ? rank(Q) == rank(K) and rank(K) == rank(V);
        offsets == 0 ? dim(Q, 0) == dim(K, 0) and dim(K, 0) == dim(V, 0); offsets == 0 ? dim(K, -2) == dim(V, -2);
        offsets == 0 and rank(K) == 4 ? dim(K, 1) == dim(V, 1)
    """,
    **{("", f"Reduce{name}"): "Data[...]; Axes[_]" for name in _REDUCTIONS.split()},
    ("", "DequantizeLinear"): _QUANTIZE,
    ("", "QuantizeLinear"): _QUANTIZE,
    **dict.fromkeys(
        (("", "MatMulInteger"), ("", "QLinearMatMul"), *((MICROSOFT, name) for name in _TO_FLOATS)),
        "packed_k = 0; A[..., K]; packed_k == 0 or packed_k == K",
    ),
    (MICROSOFT, "QGemm"): """
        transA = 0; packed_k = 0; A[_, _]; transA == 0 ? packed_k == 0 or packed_k == dim(A, 1);
        transA != 0 ? packed_k == 0 or packed_k == dim(A, 0)
    """,
    (MICROSOFT, "BiasGelu"): "X[..., E]; Bias[E]",
    (MICROSOFT, "BiasSplitGelu"): "X[..., E]; Bias[E]",
    (MICROSOFT, "BiasAdd"): "X[_, _, E]; Bias[E]; Skip[...]; same(Skip, X)",
    (MICROSOFT, "SkipLayerNormalization"): "X[..., E]; Skip[..., E]; Gamma[E]; Beta[E]; Bias[E]; broadcasts(Skip, X)",
    (MICROSOFT, "SkipSimplifiedLayerNormalization"): "X[..., E]; Skip[..., E]; Gamma[E]; Bias[E]; broadcasts(Skip, X)",
    (MICROSOFT, "MultiHeadAttention"): f"""
        num_heads = 1; Query[B, S, Hidden] | [B, S, num_heads, 3, _]; Hidden % num_heads == 0;
        Key[B, L, Hidden] | [B, num_heads, L, Hidden / num_heads] | [B, L, num_heads, 2, Hidden / num_heads];
        Value[B, L, V] | [B, num_heads, L, _]; V % num_heads == 0; Bias[_]; Mask[...];
        AttentionBias[B or 1, num_heads or 1, S, _]; {_PAST.format("num_heads")};
        PastSequenceLength[...]; given(PastKey) and not given(PastSequenceLength) ? dim(AttentionBias, 3) == L + P;
        not given(PastKey) ? dim(AttentionBias, 3) == L; dim(PastKey, 3) == Hidden / num_heads;
        dim(PastValue, 3) == V / num_heads
    """,
    (MICROSOFT, "Attention"): """
        num_heads = 1; X[B, S, C]; W[C, N]; Bias[N]; Mask[...]; Past[2, B, num_heads, P, _];
        AttentionBias[B or 1, num_heads or 1, S, _]; given(Past) ? dim(AttentionBias, 3) == S + P;
        not given(Past) ? dim(AttentionBias, 3) == S
    """,
    (MICROSOFT, "QAttention"): f"""
        num_heads = 1; X[B, S, C]; W[C, N]; Bias[N]; XScale{_ONE}; WScale[] | [N or 1]; Mask[...]; XZeroPoint{_ONE};
        WZeroPoint[] | [N or 1]; Past[2, B, num_heads, _, _]
    """,
    (MICROSOFT, "GroupQueryAttention"): f"""
        kv_num_heads = 1; Query[B, S, _]; Key[B, S, K]; Value[B, S, K]; {_PAST.format("kv_num_heads")}; SeqlensK[...];
        size(SeqlensK) == B
    """,
}


@dataclass(frozen=True)
class Contract:
    """A contract in the form that programs evaluate.

    Attributes:
        operands: Names of the inputs, in order.
        symbols: Names of sizes.
        attributes: Defaults of the attributes that expressions read.
        texts: The texts with which expressions compare attributes.
        clauses: The text of each clause, for messages.
        code: Per clause: the length of its condition, the condition, and a shape or an expression; see `_Compiler`.
    """

    operands: Sequence[str]
    symbols: Sequence[str]
    attributes: Mapping[str, int | str]
    texts: Sequence[str]
    clauses: Sequence[str]
    code: Sequence[int]


@cache
def contract(domain: str, op_type: str) -> Contract | None:
    """Return an operator's contract, or None where none is declared."""
    text = CONTRACTS.get((domain, op_type))
    return None if text is None else compiled(text)


def compiled(text: str) -> Contract:
    """Compile the text of a contract.

    Raises:
        ValueError: Of a clause that is none.
    """
    compiler = _Compiler()
    for clause in filter(None, (" ".join(part.split()) for part in text.split(";"))):
        try:
            compiler.clause(clause)
        except (SyntaxError, KeyError) as e:
            raise ValueError(f"no clause of a contract: {clause}") from e
    return compiler.result()


@dataclass
class _Compiler:
    operands: list[str] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    attributes: dict[str, int | str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    clauses: list[str] = field(default_factory=list)
    code: list[int] = field(default_factory=list)

    def result(self) -> Contract:
        return Contract(self.operands, self.symbols, self.attributes, self.texts, self.clauses, self.code)

    def clause(self, text: str) -> None:
        condition, question, rest = text.rpartition("?")
        rest = rest.strip()
        if not question and (default := re.fullmatch(r"([a-z_]\w*) = (.+)", rest)):
            self.attributes[default[1]] = ast.literal_eval(default[2])
            return
        guard = self._expression(condition.strip()) if question else []
        shape = re.match(r"[A-Z]\w*\[", rest)
        body = self._shape(rest) if shape else [1, *_counted(self._expression(rest))]
        self.clauses.append(rest)
        self.code += [*_counted(guard), *body]

    def _shape(self, text: str) -> list[int]:
        """0, the operand, the number of forms; of each: whether `...` is in it, how many items before and behind it."""
        name, _, rest = text.partition("[")
        if name not in self.operands:
            self.operands.append(name)
        forms = re.findall(r"\[(.*?)\](?=\s*\||$)", "[" + rest)
        if not forms:
            raise SyntaxError(text)
        code = [0, self.operands.index(name), len(forms)]
        for form in forms:
            items = [item.strip() for item in _split(form)]
            open_ended = "..." in items
            head = items[: items.index("...")] if open_ended else items
            tail = items[items.index("...") + 1 :] if open_ended else []
            code += [int(open_ended), len(head), len(tail)]
            for item in head + tail:
                choices = [] if item == "_" else item.split(" or ")
                code.append(len(choices))
                for choice in choices:
                    code += _counted(self._expression(choice.strip(), defines=True))
        return code

    def _expression(self, text: str, defines: bool = False) -> list[int]:
        return self._visit(ast.parse(text, mode="eval").body, defines)

    def _visit(self, node: ast.expr, defines: bool = False) -> list[int]:
        match node:
            case ast.Constant(value=int(value)):
                return [Instruction.CONSTANT, value]
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return [Instruction.CONSTANT, -value]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return [*self._visit(operand, defines), Instruction.NOT]
            case ast.Name(id=name) if name[0].isupper():
                if name not in self.symbols:
                    if not defines:
                        raise KeyError(name)
                    self.symbols.append(name)
                return [Instruction.SYMBOL, self.symbols.index(name)]
            case ast.Name(id=name):
                return [Instruction.ATTRIBUTE, list(self.attributes).index(self._attribute(name))]
            case ast.BinOp(left=left, op=op, right=right):
                return [*self._visit(left, defines), *self._visit(right, defines), _BINARY[type(op)]]
            case ast.BoolOp(op=op, values=values):
                code = self._visit(values[0], defines)
                for other in values[1:]:
                    code += [
                        *self._visit(other, defines),
                        Instruction.AND if isinstance(op, ast.And) else Instruction.OR,
                    ]
                return code
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=str(text))]):
                if text not in self.texts:
                    self.texts.append(text)
                attribute = list(self.attributes).index(self._attribute(name))
                return [
                    Instruction.TEXT_IS,
                    attribute,
                    self.texts.index(text),
                    *([Instruction.NOT] if isinstance(op, ast.NotEq) else []),
                ]
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return [*self._visit(left, defines), *self._visit(right, defines), _BINARY[type(op)]]
            case ast.Call(func=ast.Name(id="dim"), args=[ast.Name(id=name), axis]):
                return [*self._visit(axis), Instruction.DIM, self.operands.index(name)]
            case ast.Call(func=ast.Name(id=function), args=[ast.Name(id=a), ast.Name(id=b), number]):
                return [*self._visit(number), _OF_NUMBERS[function], self.operands.index(a), self.operands.index(b)]
            case ast.Call(func=ast.Name(id=function), args=args):
                names = [self.operands.index(arg.id) for arg in args if isinstance(arg, ast.Name)]
                return [_FUNCTIONS[function], *names]
        raise SyntaxError(ast.dump(node))

    def _attribute(self, name: str) -> str:
        if name not in self.attributes:
            raise KeyError(f"the attribute {name} has no default")
        return name


def _counted(code: Sequence[int]) -> list[int]:
    return [len(code), *code]


def _split(items: str) -> list[str]:
    """Cut at commas outside of parentheses."""
    return [item for item in re.split(r",\s*(?![^()]*\))", items) if item.strip()]
