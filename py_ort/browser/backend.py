"""A session's share of a page: its providers opened there, its model loaded, its runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from py_ort.browser.loop import LoopThread, loop_thread
from py_ort.browser.page import Progress
from py_ort.browser.pool import Lease, pool
from py_ort.device_tensor import DeviceTensor
from py_ort.exceptions import BrowserError, DeviceLost, EPFail, InvalidArgument, NoAdapter, PyOrtError
from py_ort.feeds import Feed
from py_ort.parts import Part
from py_ort.providers.resolution import Wanted
from py_ort.schema.gen.CreateSession import CreateSessionT
from py_ort.schema.gen.GetStats import GetStatsT
from py_ort.schema.gen.Location import Location
from py_ort.schema.gen.ReleaseSession import ReleaseSessionT
from py_ort.schema.gen.Run import RunT
from py_ort.session_log import SessionLog
from py_ort.wire import Answer, Layout
from py_ort.wire.tensors import on_gpu as describe_on_gpu
from py_ort.wire.values import pack_value, value_of


@dataclass
class Backend:
    """A browser's page with the providers of one session.

    Attributes:
        providers: Those that can run here, best first.
        options: Their options.
        device: What the page says of the WebGPU device: vendor, architecture, description, software, features, limits.
        dropped: Provider -> why it cannot run here.
    """

    lease: Lease
    providers: list[str]
    device_id: int = 0
    device: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    session: int = 0
    _loop: LoopThread = field(default_factory=loop_thread)
    _released: bool = False

    @classmethod
    async def open(cls, lease: Lease, wanted: Wanted, timeout: float | None, log: SessionLog) -> Backend:
        """Open these providers in a page.

        Raises:
            NoAdapter, EPFail: None of them can run there.
        """
        backend = cls(lease, [], dropped=dict(wanted.dropped))
        for name, settings in wanted.providers.items():
            try:
                await backend._open_provider(name, settings, timeout)
                backend.providers.append(name)
                backend.options[name] = settings
            except NoAdapter as e:
                backend.dropped[name] = f"{e.message}. What helps: {lease.launcher.options.no_adapter_hint()}"
            except PyOrtError as e:
                if isinstance(e, InvalidArgument) or (isinstance(e, BrowserError) and not isinstance(e, DeviceLost)):
                    raise  # a wrong option, or no page any more
                backend.dropped[name] = e.message
        backend._check_providers()
        for name in wanted.repeated:
            log.warning("provider %s is named twice: the first place counts", name)
        for name, reason in backend.dropped.items():
            log.warning("provider %s is left out: %s", name, reason)
        return backend

    async def _open_provider(self, name: str, settings: Mapping[str, Any], timeout: float | None) -> None:
        if name == "webgpu":
            self.device_id = int(settings.get("deviceId", 0))
            options: dict[str, Any] = {
                k: v for k, v in settings.items() if k in ("powerPreference", "forceFallbackAdapter")
            }
            options["expectHardware"] = self.lease.launcher.options.settled().webgpu == "hardware"
            self.device = await self.lease.page.device(self.device_id, options, timeout)

    def _check_providers(self) -> None:
        if not self.providers:
            if list(self.dropped) == ["webgpu"]:
                raise NoAdapter(self.dropped["webgpu"], provider="webgpu")
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.dropped.items())
            raise EPFail(f"no execution provider can run here: {reasons}")

    @property
    def adapter(self) -> str:
        """The WebGPU adapter in words; "" without one."""
        words = [str(self.device.get(key) or "") for key in ("vendor", "architecture", "description")]
        return " ".join(dict.fromkeys(word for word in words if word))

    def create(
        self,
        plan: bytes,
        weights: Sequence[Part],
        options: Mapping[str, Any],
        *,
        timeout: float | None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Load a plan into the page; return times and counters (`SessionCreated.info`)."""
        http, body = self.lease.http, CreateSessionT()
        body.plan, body.weights = http.publish([plan]), http.publish(weights)
        body.options, body.deviceId = json.dumps(dict(options)), self.device_id
        try:
            answer = self._loop.call(self.lease.page.request(body, timeout=timeout, progress=progress)).body
        finally:
            http.withdraw(body.plan)
            http.withdraw(body.weights)
        self.session = answer.session
        return json.loads(answer.info or "{}")

    def start_run(
        self,
        outputs: Sequence[str],
        feeds: Mapping[str, Feed],
        types: Mapping[str, str],
        *,
        on_gpu: Collection[str] = (),
        timeout: float | None,
    ) -> Future[Answer]:
        """Start a run of the session; return the future of the page's answer, which may be cancelled.

        Args:
            outputs: Names of what is wanted.
            feeds: By name; arrays must not change until the run is over.
            types: The inputs' ONNX types.
            on_gpu: Those of the outputs to leave on the GPU.
            timeout: Seconds, or None.
        """
        layout, body = Layout(), RunT()
        body.session, body.outputs, body.outputsOnGpu, body.options = self.session, list(outputs), list(on_gpu), "{}"
        body.feeds = [
            describe_on_gpu(name, feed.dtype, feed.shape, feed.id)
            if isinstance(feed, DeviceTensor)
            else pack_value(name, feed, types[name], layout)
            for name, feed in feeds.items()
        ]
        return self._loop.submit(self.lease.page.request(body, layout.buffers, layout.size, timeout=timeout))

    def outputs_of(self, answer: Answer, names: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
        """Return the outputs in an answer, in this order, and `RunResult.info`."""
        by_name = {d.name: self._output(d, answer.payload) for d in answer.body.outputs}
        return [by_name[name] for name in names], json.loads(answer.body.info or "{}")

    def _output(self, description: Any, payload: memoryview) -> Any:
        if description.location == Location.gpu:
            dtype, dims = description.dtype, description.dims or []
            return DeviceTensor(self.lease.page, description.gpuId, dtype, dims, self.device)
        return value_of(description, payload)

    def tensor_at(self, buffer: int, dtype: int, shape: Sequence[int]) -> DeviceTensor:
        """Return a GPU buffer of this page as a tensor that does not own it.

        Raises:
            InvalidArgument: This session has no WebGPU device.
        """
        if not self.device:
            raise InvalidArgument("this session has no WebGPU device, so nothing of its page is there")
        return DeviceTensor(self.lease.page, buffer, dtype, shape, self.device, owned=False)

    def stats(self, session: int) -> dict[str, Any]:
        """Ask the page for counters and memory, of a session or (0) of the whole page."""
        body = GetStatsT()
        body.session = session
        return json.loads(self._loop.call(self.lease.page.request(body, timeout=60)).body.json or "{}")

    def release(self) -> None:
        """Give the session and the share of the browser back. Does not wait; never fails."""
        if not self._released:
            self._released = True
            self._loop.soon(self._release)

    def _release(self) -> None:
        if self.session:
            body = ReleaseSessionT()
            body.session = self.session
            self.lease.page.post(body)
        pool().release(self.lease)
