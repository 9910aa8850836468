"""Which fields the tables of .ort files have, by place: of all versions, as fields were only added."""

from __future__ import annotations

from py_ort.compiler.load.ort_format.tables import (
    Table,
    float32,
    integer,
    raw,
    raws,
    table,
    tables,
    text,
    texts,
    vector,
)

#: The bytes 4 to 8 of every file.
IDENTIFIER = b"ORTM"


class Dimension(Table):
    """A size, a name, or neither."""

    kind = integer(0, "int8")
    size = integer(1, "int64")
    name = text(2)


class NamedDimension(Table):
    """A dimension, with its denotation."""

    value = table(0, lambda: Dimension)
    denotation = text(1)


class Shape(Table):
    """Dimensions."""

    dims = tables(0, lambda: NamedDimension)


class TensorType(Table):
    """A dtype with ONNX's number, and a shape if one is known."""

    dtype = integer(0, "int32")
    shape = table(1, lambda: Shape)


class SequenceType(Table):
    """The type of a sequence, with the elements' type."""

    element = table(0, lambda: Type)


class MapType(Table):
    """The type of a map, with the keys' dtype and the values' type."""

    key = integer(0, "int32")
    value = table(1, lambda: Type)


class Type(Table):
    """The type of a value: a number for one of three kinds, and a table of that kind."""

    denotation = text(0)
    kind = integer(1, "uint8")
    tensor = table(2, lambda: TensorType)
    sequence = table(2, lambda: SequenceType)
    map = table(2, lambda: MapType)


class Value(Table):
    """A name, and its type if it is known."""

    name = text(0)
    doc = text(1)
    type = table(2, lambda: Type)


class Tensor(Table):
    """A constant."""

    name = text(0)
    doc = text(1)
    dims = vector(2, "<i8")
    dtype = integer(3, "int32")
    contents = vector(4, "u1")
    strings = raws(5)
    outside = integer(6, "int64", -1)


class SparseTensor(Table):
    """A sparse constant."""

    values = table(0, lambda: Tensor)
    indices = table(1, lambda: Tensor)
    dims = vector(2, "<i8")


class Attribute(Table):
    """An attribute of a node: its kind, with ONNX's number, says which field has it."""

    name = text(0)
    doc = text(1)
    kind = integer(2, "int32")
    f = float32(3)
    i = integer(4, "int64")
    s = raw(5)
    t = table(6, lambda: Tensor)
    g = table(7, lambda: Graph)
    floats = vector(8, "<f4")
    ints = vector(9, "<i8")
    strings = raws(10)
    tensors = tables(11, lambda: Tensor)
    graphs = tables(12, lambda: Graph)


class Node(Table):
    """A node; nodes that a provider compiled have another kind."""

    name = text(0)
    doc = text(1)
    domain = text(2)
    op_type = text(5)
    kind = integer(6, "int32")
    inputs = texts(8)
    outputs = texts(9)
    attributes = tables(10, lambda: Attribute)


class Graph(Table):
    """A graph; one list has the types of all values."""

    initializers = tables(0, lambda: Tensor)
    values = tables(1, lambda: Value)
    nodes = tables(2, lambda: Node)
    inputs = texts(5)
    outputs = texts(6)
    sparse_initializers = tables(7, lambda: SparseTensor)


class OperatorSet(Table):
    """A domain and its opset."""

    domain = text(0)
    version = integer(1, "int64")


class Entry(Table):
    """A piece of metadata."""

    key = text(0)
    value = text(1)


class Model(Table):
    """Metadata and graph of ONNX's model."""

    ir_version = integer(0, "int64")
    opsets = tables(1, lambda: OperatorSet)
    producer_name = text(2)
    producer_version = text(3)
    domain = text(4)
    model_version = integer(5, "int64")
    doc = text(6)
    graph = table(7, lambda: Graph)
    graph_doc = text(8)
    metadata = tables(9, lambda: Entry)


class File(Table):
    """All of it: the version of the format, and the model."""

    version = text(0)
    model = table(1, lambda: Model)
