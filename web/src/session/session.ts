// A model ready to run: a plan and its weights. Works in a plain page: Session.load(ofUrls(planUrl, weightsUrl)),
// session.run(feeds).
import { providers } from 'virtual:providers';
import { ErrorCode } from '../schema';
import { CORE_PROVIDER } from '../contract/providers';
import { messageOf, RuntimeError } from '../errors';
import { countersSince, newCounters } from '../device/counters';
import { forTheCompiler, providerSettings, type ProviderOptions } from '../device/options';
import type { TileTable } from '../contract/kernel';
import type { CompiledShader } from '../device/commands';
import { checkCapturable } from './capture';
import { SessionDevices } from './devices';
import { compileEarly } from './compile_early';
import type { ModelSource } from './model_source';
import { readPlan } from './plan';
import { SessionRun } from './run';
import type { RunOptions, RunResult, SubmittedRun } from './run_options';
import { providerNamed, Runtime } from './runtime';
import { SessionState } from './state';
import { checkOutputNames, type Feeds, orderFeeds } from './feeds';
import { checkPlaces, placeFeeds } from './gpu_tensors';
import { Timeline } from '../timeline';
import { dueEvents } from '../turn';
import type { Value } from '../wire/values';
import { SessionWeights } from './weights';

export interface Opening {
  readonly hardware?: 'expected' | 'required';
  readonly timeoutMs?: number;
}

export interface SessionOptions {
  /** Shared with other sessions; by default the session has its own. */
  readonly runtime?: Runtime;
  /** Options of each provider, by onnxruntime's names: docs/options.md. */
  readonly providerOptions?: ProviderOptions;
  /**
   * Threads of the CPU provider that share a node's work. 0 (the default): one for each core, for sessions without a
   * GPU.
   */
  readonly threads?: number;
  /** The tiles of products on the device (DeviceTraits.tiles). */
  readonly tiles?: TileTable;
  /** The providers that nodes may be on. */
  readonly allowed?: readonly string[];
  /** The provider whose device it uses even without nodes there: for GPU tensors among its feeds and outputs. */
  readonly onDevice?: string;
  /** The preference or requirement of a real GPU, and the time limit for opening it. */
  readonly opening?: Opening;
  /**
   * Compile pipelines at creation when all input shapes are known (the default), so that the first run does not wait
   * for them.
   */
  readonly compileEarly?: boolean;
  /**
   * True if its creation and its runs appear in the browser's own performance timeline; runs with a profile always do.
   */
  readonly trace?: boolean;
  /** The plan's origin: weights are shared only among plans of the same origin. */
  readonly scope?: string;
  readonly onProgress?: (stage: string, done: number, total: number) => void;
  /** Ends the loading and releases everything. */
  readonly signal?: AbortSignal;
}

export class Session extends SessionState {
  private released = false;

  static async load(source: ModelSource, options: SessionOptions = {}): Promise<Session> {
    const start = performance.now();
    const runtime = options.runtime ?? new Runtime();
    const timeline = new Timeline(options.trace);
    const [loaded, planBytes] = await Promise.all([
      timeline.during('wait for the core', () => runtime.core()),
      timeline.during('fetch the plan', () => source.plan()),
    ]);
    const { simd } = providerSettings(CORE_PROVIDER, options.providerOptions?.[CORE_PROVIDER]);
    // First of all: only the core finds damage in a plan.
    const handle = loaded.core.createSession(planBytes);
    let devices: SessionDevices | undefined;
    let weights: SessionWeights | undefined;
    try {
      const plan = readPlan(planBytes, options.scope);
      const strange = plan.providers.slice(1).find((name) => options.allowed && !options.allowed.includes(name));
      if (strange !== undefined)
        throw new RuntimeError(
          ErrorCode.invalid_graph,
          `the file is damaged: its plan has nodes on ${strange}, which it does not list. Export the model again`,
        );
      const providing = loaded.core.microkernels.provide(
        { simd, threads: options.threads },
        { loops: loaded.core.runsMicrokernels(handle), threads: plan.providers.length === 1 },
      );
      const loadingRare = loaded.core.loadRareKernels(handle);
      for (const each of [providing, loadingRare]) each.catch(() => undefined); // told below
      const onDevices = plan.providers.length > 1 ? plan.providers.slice(1) : [options.onDevice ?? []].flat();
      const provider = onDevices.length === 0 ? Object.values(providers)[0] : providerNamed(onDevices[0]);
      const settings = provider?.settings(options.providerOptions?.[provider.name]);
      const decided = forTheCompiler(options.providerOptions);
      if (decided.length > 0)
        runtime.log(2, 'session', `${decided.join(', ')}: decided when the plan was made, so without effect here`);
      if (provider && settings?.enableGraphCapture) checkCapturable(planBytes, provider.name);
      devices = await SessionDevices.enter(runtime, onDevices, options, plan);
      const { first, sessions } = devices;
      const device = first?.provider;
      const wasm = await providing;
      const before = { ...(device?.counters ?? newCounters()) };
      const weightsStart = performance.now();
      const progress = (stage: string) => (done: number, total: number) => {
        options.signal?.throwIfAborted();
        options.onProgress?.(stage, done, total);
      };
      const onEach = sessions.map((session) => session?.provider);
      weights = await SessionWeights.load(source, plan, loaded.core, handle, onEach, progress('weights'));
      for (const on of onEach) on?.flush?.();
      const weights_ms = performance.now() - weightsStart;
      timeline.add('fetch the weights', 'page', weightsStart, { bytes: plan.weightsSize });
      await loadingRare;
      const prepareStart = performance.now();
      await runtime.exclusive(async () => {
        options.signal?.throwIfAborted();
        loaded.jsep.sessions = sessions;
        loaded.core.microkernels.use(wasm);
        loaded.core.prepareSession(handle);
      });
      timeline.add('make the kernels', 'page', prepareStart);
      const compileStart = performance.now();
      let shaders: CompiledShader[] = [];
      if (first && devices.further.length === 0 && options.compileEarly !== false) {
        shaders = await compileEarly(plan, loaded, handle, first, wasm, runtime, progress('compiling shaders'));
      }
      options.signal?.throwIfAborted();
      const compile_ms = performance.now() - compileStart;
      timeline.add('compile shaders early', 'page', compileStart, { shaders });
      const counters = countersSince(before, device?.counters ?? newCounters());
      const info = {
        create_ms: performance.now() - start,
        weights_ms,
        compile_ms,
        counters,
        wasm,
        timeline: timeline.spans,
      };
      runtime.log(
        1,
        'session',
        `loaded ${plan.modelName || 'a model'} in ${info.create_ms.toFixed(0)} ms: ` +
          `${plan.weightsSize} bytes of weights in ${weights_ms.toFixed(0)} ms, ` +
          `${counters.pipelines} pipelines in ${compile_ms.toFixed(0)} ms`,
      );
      return new Session(plan, info, runtime, loaded, handle, devices, weights, settings, options.trace);
    } catch (error) {
      loaded.core.releaseSession(handle);
      weights?.release();
      devices?.leave();
      throw error;
    }
  }

