"""Gathers that only the CPU has."""

import numpy as np
from case import Case, r

CASES = [Case("ArrayFeatureExtractor", [r(3, 4), np.array([[2, 0]])], domain="ai.onnx.ml")]
