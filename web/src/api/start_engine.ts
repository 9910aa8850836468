// Where a session's model runs: in a worker, or in the thread of the page.
import { host } from '../host';
import type { ModelFile } from '../package/model_file';
import type { Engine, EngineRequest, Listener } from './engine';
import { env, noteDevice, offerDevice, severityOf } from './env';
import { deviceOfPage, engineRequest, type InferenceSessionOptions } from './session_options';
import { WorkerEngine, WorkerFailed } from './worker_engine';

/** The numbers of devices that pages gave. 0 is the runtime's own. */
const devices: object[] = [];

/** In a worker, if there can be one and nothing speaks against it. */
export async function startEngine(
  model: ModelFile,
  options: InferenceSessionOptions,
  listener: Listener,
): Promise<{ readonly engine: Engine; readonly here: () => Promise<Engine> }> {
  severityOf(env.logLevel);
  const request = engineRequest(model, options, (device) => {
    const known = devices.indexOf(device);
    return known < 0 ? devices.push(device) : known + 1;
  });
  const start = () => startHere(request, options, listener);
  const why = mustBeHere(options);
  if (!why && env.wasm.proxy !== false) {
    const script = new URL(request.runtime.files.worker);
    try {
      const engine = await WorkerEngine.create(request, script, listener);
      if (engine.keeper?.location === 'gpu-buffer')
        offerDevice(async () => (await import('./local_engine')).deviceHere(request));
      return { engine, here: start };
    } catch (error) {
      if (!(error instanceof WorkerFailed)) throw error;
      listener.log(2, 'session', `${error.message}: the session runs in the page's own thread`);
    }
  } else if (why && env.wasm.proxy) {
    listener.log(2, 'session', `env.wasm.proxy: the session runs in this thread, because ${why}`);
  }
  return { engine: await start(), here: start };
}

async function startHere(
  request: EngineRequest,
  options: InferenceSessionOptions,
  listener: Listener,
): Promise<Engine> {
  const { LocalEngine, deviceHere, giveDevice, sharedRuntime } = await import('./local_engine');
  const runtime = sharedRuntime(request.runtime);
  runtime.log = listener.log;
  const device = deviceOfPage(options);
  if (device) giveDevice(request, runtime, device);
  const engine = await LocalEngine.create(request, runtime, listener);
  if (engine.keeper?.location === 'gpu-buffer') noteDevice(() => deviceHere(request));
  return engine;
}

/** Why a session cannot run in a worker; undefined where it can. */
function mustBeHere(options: InferenceSessionOptions): string | undefined {
  const without = host.withoutProxy(env.wasm.proxy === true);
  if (without) return without;
  if (deviceOfPage(options)) return 'it uses a device of the page';
  const { preferredOutputLocation: locations } = options;
  const all = typeof locations === 'object' ? Object.values(locations) : [locations];
  if (env.wasm.proxy !== true && all.some((location) => location && location !== 'cpu'))
    return 'it leaves outputs on a device, for the page';
  return undefined;
}
