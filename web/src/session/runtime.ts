// Parts that the sessions of a page share: the core, the devices, and the turn to use the core.
import { providers } from 'virtual:providers';
import { ErrorCode } from '../schema';
import { CORE_PROVIDER } from '../contract/providers';
import { RuntimeError } from '../errors';
import { Core } from '../core/core';
import { named } from '../wire/values';
import { type CoreFiles, filesIn } from '../core/files';
import { capability, type Devices, type OpenDevice, type ProviderModule } from '../device/module';
import type { DeviceProvider } from '../device/provider';
import { JsepBackend } from '../jsep/backend';

/** Severities as in onnxruntime: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal. */
export type LogSink = (severity: number, category: string, text: string) => void;

export interface LoadedCore {
  readonly core: Core;
  readonly jsep: JsepBackend;
}

export interface RuntimeOptions {
  /** Milliseconds to wait for the core to load. */
  readonly timeout?: number;
}

/** The best provider with devices in this build, or the named one. @throws not_implemented */
export function providerNamed(name?: string): ProviderModule {
  const found = name === undefined ? Object.values(providers)[0] : named(providers, name);
  return capability(found, name ?? CORE_PROVIDER, name === undefined ? 'devices' : 'code in this build of py_ort');
}

export class Runtime {
  private loading: Promise<LoadedCore> | undefined;
  private readonly ofProviders = new Map<string, Devices>();
  private lastTurn: Promise<unknown> = Promise.resolve();
  log: LogSink = (severity, category, text) => {
    if (severity >= 2) console.warn(`${category}: ${text}`);
  };

  constructor(
    public files: CoreFiles = filesIn(import.meta.url),
    private settings: RuntimeOptions = {},
  ) {}

  /** Replaces files and settings before the core is loaded: a load with the former ones may have failed. */
  configure(files: CoreFiles, settings: RuntimeOptions): void {
    if (this.loading) return;
    this.files = files;
    this.settings = settings;
  }

  /** The core, once it is loaded. */
  loadedCore: LoadedCore | undefined;

  /** Loads another one after a crash. */
  core(): Promise<LoadedCore> {
    if (this.loadedCore?.core.crashed) this.loading = this.loadedCore = undefined;
    if (this.loading) return this.loading;
    const loading = this.load();
    this.loading = loading;
    // All waiting callers receive a failure, and the next call tries again.
    loading.catch(() => {
      if (this.loading === loading) this.loading = undefined;
    });
    return loading;
  }

  private async load(): Promise<LoadedCore> {
    const { timeout } = this.settings;
    const loading = Core.load(this.files, (severity, text) => this.log(severity, 'core', text));
    const core = await (timeout ? within(timeout, loading, `the core at ${this.files.core}`) : loading);
    return (this.loadedCore = { core, jsep: new JsepBackend(core) });
  }

  /** The devices of the provider of this name. */
  devices(name: string): Devices {
    const known = this.ofProviders.get(name);
    if (known) return known;
    const made = providerNamed(name).devices((severity, text) => this.log(severity, name, text));
    this.ofProviders.set(name, made);
    return made;
  }

  /** A caller that entered this device no longer needs it. */
  leave(id: number, device: DeviceProvider): void {
    this.devices(device.name).leave(id, device);
  }

  /** All open devices. */
  async openDevices(): Promise<{ readonly id: number; readonly device: OpenDevice }[]> {
    const all = await Promise.all([...this.ofProviders.values()].map((devices) => devices.all()));
    return all.flatMap((devices) => [...devices].map(([id, device]) => ({ id, device })));
  }

  /** The owner of a tensor; undefined if it has none. */
  async ownerOf(tensor: number): Promise<{ readonly id: number; readonly device: OpenDevice } | undefined> {
    return (await this.openDevices()).find(({ device }) => device.buffers.has(tensor));
  }

  /** Runs `work` after all work before it: Asyncify allows one suspended call of the core at a time. */
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
