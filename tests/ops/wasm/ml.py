"""ai.onnx.ml's features and labels; tests/unit covers machines and trees."""

import numpy as np
from case import Case, r

ML = "ai.onnx.ml"
HOLES = np.array([[1, np.nan, 3], [np.nan, 5, 6]], np.float32)

CASES = [
    Case("Binarizer", [r(3, 4)], {"threshold": 0.3}, domain=ML),
    Case("FeatureVectorizer", [r(3, 2), r(3, 4)], {"inputdimensions": [2, 4]}, domain=ML),
    Case("Imputer", [HOLES], {"imputed_value_floats": [7.0, 8.0, 9.0], "replaced_value_float": np.nan}, domain=ML),
    *(Case("Normalizer", [r(3, 4)], {"norm": norm}, domain=ML) for norm in ("MAX", "L1", "L2")),
    Case("Scaler", [r(3, 2)], {"offset": [0.5, -1.0], "scale": [2.0, 0.25]}, domain=ML),
    Case("OneHotEncoder", [np.array([2, 0, 5])], {"cats_int64s": [0, 2, 4], "zeros": 1}, domain=ML),
    Case(
        "LabelEncoder",
        [np.array([3, 9, 1])],
        {"keys_int64s": [1, 3], "values_floats": [0.5, 1.5], "default_float": -2.0},
        domain=ML,
    ),
    Case("LabelEncoder", [np.array([5, 7])], {"keys_int64s": [5, 5, 7], "values_floats": [1.0, 2.0, 3.0]}, domain=ML),
    *(
        Case("LinearRegressor", [r(3, 2)], {"coefficients": [0.5, -2.0], "intercepts": [0.25], **more}, domain=ML)
        for more in ({}, {"post_transform": "NONE"})
    ),
]
