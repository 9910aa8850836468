// What the sessions of a page share: the core, the devices, and the turn to use the core.
import { Core } from '../core/core';
import type { DeviceOptions } from '../gpu/device';
import { GpuProvider } from '../gpu/provider';
import { JsepBackend } from '../jsep/backend';

/** Severities as in onnxruntime: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal. */
export type LogSink = (severity: number, category: string, text: string) => void;

export interface LoadedCore {
  readonly core: Core;
  readonly jsep: JsepBackend;
}

export class Runtime {
  private loading: Promise<LoadedCore> | undefined;
  private readonly devices = new Map<number, Promise<GpuProvider>>();
  private lastTurn: Promise<unknown> = Promise.resolve();
  log: LogSink = (severity, category, text) => {
    if (severity >= 2) console.warn(`${category}: ${text}`);
  };

  constructor(private readonly coreUrl: URL = new URL('core.mjs', import.meta.url)) {}

  /** The core, once it is there. */
  loadedCore: LoadedCore | undefined;

  core(): Promise<LoadedCore> {
    this.loading ??= Core.load(this.coreUrl).then((core) => (this.loadedCore = { core, jsep: new JsepBackend(core) }));
    // A failure is told to all who wait, and the next call tries again.
    this.loading.catch(() => { this.loading = undefined; });
    return this.loading;
  }

  /** The device `id`, opened once; opened anew when it was lost. */
  async device(id = 0, options?: DeviceOptions): Promise<GpuProvider> {
    const known = this.devices.get(id);
    if (known) {
      const provider = await known;
      if (provider.gpu.lost === undefined) return provider;
      // Another caller may have been quicker.
      if (this.devices.get(id) !== known) return this.device(id, options);
    }
    const opening = GpuProvider.open(options);
    this.devices.set(id, opening);
    try {
      const provider = await opening;
      provider.gpu.onUncapturedError = (message) => this.log(3, 'webgpu', message);
      void provider.gpu.device.lost.then(({ message }) => this.log(3, 'webgpu', `device ${id} was lost: ${message}`));
      return provider;
    } catch (error) {
      this.devices.delete(id);
      throw error;
    }
  }

  /** The devices that are open now. */
  async openDevices(): Promise<GpuProvider[]> {
    return Promise.all(this.devices.values());
  }

  /** Runs `work` when all work before it is done: Asyncify allows one suspended call of the core at a time. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.lastTurn.then(work, work);
    this.lastTurn = turn.catch(() => undefined);
    return turn;
  }
}
