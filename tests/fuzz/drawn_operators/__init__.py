"""Nodes drawn at random, on values that a graph has: one function for each family of operators.

Shapes and attributes are only likely to fit: native onnxruntime says whether they do, and then the graph takes them.
"""

from drawn_operators import elementwise, moving, networks, reducing

#: Seeds stand for places in this list.
DRAWS = [*elementwise.DRAWS, *reducing.DRAWS, *moving.DRAWS, *networks.DRAWS]
#: Of graphs of several types of floats.
MIXED_DRAWS = [*elementwise.DRAWS, *elementwise.CONVERSIONS, *reducing.DRAWS]
