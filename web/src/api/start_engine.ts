// Chooses where a session's model runs: in a worker, or in the page's thread.
import type { ModelFile } from '../package/model_kinds';
import { ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import { host } from '../host';
import { eitherOf } from '../turn';
import type { Engine, EngineRequest, Listener } from './engine';
import { deviceOfSession, env, noteDevice, offerDevice, severityOf } from './env';
import type { PageDevice } from './providers';
import { deviceOfPage, engineRequest, type InferenceSessionOptions, needsPage, severityFor } from './session_options';
import { scriptFor, WorkerEngine, WorkerFailed } from './worker_engine';

const devices: object[] = [];
/** Devices of the page's own have numbers from here on: smaller ones are those of `deviceId`. */
const FIRST_NUMBER = 1 << 16;

function numberOf(device: object): number {
  const known = devices.indexOf(device);
  return FIRST_NUMBER + (known < 0 ? devices.push(device) - 1 : known);
}

export function listenerOf(options: InferenceSessionOptions): Listener {
  const least = severityFor(options);
  const name = options.logId ? `${options.logId}: ` : '';
  return {
    log: (severity, category, text) => {
      if (severity < least) return;
      const say = (['debug', 'info', 'warn', 'error', 'error'] as const)[severity] ?? 'error';
      console[say](`py_ort: ${name}${category}: ${text}`);
    },
    ...endedByProgress(options),
  };
}

/** The user's function and signal; an error of the function aborts the creation, in a worker, too. */
function endedByProgress({ onProgress, signal }: InferenceSessionOptions): Pick<Listener, 'onProgress' | 'signal'> {
  if (!onProgress) return { signal };
  const ending = new AbortController();
  return {
    onProgress: (...progress) => {
      try {
        if (!ending.signal.aborted) onProgress(...progress);
      } catch (error) {
        ending.abort(error);
      }
    },
    signal: eitherOf(signal, ending.signal),
  };
}

/** Starts it in a worker, if there can be one and no option requires this thread. */
export async function startEngine(
  model: ModelFile,
  options: InferenceSessionOptions,
  listener: Listener,
): Promise<{ readonly engine: Engine; readonly here: () => Promise<Engine> }> {
  severityOf(env.logLevel);
  const request = engineRequest(model, options, deviceOfPage(options), numberOf);
  const start = (listening: Listener) => {
    const device = deviceHere(options);
    return startHere(engineRequest(model, options, device, numberOf), device, listening);
  };
  // The signal of a creation does not end a later one.
  const here = () => start({ ...listener, signal: undefined });
  const why = mustBeHere(options);
  if (!why && env.wasm.proxy !== false) {
    const script = scriptFor(request);
    try {
      const engine = await WorkerEngine.create(request, script, listener);
      if (engine.keeper?.location === 'gpu-buffer') offerDevice(async () => (await localEngine()).deviceHere(request));
      return { engine, here };
    } catch (error) {
      if (!(error instanceof WorkerFailed)) throw error;
      listener.log(2, 'session', `${error.message}: the session runs in the page's own thread`);
    }
  } else if (why && env.wasm.proxy) {
    listener.log(2, 'session', `env.wasm.proxy: the session runs in this thread, because ${why}`);
  }
  return { engine: await start(listener), here };
}

/** Makes a session of a model that this runtime refuses, by `env.compiler` or `env.fallback`. */
export async function startOther(
  refused: unknown,
  model: ModelFile,
  options: InferenceSessionOptions,
  listener: Listener,
): ReturnType<typeof startEngine> {
  if ((env.fallback ?? env.compiler) == null) throw refused;
  const { openRaw } = await localEngine();
  return openRaw(refused, model, options, listener, (url, settled) => startEngine(url, settled, listener));
}

/** The part of the API that most pages use only in their worker. */
export async function localEngine(): Promise<typeof import('./local_engine')> {
  try {
    return await import('./local_engine');
  } catch (error) {
    const advice = 'service workers take py-ort-web/bundle or py_ort.min.js';
    throw new RuntimeError(ErrorCode.fail, `the runtime could not be loaded: ${messageOf(error)}; ${advice}`);
  }
}

async function startHere(request: EngineRequest, device: PageDevice | undefined, listener: Listener): Promise<Engine> {
  const local = await localEngine();
  const runtime = local.sharedRuntime(request.runtime);
  runtime.log = listener.log;
  if (device) await local.giveDevice(request, runtime, device);
  const engine = await local.LocalEngine.create(request, runtime, listener);
  if (engine.keeper?.location === 'gpu-buffer') noteDevice(() => local.deviceHere(request), device);
  return engine;
}

/** In this thread a session without a device of its own shares the device of `env.webgpu.device`, and its buffers. */
function deviceHere(options: InferenceSessionOptions): PageDevice | undefined {
  const named = options.executionProviders?.some((each) => typeof each === 'object' && 'deviceId' in each);
  return deviceOfPage(options) ?? (named ? undefined : deviceOfSession());
}

/** The reason why a session cannot run in a worker; undefined if it can. */
function mustBeHere(options: InferenceSessionOptions): string | undefined {
  const without = host.withoutProxy(env.wasm.proxy === true);
  if (without) return without;
  if (deviceOfPage(options)) return 'it uses a device of the page';
  if (needsPage(options)) return 'workers lack its device';
  const { preferredOutputLocation: locations } = options;
  const all = typeof locations === 'object' ? Object.values(locations) : [locations];
  if (env.wasm.proxy !== true && all.some((location) => location && location !== 'cpu'))
    return 'it leaves outputs on a device, for the page';
  return undefined;
}
