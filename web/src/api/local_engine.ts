// A model that runs in this thread. Its file is remembered: after the device was lost, or the core has crashed, another
// one replaces it, and the model is loaded again.
import { createCore } from 'virtual:core';
import { ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import type { GenerateInfo, GenerateOptions, OnLogits } from '../generate/generate_options';
import { generatorOf } from '../generate/load';
import type { OnTokens } from '../generate/loop';
import { isContainer, isOnGpu } from '../wire/values';
import type { CoreFiles } from '../core/files';
import { fetchedModel, openFile, scopeOf } from '../package/model_file';
import type { ModelFile } from '../package/model_kinds';
import { Package } from '../package/package';
import type { Feeds } from '../session/feeds';
import { ofPackage } from '../session/model_source';
import type { RunResult } from '../session/run_options';
import { Runtime } from '../session/runtime';
import { Session } from '../session/session';
import { ModelCache } from './cache';
import type { Engine, EngineDescription, EngineRequest, EngineRunOptions, Listener, RuntimeSettings } from './engine';
import { type Choice, choosePlan, deviceOf, partOf } from './execution_providers';

export { giveDevice } from './execution_providers';
export { placementOf } from './placement';
export { openRaw } from './raw_models';

import { HERE, type TensorKeeper } from '../device/keeper';

let shared: Runtime | undefined;

/**
 * The runtime that all sessions of this thread share. Settings have an effect until its core is loaded. @param compiled
 * the core's files, as a page compiled them for its worker.
 */
export function sharedRuntime(
  { files, wasmBinary, initTimeout, likely, threads }: RuntimeSettings,
  compiled?: CoreFiles['compiled'],
): Runtime {
  const ofCore: CoreFiles = {
    core: (!files.coreIsNamed && createCore) || new URL(files.core),
    wasm: wasmBinary ?? new URL(files.wasm),
    relaxedSimd: new URL(files.relaxedSimd),
    simd128: new URL(files.simd128),
    rareKernels: new URL(files.rareKernels),
    likely,
    threads,
    compiled,
    thread: new URL(files.thread),
    generate: new URL(files.generate),
    late: Object.fromEntries(Object.entries(files.late).map(([provider, url]) => [provider, new URL(url)])),
  };
  const settings = { timeout: initTimeout };
  shared ??= new Runtime(ofCore, settings);
  shared.configure(ofCore, settings);
  return shared;
}

/** True for a file of another version, a damaged file, one that is cut off, or a file of another kind. */
function isOfNoUse(error: unknown): boolean {
  const codes = [ErrorCode.not_implemented, ErrorCode.invalid_graph, ErrorCode.fail];
  return error instanceof RuntimeError && codes.includes(error.code);
}

/** The device of a requested session, in this thread. */
export async function deviceHere(request: EngineRequest): Promise<GPUDevice> {
  return (await deviceOf(request, sharedRuntime(request.runtime))).native as GPUDevice;
}

export class LocalEngine implements Engine {
  readonly thread = HERE;
  private comingBack: Promise<void> | undefined;

  private constructor(
    private current: Session,
    readonly description: EngineDescription,
    private readonly again: () => Promise<Session>,
    readonly request: EngineRequest,
  ) {}

  static async create(request: EngineRequest, runtime: Runtime, listener: Listener): Promise<LocalEngine> {
    const { onProgress } = listener;
    const load = async (
      model: Package,
      { number, providerOptions, onDevice }: Choice,
      signal?: AbortSignal,
    ): Promise<Session> => {
      const { threads, trace } = request;
      const source = ofPackage(await model.plan(number));
      const scope = scopeOf(request.model);
      const allowed = model.header.plans[number].providers;
      const given = { runtime, providerOptions, onDevice, allowed, threads, trace, scope };
      return Session.load(source, { ...given, onProgress, signal });
    };
    /** @param known the plan and providers to use, if they are decided. @param signal of the first creation alone. */
    const make = async (fetchFile: typeof fetchedModel, known?: Choice, signal?: AbortSignal) => {
      const open = (file: ModelFile) => openFile(file, signal, fetchFile);
      const model = await Package.open(request.model, partOf(request.externalData), open);
      try {
        const choice = known ?? (await choosePlan(model, runtime, request));
        return { model, choice, session: await load(model, choice, signal) };
      } catch (error) {
        model.close();
        throw error;
      }
    };
    const anyhow = (known?: Choice, signal?: AbortSignal) => {
      if (!request.cache) return make(fetchedModel, known, signal);
      const cache = new ModelCache(listener);
      return make(cache.fetchedOnce, known, signal).catch((error: unknown) => {
        if (!cache.hit || !isOfNoUse(error)) throw error;
        return make(cache.fetchedAnew, known, signal);
      });
    };
    // The core is fetched while the file's start is being fetched; its users receive a failure.
    runtime.core().catch(() => undefined);
    const { model, choice, session } = await anyhow(undefined, listener.signal);
    const { inputs, outputs, plans } = model.header;
    const { number: plan } = choice;
    const description = { inputs, outputs, plan, providers: plans[plan].providers, info: session.info };
    return new LocalEngine(session, description, async () => (await anyhow(choice)).session, request);
  }

  get keeper(): TensorKeeper | undefined {
    return this.current.provider?.keeper;
  }

  readsOnGpu(name: string): boolean {
    return this.current.plan.inputs.some((input) => input.name === name && input.onGpu);
  }

  run(feeds: Feeds, options: EngineRunOptions): Promise<RunResult> {
    const onGpu = Object.values({ ...feeds, ...options.bind }).some((value) => !isContainer(value) && isOnGpu(value));
    return this.steadily(
      (session) => session.run(feeds, options),
      (code) =>
        onGpu &&
        code === ErrorCode.device_lost &&
        ', on another device; the tensors that were on the lost one are gone',
    );
  }

  generate(
    prompts: readonly (readonly number[])[],
    options: GenerateOptions,
    onTokens: OnTokens,
    signal?: AbortSignal,
    onLogits?: OnLogits,
  ): Promise<GenerateInfo> {
    let begun = false;
    const tell: OnTokens = (tokens) => {
      begun = true;
      onTokens(tokens);
    };
    return this.steadily(
      async (session) => (await generatorOf(session)).generate(prompts, options, tell, signal, onLogits),
      () => begun && ': generate again, with the tokens so far',
    );
  }

  async release(): Promise<void> {
    await this.current.release();
  }

  /**
   * If the device was lost, or another run crashed the core, loads the model again: from its URL, or from the bytes of
   * which the session was made. The work is then repeated, unless `cannot` returns a reason against it.
   */
  private async steadily<T>(
    work: (session: Session) => Promise<T>,
    cannot: (code: ErrorCode) => string | false,
  ): Promise<T> {
    const session = this.current;
    try {
      return await work(session);
    } catch (error) {
      const ends =
        error instanceof RuntimeError && [ErrorCode.device_lost, ErrorCode.core_crashed].includes(error.code);
      if (!ends || error === session.loaded.core.crashed) throw error;
      await this.comeBack(session, error);
      const why = cannot(error.code);
      if (!why) return work(this.current);
      throw new RuntimeError(error.code, `${error.message}. The session is back${why}`);
    }
  }

  private async comeBack(lost: Session, why: RuntimeError): Promise<void> {
    if (this.current !== lost) return;
    this.comingBack ??= (async () => {
      try {
        const session = await this.again();
        this.current = session;
        await lost.release().catch(() => undefined);
      } catch (error) {
        throw new RuntimeError(
          why.code,
          `${why.message}; and the session could not be made again: ${messageOf(error)}`,
        );
      } finally {
        this.comingBack = undefined;
      }
    })();
    await this.comingBack;
  }
}
