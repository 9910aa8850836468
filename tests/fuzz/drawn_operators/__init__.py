"""Nodes drawn at random, on values of a graph: one function for each family of operators.

Shapes and attributes are only likely to fit: native onnxruntime decides, and then the graph adds the node.
"""

from drawn_operators import elementwise, moving, networks, reducing

#: Seeds are indices into this list.
DRAWS = [*elementwise.DRAWS, *reducing.DRAWS, *moving.DRAWS, *networks.DRAWS]
#: For graphs of several types of floats.
MIXED_DRAWS = [*elementwise.DRAWS, *elementwise.CONVERSIONS, *reducing.DRAWS]
