"""A session's share of a page: opens its providers, loads its model and starts its runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loading import Loading
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.pool import Lease, pool
from py_ort.browser.request import Progress
from py_ort.exceptions import (
    BrowserError,
    DeviceLost,
    EPFail,
    InvalidArgument,
    NoAdapter,
    PyOrtError,
    WorkerEnded,
)
from py_ort.log import SessionLog
from py_ort.providers import AVAILABLE, CPU, PROVIDERS, on_device
from py_ort.providers.resolution import REQUIRE, Wanted
from py_ort.runtime.devices import (
    AdapterGone,
    Device,
    devices_to_ask,
    for_opening,
    look_in_page,
    open_device,
    warn_of_software,
)
from py_ort.runtime.loaded import Loaded
from py_ort.runtime.logits import LogitsProcessor, Processing
from py_ort.runtime.probe import adapter_name
from py_ort.runtime.values.device_tensor import DeviceTensor
from py_ort.runtime.values.feeds import Feed
from py_ort.runtime.values.output_location import OnGpu, run_options
from py_ort.schema.gen.CreateSession import CreateSessionT
from py_ort.schema.gen.Generate import GenerateT
from py_ort.schema.gen.GetStats import GetStatsT
from py_ort.schema.gen.ReleaseGraph import ReleaseGraphT
from py_ort.schema.gen.Run import RunT
from py_ort.wire import Answer, Layout
from py_ort.wire.json_fields import (
    DeviceDescription,
    GenerateOptions,
    PageStats,
    SessionInfo,
    SessionOptions,
    SessionStats,
    Timed,
)
from py_ort.wire.parts import Part
from py_ort.wire.prepared_runs import PreparedRuns
from py_ort.wire.tensors import on_gpu as describe_on_gpu
from py_ort.wire.tensors import pack
from py_ort.wire.values import pack_value

if TYPE_CHECKING:
    from py_ort.compiler.placement.devices import Devices
    from py_ort.wire import ProgressReport

#: Size in bytes from which pages fetch feeds: several ranges at once are faster than a websocket.
FETCHED = 4 << 20


@dataclass
class PageRuntime:
    """A browser's worker with the providers of one session. Call `open` first.

    Attributes:
        wanted: The requested browser; other options may have started it.
        page: The worker; see `reopen`.
        providers: Providers that can run here, best first.
        options: Options of the providers.
        devices: The page's descriptions of open devices, best first: vendor, architecture, description, software,
            features, limits.
        dropped: Reasons why providers cannot run here, by name.
        log: The session's log; its level also applies to the page's messages.
    """

    lease: Lease
    wanted: BrowserOptions
    log: SessionLog = field(default_factory=SessionLog)
    providers: list[str] = field(default_factory=list)
    devices: dict[Device, DeviceDescription] = field(default_factory=dict)
    options: dict[str, dict[str, str]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    _sessions: set[Loaded] = field(default_factory=set)
    _released: bool = False
    _prepared: PreparedRuns = field(default_factory=PreparedRuns)

    def __post_init__(self) -> None:
        self.page = self.lease.page

    @property
    def captures(self) -> bool:
        """True if runs on WebGPU are captured."""
        return any(given.get("enableGraphCapture", "0").lower() in ("1", "true") for given in self.options.values())

    async def open(self, wanted: Wanted, timeout: float | None) -> None:
        """Open the providers that can run in the page.

        Raises:
            NoAdapter, EPFail: No provider can run, or a required one cannot.
            AdapterGone: The browser has lost its device and accepts no more sessions; another browser may have one.
        """
        for name in wanted.repeated:
            self.log.warning("provider %s is named twice: the first place counts", name)
        for name, keys in wanted.ignored.items():
            self.log.warning("options of provider %s without effect in a browser: %s", name, ", ".join(keys))
        while True:
            await self._enter()
            self.providers, self.options, self.dropped = [], {}, dict(wanted.dropped)
            self.devices.clear()
            try:
                for name, settings in wanted.providers.items():
                    await self._try_provider(name, settings, timeout, wanted.required)
                if not await self._move_to_page(wanted):
                    break
            except WorkerEnded:
                continue
        self._check_providers(wanted)
        for name, reason in self.dropped.items():
            self.log.warning("provider %s is left out: %s", name, reason)

    async def _move_to_page(self, wanted: Wanted) -> bool:
        """Move to the page's own thread if only there a dropped provider has a device; return True if that is done."""
        dropped = [name for name in wanted.providers if name in self.dropped]
        lease = None if self.devices else (await look_in_page(self.lease, dropped, self.wanted))[0]
        if lease is None:
            return False
        self._leave()
        pool().release(self.lease)
        self.lease = lease
        return True

    async def reopen(self, timeout: float | None) -> None:
        """Open the same providers in the worker that replaced the last one.

        Raises:
            BrowserError: There is no worker, or a provider can no longer run.
        """
        while True:
            await self._enter()
            try:
                for name in self.providers:
                    await self._open_provider(name, self.options[name], timeout)
                return
            except WorkerEnded:
                continue

    async def _enter(self) -> None:
        self._leave()
        self.page = await pool().live(self.lease)
        if self.log not in self.page.logs and not self._released:
            self.page.logs.append(self.log)

    def _leave(self) -> None:
        if self.log in self.page.logs:
            self.page.logs.remove(self.log)

    async def _try_provider(self, name: str, settings: dict[str, str], timeout: float | None, required: bool) -> None:
        try:
            await self._open_provider(name, settings, timeout)
            self.providers.append(name)
            self.options[name] = settings
        except NoAdapter as e:
            if isinstance(e, AdapterGone):
                raise
            self.dropped[name] = (
                f"{e.message.rstrip('.')}. What helps: {self.wanted.no_adapter_hint(name)}; or providers={[CPU]}"
            )
        except PyOrtError as e:
            lost = isinstance(e, BrowserError) and not isinstance(e, DeviceLost)
            if isinstance(e, (InvalidArgument, WorkerEnded)) or lost or required:
                raise  # a wrong option, or the page is lost
            self.dropped[name] = e.message

    async def _open_provider(self, name: str, settings: Mapping[str, str], timeout: float | None) -> None:
        if on_device(name):
            device = Device(name, int(settings.get("deviceId", 0)))
            told = await open_device(self.lease, self.page, device, settings, self.wanted, timeout)
            self.devices[device] = told
            if told.get("software"):
                warn_of_software(name, self.wanted, adapter_name(told), self.log)

    def _check_providers(self, wanted: Wanted) -> None:
        alone = self.providers == [CPU]
        if not self.providers:
            what = "no execution provider can run here"
        elif self.dropped and wanted.required:
            what = f"not every execution provider can run here ({REQUIRE} is 1)"
        elif self.dropped and alone and not wanted.cpu_may_stand_in:
            what = f"no execution provider but {CPU} can run here (session.disable_cpu_ep_fallback is 1)"
        else:
            return
        error = NoAdapter if all(name in AVAILABLE and on_device(name) for name in self.dropped) else EPFail
        reasons = "; ".join(f"{name}: {reason}" for name, reason in self.dropped.items())
        raise error(f"{what}: {reasons}", provider=next(iter(self.dropped)))

    @property
    def device(self) -> DeviceDescription | None:
        """The page's description of the best open device."""
        return next(iter(self.devices.values()), None)

    @property
    def tuned_device(self) -> DeviceDescription | None:
        """The page's description of the device whose products use tables of tiles."""
        return next((told for device, told in self.devices.items() if PROVIDERS[device.provider].tiles), None)

    def number_of(self, provider: str | None) -> int:
        """Return the number of the session's own device of a provider; 0 if it has none."""
        return next((device.number for device in self.devices if device.provider == provider), 0)

    @property
    def adapter(self) -> str:
        """The adapter of the best device, in words; "" without a device."""
        return adapter_name(self.device) if self.device else ""

    def devices_to_ask(self) -> Devices | None:
        """Return the devices that placement asks about nodes."""
        return devices_to_ask(self.devices, self.lease.launcher.description, lambda: self.page)

    def load(
        self, plan: bytes, weights: Sequence[Part], asked: SessionOptions, on: str | None, *, timeout: float | None
    ) -> Loading[tuple[Loaded, SessionInfo]]:
        """Start to load a plan into the page; the result is the session with `SessionCreated.info`.

        Args:
            plan: The plan.
            weights: The plan's weights.
            asked: Further options for the page.
            on: The provider whose device may hold feeds and outputs.
            timeout: Seconds, or None.
        """
        body = CreateSessionT()
        told = {name: PROVIDERS[name].for_page(self.options.get(name, {})) for name in AVAILABLE}
        body.options = json.dumps({"providerOptions": told, "opening": for_opening(self.wanted), **asked})
        page = self.page

        async def load(plan_url: str, weights_url: str, progress: Progress) -> tuple[Loaded, SessionInfo]:
            body.plan, body.weights = plan_url, weights_url
            unwanted = lambda answer: page.release(answer.body.session)  # noqa: E731
            sent, size = ([], 0) if plan_url else ([plan], len(plan))
            answer = await page.request(body, sent, size, timeout=timeout, progress=progress, unwanted=unwanted)
            device = None if on is None else Device(on, self.number_of(on))
            loaded = Loaded(page, answer.body.session, device)
            # From here on the session is released with this object.
            self._sessions.add(loaded)
            if self._released:
                self._release_sessions()
            return loaded, cast(SessionInfo, answer.told())

        return Loading(self.lease.http, plan, weights, load)

    def start_run(
        self,
        session: Loaded,
        outputs: Sequence[str],
        feeds: Mapping[str, Feed],
        types: Mapping[str, str],
        future: Future[Answer],
        *,
        on_gpu: OnGpu | None = None,
        graph_id: int | None = None,
        timeout: float | None,
        profile: Timed | None = None,
        progress: Callable[[ProgressReport], None] | None = None,
    ) -> None:
        """Start a run.

        Args:
            session: The session.
            outputs: Names of the wanted outputs.
            feeds: Feeds by name; arrays must not change until the run is over.
            types: The inputs' ONNX types.
            future: The page's answer; cancel it if this method raises.
            on_gpu: Outputs to leave on the GPU, or to write into tensors there.
            graph_id: Number of the run's capture; see webgpu's option enableGraphCapture.
            timeout: Seconds, or None.
            profile: Detail of the page's account of the GPU's time; None: no account.
            progress: Called in the loop's thread while the page compiles shaders.
        """
        layout, places = Layout(), on_gpu or {}
        there = [(n, t.dtype, t.shape, t.live()) for n, t in feeds.items() if isinstance(t, DeviceTensor)]
        own = [pack_value(n, v, types[n], layout) for n, v in feeds.items() if not isinstance(v, DeviceTensor)]

        def whole() -> RunT:
            body = RunT()
            body.outputs, body.outputsOnGpu = list(outputs), list(places)
            body.options = run_options(places, graph_id, profile)
            body.feeds = [*own, *(describe_on_gpu(*described) for described in there)]
            return body

        left = tuple([(name, t and (t.dtype, t.shape, t.live())) for name, t in places.items()])
        key = session, tuple(outputs), left, graph_id, profile, tuple(there)
        message = self._prepared.of(key, session.number, own, whole, layout.size, future)
        # Outputs on the GPU are freed with the tensors that `Loaded.outputs_of` returns.
        unwanted = (lambda answer: session.outputs_of(answer, outputs, on_gpu)) if on_gpu else None
        buffers, url, http = layout.buffers, "", self.lease.http
        if layout.size >= FETCHED:
            buffers, url = [], http.new_url()
            future.add_done_callback(lambda _: http.withdraw(url))
            http.publish(layout.padded(), url=url)
        session.page.start(
            message,
            buffers,
            layout.size,
            url=url,
            timeout=timeout,
            unwanted=unwanted,
            future=future,
            progress=progress,
        )

    def start_generation(
        self,
        session: Loaded,
        prompts: Sequence[np.ndarray],
        options: GenerateOptions,
        tokens: Callable[[list[int]], object],
        processor: LogitsProcessor | None,
        *,
        timeout: float | None,
    ) -> Future[Answer]:
        """Start a generation; return the future of the page's answer, which may be cancelled.

        Args:
            session: The session.
            prompts: Tokens of each row, int32.
            options: The page's options.
            tokens: Called with each step's, in the loop's thread.
            processor: Changes logits before tokens are chosen.
            timeout: Seconds, or None.
        """
        layout, body = Layout(), GenerateT()
        body.session, body.options, body.filters = session.number, json.dumps(options), processor is not None
        body.prompts = [pack("", prompt, layout) for prompt in prompts]
        told = Processing(session, tokens, processor)
        return session.page.start(
            body, layout.buffers, layout.size, timeout=timeout, generated=told, future=told.future
        )

    def tensor_at(self, buffer: int, dtype: int, shape: Sequence[int]) -> DeviceTensor:
        """Return a GPU buffer of this page as a tensor that does not own it.

        Raises:
            InvalidArgument: This session has no device.
        """
        device = next(iter(self.devices), None)
        if device is None:
            raise InvalidArgument("this session has no device, so nothing of its page is there")
        return DeviceTensor(self.page, buffer, dtype, shape, owned=False, device=device)

    def session_stats(self, session: Loaded) -> SessionStats:
        """Ask the page for a session's recordings and memory."""
        body = GetStatsT()
        body.session = session.number
        return cast(SessionStats, loop_thread().call(session.page.request(body)).told())

    def page_stats(self) -> PageStats:
        """Ask the page for counters and memory of all its sessions and devices."""
        return cast(PageStats, loop_thread().call(self.page.request(GetStatsT())).told())

    def release_graph(self, session: Loaded, graph_id: int) -> None:
        """Release the captures of a session with a graph id."""
        body = ReleaseGraphT()
        body.session, body.graphId = session.number, graph_id
        loop_thread().call(session.page.request(body))

    def release(self, *, end_runs: bool = False) -> None:
        """Release the sessions and the share of the browser. Does not wait; never fails. See `Page.release`."""
        if not self._released:
            self._released = True
            soon(lambda: self._release(end_runs))

    def release_session(self, session: Loaded) -> None:
        """Release one of the page's sessions. Does not wait; never fails."""
        soon(lambda: self._release_sessions(session))

    def _release_sessions(self, *only: Loaded, end_runs: bool = False) -> None:
        for session in only or tuple(self._sessions):
            self._sessions.discard(session)
            session.page.release(session.number, end_runs=end_runs)

    def _release(self, end_runs: bool) -> None:
        self._leave()
        self._release_sessions(end_runs=end_runs)
        pool().release(self.lease)
