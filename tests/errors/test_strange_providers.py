"""Plans with wrong facts about their providers."""

from __future__ import annotations

import flatbuffers
import numpy as np
import pytest
import small_models

from py_ort.compiler.compile import compile_model
from py_ort.compiler.plan.dump import read_plan
from py_ort.exceptions import InvalidGraph, NotImplemented, PyOrtError
from py_ort.schema.gen.DType import DType

pytestmark = pytest.mark.browser


def changed(change) -> bytes:
    """A plan of Add on webgpu, with a change in its provider there."""
    plan = read_plan(compile_model(small_models.add()).plan)
    change(plan.providers[1])
    builder = flatbuffers.Builder(1 << 12)
    builder.Finish(plan.Pack(builder), b"PORT")
    return bytes(builder.Output())


def keep(dtype: int, stored: int):
    def change(provider) -> None:
        form = next(form for form in provider.forms if form.dtype == dtype)
        form.stored = stored

    return change


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (keep(DType.int64, DType.int64), InvalidGraph, "int64 on webgpu as int64"),
        (keep(DType.bool_, DType.bool_), InvalidGraph, "bool on webgpu as bool"),
        (keep(DType.float32, DType.int32), InvalidGraph, "an unknown form"),
        (lambda provider: setattr(provider, "name", "toString"), NotImplemented, '"toString" has no code'),
        (lambda provider: setattr(provider, "name", "nobody"), NotImplemented, '"nobody" has no code'),
    ],
)
def test_plans(new_session, change, error: type[PyOrtError], words: str) -> None:
    session = new_session(small_models.add())
    runtime = session._opened.runtime
    with pytest.raises(error, match=words):
        runtime.load(changed(change), [], {"threads": 0, "trace": False}, None, timeout=60).result()
    assert session.run(None, {"x": np.ones((1, 3), np.float32), "scale": np.ones(3, np.float32)})[0].tolist() == [
        [2] * 3
    ]