  /** Runs the model. Waits for earlier runs; their readback may overlap with this run's work. */
  async run(feeds: Feeds, options: RunOptions = {}): Promise<RunResult> {
    const start = performance.now();
    this.ensureUsable();
    const tensors = await placeFeeds(this, orderFeeds(this.plan.inputs, feeds));
    const named = [...(options.outputs ?? []), ...(options.outputsOnGpu ?? []), ...Object.keys(options.bind ?? {})];
    checkOutputNames(this.plan.outputs, named);
    if (options.bind) await checkPlaces(this, options.bind);
    const submitted = await this.runtime.exclusive(async () => {
      if (options.abortable) await dueEvents();
      this.ensureUsable();
      return (await this.submitGrowing(tensors, options)) ?? new SessionRun(this, tensors, options).submit();
    });
    return submitted.finish(start);
  }

  /** The run with its caches in buffers with room, if its caches grow. */
  private async submitGrowing(feeds: readonly Value[], options: RunOptions): Promise<SubmittedRun | undefined> {
    const growing = this.growingCaches?.enter(feeds, options);
    if (!growing) return undefined;
    try {
      const submitted = await new SessionRun(this, growing.feeds, growing.options, growing).submit();
      this.growingCaches?.note(true);
      return growing.outputsOf(submitted);
    } catch (error) {
      // The unchanged run may succeed; otherwise its own error is reported.
      this.runtime.log(0, 'session', `caches are not kept in buffers with room: ${messageOf(error)}`);
      growing.discard();
      this.growingCaches?.note(false);
      return undefined;
    }
  }

  /** Drops the capture with a graph id; with 0 also captures without one. */
  async releaseGraph(graphId: number): Promise<void> {
    await this.runtime.exclusive(async () => {
      this.captures.delete(graphId);
      this.recordings?.dropGraph(graphId);
    });
  }

  async release(): Promise<void> {
    if (this.released) return;
    this.released = true;
    for (const giveBack of this.beforeRelease) await giveBack();
    await this.runtime.exclusive(async () => {
      this.loaded.jsep.sessions = this.devices.sessions;
      this.loaded.core.releaseSession(this.handle);
      this.recordings?.clear();
      this.growingCaches?.release();
      this.weights.release();
      this.devices.leave();
    });
  }

  /** Throws if the session was released, its device was lost, or its core has crashed. */
  ensureUsable(): void {
    if (this.released) throw new RuntimeError(ErrorCode.no_such_session, 'this session was released');
    if (this.loaded.core.crashed)
      throw new RuntimeError(ErrorCode.core_crashed, 'the core of this session has crashed: create the session again');
    const { lost } = this.devices;
    if (lost !== undefined) {
      throw new RuntimeError(
        ErrorCode.device_lost,
        `the device of this session was lost (${lost.why}): create the session again`,
        { provider: lost.provider },
      );
    }
  }
}
