"""scikit-learn's models, exported by skl2onnx, compared with native onnxruntime: one row, several, none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from native import native_session
from same_values import assert_same

pytest.importorskip("skl2onnx")
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn import ensemble, feature_extraction, gaussian_process, linear_model, neighbors, neural_network, svm
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures, PowerTransformer, StandardScaler

IRIS, SPECIES = load_iris(return_X_y=True)
IRIS = IRIS.astype(np.float32)
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
DIABETES, PROGRESS = load_diabetes(return_X_y=True)
DIABETES = DIABETES.astype(np.float32)
OPSETS = {"": 18, "ai.onnx.ml": 3}
CATEGORIES = np.array([["a", "x"], ["b", "y"], ["c", "x"], ["a", "z"]] * 5, object)
TEXTS = np.array([["This is the first document."], ["And this the SECOND one, here"], ["Is this a third? yes"]], object)


@dataclass(frozen=True)
class Exported:
    """A model to fit, and its data."""

    make: Callable[[], Any]
    x: np.ndarray = field(default_factory=lambda: IRIS)
    y: np.ndarray | None = field(default_factory=lambda: SPECIES)
    options: dict[str, Any] = field(default_factory=dict)


def regressor(make: Callable[[], Any], count: int = 442) -> Exported:
    """A model of numbers."""
    return Exported(make, DIABETES[:count], PROGRESS[:count])


MODELS = {
    "random_forest": Exported(lambda: ensemble.RandomForestClassifier(10, random_state=0)),
    "random_forest-names": Exported(lambda: ensemble.RandomForestClassifier(10, random_state=0), y=NAMES),
    "random_forest-binary": Exported(lambda: ensemble.RandomForestClassifier(10, random_state=0), y=SPECIES > 0),
    "random_forest-plain": Exported(lambda: ensemble.RandomForestClassifier(5), options={"zipmap": False}),
    "random_forest-columns": Exported(lambda: ensemble.RandomForestClassifier(5), options={"zipmap": "columns"}),
    "random_forest-numbers": regressor(lambda: ensemble.RandomForestRegressor(10, random_state=0)),
    "gradient_boosting": Exported(lambda: ensemble.GradientBoostingClassifier(n_estimators=10)),
    "gradient_boosting-binary": Exported(
        lambda: ensemble.GradientBoostingClassifier(n_estimators=10), y=(SPECIES > 0).astype(int)
    ),
    "gradient_boosting-numbers": regressor(lambda: ensemble.GradientBoostingRegressor(n_estimators=10)),
    "isolation_forest": Exported(lambda: ensemble.IsolationForest(n_estimators=10, random_state=0), y=None),
    "logistic_regression": Exported(lambda: make_pipeline(StandardScaler(), linear_model.LogisticRegression())),
    "svc": Exported(lambda: make_pipeline(StandardScaler(), svm.SVC())),
    "svr": regressor(svm.SVR),
    "nearest_neighbors": Exported(lambda: neighbors.KNeighborsClassifier()),
    "perceptron": Exported(
        lambda: make_pipeline(StandardScaler(), neural_network.MLPClassifier((8,), max_iter=500, random_state=0))
    ),
    "gaussian_process": regressor(lambda: gaussian_process.GaussianProcessRegressor(alpha=0.1), 40),
    "features": Exported(lambda: make_pipeline(PowerTransformer(), PolynomialFeatures(2), PCA(3)), y=None),
    "one_hot": Exported(lambda: OneHotEncoder(sparse_output=False), CATEGORIES, None),
    "ordinal": Exported(lambda: OrdinalEncoder(), CATEGORIES, None),
    "words": Exported(lambda: feature_extraction.text.TfidfVectorizer(lowercase=False), TEXTS, None),
}


def exported(model: Exported) -> bytes:
    """Fit and export."""
    fitted = model.make()
    x = model.x[:, 0] if model.x is TEXTS else model.x
    fitted.fit(x) if model.y is None else fitted.fit(x, model.y)
    kind = StringTensorType if model.x.dtype == object else FloatTensorType
    options = {id(fitted): model.options} if model.options else None
    columns = model.x.shape[1]
    onnx = convert_sklearn(fitted, initial_types=[("X", kind([None, columns]))], options=options, target_opset=OPSETS)
    return onnx.SerializeToString()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_equals_onnxruntime(new_session, name: str):
    import onnxruntime

    model, data = MODELS[name], exported(MODELS[name])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    native = native_session(data, options)
    session = new_session(data, providers=["wasm"])
    described = [[(arg.name, arg.type) for arg in one.get_outputs()] for one in (session, native)]
    assert described[0] == described[1]
    for rows in (1, 17, 0):
        feeds = {"X": model.x[:rows]}
        try:
            wanted = native.run(None, feeds)
        except Exception:  # many of these models fail without rows there
            assert rows == 0
            continue
        assert_same(session.run(None, feeds), wanted)
