// A model that runs in this thread. Its file stays known: a device that is lost is opened again, and the model with it.
import { createCore } from 'virtual:core';
import { ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import type { GenerateInfo, GenerateOptions } from '../generate/generate_options';
import { generatorOf } from '../generate/load';
import type { OnTokens } from '../generate/loop';
import { isContainer, isOnGpu } from '../wire/values';
import type { CoreFiles } from '../core/files';
import { fetchedModel, openFile } from '../package/model_file';
import { Package } from '../package/package';
import type { Feeds } from '../session/feeds';
import { ofPackage } from '../session/model_source';
import type { RunResult } from '../session/run_options';
import { Runtime } from '../session/runtime';
import { Session } from '../session/session';
import { fetchedAnew, fetchedOnce } from './cache';
import type { Engine, EngineDescription, EngineRequest, EngineRunOptions, Listener, RuntimeSettings } from './engine';
import { type Choice, choosePlan, deviceOf, partOf } from './execution_providers';
import { LocalKeeper } from './local_keeper';
import { HERE, type TensorKeeper } from './keeper';

let shared: Runtime | undefined;

/** The one that all sessions of this thread share. @param compiled what a page makes of the core for its worker. */
export function sharedRuntime(
  { files, wasmBinary, initTimeout, likely, threads }: RuntimeSettings,
  compiled?: CoreFiles['compiled'],
): Runtime {
  shared ??= new Runtime(
    {
      core: (!files.coreIsNamed && createCore) || new URL(files.core),
      wasm: wasmBinary ?? new URL(files.wasm),
      relaxedSimd: new URL(files.relaxedSimd),
      simd128: new URL(files.simd128),
      likely,
      threads,
      compiled,
      thread: new URL(files.thread),
      generate: new URL(files.generate),
    },
    { timeout: initTimeout },
  );
  return shared;
}

/** Whether a file is of another version, damaged, or none of ours. */
function isOfNoUse(error: unknown): boolean {
  const codes = [ErrorCode.not_implemented, ErrorCode.invalid_graph];
  return error instanceof RuntimeError && codes.includes(error.code);
}

/** The device that a session is asked for on, in this thread. */
export async function deviceHere(request: EngineRequest): Promise<GPUDevice> {
  return (await deviceOf(request, sharedRuntime(request.runtime))).gpu.device;
}

export class LocalEngine implements Engine {
  readonly thread = HERE;
  private comingBack: Promise<void> | undefined;

  private constructor(
    private current: Session,
    readonly description: EngineDescription,
    private readonly again: () => Promise<Session>,
  ) {}

  static async create(request: EngineRequest, runtime: Runtime, listener: Listener): Promise<LocalEngine> {
    const openBy = (fetchFile: typeof fetchedModel) =>
      Package.open(request.model, partOf(request.externalData), (file) => openFile(file, fetchFile));
    const { onProgress, signal } = listener;
    const load = async (model: Package, { number, webgpu, onDevice }: Choice): Promise<Session> => {
      const { wasm, threads, trace } = request;
      const source = ofPackage(await model.plan(number));
      return Session.load(source, { runtime, webgpu, onDevice, wasm, threads, trace, onProgress, signal });
    };
    /** @param known what to run of it, if that is settled. */
    const make = async (fetchFile: typeof fetchedModel, known?: Choice) => {
      const model = await openBy(fetchFile);
      try {
        const choice = known ?? (await choosePlan(model, runtime, request));
        return { model, choice, session: await load(model, choice) };
      } catch (error) {
        model.close();
        throw error;
      }
    };
    const anyhow = (known?: Choice) =>
      request.cache
        ? make(fetchedOnce, known).catch((error: unknown) => {
            if (!isOfNoUse(error)) throw error;
            return make(fetchedAnew, known);
          })
        : make(fetchedModel, known);
    // The core is fetched while the file's beginning is on its way; what is wrong with it, whoever wants it is told.
    runtime.core().catch(() => undefined);
    const { model, choice, session } = await anyhow();
    const { inputs, outputs, plans } = model.header;
    const description = { inputs, outputs, providers: plans[choice.number].providers, info: session.info };
    return new LocalEngine(session, description, async () => (await anyhow(choice)).session);
  }

  get keeper(): TensorKeeper | undefined {
    const { provider } = this.current;
    return provider && LocalKeeper.of(provider);
  }

  readsOnGpu(name: string): boolean {
    return this.current.plan.inputs.some((input) => input.name === name && input.onGpu);
  }

  /** The device lost, the model is loaded again: from its URL, or from the bytes that the session was made of. */
  async run(feeds: Feeds, options: EngineRunOptions): Promise<RunResult> {
    const session = this.current;
    try {
      return await session.run(feeds, options);
    } catch (error) {
      if (!(error instanceof RuntimeError && error.code === ErrorCode.device_lost)) throw error;
      await this.comeBack(session, error);
      const onGpu = Object.values(feeds).some((value) => !isContainer(value) && isOnGpu(value));
      if (!onGpu && Object.keys(options.bind ?? {}).length === 0) return this.current.run(feeds, options);
      throw new RuntimeError(
        ErrorCode.device_lost,
        `${error.message}. The session is back, on another device; the tensors that were on the lost one are gone`,
      );
    }
  }

  /** As `run`: begun again, if the device is lost before the first token. */
  async generate(
    prompts: readonly (readonly number[])[],
    options: GenerateOptions,
    onTokens: OnTokens,
    signal?: AbortSignal,
  ): Promise<GenerateInfo> {
    const session = this.current;
    let begun = false;
    const tell: OnTokens = (tokens) => {
      begun = true;
      onTokens(tokens);
    };
    try {
      return await (await generatorOf(session)).generate(prompts, options, tell, signal);
    } catch (error) {
      if (!(error instanceof RuntimeError && error.code === ErrorCode.device_lost)) throw error;
      await this.comeBack(session, error);
      if (!begun) return (await generatorOf(this.current)).generate(prompts, options, onTokens, signal);
      throw new RuntimeError(
        ErrorCode.device_lost,
        `${error.message}. The session is back, on another device: generate again, with the tokens so far`,
      );
    }
  }

  async release(): Promise<void> {
    await this.current.release();
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
          ErrorCode.device_lost,
          `${why.message}; and the session could not be made again: ${messageOf(error)}`,
        );
      } finally {
        this.comingBack = undefined;
      }
    })();
    await this.comingBack;
  }
}
