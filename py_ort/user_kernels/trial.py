"""Runs a single user kernel, as a model of one node: by hand, against its reference, or while it is written."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.exceptions import InvalidArgument
from py_ort.providers import AVAILABLE, PROVIDERS
from py_ort.user_kernels.kernel import RequiredAttribute, UserKernel
from py_ort.user_kernels.registry import register_kernel, registered_kernels, unregister_kernel
from py_ort.user_kernels.sizes import Env, SizeError, evaluate

if TYPE_CHECKING:
    from py_ort import InferenceSession
    from py_ort.browser.browser_options import BrowserOptions


@dataclass
class Trial:
    """Result of a trial run.

    Attributes:
        kernel: The kernel.
        feeds: Its inputs.
        outputs: Its outputs, by name.
        create_ms: Making the session, pipelines included.
        run_ms: Median of a few runs, measured in Python.
        gpu_ms: The GPU's time for its dispatches, if it can measure it.
        max_error: Error of the outputs against the reference, relative to the largest result; None without a reference.
    """

    kernel: UserKernel
    feeds: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    create_ms: float
    run_ms: float
    gpu_ms: float | None = None
    max_error: float | None = None
    notes: list[str] = field(default_factory=list)


def run_once(
    kernel: UserKernel, arrays: Sequence[Any], *, browser: str | BrowserOptions | None = None, **attributes: Any
) -> list[np.ndarray]:
    """Run a kernel on arrays; return its outputs."""
    feeds = _named(kernel, arrays)
    with registered(kernel), _session(kernel, feeds, attributes, browser) as session:
        return session.run(None, feeds)


def compare(kernel: UserKernel, arrays: Sequence[Any], options: Mapping[str, Any]) -> float:
    """Run a kernel and its reference; return the largest error relative to the largest result."""
    attributes = {name: value for name, value in options.items() if name in kernel.attributes}
    outputs = run_once(kernel, arrays, **options)
    return largest_error(kernel, _named(kernel, arrays), attributes, dict(zip(kernel.outputs, outputs, strict=True)))


def largest_error(
    kernel: UserKernel,
    feeds: Mapping[str, np.ndarray],
    attributes: Mapping[str, Any],
    outputs: Mapping[str, np.ndarray],
) -> float:
    """Compare outputs with the kernel's reference.

    Raises:
        InvalidArgument: As `reference_outputs` does.
    """
    expected = reference_outputs(kernel, feeds, attributes)
    worst = 0.0
    for name, found in outputs.items():
        wanted = expected[name]
        if not wanted.size:
            continue
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            return float("inf")
        difference = float(np.nanmax(np.abs(a - b), initial=0.0))
        worst = max(worst, difference / max(float(np.nanmax(np.abs(b), initial=0.0)), 1e-30) if difference else 0.0)
    return worst


def reference_outputs(
    kernel: UserKernel, feeds: Mapping[str, np.ndarray], attributes: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return the results of a kernel's reference, by output name, in the declared types.

    Raises:
        InvalidArgument: There is no reference, it raises an exception, which is the cause, or it returns another
            number of outputs, or other shapes.
    """
    if kernel.reference is None:
        raise InvalidArgument(f"{kernel.name} has no reference: pass reference=, a function that computes the outputs")
    defaults = {k: v for k, v in kernel.attributes.items() if not isinstance(v, RequiredAttribute)}
    values = {**defaults, **attributes}
    try:
        found = kernel.reference(*feeds.values(), **values)
    except Exception as e:
        raise InvalidArgument(f"{kernel.name}: its reference= raised {type(e).__name__}: {e}") from e
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(kernel.outputs):
        raise InvalidArgument(f"{kernel.name}: the reference gives {len(found)} outputs, not {len(kernel.outputs)}")
    dtypes = [feeds[dtype].dtype if dtype in feeds else np.dtype(dtype) for dtype in kernel.output_dtypes]
    results = {
        name: np.asarray(each).astype(dtype) for name, each, dtype in zip(kernel.outputs, found, dtypes, strict=True)
    }
    _check_shapes(kernel, feeds, values, results)
    return results


def _check_shapes(
    kernel: UserKernel,
    feeds: Mapping[str, np.ndarray],
    attributes: Mapping[str, Any],
    results: Mapping[str, np.ndarray],
) -> None:
    contents = {name: feeds[name].ravel().tolist() for name in kernel.host if name in feeds}
    env = Env({name: array.shape for name, array in feeds.items()}, attributes, contents)
    for (name, array), tree in zip(results.items(), kernel.shapes, strict=True):
        try:
            shape = evaluate(tree, env)
        except SizeError:
            continue  # the session refuses the node
        if shape is not None and shape != list(array.shape):
            raise InvalidArgument(f"{kernel.name}: {name} is {shape}, its reference= returns {list(array.shape)}")


