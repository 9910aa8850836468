"""Options of the CPU provider in a page: the instructions of its inner loops."""

import numpy as np
import pytest
import small_models
from text_form import parse

from py_ort.exceptions import NotImplemented

#: a * a is b + 2^-24: rounded, it is b.
A, B = np.float32(1 + 2**-12), np.float32(1 + 2**-11)


def _difference(new_session, simd: str):
    """a * a - b, by a matrix product."""
    model = parse("g (float[1,2] x) => (float[1,1] y) { y = MatMul(x, w) }", {"w": np.array([[1], [A]], np.float32)})
    session = new_session(model, providers=[("wasm", {"simd": simd})])
    return session, session.run(None, {"x": np.array([[-B, A]], np.float32)})[0].item()


def test_fixed_rounds_each_step(new_session):
    session, difference = _difference(new_session, "fixed")
    assert session.stats()["created"]["wasm"]["simd"] == "fixed"
    assert session.get_provider_options()["CPUExecutionProvider"] == {"simd": "fixed"}
    assert difference == 0


def test_relaxed_is_used_where_it_is_there(new_session):
    session, difference = _difference(new_session, "auto")
    simd = session.stats()["created"]["wasm"]["simd"]
    assert simd in ("relaxed", "fixed")
    # Relaxed: fused or not, depending on the processor.
    assert difference in ((0, 2**-24) if simd == "relaxed" else (0,))
    if simd == "fixed":
        with pytest.raises(NotImplemented, match="simd=relaxed"):
            _difference(new_session, "relaxed")
    else:
        assert _difference(new_session, "relaxed")[1] == difference


def test_sessions_of_one_page_differ(new_session):
    """The inner loops are the run's, whatever session was made or ran last."""
    fixed, _ = _difference(new_session, "fixed")
    _difference(new_session, "auto")
    assert fixed.run(None, {"x": np.array([[-B, A]], np.float32)})[0].item() == 0


def test_nodes_without_loops_have_none(new_session):
    """No micro-kernels are fetched for them, unless requested."""
    means = new_session(small_models.add(), providers=["wasm"]).stats()["created"]["wasm"]
    assert means == {"threads": 1}
    asked = new_session(small_models.add(), providers=[("wasm", {"simd": "fixed"})])
    assert asked.stats()["created"]["wasm"]["simd"] == "fixed"
