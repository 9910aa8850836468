// One run of a session: feed, walk or replay, submit, read back.
import { DType, Location } from '../schema';
import type { CoreOutput } from '../core/words';
import { invalid } from '../errors';
import { type Counters, countersSince, newCounters } from '../device/counters';
import { gpuTime, type ProfileRow } from '../device/profile';
import type { PendingReadback, RunErrors } from '../device/provider';
import { storageBytes } from '../device/memory_plan';
import { type Forms, hasGpuForm } from '../contract/elements';
import { Recorder } from '../device/recorder';
import type { ClosedOutput, Recording } from '../device/recording';
import { refresh } from '../jsep/refresh';
import { boundInPlace } from './bound_in_place';
import { notCapturable } from './capture';
import { Delivery } from './delivery';
import type { GrowingRun } from './growing_caches';
import { describeFeeds } from './feeds';
import type { FurtherWork } from './devices';
import { DEVICE, type PlanInput } from './plan';
import { RecordingCache } from './recordings';
import { addNodeTimes, type DispatchTime, nodesOfKernels, withNodes } from './node_times';
import type { RunInfo, RunOptions, SubmittedRun } from './run_options';
import type { SessionState } from './state';
import { type Container, isContainer, isOnGpu, type TensorOnCpu, type Value } from '../wire/values';
import { Timeline } from '../timeline';

/** The `graphId` of runs that are neither captured nor replayed. */
const UNCAPTURED = -1;
/** Replaces feeds on the GPU that no node reads. */
const UNREAD = 1;

export class SessionRun {
  private readonly before: Counters;
  private readonly timeline: Timeline | undefined;
  private further: FurtherWork | undefined;
  private readonly names: readonly string[];
  /** Of a session with nodes on the GPU. */
  private readonly errors: RunErrors | undefined;

  constructor(
    private readonly session: SessionState,
    private readonly feeds: readonly Value[],
    private readonly options: RunOptions,
    private readonly growing?: GrowingRun,
  ) {
    this.before = { ...this.counters() };
    this.errors = session.gpuSession?.errors();
    const { profile } = options;
    this.timeline = profile || session.traced ? new Timeline(true, profile) : undefined;
    this.names = options.outputs?.length ? options.outputs : session.plan.outputs;
  }

  /** True if the run is neither captured nor replayed: the data that goes through the heap differs in each run. */
  private get once(): boolean {
    return this.options.graphId === UNCAPTURED || this.session.devices.further.length > 0;
  }

  private counters(): Counters {
    return this.session.provider?.counters ?? newCounters();
  }

  /** Called only for tensors that are on the GPU, or go there. */
  private elements(): Forms {
    return this.session.provider!.elements;
  }

  async submit(): Promise<SubmittedRun> {
    this.options.signal?.throwIfAborted();
    const { session } = this;
    session.loaded.jsep.sessions = session.devices.sessions;
    if (!session.gpuSession) return this.walk(undefined);
    const { gpuSession, recordings } = session;
    gpuSession.boundInPlace = boundInPlace(session.plan, gpuSession, this.feeds, this.options.bind);
    const together = [...gpuSession.boundInPlace].map(([kernel, pairs]) => `; ${kernel}: ${pairs.join(' ')}`).join('');
    gpuSession.rowsBefore = this.growing?.rowsBefore;
    const gpuKey =
      this.options.graphId === undefined
        ? RecordingCache.gpuKey(this.feeds, session.plan.inputs) + together
        : undefined;
    const recording = recordings!.take(this.recordingKey(together), gpuKey);
    const recorder = new Recorder(
      gpuSession,
      recording,
      this.errors!,
      (done, total) => {
        this.options.signal?.throwIfAborted();
        this.options.onProgress?.('compiling shaders', done, total);
      },
      this.timeline,
    );
    if (this.once) recording.closed = recording.refreshable = undefined;
    const { growing } = this;
    const known = recording.closed ?? this.refreshed(recording);
    if (known) {
      if (growing) this.checkCalls(recording, growing);
      return this.replay(recorder, known);
    }
    gpuSession.recorder = recorder;
    gpuSession.checkCall = growing && ((event, bytesOf) => growing.check(event, bytesOf));
    try {
      return await this.walk(recorder);
    } catch (error) {
      const reason = await this.reason(recorder, error);
      // A partial recording is useless.
      this.forget(recording);
      throw reason;
    }
  }

