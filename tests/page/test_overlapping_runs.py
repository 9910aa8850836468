"""Runs of several threads overlap on one device: the next one's feeds are uploaded while the GPU runs this one."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from array_models import random_floats
from session_settings import settings
from text_form import parse

from py_ort.profiling import Trace

RUNS = 5


@pytest.mark.parametrize(("size", "columns"), [(800, 800), (1100, 420)], ids=["by the websocket", "fetched"])
def test_uploads_go_on_while_the_gpu_works(size, columns, tmp_path, new_session):
    # A product of hundreds of milliseconds in software: preparing the next feeds is faster, on a busy machine, too.
    text = f"""g (float[{size},{size}] x) => (float[{size},1] y) {{
        a = Sin(x)  b = MatMul(a, w)  c = Tanh(b)  d = Softmax(c)  y = ReduceMax<axes=[1]>(d) }}"""
    x, w = random_floats(0, x=(size, size), w=(size, columns)).values()
    session = new_session(parse(text, {"w": w}, 17), settings(tmp_path), providers=["webgpu"])
    session.run(None, {"x": x})
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda k: session.run(None, {"x": x * np.float32(k)})[0], range(RUNS)))
    for k, y in enumerate(found):
        exponents = np.exp(np.tanh(np.sin(x * np.float32(k)) @ w))
        wanted = (exponents / exponents.sum(axis=1, keepdims=True)).max(axis=1, keepdims=True)
        np.testing.assert_allclose(y, wanted, rtol=1e-3, atol=1e-5)
    spans = {"upload": {}, "GPU work and download": {}}
    for event in Trace.load(session.end_profiling()).since(1).spans("Session"):
        if event["name"] in spans:
            spans[event["name"]][event["args"]["run"]] = event["ts"], event["ts"] + event["dur"]
    uploads, works = spans.values()
    assert len(uploads) == len(works) == RUNS
    during = [
        run
        for run, (begin, end) in uploads.items()
        if any(begin < work_end and end > work_begin for other, (work_begin, work_end) in works.items() if other != run)
    ]
    assert len(during) >= RUNS // 2
