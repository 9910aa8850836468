// What the sessions of a page share: the core, the devices, and the turn to use the core.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import { Core } from '../core/core';
import { type CoreFiles, filesIn } from '../core/files';
import type { DeviceOptions } from '../providers/webgpu/device';
import type { GpuProvider } from '../providers/webgpu/provider';
import { JsepBackend } from '../jsep/backend';
import { DeviceContexts } from '../providers/webgpu/contexts';

/** Severities as in onnxruntime: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal. */
export type LogSink = (severity: number, category: string, text: string) => void;

export interface LoadedCore {
  readonly core: Core;
  readonly jsep: JsepBackend;
}

export interface RuntimeOptions {
  /** Milliseconds that loading the core may take. */
  readonly timeout?: number;
}

export class Runtime {
  private loading: Promise<LoadedCore> | undefined;
  readonly contexts = new DeviceContexts((severity, text) => this.log(severity, 'webgpu', text));
  private lastTurn: Promise<unknown> = Promise.resolve();
  log: LogSink = (severity, category, text) => {
    if (severity >= 2) console.warn(`${category}: ${text}`);
  };

  constructor(
    readonly files: CoreFiles = filesIn(import.meta.url),
    private readonly settings: RuntimeOptions = {},
  ) {}

  /** The core, once it is there. */
  loadedCore: LoadedCore | undefined;

  /** Another one after it has crashed. */
  core(): Promise<LoadedCore> {
    if (this.loadedCore?.core.crashed) this.loading = this.loadedCore = undefined;
    this.loading ??= this.load();
    // A failure is told to all who wait, and the next call tries again.
    this.loading.catch(() => {
      this.loading = undefined;
    });
    return this.loading;
  }

  private async load(): Promise<LoadedCore> {
    const { timeout } = this.settings;
    const loading = Core.load(this.files, (severity, text) => this.log(severity, 'core', text));
    const core = await (timeout ? within(timeout, loading, `the core at ${this.files.core}`) : loading);
    return (this.loadedCore = { core, jsep: new JsepBackend(core) });
  }

  /** The device `id`, opened once; opened anew when it was lost. */
  device(id = 0, options?: DeviceOptions): Promise<GpuProvider> {
    return this.contexts.open(id, options);
  }

  /** Makes a device of the page's own, or one of this adapter, the device `id` (above 0) of sessions that name it. */
  registerDevice(id: number, source: GPUDevice | GPUAdapter): void {
    this.contexts.register(id, source);
  }

  /** Runs `work` when all work before it is done: Asyncify allows one suspended call of the core at a time. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.lastTurn.then(work, work);
    this.lastTurn = turn.catch(() => undefined);
    return turn;
  }
}

function within<T>(milliseconds: number, work: Promise<T>, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () =>
      reject(
        new RuntimeError(ErrorCode.fail, `${what} was not loaded within ${milliseconds} ms (env.wasm.initTimeout)`),
      );
    const timer = setTimeout(late, milliseconds);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