  /** The outputs of a recording whose uploads follow from feeds, if the feeds change nothing else. */
  private refreshed(recording: Recording): readonly ClosedOutput[] | undefined {
    const { refreshable } = recording;
    if (!refreshable) return undefined;
    const { core } = this.session.loaded;
    const run = core.beginRun(this.session.handle);
    core.microkernels.use(this.session.info.wasm);
    try {
      this.session.plan.inputs.forEach((input, i) => this.feed(run, i, input, () => UNREAD));
      const given = core.refresh(run);
      if (!given) recording.refreshable = undefined;
      return given && refresh(refreshable, given, core) ? refreshable.outputs : undefined;
    } finally {
      core.endRun(run);
    }
  }

  private checkCalls(recording: Recording, growing: GrowingRun): void {
    const { runs, uploads, feeds } = recording.refreshable ?? recording.calls();
    const bytesOf = (id: number) =>
      uploads.get(id)?.data ?? (this.feeds[feeds.get(id)!] as TensorOnCpu | undefined)?.data;
    for (const event of runs.values()) growing.check(event, bytesOf);
  }

  private recordingKey(together: string): string {
    const { graphId } = this.options;
    const key = RecordingCache.key(this.feeds) + together;
    if (graphId === undefined) return key;
    const { settings, captures } = this.session;
    if (!settings?.enableGraphCapture) throw invalid(`a graph id (${graphId}) is for sessions with enableGraphCapture`);
    if (graphId !== UNCAPTURED && !(Number.isInteger(graphId) && graphId >= 0))
      throw invalid(`graph id ${graphId}: a whole number from -1`);
    if (graphId !== UNCAPTURED) {
      const inputs = describeFeeds(this.session.plan.inputs, this.feeds);
      const known = captures.get(graphId) ?? { key, inputs };
      if (known.key !== key)
        throw invalid(
          `graph ${graphId} was captured with inputs ${known.inputs}, not ${inputs}: give another graph id`,
        );
      captures.set(graphId, known);
    }
    return RecordingCache.graphKey(graphId, key);
  }

  /** Lets the core walk the plan; the recorder compares its calls with the recording, or records them. */
  private async walk(recorder: Recorder | undefined): Promise<SubmittedRun> {
    const { core } = this.session.loaded;
    const run = core.beginRun(this.session.handle);
    if (recorder) recorder.byShapes = () => core.replayable(run);
    core.microkernels.use(this.session.info.wasm);
    const before = core.tensorBytes(true).now;
    const further = (this.further = this.session.devices.begin(this.timeline));
    const cancel = () => core.cancel(run);
    this.options.signal?.addEventListener('abort', cancel);
    try {
      const upload = (i: number, { dtype, data }: TensorOnCpu): number => {
        const wide = this.elements().widen(dtype, data);
        return recorder!.feed(i, wide, storageBytes(wide.byteLength));
      };
      this.session.plan.inputs.forEach((input, i) => this.feed(run, i, input, recorder && upload));
      if (this.timeline) core.profile(run);
      const start = performance.now();
      await core.execute(run);
      await further.ended();
      this.timeline?.add('walk the plan', 'page', start);
      if (this.timeline) addNodeTimes(this.timeline, core.times(run), this.session.plan.nodes());
      if (this.session.gpuSession) this.counters().walks++;
      const outputs = this.session.plan.outputs.map((_, i) => this.describe(run, i));
      const segments = recorder?.segmentCount ?? 0;
      const closed = segments === 1 && core.replayable(run);
      this.checkCaptured(closed, segments);
      const delivery = this.deliver(outputs, !recorder?.replaying);
      const survivors = new Set(
        outputs.flatMap((output) => (!isContainer(output) && 'gpuId' in output.data ? [output.data.gpuId] : [])),
      );
      const pending = await this.commit(recorder, delivery, survivors);
      const replayed = recorder?.replaying ?? false;
      if (recorder && !this.once) {
        const { recording } = recorder;
        if (closed) recording.closed = outputs;
        else if (segments === 1 && outputs.every(isLeftOnGpu)) recording.refreshTo(outputs);
      }
      return this.submitted(pending, delivery, recorder, { compile_ms: recorder?.compileMs ?? 0, replayed, segments });
    } finally {
      this.options.signal?.removeEventListener('abort', cancel);
      // Memory that the core frees from here on is not part of the recording.
      if (this.session.gpuSession) this.session.gpuSession.recorder = this.session.gpuSession.checkCall = undefined;
      core.endRun(run);
      further.release();
      this.session.noteHeap(before, core.tensorBytes());
    }
  }

