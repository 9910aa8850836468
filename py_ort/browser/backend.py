"""A session's share of a page: its providers opened there, its model loaded, its runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from py_ort.browser.loop import LoopThread, loop_thread
from py_ort.browser.page import Progress
from py_ort.browser.pool import Lease, pool
from py_ort.exceptions import BrowserError, DeviceLost, EPFail, InvalidArgument, NoAdapter, PyOrtError
from py_ort.plan.parts import Part
from py_ort.providers.options import for_adapter, for_page
from py_ort.providers.resolution import REQUIRE, Wanted
from py_ort.schema.gen.CreateSession import CreateSessionT
from py_ort.schema.gen.GetStats import GetStatsT
from py_ort.schema.gen.Location import Location
from py_ort.schema.gen.ReleaseGraph import ReleaseGraphT
from py_ort.schema.gen.ReleaseSession import ReleaseSessionT
from py_ort.schema.gen.Run import RunT
from py_ort.sessions.log import SessionLog
from py_ort.values.device_tensor import DeviceTensor
from py_ort.values.feeds import Feed
from py_ort.values.output_location import OnGpu
from py_ort.wire import Answer, Layout
from py_ort.wire.prepared_runs import PreparedRuns
from py_ort.wire.tensors import on_gpu as describe_on_gpu
from py_ort.wire.values import pack_value, value_of

#: From this size on, pages fetch what runs are fed: several ranges at once are quicker than a websocket.
FETCHED = 4 << 20


class AdapterGone(NoAdapter):
    """A browser that had a WebGPU adapter has none any more: after some crashes of its GPU process it tries no more."""


@dataclass
class Backend:
    """A browser's page with the providers of one session.

    Attributes:
        providers: Those that can run here, best first.
        options: Their options.
        device: What the page says of the WebGPU device: vendor, architecture, description, software, features, limits.
        dropped: Provider -> why it cannot run here.
        log: The session's: its level is heeded for the page's messages, too.
    """

    lease: Lease
    providers: list[str]
    device_id: int = 0
    device: dict[str, Any] = field(default_factory=dict)
    options: dict[str, dict[str, str]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    session: int = 0
    log: SessionLog = field(default_factory=SessionLog)
    _loop: LoopThread = field(default_factory=loop_thread)
    _released: bool = False
    _prepared: PreparedRuns = field(default_factory=PreparedRuns)

    @classmethod
    async def open(cls, lease: Lease, wanted: Wanted, timeout: float | None, log: SessionLog) -> Backend:
        """Open these providers in a page.

        Raises:
            NoAdapter, EPFail: None of them can run there, or one that may not be left out cannot.
            AdapterGone: Another browser may have one; this one takes no more sessions.
        """
        backend = cls(lease, [], dropped=dict(wanted.dropped), log=log)
        lease.page.logs.append(log)
        for name, settings in wanted.providers.items():
            try:
                await backend._open_provider(name, settings, timeout)
                backend.providers.append(name)
                backend.options[name] = settings
            except NoAdapter as e:
                if lease.browser.had_adapter and lease.launcher.replaceable:
                    pool().retire(lease)
                    raise AdapterGone(f"{e.message}, any more") from e
                backend.dropped[name] = f"{e.message}. What helps: {lease.launcher.options.no_adapter_hint()}"
            except PyOrtError as e:
                if isinstance(e, InvalidArgument) or (isinstance(e, BrowserError) and not isinstance(e, DeviceLost)):
                    raise  # a wrong option, or no page any more
                if wanted.required:
                    raise
                backend.dropped[name] = e.message
        backend._check_providers(wanted)
        for name in wanted.repeated:
            log.warning("provider %s is named twice: the first place counts", name)
        for name, keys in wanted.ignored.items():
            log.warning("options of provider %s without effect in a browser: %s", name, ", ".join(keys))
        for name, reason in backend.dropped.items():
            log.warning("provider %s is left out: %s", name, reason)
        return backend

    async def _open_provider(self, name: str, settings: Mapping[str, str], timeout: float | None) -> None:
        if name == "webgpu":
            self.device_id = int(settings.get("deviceId", 0))
            options = for_adapter(settings, self.lease.launcher.options)
            self.device = await self.lease.page.device(self.device_id, options, timeout)
            self.lease.browser.had_adapter = True

    def _check_providers(self, wanted: Wanted) -> None:
        alone = self.providers == ["wasm"]
        if not self.providers:
            what = "no execution provider can run here"
        elif self.dropped and wanted.required:
            what = f"not every execution provider can run here ({REQUIRE} is 1)"
        elif self.dropped and alone and not wanted.cpu_may_stand_in:
            what = "no execution provider but wasm can run here (session.disable_cpu_ep_fallback is 1)"
        else:
            return
        error = NoAdapter if list(self.dropped) == ["webgpu"] else EPFail
        reasons = "; ".join(f"{name}: {reason}" for name, reason in self.dropped.items())
        raise error(f"{what}: {reasons}", provider=next(iter(self.dropped)))

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
        """Load a plan into the page as this session; return times and counters (`SessionCreated.info`)."""
        self.session, info = self.load(plan, weights, options, timeout=timeout, progress=progress)
        return info

    def load(
        self,
        plan: bytes,
        weights: Sequence[Part],
        options: Mapping[str, Any],
        *,
        timeout: float | None,
        progress: Progress | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Load a plan into the page; return its number there, and times and counters."""
        http, body = self.lease.http, CreateSessionT()
        body.plan, body.weights = http.publish([plan]), http.publish(weights)
        webgpu = self.options.get("webgpu", {})
        hardware = for_adapter(webgpu, self.lease.launcher.options)["expectHardware"]
        wasm = self.options.get("wasm", {})
        mine = {"webgpu": for_page(webgpu), "wasm": wasm, "expectHardware": hardware}
        body.options, body.deviceId = json.dumps({**mine, **options}), self.device_id
        try:
            answer = self._loop.call(self.lease.page.request(body, timeout=timeout, progress=progress)).body
        finally:
            http.withdraw(body.plan)
            http.withdraw(body.weights)
        return answer.session, json.loads(answer.info or "{}")

    def start_run(
        self,
        outputs: Sequence[str],
        feeds: Mapping[str, Feed],
        types: Mapping[str, str],
        *,
        on_gpu: OnGpu | None = None,
        graph_id: int | None = None,
        timeout: float | None,
        session: int | None = None,
        profile: bool = False,
    ) -> Future[Answer]:
        """Start a run of the session; return the future of the page's answer, which may be cancelled.

        Args:
            outputs: Names of what is wanted.
            feeds: By name; arrays must not change until the run is over.
            types: The inputs' ONNX types.
            on_gpu: Those of the outputs to leave on the GPU, or to write into tensors there.
            graph_id: Which capture this run is of; see the option enableGraphCapture of webgpu.
            timeout: Seconds, or None.
            session: Another session of the page that does the same.
            profile: Have the page say where the time went.
        """
        layout, body = Layout(), RunT()
        body.session = self.session if session is None else session
        body.outputs, body.outputsOnGpu, body.options = (
            list(outputs),
            list(on_gpu or ()),
            _run_options(on_gpu or {}, graph_id, profile),
        )
        body.feeds = [
            describe_on_gpu(name, feed.dtype, feed.shape, feed.live())
            if isinstance(feed, DeviceTensor)
            else pack_value(name, feed, types[name], layout)
            for name, feed in feeds.items()
        ]
        return self._send_run(body, layout, timeout)

    def _send_run(self, body: RunT, layout: Layout, timeout: float | None) -> Future[Answer]:
        page = self.lease.page
        message = self._prepared.of(body, layout.size)
        if layout.size < FETCHED:
            return page.start(message, layout.buffers, layout.size, timeout=timeout)
        url = self.lease.http.publish(layout.padded())
        future = page.start(message, payload_size=layout.size, url=url, timeout=timeout)
        future.add_done_callback(lambda _: self.lease.http.withdraw(url))
        return future

    def outputs_of(
        self, answer: Answer, names: Sequence[str], on_gpu: OnGpu | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the outputs in an answer, in this order, and `RunResult.info`."""
        bound = on_gpu or {}
        by_name = {d.name: bound.get(d.name) or self._output(d, answer.payload) for d in answer.body.outputs}
        return [by_name[name] for name in names], json.loads(answer.body.info or "{}")

    def _output(self, description: Any, payload: memoryview) -> Any:
        if description.location == Location.gpu:
            dtype, dims = description.dtype, description.dims or []
            page, buffer = self.lease.page, description.gpuId
            return DeviceTensor(page, buffer, dtype, dims, device_id=self.device_id)
        return value_of(description, payload)

    def tensor_at(self, buffer: int, dtype: int, shape: Sequence[int]) -> DeviceTensor:
        """Return a GPU buffer of this page as a tensor that does not own it.

        Raises:
            InvalidArgument: This session has no WebGPU device.
        """
        if not self.device:
            raise InvalidArgument("this session has no WebGPU device, so nothing of its page is there")
        return DeviceTensor(self.lease.page, buffer, dtype, shape, owned=False, device_id=self.device_id)

    def stats(self, session: int) -> dict[str, Any]:
        """Ask the page for counters and memory, of a session or (0) of the whole page."""
        body = GetStatsT()
        body.session = session
        return json.loads(self._loop.call(self.lease.page.request(body, timeout=60)).body.json or "{}")

    def release_graph(self, graph_id: int) -> None:
        """Have the page forget what the session captured with a graph id."""
        body = ReleaseGraphT()
        body.session, body.graphId = self.session, graph_id
        self._loop.call(self.lease.page.request(body, timeout=60))

    def release(self) -> None:
        """Give the session and the share of the browser back. Does not wait; never fails."""
        if not self._released:
            self._released = True
            self._loop.soon(self._release)

    def release_session(self, session: int) -> None:
        """Release one of the page's sessions. Does not wait; never fails."""
        self._loop.soon(lambda: self._post_release(session))

    def _post_release(self, session: int) -> None:
        body = ReleaseSessionT()
        body.session = session
        self.lease.page.post(body)

    def _release(self) -> None:
        if self.log in self.lease.page.logs:
            self.lease.page.logs.remove(self.log)
        if self.session:
            self._post_release(self.session)
        pool().release(self.lease)


def _run_options(on_gpu: OnGpu, graph_id: int | None, profile: bool) -> str:
    """`RunOptions` of the page."""
    bind = {
        name: {"gpuId": tensor.live(), "dtype": tensor.dtype, "dims": tensor.shape}
        for name, tensor in on_gpu.items()
        if tensor is not None
    }
    options = {"bind": bind or None, "graphId": graph_id, "profile": profile or None}
    return json.dumps({name: value for name, value in options.items() if value is not None})