def try_out(kernel: UserKernel, browser: str | BrowserOptions | None = None, runs: int = 5) -> Trial:
    """Run a kernel on its example (random numbers for shapes, or without an example); time it and check it."""
    from py_ort import RunOptions

    attributes = {name: value for name, value in kernel.example.items() if name in kernel.attributes}
    feeds = example_feeds(kernel)
    with registered(kernel), _session(kernel, feeds, attributes, browser) as session:
        times = []
        for _ in range(max(1, runs)):
            found = session.run(None, feeds)
            times.append(session.stats()["last_run"]["total_ms"])
        trial = Trial(
            kernel,
            feeds,
            dict(zip(kernel.outputs, found, strict=True)),
            session.stats()["create_ms"],
            statistics.median(times),
        )
        options = RunOptions()
        options._profile = "dispatches"
        session.run(None, feeds, options)
        rows = session.stats()["last_run"].get("profile") or []
    if rows and all(row.get("ms") is not None for row in rows):
        trial.gpu_ms = sum(row["ms"] for row in rows)
    if kernel.reference is not None:
        trial.max_error = largest_error(kernel, feeds, attributes, trial.outputs)
    return trial


def example_feeds(kernel: UserKernel) -> dict[str, np.ndarray]:
    """Return the example's arrays; random ones for shapes; missing inputs have the first input's shape."""
    rng = np.random.default_rng(7)
    shape: Any = (4, 64)
    feeds: dict[str, np.ndarray] = {}
    for index, name in enumerate(kernel.input_names):
        given = kernel.example.get(name)
        if given is None and kernel.inputs[index].endswith("?"):
            continue
        if isinstance(given, np.ndarray):
            feeds[name] = given
            continue
        dtype = _first_dtype(kernel, index, feeds)
        shape = tuple(given) if given is not None else shape
        values = rng.uniform(-1, 1, shape) if dtype.kind == "f" else rng.integers(0, 2, shape)
        feeds[name] = values.astype(dtype)
    return feeds


def _first_dtype(kernel: UserKernel, index: int, feeds: Mapping[str, np.ndarray]) -> np.dtype[Any]:
    given = kernel.accepted[index]
    return feeds[given].dtype if isinstance(given, str) else np.dtype(given[0])


def _named(kernel: UserKernel, arrays: Sequence[Any]) -> dict[str, np.ndarray]:
    names = kernel.input_names
    least = sum(not name.endswith("?") for name in kernel.inputs)
    if not least <= len(arrays) <= len(names) or any(array is None for array in arrays[:least]):
        raise InvalidArgument(f"{kernel.name} has the inputs {', '.join(kernel.inputs)}; got {len(arrays)} arrays")
    return {name: np.asarray(array) for name, array in zip(names, arrays, strict=False) if array is not None}


def one_node_model(kernel: UserKernel, feeds: Mapping[str, np.ndarray], attributes: Mapping[str, Any]) -> bytes:
    """Return a model of one node of this kernel, for inputs of these dtypes and shapes."""
    from onnx import helper

    def described(name: str, array: np.ndarray) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    if unknown := set(attributes) - set(kernel.attributes):
        raise InvalidArgument(
            f"{kernel.name} has no attribute {unknown.pop()!r}: {', '.join(kernel.attributes) or 'none'}"
        )
    inputs = [name if name in feeds else "" for name in kernel.input_names]
    while inputs and not inputs[-1]:
        inputs.pop()
    typed: dict[str, Any] = {
        name: float(v) if kernel.attribute_kinds[name] == "f" else v for name, v in attributes.items()
    }
    node = helper.make_node(kernel.op_type, inputs, list(kernel.outputs), kernel.op_type, domain=kernel.domain, **typed)
    outputs = []
    for name, dtype in zip(kernel.outputs, kernel.output_dtypes, strict=True):
        element = feeds[dtype].dtype if dtype in feeds else np.dtype(dtype)
        outputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(element), None))
    graph = helper.make_graph([node], kernel.op_type, [described(n, a) for n, a in feeds.items()], outputs)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(kernel.domain, 1)]
    model: bytes = helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()
    return model


def _session(
    kernel: UserKernel, feeds: Mapping[str, np.ndarray], attributes: Mapping[str, Any], browser: Any
) -> InferenceSession:
    from py_ort import InferenceSession, SessionOptions

    options = SessionOptions()
    options.add_session_config_entry("session.plan_cache", "0")  # this version is never requested again
    return InferenceSession(
        one_node_model(kernel, feeds, attributes),
        options,
        [n for n in AVAILABLE if PROVIDERS[n].user_kernels],
        browser=browser,
    )


@contextmanager
def registered(kernel: UserKernel) -> Iterator[None]:
    """Register a kernel inside the context."""
    before = registered_kernels().get(kernel.name)
    if before is kernel:
        yield
        return
    register_kernel(kernel)
    try:
        yield
    finally:
        unregister_kernel(kernel.name)
        if before is not None:
            register_kernel(before)