  private async commit(
    recorder: Recorder | undefined,
    delivery: Delivery,
    survivors: ReadonlySet<number>,
  ): Promise<PendingReadback | undefined> {
    try {
      return await recorder?.commit(delivery.read, delivery.keep, survivors);
    } catch (error) {
      delivery.discard();
      throw error;
    }
  }

  /** Checks facts that the plan does not contain, such as outputs that are feeds. */
  private checkCaptured(closed: boolean, segments: number): void {
    if (closed || !this.session.settings?.enableGraphCapture || this.options.graphId === UNCAPTURED) return;
    const once = 'an output, or what a node takes to the GPU, is made of feeds on the CPU';
    const why = segments > 1 ? `a run waits ${segments - 1} times for the GPU` : once;
    throw notCapturable(why, this.session.provider!.name);
  }

  /** Encodes a closed recording again. */
  private replay(recorder: Recorder, outputs: readonly ClosedOutput[]): SubmittedRun {
    const contents = new Map<number, Uint8Array>();
    this.session.plan.inputs.forEach(({ onGpu }, i) => {
      const feed = this.feeds[i];
      if (onGpu && !isOnGpu(feed) && !isContainer(feed)) contents.set(i, this.elements().widen(feed.dtype, feed.data));
    });
    const delivery = this.deliver(outputs, false);
    const pending = recorder.replay(contents, delivery.read, delivery.keep);
    return this.submitted(pending, delivery, recorder, { compile_ms: 0, replayed: true, segments: 1 });
  }

  /** Passes input `index` to the core; `upload` uploads it to the GPU, if there is one, and returns its id there. */
  private feed(
    run: number,
    index: number,
    { name, onCpu, onGpu }: PlanInput,
    upload: ((index: number, feed: TensorOnCpu) => number) | undefined,
  ): void {
    const { core } = this.session.loaded;
    const feed = this.feeds[index];
    if (isContainer(feed)) return this.feedContainer(run, index, feed);
    if (isOnGpu(feed)) {
      this.session.provider?.buffers.get(feed.gpuId, `input "${name}"`);
      core.feedDevice(run, index, DEVICE, feed.dtype, feed.dims, feed.gpuId);
      return;
    }
    // Types without a form on the GPU stay with the core, which reports an error if a kernel needs them there.
    const uploaded = onGpu && hasGpuForm(feed.dtype) ? upload?.(index, feed) : undefined;
    if (onCpu || uploaded === undefined) core.feed(run, index, feed.dtype, feed.dims, feed.data);
    if (uploaded !== undefined) core.feedDevice(run, index, DEVICE, feed.dtype, feed.dims, uploaded);
  }

  /** Sequences and optionals go to the core's heap: no GPU kernel reads one. */
  private feedContainer(run: number, index: number, { kind, dtype, items }: Container): void {
    const { core } = this.session.loaded;
    core.feedContainer(run, index, kind, dtype);
    for (const item of items) {
      if (isContainer(item)) this.feedContainer(run, index, item);
      else core.feed(run, index, item.dtype, item.dims, (item as TensorOnCpu).data);
    }
  }

  private describe(run: number, index: number): ClosedOutput {
    const { core } = this.session.loaded;
    const output = core.output(run, index);
    if ('kind' in output) return this.copied(output) as Container;
    const { dtype, dims, location, data, bytes } = output;
    return {
      dtype,
      dims,
      data: location === Location.device ? { gpuId: data } : { bytes: this.copyOfHeap(data, bytes) },
    };
  }

  private copyOfHeap(address: number, size: number): Uint8Array {
    const { core } = this.session.loaded;
    // A recording keeps the CPU's results beyond this run.
    return this.options.copy && !this.session.gpuSession
      ? this.options.copy(core.view(address, size))
      : core.bytes(address, size);
  }

  /** A copy of a value in the core's heap. */
  private copied(output: CoreOutput): Value {
    if (!('kind' in output))
      return {
        dtype: output.dtype,
        dims: output.dims,
        data: this.session.loaded.core.bytes(output.data, output.bytes),
      };
    const items = output.items.map((item) => this.copied(item));
    return { kind: output.kind, dtype: items[0]?.dtype ?? DType.undefined, items };
  }

  private deliver(outputs: readonly ClosedOutput[], making: boolean): Delivery {
    const make = () => new Delivery(this.session, outputs, this.names, this.options);
    if (!this.errors) return make();
    const delivery = this.errors.during(making, make);
    // The run does not wait for the GPU, and the page's own memory may be gone by then.
    this.errors.untold = delivery.read.length === 0 && this.takesLent();
    return delivery;
  }

