"""Lower bounds of a run's time, from numbers measured on the device."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from py_ort.bench.bare import bare
from py_ort.bench.work import Work, work_of
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread
from py_ort.browser.pool import Lease
from py_ort.exceptions import PyOrtError
from py_ort.providers import CPU, FIRST_DEVICE
from py_ort.runtime.inference_session import InferenceSession
from py_ort.runtime.options import SessionOptions

#: Rows and columns of the product that shows what the CPU can do.
_PRODUCT = 768
_RUNS = 8
#: A device's numbers are its best of some rounds: the load of the machine makes any single one too slow. They are
#: settled when so many rounds in turn improve none by more than a quarter, and not known if that takes too long.
_CALM, _ROUNDS, _CLOSE = 2, 8, 1.25
#: Milliseconds that the page's clock tells apart.
_CLOCK_MS = 0.005


@dataclass(frozen=True)
class Device:
    """Best numbers of a device; rates are per second.

    Attributes:
        round_trip_ms: A submission to the GPU, and four bytes back; 0 on the CPU.
        launch_ms: One more launch in it; 0 on the CPU.
        operations: Multiplications and additions of float32: in the GPU's registers; on the CPU, of a product of 768.
        bytes: Read and written in the device's memory; on the CPU, by one thread.
        uploaded: Bytes to it.
        downloaded: Bytes from it.
    """

    round_trip_ms: float
    launch_ms: float
    operations: float
    bytes: float
    uploaded: float
    downloaded: float

    def best(self, other: Device) -> Device:
        """Return the better of each number: the shorter time, the higher rate."""
        mine, others = asdict(self), asdict(other)
        return Device(**{name: (min if name.endswith("_ms") else max)(mine[name], others[name]) for name in mine})

    def close_to(self, other: Device) -> bool:
        """Return True if no number is another by more than a quarter."""
        pairs = zip(asdict(self).values(), asdict(other).values(), strict=True)
        return all(max(pair) <= _CLOSE * min(pair) for pair in pairs)


def settled(measure: Callable[[], Device]) -> Device | None:
    """Measure a device until its best numbers stay; None if they do not."""
    best, calm = measure(), 0
    for _ in range(_ROUNDS - 1):
        better = best.best(measure())
        calm = calm + 1 if better.close_to(best) else 0
        best = better
        if calm == _CALM:
            return best
    return None


@dataclass(frozen=True)
class Floor:
    """A lower bound of the time of a run, in milliseconds, and its parts.

    Attributes:
        round_trip_ms: Time of one submission to a GPU.
        launches_ms: Time of as many dispatches as the plan has.
        arithmetic_ms: Time of the arithmetic of products and convolutions.
        memory_ms: Reading all weights once.
        transfers_ms: Inputs to the device and outputs back.
    """

    round_trip_ms: float
    launches_ms: float
    arithmetic_ms: float
    memory_ms: float
    transfers_ms: float

    @classmethod
    def of(cls, device: Device, work: Work, launches: int, fed: int, given: int) -> Floor:
        """Return the floor of a run.

        Args:
            device: The device.
            work: Work of the model.
            launches: On the GPU.
            fed: Bytes of inputs.
            given: Bytes of outputs.
        """
        return cls(
            device.round_trip_ms,
            launches * device.launch_ms,
            1000 * work.operations / device.operations,
            1000 * work.weight_bytes / device.bytes,
            1000 * (fed / device.uploaded + given / device.downloaded),
        )

    @property
    def ms(self) -> float:
        """The whole; weights can be read while others are multiplied."""
        return self.round_trip_ms + self.launches_ms + max(self.arithmetic_ms, self.memory_ms) + self.transfers_ms

    def as_dict(self) -> dict[str, float]:
        """Return the parts, and the whole as `ms`."""
        return {**asdict(self), "ms": self.ms}


class Floors:
    """Floors of models; each device is measured once."""

    def __init__(self) -> None:
        self._devices: dict[tuple[str, str, int], Device | None] = {}

    def of(
        self,
        session: InferenceSession,
        provider: str,
        threads: int,
        browser: BrowserOptions,
        model: bytes,
        feeds: Mapping[str, np.ndarray],
        outputs: Mapping[str, Any],
    ) -> Floor | None:
        """Return the floor of the session's last run; None where it cannot be known: the device's numbers do not
        settle, or it is less than the clock tells apart.

        Args:
            session: The session.
            provider: Its name.
            threads: Threads of wasm.
            browser: Where it ran. Browsers of other machines cannot be measured.
            model: The model that the session has.
            feeds: Feeds of the run.
            outputs: Outputs of the run.
        """
        device = self._device(session, provider, threads, browser)
        if device is None:
            return None
        try:
            work = work_of(model, {name: value.shape for name, value in feeds.items()})
        except PyOrtError:  # an exported model, which has no graph of ONNX any more
            return None
        launches = session.stats()["last_run"]["counters"]["dispatches"]
        found = Floor.of(device, work, launches, _bytes(feeds), _bytes(outputs))
        return found if found.ms >= _CLOCK_MS else None

    def _device(self, session: InferenceSession, provider: str, threads: int, browser: BrowserOptions) -> Device | None:
        assert session._opened is not None
        lease = session._opened.runtime.lease
        key = f"{lease.launcher.description} {session.adapter}", provider, threads
        if key not in self._devices:
            try:
                measured = {FIRST_DEVICE: lambda: _gpu(lease), CPU: lambda: _cpu(lease, threads, browser)}
                self._devices[key] = settled(measured[provider]) if provider in measured else None
            except PyOrtError:
                self._devices[key] = None
        return self._devices[key]


def _bytes(values: Mapping[str, Any]) -> int:
    return sum(value.nbytes for value in values.values() if isinstance(value, np.ndarray))


def _gpu(lease: Lease) -> Device:
    with bare(lease) as page:
        rates = json.loads(loop_thread().call(page.told("device")))
    return Device(
        rates["roundTripMs"], rates["launchMs"], rates["operations"], rates["bytes"],
        rates["uploaded"], rates["downloaded"],
    )  # fmt: skip


def _cpu(lease: Lease, threads: int, browser: BrowserOptions) -> Device:
    with bare(lease) as page:
        moved = json.loads(loop_thread().call(page.told("copies")))
    options = SessionOptions()
    options.intra_op_num_threads = threads
    x = np.ones((_PRODUCT, _PRODUCT), np.float32)
    with InferenceSession(_product(), options, [CPU], browser=browser) as session:
        times = []
        for _ in range(_RUNS):
            session.run(None, {"x": x})
            times.append(session.stats()["last_run"]["run_ms"])
    # A copied byte is read and written.
    return Device(0, 0, 2000 * _PRODUCT**3 / min(times), moved, moved / 2, moved / 2)


def _product() -> bytes:
    sizes = [_PRODUCT, _PRODUCT]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in "xy")
    weights = numpy_helper.from_array(np.ones(sizes, np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product", [x], [y], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())
