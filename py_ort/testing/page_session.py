"""A model that a page of yours has loaded already, run from Python."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from py_ort.exceptions import InvalidArgument, RuntimeException

#: The numpy dtype of elements in memory, by tensor type of the JavaScript API.
_DTYPES = {
    **{name: np.dtype(name) for name in ("float32", "float64", "float16")},
    **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": np.dtype(bool),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_FIND = """
  const found = (path, what) => {
    const value = path.split('.').reduce((object, key) => object?.[key], globalThis);
    if (value === undefined) throw new Error(`the page has no ${path}: ${what}`);
    return value;
  };
  const session = found(names.session, 'name the session that it keeps');
"""
_DESCRIBE = "names => {" + _FIND + "return { inputs: [...session.inputNames], outputs: [...session.outputNames] }; }"
_RUN = (
    """async ([names, fetches, feeds]) => {"""
    + _FIND
    + """
  const Tensor = found(names.tensor, 'name the class Tensor of its runtime');
  const arrays = {
    float32: Float32Array, float64: Float64Array, float16: globalThis.Float16Array ?? Uint16Array, bool: Uint8Array,
    int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
    uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
  };
  const given = {};
  for (const [name, { type, dims, data }] of Object.entries(feeds)) {
    const bytes = Uint8Array.from(atob(data), char => char.charCodeAt(0));
    given[name] = type === 'string'
      ? new Tensor(type, JSON.parse(new TextDecoder().decode(bytes)), dims)
      : new Tensor(type, new arrays[type](bytes.buffer), dims);
  }
  const results = fetches ? await session.run(given, fetches) : await session.run(given);
  const told = {};
  for (const [name, tensor] of Object.entries(results)) {
    const data = await tensor.getData();
    let text = '';
    const bytes = tensor.type === 'string'
      ? new TextEncoder().encode(JSON.stringify([...data]))
      : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
    told[name] = { type: tensor.type, dims: [...tensor.dims], data: btoa(text) };
  }
  return told;
}"""
)


class PageSession:
    """A session of `py_ort.mjs`, or of onnxruntime-web, that a page keeps in a global variable.

    Args:
        page: Playwright's, of the synchronous API.
        session: Where the page has the session, e.g. "session" or "app.model"; it may come later.
        tensor: Where it has its runtime's class `Tensor`.
        timeout: Seconds to wait for the session.

    Attributes:
        input_names, output_names: As the page's session names them.

    Raises:
        RuntimeException: The page has no such session.
    """

    def __init__(self, page: Any, session: str = "session", tensor: str = "ort.Tensor", timeout: float = 60.0) -> None:
        self._page, self._names = page, {"session": session, "tensor": tensor}
        there = "path => path.split('.').reduce((object, key) => object?.[key], globalThis) !== undefined"
        try:
            page.wait_for_function(there, arg=session, timeout=timeout * 1000)
        except Exception as e:  # Playwright's, which need not be installed
            raise RuntimeException(f"{page.url} has no {session} after {timeout:g} s: {e}") from e
        described = self._ask(_DESCRIBE, self._names)
        self.input_names: list[str] = described["inputs"]
        self.output_names: list[str] = described["outputs"]

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[np.ndarray]:
        """Run the model in the page.

        Args:
            output_names: Which outputs, in this order; None: all.
            input_feed: Arrays by input name, of any dtype that JavaScript has a tensor type of.

        Returns:
            The outputs.

        Raises:
            InvalidArgument: An array's dtype has no such type.
            RuntimeException: The page's session failed; the message is its own.
        """
        wanted = list(output_names) if output_names is not None else None
        feeds = {name: _told(name, np.asarray(value)) for name, value in input_feed.items()}
        results = self._ask(_RUN, [self._names, wanted, feeds])
        return [_array(results[name]) for name in wanted or self.output_names]

    def _ask(self, script: str, argument: Any) -> Any:
        try:
            return self._page.evaluate(script, argument)
        except Exception as e:
            raise RuntimeException(f"in {self._page.url}: {str(e).splitlines()[0]}") from e


def _told(name: str, array: np.ndarray) -> dict[str, Any]:
    if array.dtype.kind in "OUS":
        kind, data = "string", json.dumps([str(text) for text in array.reshape(-1)]).encode()
    elif array.dtype in _NAMES:
        kind, data = _NAMES[array.dtype], np.ascontiguousarray(array).tobytes()
    else:
        raise InvalidArgument(f"input {name!r} is {array.dtype}, which JavaScript has no tensors of")
    return {"type": kind, "dims": list(array.shape), "data": base64.b64encode(data).decode()}


def _array(told: Mapping[str, Any]) -> np.ndarray:
    data = base64.b64decode(told["data"])
    if told["type"] == "string":
        return np.array(json.loads(data), object).reshape(told["dims"])
    return np.frombuffer(data, _DTYPES[told["type"]]).reshape(told["dims"])