  private takesLent(): boolean {
    const { buffers } = this.session.provider!;
    const bound = Object.values(this.options.bind ?? {});
    return [...this.feeds, ...bound].some((value) => 'gpuId' in value && buffers.isLent(value.gpuId));
  }

  private collect(delivery: Delivery, parts: readonly Uint8Array[]): { [name: string]: Value } {
    return this.errors?.during(delivery.uploads, () => delivery.collect(parts)) ?? delivery.collect(parts);
  }

  /** The cause of a failed run: the GPU's errors if there are any, since the others follow from them. */
  private async reason(recorder: Recorder, error: unknown): Promise<unknown> {
    const { gpuSession, plan, provider } = this.session;
    const errors = await this.errors!.foundLate();
    if (error === this.session.loaded.core.crashed) return error;
    const lost = this.session.devices.failure(error);
    if (lost) return lost;
    if (errors.length === 0 || this.options.signal?.aborted) return error;
    const instance = await recorder.refused();
    const node = instance === undefined ? undefined : nodesOfKernels(gpuSession!, plan.nodes()).get(instance);
    return provider!.complaint(errors, node && { node: node.name, opType: node.opType, provider: provider!.name });
  }

  /** Memory that a failed run made on the GPU is not used again: some buffers may lack memory. */
  private forget(recording: Recording): void {
    this.session.recordings!.forget(recording);
    this.session.gpuSession!.memory.clear();
  }

  /** A profile's additions to the run's information. */
  private async profiled(recorder: Recorder | undefined): Promise<Pick<RunInfo, 'profile' | 'gpu' | 'timeline'>> {
    if (!this.timeline?.timed) return {};
    const { timed, spans: timeline } = this.timeline;
    const profilers = recorder?.profilers ?? [];
    if (timed === 'passes') {
      const passes = await Promise.all(profilers.map((one) => one.passes()));
      return { gpu: gpuTime(passes.flat()), timeline };
    }
    const rows = (await Promise.all(profilers.map((one) => one.dispatches()))).flat();
    const others = await this.further?.dispatches(this.session.plan.nodes());
    return { profile: this.marked([...this.ofFirst(rows), ...(others ?? [])]), timeline };
  }

  private ofFirst(rows: readonly ProfileRow[]): DispatchTime[] {
    return rows.length > 0 ? withNodes(rows, this.session.gpuSession!, this.session.plan.nodes()) : [];
  }

  private marked(profile: DispatchTime[]): DispatchTime[] {
    for (const { kernel, start_ms, ms, ...args } of profile)
      if (start_ms !== undefined && ms !== undefined)
        this.timeline!.mark(kernel, 'kernels', start_ms, start_ms + ms, args);
    return profile;
  }

  private submitted(
    pending: PendingReadback | undefined,
    delivery: Delivery,
    recorder: Recorder | undefined,
    info: Pick<RunInfo, 'compile_ms' | 'replayed' | 'segments'>,
  ): SubmittedRun {
    const counters = countersSince(this.before, this.counters());
    return {
      finish: async (start) => {
        let outputs: { [name: string]: Value };
        try {
          const collect = (parts: readonly Uint8Array[]) => this.collect(delivery, parts);
          outputs = pending ? await pending.finish(collect) : collect([]);
          const errors = await this.errors?.found();
          if (errors?.length) throw this.session.provider!.complaint(errors);
          recorder?.succeeded();
        } catch (error) {
          throw await this.failed(recorder, delivery, error);
        }
        const ended = performance.now();
        const [run_ms, profiled] = [ended - start, await this.profiled(recorder)];
        this.timeline?.mark('run', 'runs', start, ended, { model: this.session.plan.modelName, ...info, ...counters });
        return { outputs, info: { run_ms, ...info, counters, ...profiled } };
      },
    };
  }

  /** A failure after the submit, when other runs may have begun. */
  private async failed(recorder: Recorder | undefined, delivery: Delivery, error: unknown): Promise<unknown> {
    const reason = recorder ? await this.reason(recorder, error) : error;
    delivery.discard();
    if (recorder) await this.session.runtime.exclusive(async () => this.forget(recorder.recording));
    return reason;
  }
}

function isLeftOnGpu(output: ClosedOutput): boolean {
  return !isContainer(output) && 'gpuId' in output.data;
}
